"""Translation of errors while writing tables into messages with advice."""

from __future__ import annotations

import errno
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtrial.core import LedgerError, Mistake, StudyError
from fairtrial.study.tables.canonical import SQLITE_FILE, STUDY_FILE

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE)


@contextmanager
def explain_write_errors(folder: Path) -> Iterator[None]:
    """Translate file errors inside the block.

    Raises:
        LedgerError: if the disk is full or fails; the export can be repeated.
        StudyError: for other errors, such as a folder without permission.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _DISK_ERRORS:
            raise _disk_error(folder, reason) from error
        message = f"{folder}: the tables can't be written: {reason}"
        raise StudyError(Mistake((), message)) from error
    except StudyError as error:
        cause = error.__cause__  # `write_study` wraps the OSError
        if isinstance(cause, OSError) and cause.errno in _DISK_ERRORS:
            raise _disk_error(folder, f"{STUDY_FILE}: {cause.strerror}") from error
        raise
    except sqlite3.Error as error:  # of the SQLite file; the ledger translates its own errors
        raise _disk_error(folder, f"{SQLITE_FILE}: {error}") from error
    except UnicodeEncodeError as error:
        surrogate = error.object[error.start : error.start + 1]
        message = f"{surrogate!r} in a result is half of a surrogate pair, which is no character"
        raise StudyError(
            Mistake((), f"{folder}: the tables can't be written: {message}")
        ) from error


def _disk_error(folder: Path, reason: str) -> LedgerError:
    return LedgerError(
        f"{folder}: the tables can't be written: {reason}; nothing is lost: make room, then "
        f"`fairtrial export {shlex.quote(str(folder))}`"
    )
