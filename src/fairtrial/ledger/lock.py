"""Whose ledger it is: one process at a time writes to an output directory.

A POSIX record lock, since the kernel drops it when its owner dies, however it dies, and since a
forked worker doesn't inherit it. The file says who holds it, for people.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from fairtrial.errors import LedgerError

LOCK_NAME = "owner.lock"
_held: set[str] = set()  # record locks don't keep two threads of one process apart
_guard = threading.Lock()


class OwnerLock:
    """The right to write to an output directory; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._key = os.path.realpath(self._path)
        self._file: IO[str] | None = None

    def __enter__(self) -> OwnerLock:
        with _guard:
            if self._key in _held:
                raise LedgerError(f"{self._path.parent} is in use by this very process")
            file = self._path.open("a+", encoding="utf-8")
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                raise LedgerError(_refusal(self._path)) from None
            _held.add(self._key)
        file.truncate(0)
        json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
        file.flush()
        self._file = file
        return self

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        with _guard:
            _held.discard(self._key)
            with suppress(OSError):
                self._file.truncate(0)
            self._file.close()


def owner_of(folder: Path) -> dict[str, Any] | None:
    """Who is writing to an output directory right now: pid and host; None if nobody is."""
    path = folder / LOCK_NAME
    if os.path.realpath(path) in _held:  # opening and closing it would drop the lock
        return {"pid": os.getpid(), "host": socket.gethostname()}
    try:
        with path.open("r+", encoding="utf-8") as file:
            request = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
            kind = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, request))[0]
            return None if kind == fcntl.F_UNLCK else _told(file.read())
    except OSError:
        return None


def _told(text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        return {"pid": None, "host": None}
    return told if isinstance(told, dict) else {"pid": None, "host": None}


def _refusal(path: Path) -> str:
    owner = _told(path.read_text("utf-8"))
    who = f"process {owner['pid']} on {owner['host']}" if owner.get("pid") else "another process"
    return (
        f"{path.parent} is in use by {who}; wait for it, stop it with "
        f"`fairtrial cancel {path.parent}`, or choose another --output"
    )
