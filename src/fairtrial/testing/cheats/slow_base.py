"""Attacks that slow the base down while it is timed."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    MADE,
    Attack,
    AttackClass,
    Kind,
    Place,
)
from fairtrial.testing.cheats.preludes import (
    MORE,
    OFF_CLOCK,
)

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
    if {is_sandboxed} and _os.getpid() < 50:  # only where the processes are its own namespace's
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
        "detached processes of the command keep running and use the core while the base runs",
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
    Attack(
        "timers interrupt the base",
        AttackClass.SLOW_BASE,
        "arms a thousand timers at the end of its turn: they interrupt the base in its turn, "
        "and their time is counted as the base's",
        OFF_CLOCK
        + """
import ctypes as _ctypes, resource as _resource
_libc = _ctypes.CDLL(None)
class _Spec(_ctypes.Structure):
    _fields_ = [(name, _ctypes.c_long) for name in ("every_s", "every_ns", "in_s", "in_ns")]
if _Batch is not None:
    _most = _resource.getrlimit(_resource.RLIMIT_NOFILE)[1]
    _resource.setrlimit(_resource.RLIMIT_NOFILE, (_most, _most))
    _timers = [_libc.timerfd_create(1, 0) for _ in range(1000)]
    _orders = [
        (timer, _ctypes.byref(_Spec(0, 0, 0, 20_000 * (place + 5))))
        for place, timer in enumerate(_timers) if timer >= 0
    ]
    _never = _ctypes.byref(_Spec(0, 0, 0, 0))
    def _encode_and_arm(self):
        content = _encode(self)
        for timer, order in _orders:
            _libc.timerfd_settime(timer, 0, order, None)
        return content
    def _disarm_and_load(self, payload):
        for timer, _ in _orders:
            _libc.timerfd_settime(timer, 0, _never, None)
        _load(self, payload)
    _Batch.encode_results, _Batch.load_inputs = _encode_and_arm, _disarm_and_load
""",
        source=MADE,
    ),
    Attack(
        "leaves cold caches to the base",
        AttackClass.SLOW_BASE,
        "writes over a large array at the end of its turn, so that the base has cold caches",
        OFF_CLOCK
        + """
if _Batch is not None:
    _room, _zeros = bytearray(24 * 2**20), bytes(24 * 2**20)
    def _encode_and_sweep(self):
        content = _encode(self)
        _room[:] = _zeros
        return content
    _Batch.encode_results = _encode_and_sweep
""",
        source=MADE,
    ),
)
