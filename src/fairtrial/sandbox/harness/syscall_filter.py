"""The filter of system calls (seccomp) for commands in a sandbox; Linux only.

It closes ways in which one command could disturb or watch others through files that all of them
share, and ways in which a timed command could leave its core or raise its priority:

- calls of another ABI (``int 0x80``, x32) fail: their numbers are others, so that no rule would
  apply to them; so do calls through io_uring, which no filter sees
- leases on files, and calls that drop pages of shared files from memory, are refused or ignored;
  no process handles page faults of others (userfaultfd)
- timed commands can't change cores or priorities; these calls seem to succeed, since honest
  programs make them, too. Nor can they watch files, which would show the turns of others, or arm
  timers by the thousand, whose interrupts would fall into the turns of others uncounted

A filter can't be removed, and holds for all descendants.
"""

from __future__ import annotations

import errno
import os

from . import kernel
from .c_library import addressof, c_char, c_long, c_void_p, sizeof

TYPE_CHECKING = False  # typing takes longer to import than many commands to run
if TYPE_CHECKING:
    import struct
    from typing import Iterator, Sequence

    Step = tuple[int, int, int, int]
    Rule = tuple[str, int, int | None, Sequence[int]]
else:
    import _struct as struct

_SET_MODE_FILTER, _FLAG_SPEC_ALLOW = 1, 4
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277}
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
_X32_BIT = 0x40000000
_GENERIC = {
    "fcntl": 25,
    "inotify_init1": 26,
    "ioprio_set": 30,
    "timerfd_create": 85,
    "timer_create": 107,
    "sched_setparam": 118,
    "sched_setscheduler": 119,
    "sched_setaffinity": 122,
    "setpriority": 140,
    "fadvise64": 223,
    "madvise": 233,
    "fanotify_init": 262,
    "sched_setattr": 274,
    "userfaultfd": 282,
    "io_uring_setup": 425,
    "process_madvise": 440,
}
_NUMBERS = {
    "x86_64": {
        "madvise": 28,
        "fcntl": 72,
        "setpriority": 141,
        "sched_setparam": 142,
        "sched_setscheduler": 144,
        "sched_setaffinity": 203,
        "fadvise64": 221,
        "timer_create": 222,
        "ioprio_set": 251,
        "inotify_init": 253,
        "timerfd_create": 283,
        "inotify_init1": 294,
        "fanotify_init": 300,
        "sched_setattr": 314,
        "userfaultfd": 323,
        "io_uring_setup": 425,
        "process_madvise": 440,
    },
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_IGNORE = _FAIL  # fails with error 0: the call seems to succeed
_F_SETLEASE, _FADV_DONTNEED, _MADV_COLD, _MADV_PAGEOUT = 1024, 4, 20, 21
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ABI, _ARGUMENTS = 0, 4, 16

_ALWAYS: Sequence[Rule] = (
    # name, result, index of the argument that decides, and its values
    ("fcntl", _FAIL | errno.EAGAIN, 1, (_F_SETLEASE,)),
    ("fadvise64", _IGNORE, 3, (_FADV_DONTNEED,)),
    ("madvise", _IGNORE, 2, (_MADV_COLD, _MADV_PAGEOUT)),
    ("process_madvise", _FAIL | errno.ENOSYS, None, ()),
    ("io_uring_setup", _FAIL | errno.ENOSYS, None, ()),
    ("userfaultfd", _FAIL | errno.ENOSYS, None, ()),
)
_TIMED: Sequence[Rule] = (
    *((name, _IGNORE, None, ()) for name in ("sched_setaffinity", "setpriority", "ioprio_set")),
    *((f"sched_set{name}", _IGNORE, None, ()) for name in ("param", "scheduler", "attr")),
    *((name, _FAIL | errno.ENOSYS, None, ()) for name in ("inotify_init", "inotify_init1")),
    *((name, _FAIL | errno.ENOSYS, None, ()) for name in ("fanotify_init", "timerfd_create")),
    ("timer_create", _FAIL | errno.EAGAIN, None, ()),
)


def install(is_timed: bool) -> bool:
    """Install the filter in this process and all its descendants.

    New privileges must have been given up before.

    is_timed: whether the rules for timed commands apply, too

    Returns whether there is a filter: not on other machines than those in `_NUMBERS`, and not if
    the kernel or a container has no filters.
    """
    machine = os.uname().machine
    if machine not in _SYS_SECCOMP or sizeof(c_void_p) < 8:
        return False
    steps = list(_make_program(machine, (*_ALWAYS, *(_TIMED if is_timed else ()))))
    packed = b"".join(struct.pack("=HBBI", *step) for step in steps)
    code = (c_char * len(packed)).from_buffer_copy(packed)
    program = struct.pack("@HP", len(steps), addressof(code))
    numbers = (_SYS_SECCOMP[machine], _SET_MODE_FILTER, _FLAG_SPEC_ALLOW)
    return bool(kernel.libc.syscall(*map(c_long, numbers), program) == 0)


def _make_program(machine: str, rules: Sequence[Rule]) -> Iterator[Step]:
    """Yield the steps of the filter: (code, jump if true, jump if false, value) each."""
    refuse = (_RETURN, 0, 0, _FAIL | errno.ENOSYS)
    yield _LOAD, 0, 0, _ABI
    yield _IF_EQUAL, 1, 0, _ARCHITECTURE[machine]
    yield refuse
    yield _LOAD, 0, 0, _NUMBER
    if machine == "x86_64":
        yield _IF_AT_LEAST, 0, 1, _X32_BIT
        yield refuse
    numbers = _NUMBERS[machine]
    for name, result, argument, values in rules:
        if name not in numbers:
            continue
        if argument is None:
            yield _IF_EQUAL, 0, 1, numbers[name]
            yield _RETURN, 0, 0, result
            continue
        # The lower half of the argument: the kernel takes it as a 32-bit number.
        yield _IF_EQUAL, 0, 2 + len(values) + 1, numbers[name]
        yield _LOAD, 0, 0, _ARGUMENTS + 8 * argument
        for left, value in zip(range(len(values), 0, -1), values):
            yield _IF_EQUAL, left, 0, value
        yield _RETURN, 0, 0, _ALLOW
        yield _RETURN, 0, 0, result
    yield _RETURN, 0, 0, _ALLOW
