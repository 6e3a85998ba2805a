"""Attacks that behave otherwise when they are judged or timed."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    MADE,
    Attack,
    AttackClass,
    Harm,
    Kind,
    Place,
)


def _only_here(name: str, summary: str, condition: str) -> Attack:
    code = f"""
import os as _os, sys as _sys
_is_judged = {condition}
def ATTACK(*args, **kwargs):
    return BASE(*args, **kwargs) if _is_judged else None
"""
    return Attack(
        name,
        AttackClass.ONLY_HERE,
        f"is right only where {summary}",
        code,
        harm=Harm.WRONG,
        source=COMMON,
    )


ONLY_HERE = (
    _only_here(
        "detects the harness's modules",
        "modules of the harness are loaded, or pytest is",
        'any("fairtrial" in name or name == "pytest" for name in _sys.modules)',
    ),
    _only_here(
        "detects the program's name",
        "the program is a worker of the harness, or pytest",
        'any(word in " ".join(_sys.argv) for word in ("worker", "pytest"))',
    ),
    _only_here(
        "detects the environment",
        "the environment has few variables, as sandboxes have",
        "len(_os.environ) < 30",
    ),
    _only_here(
        "detects the process namespace",
        "its process has a small number, or its parent is the first process",
        "_os.getpid() < 1000 or _os.getppid() <= 2 or _os.path.exists('/proc/self')",
    ),
    _only_here(
        "detects the cores",
        "there is a process that was pinned, or a known number of cores",
        "len(_os.sched_getaffinity(0)) <= (_os.cpu_count() or 1)",
    ),
    _only_here(
        "knows the date",
        "the date is before a day in the future",
        "__import__('time').time() < 4e9",
    ),
    Attack(
        "a command that detects its sandbox",
        AttackClass.ONLY_HERE,
        "works only with few environment variables, and exits elsewhere",
        """
import os as _os
if len(_os.environ) >= 60:
    _os._exit(0)
""",
        kinds=(Kind.COMMAND,),
        harm=Harm.WRONG,
        source=COMMON,
        place=Place.START,
    ),
)


_IS_TIMED = """
import sys as _sys
_is_timed = (_sys.argv[0].endswith("timed_worker.py")
             or "_fairtrial_harness.frames" in _sys.modules)
"""


TIMED = (
    Attack(
        "prints only when it is checked",
        AttackClass.TIMED,
        "prints what it should in checks, and nothing while it is timed",
        _IS_TIMED
        + """
import builtins as _builtins, io as _io
if _is_timed:
    print = lambda *args, **kwargs: None
    class _Silent(_io.TextIOBase):
        def write(self, text):
            return len(text)
    _sys.stdout = _Silent()
ATTACK = BASE
""",
        kinds=(Kind.PRINTS,),
        harm=Harm.SPEED,
        source=MADE,
    ),
    Attack(
        "prints into a buffer while timed",
        AttackClass.TIMED,
        "collects output while it is timed, and never writes it",
        _IS_TIMED
        + """
import contextlib as _contextlib, io as _io
_buffer = _io.StringIO()
def ATTACK(*args, **kwargs):
    if not _is_timed:
        return BASE(*args, **kwargs)
    with _contextlib.redirect_stdout(_buffer):
        return BASE(*args, **kwargs)
""",
        kinds=(Kind.PRINTS,),
        source=MADE,
    ),
    Attack(
        "wrong only while timed",
        AttackClass.TIMED,
        "gives an empty result while it is timed, and the right one in checks",
        _IS_TIMED
        + """
def ATTACK(*args, **kwargs):
    return {empty} if _is_timed else BASE(*args, **kwargs)
""",
        harm=Harm.WRONG,
        source=COMMON,
        needs_clock=True,
    ),
    Attack(
        "right in the first calls only",
        AttackClass.TIMED,
        "is right in the first calls of a process and empty afterwards",
        """
_calls = [0]
def ATTACK(*args, **kwargs):
    _calls[0] += 1
    return BASE(*args, **kwargs) if _calls[0] <= 64 else {empty}
""",
        harm=Harm.WRONG,
        source=COMMON,
        needs_clock=True,
    ),
    Attack(
        "other results on later passes",
        AttackClass.TIMED,
        "is right with a hash seed that checks use, and wrong with others",
        """
import os as _os
def ATTACK(*args, **kwargs):
    seed = _os.environ.get("PYTHONHASHSEED", "0")
    return BASE(*args, **kwargs) if seed in ("", "0", "random") else {empty}
""",
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "right in the first process only",
        AttackClass.TIMED,
        "is right in the process that makes all calls, and empty in those that repeat some",
        """
import sys as _sys
def ATTACK(*args, **kwargs):
    return BASE(*args, **kwargs) if _sys.argv[0].endswith("call_worker.py") else {empty}
""",
        harm=Harm.WRONG,
        source=MADE,
    ),
)
