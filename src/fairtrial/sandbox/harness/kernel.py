"""System calls that Python's standard library lacks, by means of the C library; Linux only."""

from __future__ import annotations

import errno
import os
import sys

from .c_library import c_long, c_uint32, c_ulong, c_void_p, get_errno, libc as libc, sizeof

IS_LINUX = sys.platform.startswith("linux")

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_ADDR_NO_RANDOMIZE, _QUERY_PERSONALITY = 0x0040000, 0xFFFFFFFF
_CAPABILITY_VERSION_3 = 0x20080522
_KEYCTL_JOIN_SESSION_KEYRING = 1
_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}


def check(result: int, action: str) -> int:
    """Return the result of a system call; raises `OSError` with the action if it failed."""
    if result < 0:
        number = get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int = 0) -> int:
    """Call prctl with one argument."""
    arguments = [c_ulong(argument) for argument in (value, 0, 0, 0)]
    return int(libc.prctl(option, *arguments))


def fix_addresses() -> None:
    """Have programs that this process executes from now on get the same addresses each time.

    Does nothing where that isn't possible: then addresses are random as always.
    """
    if IS_LINUX:
        current = libc.personality(c_ulong(_QUERY_PERSONALITY))
        if current >= 0:
            libc.personality(c_ulong(current | _ADDR_NO_RANDOMIZE))


def become_subreaper() -> None:
    """Make this process the parent of descendants whose own parent dies."""
    check(prctl(_PR_SET_CHILD_SUBREAPER, 1), "become a subreaper")


def set_dumpable(dumpable: bool) -> None:
    """Set whether processes of the same user may trace this one or open its descriptors."""
    check(prctl(_PR_SET_DUMPABLE, int(dumpable)), "change dumpable")


def die_with_parent(signal_number: int) -> None:
    """Request a signal when the parent dies; more exactly, the thread of it that forked."""
    check(prctl(_PR_SET_PDEATHSIG, signal_number), "ask for the parent's death")


def join_new_keyring() -> None:
    """Join a new session keyring: the old one holds the user's secrets, and outlives commands.

    Does nothing if the kernel has no keyrings, or a container forbids them.
    """
    number = _SYS_KEYCTL.get(os.uname().machine)
    if number is None or sizeof(c_void_p) < 8:
        return
    join = c_long(_KEYCTL_JOIN_SESSION_KEYRING)
    result = libc.syscall(c_long(number), join, None)
    if result < 0 and get_errno() not in (errno.ENOSYS, errno.EPERM, errno.EACCES):
        check(result, "have a keyring of its own")


def drop_privileges() -> None:
    """Give up all capabilities permanently: no program or file can regain them."""
    check(prctl(_PR_SET_NO_NEW_PRIVS, 1), "give up new privileges")
    capability = 0
    # Fails after the last capability that this kernel has, or at once without privileges.
    while prctl(_PR_CAPBSET_DROP, capability) == 0:
        capability += 1
    ambient = [c_ulong(argument) for argument in (_PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)]
    libc.prctl(_PR_CAP_AMBIENT, *ambient)
    header = (c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, (c_uint32 * 6)()), "drop capabilities")
