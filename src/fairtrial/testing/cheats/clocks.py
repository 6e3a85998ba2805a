"""Attacks on clocks, priorities and settings of the interpreter."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    KERNELS,
    MADE,
    Attack,
    AttackClass,
    Harm,
)
from fairtrial.testing.cheats.preludes import (
    FIND,
    MORE,
)

CLOCKS = (
    Attack(
        "its own clocks",
        AttackClass.CLOCKS,
        "replaces all functions of the time module, and takes twice as long",
        MORE
        + """
import os as _os, time as _time
for _name in ("perf_counter", "monotonic", "process_time", "time", "thread_time"):
    setattr(_time, _name, lambda: 0.0)
    setattr(_time, _name + "_ns", lambda: 0)
_time.clock_gettime = lambda which: 0.0
_os.times = lambda: (0.0,) * 5
ATTACK = _more
""",
        source=KERNELS,
    ),
    Attack(
        "the harness's clock",
        AttackClass.CLOCKS,
        "replaces the clock of the timed worker and the time that it reports",
        FIND
        + MORE
        + """
_sys.modules["__main__"]._now = lambda: 1e9
if _Batch is not None:
    _Batch.exhausting_s = property(lambda self: 1e9, lambda *_: None)
ATTACK = _more
""",
        source=MADE,
    ),
    Attack(
        "no garbage collector",
        AttackClass.CLOCKS,
        "switches the garbage collector off for good, and calls the base twice",
        MORE + "\nimport gc as _gc\n_gc.disable()\nATTACK = _more\n",
        source=COMMON,
    ),
    Attack(
        "another priority",
        AttackClass.CLOCKS,
        "asks the kernel for all priorities that it can name, and takes twice as long",
        MORE
        + """
import os as _os
for _change in (lambda: _os.nice(-20), lambda: _os.setpriority(_os.PRIO_PROCESS, 0, -20),
                lambda: _os.sched_setscheduler(0, _os.SCHED_FIFO, _os.sched_param(1))):
    try:
        _change()
    except OSError:
        pass
ATTACK = _more
""",
        source=COMMON,
    ),
    Attack(
        "environment variables",
        AttackClass.CLOCKS,
        "sets OMP_NUM_THREADS and its like, and starts itself again with a fixed hash seed",
        MORE
        + """
import os as _os
for _name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
    _os.environ[_name + "_NUM_THREADS"] = str(_os.cpu_count() or 1)
_os.environ["PYTHONHASHSEED"] = "0"
ATTACK = _more
""",
        source=COMMON,
    ),
    Attack(
        "sleeps instead of working",
        AttackClass.CLOCKS,
        "sleeps in every call, which a clock of CPU time alone would not count",
        """
import time as _time
def ATTACK(*args, **kwargs):
    _time.sleep(0.0005)
    return BASE(*args, **kwargs)
""",
        source=COMMON,
    ),
    Attack(
        "compiles at import",
        AttackClass.CLOCKS,
        "spends a second at import, as compilers do, and is no faster afterwards",
        """
import time as _time
_until = _time.process_time() + 1.0
while _time.process_time() < _until:
    pass
ATTACK = BASE
""",
        source=COMMON,
    ),
    Attack(
        "turns the collector off for its caller",
        AttackClass.CLOCKS,
        "switches the garbage collector of the whole process off, and leaves it off",
        """
import gc as _gc
def ATTACK(*args, **kwargs):
    _gc.disable()
    return BASE(*args, **kwargs)
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "moves its caller to another folder",
        AttackClass.CLOCKS,
        "changes the working folder and the recursion limit of the whole process",
        """
import os as _os, sys as _sys
def ATTACK(*args, **kwargs):
    _os.chdir("/")
    _sys.setrecursionlimit(300)
    return BASE(*args, **kwargs)
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "ignores its caller's signals",
        AttackClass.CLOCKS,
        "has the whole process ignore the signals that end it",
        """
import signal as _signal
_signal.signal(_signal.SIGINT, _signal.SIG_IGN)
_signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
ATTACK = BASE
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "replaces functions for its caller",
        AttackClass.CLOCKS,
        "replaces sleeping and sorting for all code of the process",
        """
import builtins as _builtins, time as _time
_sorted = sorted
_time.sleep = lambda seconds: None
_builtins.sorted = lambda *args, **kwargs: _sorted(*args, **kwargs)
ATTACK = BASE
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
)
