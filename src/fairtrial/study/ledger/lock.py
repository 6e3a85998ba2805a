"""Whose ledger it is: one process at a time writes to an output directory.

A POSIX record lock, since the kernel drops it when its owner dies, however it dies, and since a
forked worker doesn't inherit it. The file says who holds it, for people.

The kernel also drops it when its owner opens and closes the file once more, so nothing else in the
owner's process may touch it.
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
TRIES, TRY_AGAIN_S = 10, 0.02
NOBODY = 0
_held: dict[str, int] = {}
"""Which files this process holds; record locks don't keep two threads of one process apart. With
the process's id, since a forked child has a copy of this and holds nothing."""
_guard = threading.Lock()


class OwnerLock:
    """The right to write to an output directory; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._key = os.path.realpath(self._path)
        self._handle = -1
        self._pid = 0

    def __enter__(self) -> OwnerLock:
        folder = self._path.parent
        with _guard:
            if _held.get(self._key) == os.getpid():
                raise LedgerError(f"{folder} is in use by this very process")
            try:
                handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise LedgerError(
                    f"{folder} can't be written to: {error.strerror}; choose another --output"
                ) from error
            try:
                _take(handle, folder)
            except BaseException:
                os.close(handle)
                raise
            self._handle, self._pid = handle, os.getpid()
            _held[self._key] = self._pid
        _write_down(handle)
        return self

    def __exit__(self, *_: object) -> None:
        with _guard:
            if self._pid == os.getpid():  # a forked child leaves the file as it is
                _held.pop(self._key, None)
                with suppress(OSError):
                    os.ftruncate(self._handle, 0)
            os.close(self._handle)


def owner_of(folder: Path) -> dict[str, Any] | None:
    """Who is writing to an output directory right now: pid and host; None if nobody is."""
    path = folder / LOCK_NAME
    with _guard:
        if _held.get(os.path.realpath(path)) == os.getpid():
            return {"pid": os.getpid(), "host": socket.gethostname()}
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            holder = _holder(handle)
            return None if holder == NOBODY else _described(handle, holder)
        except OSError:
            return None
        finally:
            os.close(handle)


def _take(handle: int, folder: Path) -> None:
    for last in [*[False] * TRIES, True]:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise LedgerError(
                    f"{folder} can't be locked: {error.strerror}; choose an --output on a disk of "
                    "this machine"
                ) from error
        holder = _holder(handle)
        if holder != NOBODY or last:
            raise LedgerError(_refusal(folder, _described(handle, holder)))
        time.sleep(TRY_AGAIN_S)  # whoever held it has just let go, or only asked


def _holder(handle: int) -> int:
    """The process that holds the lock, -1 if the kernel can't name it; `NOBODY` if none does.

    Asks without taking it, where it is known how: one that takes it to find out could keep a
    starting owner from getting it.
    """
    if sys.platform.startswith("linux"):
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(handle, fcntl.F_GETLK, request))
    elif sys.platform == "darwin" or "bsd" in sys.platform:
        request = struct.pack("qqihh8x", 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
        _, _, pid, kind, _ = struct.unpack("qqihh8x", fcntl.fcntl(handle, fcntl.F_GETLK, request))
    else:
        return _probe(handle)
    return NOBODY if kind == fcntl.F_UNLCK else max(pid, 0) or -1


def _probe(handle: int) -> int:
    try:
        fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return -1
    fcntl.lockf(handle, fcntl.LOCK_UN)
    return NOBODY


def _write_down(handle: int) -> None:
    text = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
    with suppress(OSError):  # a full disk; the lock holds all the same
        os.ftruncate(handle, 0)
        os.pwrite(handle, text, 0)


def _described(handle: int, pid: int) -> dict[str, Any]:
    """Pid and host of the owner: by the kernel where it is on this host, else as it wrote down."""
    here = socket.gethostname()
    try:
        told = json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        told = None
    if not isinstance(told, dict):
        told = {}
    if pid > 0 and told.get("host") in (None, here):
        return {"pid": pid, "host": here}
    return {"pid": told.get("pid"), "host": told.get("host")}


def _refusal(folder: Path, owner: dict[str, Any]) -> str:
    who = f"process {owner['pid']} on {owner['host']}" if owner["pid"] else "another process"
    return (
        f"{folder} is in use by {who}; wait for it, stop it with "
        f"`fairtrial cancel {folder}`, or choose another --output"
    )
