"""Open a ledger file: created completely or not at all, checked, never overwritten.

All functions open the file through SQLite only: a process that opens and closes it in another way
releases the locks that SQLite holds on it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from fairtrial.core import LedgerError
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.schema import APPLICATION_ID, JOURNAL, MIGRATIONS, TABLES, VERSION
from fairtrial.study.ledger.sqlite_errors import (
    SQLITE_ERRORS,
    damaged,
    explain,
    explained,
    primary_code,
)
from fairtrial.study.ledger.volumes import network_file_system

BUSY_S = 30.0
"""How long to wait for another process to release the file."""
LOG_LIMIT_BYTES = 8 << 20
"""The size that the write-ahead log is truncated to after a checkpoint."""
CHECK_LIMIT_BYTES = 64 << 20
"""The largest file that is checked at every opening; 500 MB would take half a second of CPU, and
minutes from a slow disk."""
CRASH_CHECK_LIMIT_BYTES = 1 << 30
CHECKPOINT_BYTES = 4 << 20
"""How large the log grows before a checkpoint."""
PAGE_BYTES = 8192
"""Twice SQLite's default: a result is about 1 KB, and fewer pages are less work."""
_HEADER = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"


def open_for_writing(path: Path | None) -> tuple[sqlite3.Connection, str | None]:
    """Return a connection to the ledger, created if there is none, and a notice for the user.

    Raises `LedgerError` for a file that can't be written, is damaged or is no ledger.
    """
    if path is None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.executescript(f"{_HEADER} {TABLES}")
        return connection, None
    if os.path.lexists(path):
        _refuse_unsuitable_file(path)
    else:
        _create(path)
    has_log = _size(_log_path(path)) > 0
    with explained(path):
        connection = _connect(path, "mode=rw")
        try:
            scripts = _migration_scripts(_check_header(connection, path), path)
            notice = _set_journal_mode(connection, path)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM facts WHERE name = ''")  # fails if it can't be written
            connection.execute("ROLLBACK")
            _check_integrity(connection, path, has_log)
            _migrate(connection, scripts)
            connection.executescript(JOURNAL)
        except BaseException:
            connection.close()
            raise
    return connection, notice


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Return a connection that doesn't change the study's data.

    Raises `LedgerError` if there is no ledger, or it can't be read. The file is opened for writing
    where possible, so that SQLite can remove the files of its log.
    """
    if not path.parent.is_dir():
        raise LedgerError(f"there is no folder {path.parent}")
    if not os.path.lexists(path):
        hint = ""
        if (path.parent / "manifest.json").exists():  # copied tables, or a bundle
            hint = "; `fairtrial bundle --with-ledger` packs it"
        raise LedgerError(f"{path.parent} holds no study: there is no {path.name} in it{hint}")
    _refuse_unsuitable_file(path)
    try:
        return _read_only(path, "mode=rw")
    except SQLITE_ERRORS as error:
        if primary_code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise explain(error, path) from error
        return _read_unwritable(path, error)


def _read_only(path: Path, options: str) -> sqlite3.Connection:
    connection = _connect(path, options)
    try:
        connection.execute("PRAGMA query_only = ON")
        version = _check_header(connection, path)
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
    """Open a ledger in a read-only place, without locks; refused if it may be in use."""
    if not os.access(path, os.R_OK):
        raise explain(error, path) from error
    if owner_of(path.parent) is not None or _size(_log_path(path)):
        raise LedgerError(
            f"{path} can't be read where nothing can be written, since it is in use, or its last "
            f"part still in {_log_path(path).name}: copy the whole folder to where you may write"
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


def _refuse_unsuitable_file(path: Path) -> None:
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
    """Create a ledger under a temporary name, and rename it when it is complete."""
    _refuse_orphaned_log(path)
    draft = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            draft.unlink()  # left by an interrupted start
        draft.touch(exist_ok=False)
        with explained(path):
            connection = _connect(draft, "mode=rw")
            try:
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                connection.execute("PRAGMA journal_mode = OFF")
                connection.executescript(f"BEGIN; {_HEADER} {TABLES} COMMIT;")
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


def _refuse_orphaned_log(path: Path) -> None:
    """Raise `LedgerError` if the log of another ledger is there: SQLite would mix the two."""
    for log in (_log_path(path), path.with_name(f"{path.name}-journal")):
        if _size(log):
            raise LedgerError(
                f"{path} is gone, but {log.name}, the last part of it, is still there: put the "
                f"ledger back, or move {log.name} away too, or choose another --output"
            )


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system supports it
            os.fsync(handle)
    finally:
        os.close(handle)


def _check_header(connection: sqlite3.Connection, path: Path) -> int:
    """Return the format version; raises `LedgerError` if it is newer, or the file is no ledger."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if application_id != APPLICATION_ID:
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


def _set_journal_mode(connection: sqlite3.Connection, path: Path) -> str | None:
    """Use a write-ahead log where that is safe, else a rollback journal; returns a notice for that.

    In both modes every commit is synced to the disk.
    """
    file_system = network_file_system(path)
    requested = "WAL" if file_system is None else "DELETE"
    mode = connection.execute(f"PRAGMA journal_mode = {requested}").fetchone()[0]
    if mode == "wal":
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT_BYTES}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_BYTES // PAGE_BYTES}")
        if file_system is None:
            return None
    # Without EXTRA a commit could be undone when the power fails just after it.
    connection.execute("PRAGMA synchronous = EXTRA")
    reason = (
        f"lies on a network file system ({file_system})"
        if file_system
        else "can't have a write-ahead log"
    )
    return (
        f"{path.parent} {reason}: the ledger keeps a rollback journal instead, which is as safe "
        "and slower; run a study from one machine at a time"
    )


def _migration_scripts(version: int, path: Path) -> list[str]:
    """Return the scripts that migrate a file of this version; `LedgerError` if there are none."""
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
    except SQLITE_ERRORS:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_integrity(connection: sqlite3.Connection, path: Path, has_log: bool) -> None:
    """Raise `LedgerError` for torn pages; large files are checked only when they are read."""
    page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    if has_log:  # the log may hold what the file lacks
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = _size(path)
    if size % page_bytes and not _size(_log_path(path)):
        raise damaged(path, "its last page is cut off")
    if size <= (CRASH_CHECK_LIMIT_BYTES if has_log else CHECK_LIMIT_BYTES):
        finding = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if finding != "ok":
            raise damaged(path, str(finding).replace("\n", ": "))


def _log_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
