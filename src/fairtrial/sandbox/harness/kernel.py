"""The few calls to the kernel that Python's standard library lacks; Linux only."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
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
_SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_SPEC_ALLOW = 1, 4
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277, "ppc64le": 358, "s390x": 348}
_SYS_SETAFFINITY = {"x86_64": 203, "aarch64": 122, "riscv64": 122, "ppc64le": 222, "s390x": 239}
_ARCHITECTURE = {
    "x86_64": 0xC000003E,
    "aarch64": 0xC00000B7,
    "riscv64": 0xC00000F3,
    "ppc64le": 0xC0000015,
    "s390x": 0x80000016,
}

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


def stay_on_cores() -> None:
    """Ignore from now on, in all descendants as well, whoever asks for other cores.

    They are told that it worked: honest programs ask for cores, too. Where a kernel or a container
    has no such filters, nothing is done. New privileges must have been given up before.
    """
    machine = os.uname().machine
    if machine not in _SYS_SECCOMP or ctypes.sizeof(ctypes.c_void_p) < 8:
        return
    load, equals, leave = 0x20, 0x15, 0x06
    allow, do_nothing = 0x7FFF0000, 0x00050000
    steps = (
        (load, 0, 0, 4),  # the architecture: numbers are others for 32-bit programs
        (equals, 0, 3, _ARCHITECTURE[machine]),
        (load, 0, 0, 0),  # the number of the call
        (equals, 0, 1, _SYS_SETAFFINITY[machine]),
        (leave, 0, 0, do_nothing),
        (leave, 0, 0, allow),
    )
    kept = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(kept))
    numbers = (_SYS_SECCOMP[machine], _SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_SPEC_ALLOW)
    libc.syscall(*map(ctypes.c_long, numbers), program)
