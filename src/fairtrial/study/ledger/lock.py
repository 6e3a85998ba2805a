"""The lock of an output directory: one process at a time writes to it.

A POSIX record lock, since the kernel releases it when its owner dies, however it dies, and since a
forked worker doesn't inherit it. The lock file names the owner, for messages.

The kernel also releases the lock when its owner opens and closes the file once more, so nothing
else in the owner's process may open it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairtrial.core import LedgerError

LOCK_NAME = "owner.lock"
MAX_TRIES, RETRY_S = 10, 0.02
NO_OWNER = 0
_held_locks: dict[str, int] = {}
"""The locks of this process, since record locks don't exclude other threads of it. Each with the
process's id: a forked child has a copy of this, but holds no lock."""
_held_lock_guard = threading.Lock()


class OwnerLock:
    """A context manager that holds the lock of an output directory.

    Entering raises `LedgerError` if another process holds it, or the file can't be written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._key = os.path.realpath(self._path)
        self._handle = -1
        self._pid = 0

    def __enter__(self) -> OwnerLock:
        folder = self._path.parent
        with _held_lock_guard:
            if _held_locks.get(self._key) == os.getpid():
                raise LedgerError(f"{folder} is in use by this very process")
            try:
                handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise LedgerError(
                    f"{folder} can't be written to: {error.strerror}; choose another --output"
                ) from error
            try:
                _acquire(handle, folder)
            except BaseException:
                os.close(handle)
                raise
            self._handle, self._pid = handle, os.getpid()
            _held_locks[self._key] = self._pid
        _write_owner(handle)
        return self

    def __exit__(self, *_: object) -> None:
        with _held_lock_guard:
            if self._pid == os.getpid():  # a forked child must not change the file
                _held_locks.pop(self._key, None)
                with suppress(OSError):
                    os.ftruncate(self._handle, 0)
            os.close(self._handle)


def owner_of(folder: Path) -> dict[str, Any] | None:
    """Return pid and host of the process that holds the lock; None if there is none."""
    path = folder / LOCK_NAME
    with _held_lock_guard:
        if _held_locks.get(os.path.realpath(path)) == os.getpid():
            return {"pid": os.getpid(), "host": socket.gethostname()}
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            holder = _find_holder(handle)
            return None if holder == NO_OWNER else _describe_owner(handle, holder)
        except OSError:
            return None
        finally:
            os.close(handle)


def _acquire(handle: int, folder: Path) -> None:
    """Take the lock; raises `LedgerError` if another process holds it."""
    for last in [*[False] * MAX_TRIES, True]:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise LedgerError(
                    f"{folder} can't be locked: {error.strerror}; choose an --output on a disk of "
                    "this machine"
                ) from error
        holder = _find_holder(handle)
        if holder != NO_OWNER or last:
            raise LedgerError(_refusal_message(folder, _describe_owner(handle, holder)))
        time.sleep(RETRY_S)  # it was just released, or only probed


def _find_holder(handle: int) -> int:
    """Return the pid that holds the lock; -1 if it is unknown, `NO_OWNER` if it is free.

    Queries the lock without taking it where the system allows that: taking it could keep a
    starting owner from getting it.
    """
    if sys.platform.startswith("linux"):
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(handle, fcntl.F_GETLK, request))
    elif sys.platform == "darwin" or "bsd" in sys.platform:
        request = struct.pack("qqihh8x", 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
        _, _, pid, kind, _ = struct.unpack("qqihh8x", fcntl.fcntl(handle, fcntl.F_GETLK, request))
    else:
        return _probe_lock(handle)
    return NO_OWNER if kind == fcntl.F_UNLCK else max(pid, 0) or -1


def _probe_lock(handle: int) -> int:
    """Return -1 if the lock is held, else `NO_OWNER`, by taking it briefly."""
    try:
        fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return -1
    fcntl.lockf(handle, fcntl.LOCK_UN)
    return NO_OWNER


def _write_owner(handle: int) -> None:
    text = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
    with suppress(OSError):  # the disk may be full; the lock holds anyway
        os.ftruncate(handle, 0)
        os.pwrite(handle, text, 0)


def _describe_owner(handle: int, pid: int) -> dict[str, Any]:
    """Return pid and host of the owner: from the kernel if on this host, else from the file."""
    this_host = socket.gethostname()
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        owner = None
    if not isinstance(owner, dict):
        owner = {}
    if pid > 0 and owner.get("host") in (None, this_host):
        return {"pid": pid, "host": this_host}
    return {"pid": owner.get("pid"), "host": owner.get("host")}


def _refusal_message(folder: Path, owner: dict[str, Any]) -> str:
    who = f"process {owner['pid']} on {owner['host']}" if owner["pid"] else "another process"
    return (
        f"{folder} is in use by {who}; wait for it, stop it with "
        f"`fairtrial cancel {folder}`, or choose another --output"
    )
