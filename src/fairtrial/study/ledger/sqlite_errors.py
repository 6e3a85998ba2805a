"""What SQLite's errors mean to a person: which file, what happened, what to do about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtrial.core import LedgerError, on_one_line

NO_ROOM = (
    "can't be written: there is no room left; nothing that was counted as done is lost: make room, "
    "then go on with `fairtrial resume {folder}`"
)
IO_ERROR = (
    "can't be read or written ({error}); nothing that was counted as done is lost: see whether the "
    "disk is full or gone, then go on with `fairtrial resume {folder}`"
)
READ_ONLY = "can't be written: the file or its folder is read-only; choose another --output"
CANT_OPEN = (
    "can't be opened: it or its folder is out of reach or read-only; choose another --output"
)
DAMAGED = (
    "is damaged ({error}); it was left as it is: move it away and start again, or choose another "
    "--output (`sqlite3 {path} .recover` may save much of what it holds)"
)
NO_LEDGER = (
    "is no ledger, or one that is damaged beyond recognition; it was left as it is: move it away, "
    "or choose another --output"
)
BUSY = "is held by another program; close that, then go on with `fairtrial resume {folder}`"
TWICE = (
    "holds a result of this run already: another process has written to it; stop that, then go on "
    "with `fairtrial resume {folder}`"
)
GONE = (
    "was moved or deleted while the study ran; put it back and go on with `fairtrial resume "
    "{folder}`, or start again"
)
LONGEST = 120
MEANINGS = {
    sqlite3.SQLITE_FULL: NO_ROOM,
    sqlite3.SQLITE_IOERR: IO_ERROR,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: CANT_OPEN,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: NO_LEDGER,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_CONSTRAINT: TWICE,
}


FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What comes of using SQLite. The second if the name of a table, and so the message, is garbage."""


def explain(error: Exception, path: Path | None) -> LedgerError:
    """One of the `FAULTS` in words that help."""
    meaning = MEANINGS.get(code_of(error))
    said = str(error)
    is_garbage = isinstance(error, UnicodeDecodeError) or said.startswith("Could not decode")
    if is_garbage or said.startswith("no such"):  # a table that every ledger has
        meaning = DAMAGED
    if meaning is None:
        return LedgerError(f"{path or 'the ledger in memory'}: {said}")
    return _say(meaning, path, said)


def code_of(error: Exception) -> int:
    """Which sort of error it is; 0 if SQLite itself didn't say."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF  # the rest says more precisely which


def identity_of(path: Path | None) -> tuple[int, int] | None:
    """Which file a name stands for; None if for none."""
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def gone(path: Path | None) -> LedgerError:
    """The file is no longer where it was: SQLite would go on writing to what nobody finds."""
    return _say(GONE, path, "")


def damaged(path: Path | None, what: str) -> LedgerError:
    """What is in the file makes no sense, though SQLite can read it."""
    return _say(DAMAGED, path, what)


def _say(meaning: str, path: Path | None, error: str) -> LedgerError:
    folder = "DIR" if path is None else path.parent
    name = path or "the ledger in memory"
    what = on_one_line(error, LONGEST)
    return LedgerError(f"{name} {meaning.format(error=what, folder=folder, path=path)}")


@contextmanager
def explained(path: Path | None) -> Iterator[None]:
    """Whatever SQLite says within is said in words that help."""
    try:
        yield
    except FAULTS as error:
        raise explain(error, path) from error
