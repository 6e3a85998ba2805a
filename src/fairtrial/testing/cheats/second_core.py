"""Attacks that leave the core that they are timed on."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    MADE,
    Attack,
    AttackClass,
)
from fairtrial.testing.cheats.preludes import (
    CHILD,
    OFF_CLOCK,
)

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
