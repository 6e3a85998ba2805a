"""Explain SQLite's errors to users: which file, what happened, what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtrial.core import LedgerError, on_one_line

DISK_FULL = (
    "can't be written: there is no room left; nothing that was counted as done is lost: make room, "
    "then continue with `fairtrial resume {folder}`"
)
IO_ERROR = (
    "can't be read or written ({error}); nothing that was counted as done is lost: see whether the "
    "disk is full or gone, then continue with `fairtrial resume {folder}`"
)
READ_ONLY = "can't be written: the file or its folder is read-only; choose another --output"
CANT_OPEN = (
    "can't be opened: it or its folder is out of reach or read-only; choose another --output"
)
DAMAGED = (
    "is damaged ({error}); it was left as it is: move it away and start again, or choose another "
    "--output (`sqlite3 {path} .recover` may save much of what it holds)"
)
NOT_A_LEDGER = (
    "is no ledger, or one that is damaged beyond recognition; it was left as it is: move it away, "
    "or choose another --output"
)
BUSY = "is held by another program; close that, then continue with `fairtrial resume {folder}`"
DUPLICATE = (
    "holds a result of this run already: another process has written to it; stop that, then "
    "continue with `fairtrial resume {folder}`"
)
MOVED = (
    "was moved or deleted while the study ran; put it back and continue with `fairtrial resume "
    "{folder}`, or start again"
)
MAX_ERROR_LENGTH = 120
MESSAGES = {
    sqlite3.SQLITE_FULL: DISK_FULL,
    sqlite3.SQLITE_IOERR: IO_ERROR,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: CANT_OPEN,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: NOT_A_LEDGER,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_CONSTRAINT: DUPLICATE,
}


SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The exceptions of using SQLite; the second if a damaged file has garbage in a table's name."""


def explain(error: Exception, path: Path | None) -> LedgerError:
    """Return a `LedgerError` that explains one of `SQLITE_ERRORS`."""
    message = MESSAGES.get(primary_code(error))
    text = str(error)
    is_garbage = isinstance(error, UnicodeDecodeError) or text.startswith("Could not decode")
    if is_garbage or text.startswith("no such"):  # a table that every ledger has
        message = DAMAGED
    if message is None:
        return LedgerError(f"{path or 'the ledger in memory'}: {text}")
    return _format(message, path, text)


def primary_code(error: Exception) -> int:
    """Return the primary error code; 0 if the error has none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF  # the higher bits are the extended code


def file_identity(path: Path | None) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is no such file."""
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def ledger_moved(path: Path | None) -> LedgerError:
    """Return the error for a file that was moved or deleted while it was open."""
    return _format(MOVED, path, "")


def damaged(path: Path | None, detail: str) -> LedgerError:
    """Return the error for a file with invalid content."""
    return _format(DAMAGED, path, detail)


def _format(message: str, path: Path | None, error: str) -> LedgerError:
    folder = "DIR" if path is None else path.parent
    name = path or "the ledger in memory"
    detail = on_one_line(error, MAX_ERROR_LENGTH)
    return LedgerError(f"{name} {message.format(error=detail, folder=folder, path=path)}")


@contextmanager
def explained(path: Path | None) -> Iterator[None]:
    """Raise errors of SQLite within the block as `LedgerError` with an explanation."""
    try:
        yield
    except SQLITE_ERRORS as error:
        raise explain(error, path) from error
