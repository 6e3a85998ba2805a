"""Isolation of a process: new namespaces with a minimal file system; Linux 5.12 or newer.

Works for ordinary users and for root, since all of it happens inside a new user namespace.
"""

from __future__ import annotations

import ctypes
import os
import struct

from . import kernel

TYPE_CHECKING = False  # typing takes longer to import than many commands to run
if TYPE_CHECKING:
    import signal
    from typing import Any, Mapping, NoReturn

    from .group_joining import Joiner
else:
    import _signal as signal  # `signal` adds enum only, which is slow to import, too

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_NAMESPACE_FLAGS = {
    "user": 0x10000000,
    "mount": 0x00020000,
    "pid": 0x20000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
}
_NETWORK_FLAG = 0x40000000
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_OLD_ROOT = "/.outside"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/ptmx": "pts/ptmx",
}


def enter(plan: Mapping[str, Any], joiner: Joiner | None = None, held: int | None = None) -> None:
    """Enter new namespaces by a mount plan; returns only in their pid 1.

    Call it in a freshly forked process without other threads. That process itself waits for pid 1
    and exits with its status, so that its parent can wait for it. Pid 1 has no capabilities left,
    and sees only what the plan shows. Raises `OSError` if this machine refuses a step.

    plan: plain data
        uid, gid: user and group inside
        network: whether the machine's network is shared; otherwise there is a new loopback only
        hostname: the name of the machine inside
        links: {path: target} of symbolic links, made first
        private: folders that are empty, writable and in memory
        private_mb: size of each of them
        mounts: [source, target, writable], mounted in order over everything else, together with
            what is mounted inside the sources
    joiner: moves pid 1 into its control groups meanwhile
    held: a descriptor that the process outside holds open until it exits
    """
    _unshare(plan)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or the kernel would reap pid 1 itself
    pid = os.fork()
    if pid:
        _wait_for(pid, joiner, held)
    if held is not None:
        os.close(held)
    kernel.check(kernel.libc.sethostname(plan["hostname"].encode(), len(plan["hostname"])), "name")
    _make_root(plan)
    if not plan["network"]:
        _bring_up_loopback()
    kernel.drop_privileges()
    if joiner is not None:
        joiner.wait()


def _unshare(plan: Mapping[str, Any]) -> None:
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        try:
            os.setgroups([])
        except PermissionError:  # in a container
            pass
    kernel.set_dumpable(True)  # or the maps below could not be written
    flags = sum(_NAMESPACE_FLAGS.values()) | (0 if plan["network"] else _NETWORK_FLAG)
    kernel.check(kernel.libc.unshare(flags), "make new namespaces")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{plan['uid']} {uid} 1")
    _write("/proc/self/gid_map", f"{plan['gid']} {gid} 1")


def _wait_for(pid: int, joiner: Joiner | None, held: int | None) -> NoReturn:
    """In the process outside: close other descriptors, wait for pid 1, and exit with its status."""
    if joiner is not None:
        joiner.join(pid)
    os.closerange(0, 1 << 16 if held is None else held)
    if held is not None:
        os.closerange(held + 1, 1 << 16)
    if joiner is not None:
        joiner.reap()
    _, status = os.waitpid(pid, 0)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _make_root(plan: Mapping[str, Any]) -> None:
    """Make a new root in memory with the plan's mounts, and detach the old one."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    # Any folder will do: its files are visible again below the old root.
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=16m")
    os.mkdir(f"/tmp{_OLD_ROOT}", 0o700)
    kernel.check(kernel.libc.pivot_root(b"/tmp", f"/tmp{_OLD_ROOT}".encode()), "change the root")
    os.chdir("/")
    _forbid_user_namespaces()
    for path, target in plan["links"].items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
    os.mkdir("/proc")
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _make_devices()
    for folder in plan["private"]:
        _mount_tmpfs(folder, plan["private_mb"])
    for source, target, writable in plan["mounts"]:
        _bind(source, target, writable)
    kernel.check(kernel.libc.umount2(_OLD_ROOT.encode(), _MNT_DETACH), "leave the old root")
    os.rmdir(_OLD_ROOT)
    # For root, files in /proc/sys would be writable even without capabilities.
    for folder in ("/proc", "/dev", "/"):
        _set_mount_flags(folder, _ATTR_RDONLY, 0)


def _forbid_user_namespaces() -> None:
    """Forbid nested user namespaces, in which a process would have capabilities again."""
    _write(f"{_OLD_ROOT}/proc/sys/user/max_user_namespaces", "0")


def _bind(source: str, target: str, writable: bool) -> None:
    outside = _OLD_ROOT + source
    if os.path.isdir(outside):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    _mount(outside, target, None, _MS_BIND | _MS_REC)
    flags = _ATTR_NOSUID | _ATTR_NODEV | (0 if writable else _ATTR_RDONLY)
    _set_mount_flags(target, flags, _AT_RECURSIVE)


def _make_devices() -> None:
    os.mkdir("/dev")
    _mount("tmpfs", "/dev", "tmpfs", _MS_NOSUID | _MS_NOEXEC, "mode=755,size=1m")
    for name in _DEVICES:
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        _mount(f"{_OLD_ROOT}/dev/{name}", f"/dev/{name}", None, _MS_BIND)
        # A read-only device can still be written to, but root can't change its mode.
        _set_mount_flags(f"/dev/{name}", _ATTR_RDONLY | _ATTR_NOSUID, 0)
    for path, target in _LINKS.items():
        os.symlink(target, path)
    os.mkdir("/dev/pts")
    os.mkdir("/dev/shm")
    options = "newinstance,ptmxmode=0666,mode=620"
    _mount("devpts", "/dev/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, options)


def _mount_tmpfs(folder: str, size_mb: int) -> None:
    os.makedirs(folder, exist_ok=True)
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=1777,size={size_mb}m")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    result = kernel.libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    kernel.check(result, f"mount {source} on {target}")


def _set_mount_flags(path: str, flags: int, at_flags: int) -> None:
    """Change a mount's flags, also those of the mounts below it if `at_flags` is recursive."""
    attributes = struct.pack("=QQQQ", flags, 0, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    result = kernel.libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR), _AT_FDCWD, os.fsencode(path), at_flags, attributes, size
    )
    kernel.check(result, f"protect {path}")


def _bring_up_loopback() -> None:
    """Activate the loopback interface, so that programs can connect to themselves."""
    libc = kernel.libc
    descriptor = kernel.check(libc.socket(2, 2, 0), "open a socket")
    try:
        request = ctypes.create_string_buffer(struct.pack("16sh22x", b"lo", 0))
        kernel.check(libc.ioctl(descriptor, ctypes.c_ulong(_SIOCGIFFLAGS), request), "find lo")
        flags = struct.unpack_from("h", request, 16)[0]
        struct.pack_into("h", request, 16, flags | _IFF_UP)
        kernel.check(libc.ioctl(descriptor, ctypes.c_ulong(_SIOCSIFFLAGS), request), "bring lo up")
    finally:
        os.close(descriptor)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
