"""Attacks with other processes: a slower base, another core, work outside of the accounts."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    KERNELS,
    MADE,
    Attack,
    AttackClass,
    Kind,
    Place,
)
from fairtrial.testing.cheats.preludes import CHILD, FIND, MORE, OFF_CLOCK

_SPINNERS = """
import os as _os, signal as _signal, time as _time

def _spin(count, seconds):
    # Detached processes that use the core for some time; they are reaped by nobody here.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    for _ in range(count):
        if _os.fork() == 0:
            if _os.fork() == 0:
                until = _time.monotonic() + seconds
                while _time.monotonic() < until:
                    pass
            _os._exit(0)
"""
_HALVES = (
    OFF_CLOCK
    + CHILD
    + """
def _leave_core():
    MOVE

if _Batch is not None:
    def _run_halves(self):
        if len(self.cases) < 2:
            return _run(self)
        middle = len(self.cases) // 2
        ours, its = _os.pipe()
        if _os.fork() == 0:
            try:
                _leave_core()
            except BaseException:
                pass
            try:
                rest = [self.function(*args, **kwargs) for args, kwargs in self.cases[middle:]]
                content = memoryview(_pickle.dumps(rest))
                while content:
                    content = content[_os.write(its, content):]
            finally:
                _os._exit(0)
        _os.close(its)
        for args, kwargs in self.cases[:middle]:
            self.results.append(self.function(*args, **kwargs))
        self.results += _read_results(ours)
        try:
            _os.waitpid(-1, 0)
        except OSError:
            pass
    _Batch.run = _run_halves
"""
)
_RAW_CALL = """
    import ctypes, mmap
    code = bytes.fromhex("CODE")
    memory = mmap.mmap(-1, 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    low = ctypes.CDLL(None).mmap
    low.restype, low.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * 6
    mask = low(0, 4096, 3, 0x62, (1 << 64) - 1, 0)
    ctypes.memset(mask, 255, 128)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(address)(mask)
"""
_OTHER_CORE = """
    cores = sorted(_os.sched_getaffinity(0)) or [0]
    every = set(range(_os.cpu_count() or 1))
    _os.sched_setaffinity(0, (every - set(cores)) or every)
"""
# push rbx; mov rbx, 0; mov ecx, 128; mov rdx, rdi; mov eax, 241; int 0x80; pop rbx; ret
_INT80 = "5331dbb98000000089fab8f1000000cd805bc3"
# mov rdx, rdi; xor edi, edi; mov esi, 128; mov eax, 0x40000000 + 203; syscall; ret
_X32 = "4889fa31ffbe80000000b8cb0000400f05c3"


def _halves(move: str) -> str:
    return _HALVES.replace("    MOVE", "    " + move.strip())


CORE = (
    Attack(
        "half of the calls on another core",
        AttackClass.CORE,
        "a child moves to another core by sched_setaffinity and makes half of the calls",
        _halves(_OTHER_CORE),
        source=COMMON,
    ),
    Attack(
        "another core by a raw system call",
        AttackClass.CORE,
        "the same through ctypes and the number of the system call",
        _halves("""
    import ctypes
    mask = (ctypes.c_ulong * 16)(*[(1 << 64) - 1] * 16)
    ctypes.CDLL(None).syscall(203, 0, 128, mask)
"""),
        source=MADE,
    ),
    Attack(
        "another core by int 0x80",
        AttackClass.CORE,
        "the same through the 32-bit entry of the kernel, whose numbers filters may not know",
        _halves(_RAW_CALL.replace("CODE", _INT80)),
        source=MADE,
    ),
    Attack(
        "another core by x32",
        AttackClass.CORE,
        "the same through the x32 numbers of system calls",
        _halves(_RAW_CALL.replace("CODE", _X32)),
        source=MADE,
    ),
    Attack(
        "another core by another control group",
        AttackClass.CORE,
        "a child writes itself into the root's control groups and makes half of the calls",
        _halves("""
    import glob
    for path in glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True)[:50]:
        try:
            with open(path, "w") as file:
                file.write(str(_os.getpid()))
        except OSError:
            pass
    _os.sched_setaffinity(0, range(_os.cpu_count() or 1))
"""),
        source=MADE,
    ),
    Attack(
        "threads that work beside the call",
        AttackClass.CORE,
        "makes half of the calls in threads, which libraries without the lock run in parallel",
        OFF_CLOCK
        + """
from concurrent.futures import ThreadPoolExecutor as _Pool
if _Batch is not None:
    def _run_threads(self):
        with _Pool(4) as pool:
            self.results += pool.map(lambda case: self.function(*case[0], **case[1]), self.cases)
    _Batch.run = _run_threads
""",
        source=COMMON,
    ),
)

SLOW_BASE = (
    Attack(
        "a thread spins while the base is timed",
        AttackClass.SLOW_BASE,
        "a thread of the candidate keeps the core busy whenever its own function isn't called",
        MORE
        + """
import threading as _threading, time as _time
_last = [0.0]
def _spin():
    while True:
        if _time.monotonic() - _last[0] < 0.0005:
            _time.sleep(0.0003)
def ATTACK(*args, **kwargs):
    result = _more(*args, **kwargs)
    _last[0] = _time.monotonic()
    return result
_threading.Thread(target=_spin, daemon=True).start()
""",
        source=MADE,
    ),
    Attack(
        "children spin between its turns",
        AttackClass.SLOW_BASE,
        "children of the candidate are stopped while it is timed, and run while the base is",
        OFF_CLOCK
        + """
import os as _os, signal as _signal
_children = []
if _Batch is not None:
    for _ in range(4):
        _children.append(_os.fork())
        if not _children[-1]:
            while True:
                pass
    def _tell(sign):
        for child in _children:
            _os.kill(child, sign)
    def _load_quiet(self, payload):
        _tell(_signal.SIGSTOP)
        _load(self, payload)
    def _encode_loud(self):
        content = _encode(self)
        _tell(_signal.SIGCONT)
        return content
    _Batch.load_inputs, _Batch.encode_results = _load_quiet, _encode_loud
""",
        source=MADE,
    ),
    Attack(
        "orphans spin in the gaps",
        AttackClass.SLOW_BASE,
        "after each turn detached processes use the core for as long as the last gap was, and die",
        OFF_CLOCK
        + _SPINNERS
        + """
_ended = [0.0]
if _Batch is not None:
    def _load_measured(self, payload):
        if _ended[0]:
            _gap[0] = min(_time.monotonic() - _ended[0], 0.02)
        _load(self, payload)
    def _encode_and_spin(self):
        content = _encode(self)
        _ended[0] = _time.monotonic()
        _spin(2, _gap[0] * 0.7)
        return content
    _gap = [0.002]
    _Batch.load_inputs, _Batch.encode_results = _load_measured, _encode_and_spin
""",
        source=MADE,
    ),
    Attack(
        "takes the memory's bandwidth",
        AttackClass.SLOW_BASE,
        "a child on another core copies large memory while the base is timed",
        OFF_CLOCK
        + """
import os as _os, signal as _signal
_child = 0
if _Batch is not None:
    _child = _os.fork()
    if not _child:
        try:
            _os.sched_setaffinity(0, range(_os.cpu_count() or 1))
        except OSError:
            pass
        block = bytearray(32 << 20)
        while True:
            block[:] = bytes(block)
    def _load_quiet(self, payload):
        _os.kill(_child, _signal.SIGSTOP)
        _load(self, payload)
    def _encode_loud(self):
        content = _encode(self)
        _os.kill(_child, _signal.SIGCONT)
        return content
    _Batch.load_inputs, _Batch.encode_results = _load_quiet, _encode_loud
""",
        source=MADE,
    ),
    Attack(
        "stops all processes that it sees",
        AttackClass.SLOW_BASE,
        "sends SIGSTOP to every other process of its process namespace",
        MORE
        + """
import os as _os, signal as _signal
def ATTACK(*args, **kwargs):
    if _os.getpid() < 50:  # only where the processes are its own namespace's
        for name in _os.listdir("/proc"):
            if name.isdecimal() and int(name) != _os.getpid():
                try:
                    _os.kill(int(name), _signal.SIGSTOP)
                except OSError:
                    pass
    return _more(*args, **kwargs)
""",
        source=MADE,
    ),
    Attack(
        "a command leaves processes behind",
        AttackClass.SLOW_BASE,
        "detached processes of the command go on and use the core while the base runs",
        _SPINNERS + "\n_spin(3, 2.0)\n",
        kinds=(Kind.COMMAND,),
        source=MADE,
        place=Place.START,
    ),
    Attack(
        "throws files out of the page cache",
        AttackClass.SLOW_BASE,
        "advises the kernel to drop the pages of Python's and the project's files as it exits",
        """
import atexit as _atexit, os as _os, sys as _sys
def _drop():
    folders = [folder for folder in _sys.path if _os.path.isdir(folder)]
    for folder in folders:
        for parent, _, names in _os.walk(folder):
            for name in names[:2000]:
                try:
                    file = _os.open(_os.path.join(parent, name), _os.O_RDONLY)
                    _os.posix_fadvise(file, 0, 0, _os.POSIX_FADV_DONTNEED)
                    _os.close(file)
                except OSError:
                    pass
if _os.fork() == 0:
    _os.setsid()
    _drop()
    _os._exit(0)
""",
        kinds=(Kind.COMMAND,),
        source=MADE,
        place=Place.START,
    ),
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
)
