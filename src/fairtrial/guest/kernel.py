"""The few calls to the kernel that Python's standard library lacks; Linux only."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

IS_LINUX = sys.platform.startswith("linux")

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_KEYCTL_JOIN_SESSION_KEYRING = 1
_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """The result of a call, or an `OSError` that says what was tried."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int = 0) -> int:
    arguments = [ctypes.c_ulong(each) for each in (value, 0, 0, 0)]
    return int(libc.prctl(option, *arguments))


def adopt_orphans() -> None:
    """From now on a descendant whose parent dies becomes a child of this process."""
    check(prctl(_PR_SET_CHILD_SUBREAPER, 1), "become a subreaper")


def set_dumpable(dumpable: bool) -> None:
    """Whether processes of the same user may trace this one or open its descriptors."""
    check(prctl(_PR_SET_DUMPABLE, int(dumpable)), "change dumpable")


def die_with_parent(signal_number: int) -> None:
    """Ask for a signal when the parent dies: the very thread that forked, so it must have one."""
    check(prctl(_PR_SET_PDEATHSIG, signal_number), "ask for the parent's death")


def leave_keyring() -> None:
    """Have a keyring of one's own: a session's holds the user's secrets, and outlives commands.

    Where the kernel has no keyrings, or a container forbids them, there is none to leave.
    """
    number = _SYS_KEYCTL.get(os.uname().machine)
    if number is None or ctypes.sizeof(ctypes.c_void_p) < 8:
        return
    join = ctypes.c_long(_KEYCTL_JOIN_SESSION_KEYRING)
    result = libc.syscall(ctypes.c_long(number), join, None)
    if result < 0 and ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM, errno.EACCES):
        check(result, "have a keyring of its own")


def drop_privileges() -> None:
    """Give up all capabilities, for good: neither programs nor files can bring them back."""
    check(prctl(_PR_SET_NO_NEW_PRIVS, 1), "give up new privileges")
    capability = 0
    # Ends with the last one that this kernel knows, or at once for those who have none.
    while prctl(_PR_CAPBSET_DROP, capability) == 0:
        capability += 1
    ambient = [ctypes.c_ulong(each) for each in (_PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)]
    libc.prctl(_PR_CAP_AMBIENT, *ambient)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, (ctypes.c_uint32 * 6)()), "drop capabilities")
