"""Opening a ledger file: made whole, checked, never overwritten.

No function here opens the file but through SQLite: a process that opens and closes it by itself
drops the locks that SQLite holds on it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from fairtrial.core import LedgerError
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.schema import APPLICATION_ID, JOURNAL, MIGRATIONS, TABLES, VERSION
from fairtrial.study.ledger.sqlite_errors import FAULTS, code_of, damaged, explain, explained
from fairtrial.study.ledger.volumes import network_kind

BUSY_S = 30.0
"""How long to wait for another process to let go of the file."""
LOG_BYTES = 8 << 20
"""What the write-ahead log is cut back to once all of it has been folded into the ledger."""
CHECKED_BYTES = 64 << 20
"""The largest file that is checked whenever it is opened; 500 MB would take half a second of CPU,
and minutes from a slow disk."""
CHECKED_AFTER_CRASH_BYTES = 1 << 30
FOLD_BYTES = 4 << 20
"""How far the log grows before it is folded back."""
PAGE_BYTES = 8192
"""Twice SQLite's own: a result is about 1 KB, and fewer pages are less work."""
_MARKS = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"


def open_for_writing(path: Path | None) -> tuple[sqlite3.Connection, str | None]:
    """A connection to the ledger, made if there is none, and what the user should be told of it."""
    if path is None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.executescript(f"{_MARKS} {TABLES}")
        return connection, None
    if os.path.lexists(path):
        _refuse_other_things(path)
    else:
        _create(path)
    was_cut_off = _size(_log_of(path)) > 0
    with explained(path):
        connection = _connect(path, "mode=rw")
        try:
            scripts = _scripts_from(_check_marks(connection, path), path)
            notice = _set_journal(connection, path)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM facts WHERE name = ''")  # says if it can't be written
            connection.execute("ROLLBACK")
            _check_soundness(connection, path, was_cut_off)
            _migrate(connection, scripts)
            connection.executescript(JOURNAL)
        except BaseException:
            connection.close()
            raise
    return connection, notice


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that adds nothing.

    It may tidy up, though: one that may not leaves the files of its log lying about.
    """
    if not path.parent.is_dir():
        raise LedgerError(f"there is no folder {path.parent}")
    if not os.path.lexists(path):
        hint = ""
        if (path.parent / "manifest.json").exists():  # tables that were copied, or a bundle's
            hint = "; `fairtrial bundle --with-ledger` packs it"
        raise LedgerError(f"{path.parent} holds no study: there is no {path.name} in it{hint}")
    _refuse_other_things(path)
    try:
        return _read_only(path, "mode=rw")
    except FAULTS as error:
        if code_of(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise explain(error, path) from error
        return _read_unwritable(path, error)


def _read_only(path: Path, options: str) -> sqlite3.Connection:
    connection = _connect(path, options)
    try:
        connection.execute("PRAGMA query_only = ON")
        version = _check_marks(connection, path)
        if version < VERSION:
            raise LedgerError(
                f"{path} is of an older format ({version}, now {VERSION}): "
                f"`fairtrial resume {path.parent}` brings it up to date"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _read_unwritable(path: Path, error: Exception) -> sqlite3.Connection:
    """Read where SQLite may not even note that it reads: sound only if nobody writes meanwhile."""
    if not os.access(path, os.R_OK):
        raise explain(error, path) from error
    if owner_of(path.parent) is not None or _size(_log_of(path)):
        raise LedgerError(
            f"{path} can't be read where nothing can be written, since it is in use, or its last "
            f"part still in {_log_of(path).name}: copy the whole folder to where you may write"
        ) from error
    with explained(path):
        return _read_only(path, "mode=ro&immutable=1")


def _connect(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )


def _refuse_other_things(path: Path) -> None:
    if not path.is_file():
        raise LedgerError(
            f"{path} is no file: move it away, or choose another --output"
            if path.exists()
            else f"{path} is a link to nothing: remove it, or choose another --output"
        )
    if not _size(path):
        raise LedgerError(
            f"{path} is empty, which a ledger never is: put back the file that it was, or move "
            "this one away, or choose another --output"
        )


def _create(path: Path) -> None:
    """Make a ledger that appears under its name only when it is whole."""
    _refuse_orphans(path)
    draft = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            draft.unlink()  # of a start that was cut off
        draft.touch(exist_ok=False)
        with explained(path):
            connection = _connect(draft, "mode=rw")
            try:
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                connection.execute("PRAGMA journal_mode = OFF")
                connection.executescript(f"BEGIN; {_MARKS} {TABLES} COMMIT;")
            finally:
                connection.close()
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LedgerError(f"{path} can't be made: {reason}; choose another --output") from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _refuse_orphans(path: Path) -> None:
    """Refuse to make a ledger beside the log of another: SQLite would mix the two."""
    for log in (_log_of(path), path.with_name(f"{path.name}-journal")):
        if _size(log):
            raise LedgerError(
                f"{path} is gone, but {log.name}, the last part of it, is still there: put the "
                f"ledger back, or move {log.name} away too, or choose another --output"
            )


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system has a use for it
            os.fsync(handle)
    finally:
        os.close(handle)


def _check_marks(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the file; refuses one that isn't a ledger, or is of a later version."""
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if mark != APPLICATION_ID:
        raise LedgerError(
            f"{path} is an SQLite file, but no ledger of fairtrial's; it was left as it is: move "
            "it away, or choose another --output"
        )
    if version > VERSION:
        raise LedgerError(
            f"{path} was written by a newer fairtrial (format {version}, not {VERSION}): "
            "use that one, or choose another --output"
        )
    connection.execute("SELECT count(*) FROM facts").fetchone()
    return version


def _set_journal(connection: sqlite3.Connection, path: Path) -> str | None:
    """A write-ahead log where that is safe, else a journal; every commit reaches the disk."""
    kind = network_kind(path)
    wanted = "WAL" if kind is None else "DELETE"
    mode = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0]
    if mode == "wal":
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {FOLD_BYTES // PAGE_BYTES}")
        if kind is None:
            return None
    # Without EXTRA a commit could be undone when the power fails just after it.
    connection.execute("PRAGMA synchronous = EXTRA")
    why = f"lies on a network file system ({kind})" if kind else "can't have a write-ahead log"
    return (
        f"{path.parent} {why}: the ledger keeps a rollback journal instead, which is as safe "
        "and slower; run a study from one machine at a time"
    )


def _scripts_from(version: int, path: Path) -> list[str]:
    """What brings a file of a version up to date."""
    steps = range(version, VERSION)
    if not all(step in MIGRATIONS for step in steps):
        raise LedgerError(
            f"{path} is of format {version}, which this fairtrial can't bring up to date; use the "
            "one that wrote it, or choose another --output"
        )
    return [MIGRATIONS[step] for step in steps]


def _migrate(connection: sqlite3.Connection, scripts: list[str]) -> None:
    if not scripts:
        return
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE; {' '.join(scripts)} PRAGMA user_version = {VERSION}; COMMIT;"
        )
    except FAULTS:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_soundness(connection: sqlite3.Connection, path: Path, was_cut_off: bool) -> None:
    """Look for torn pages, as far as that is quick; what it doesn't find shows when it is read."""
    page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    if was_cut_off:  # what the log holds may be what is missing from the file
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = _size(path)
    if size % page_bytes and not _size(_log_of(path)):
        raise damaged(path, "its last page is cut off")
    if size <= (CHECKED_AFTER_CRASH_BYTES if was_cut_off else CHECKED_BYTES):
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise damaged(path, str(found).replace("\n", ": "))


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
