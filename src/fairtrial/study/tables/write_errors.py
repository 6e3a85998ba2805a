"""What can go wrong while tables are written, and what to do about it."""

from __future__ import annotations

import errno
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtrial.core import LedgerError, Mistake, StudyError
from fairtrial.study.tables.canonical import SQLITE_FILE, STUDY_FILE

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Say what went wrong with files, and what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            raise _no_room(folder, reason) from error
        message = f"{folder}: the tables can't be written: {reason}"
        raise StudyError(Mistake((), message)) from error
    except StudyError as error:
        cause = error.__cause__  # study.yaml is written by `loading`
        if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
            raise _no_room(folder, f"{STUDY_FILE}: {cause.strerror}") from error
        raise
    except sqlite3.Error as error:  # the mirror's: the ledger explains its own
        raise _no_room(folder, f"{SQLITE_FILE}: {error}") from error
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.start + 1]
        message = f"{wrong!r} in a result is half of a surrogate pair, which is no character"
        raise StudyError(
            Mistake((), f"{folder}: the tables can't be written: {message}")
        ) from error


def _no_room(folder: Path, reason: str) -> LedgerError:
    return LedgerError(
        f"{folder}: the tables can't be written: {reason}; nothing is lost: make room, then "
        f"`fairtrial export {shlex.quote(str(folder))}`"
    )
