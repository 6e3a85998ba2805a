"""Write the ledger: results in groups, each group in one transaction.

Only the process that holds the lock of the output directory writes. What is added waits in memory
until `commit`, and counts as done only then. A commit that fails (a full disk) leaves the ledger
unchanged and the group in memory, so that a later commit can still succeed.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from fairtrial.study.ledger.commit_group import CommitGroup, storable_numbers
from fairtrial.study.ledger.ledger_file import open_for_writing
from fairtrial.study.ledger.ledger_rows import pack_condition
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.ledger.sqlite_errors import (
    SQLITE_ERRORS,
    explain,
    explained,
    file_identity,
    ledger_moved,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import Assignment, Emitted, Finished, RunSpec

COMMIT_RUNS = 256
COMMIT_S = 0.05
"""Executors return to the loop every 50 ms, so that no result waits for more than 100 ms."""
COMMIT_BYTES = 8 << 20
"""A commit is due after this many runs, seconds or bytes."""
_INSERT_RESULT = "INSERT INTO results VALUES (?,?,?,?,?,?,?,?,?,?)"
_INSERT_BODY = "INSERT INTO bodies VALUES (?,?,?,?,?)"
_INSERT_ATTEMPT = "INSERT OR REPLACE INTO attempts VALUES (?,?,?,?,?,?,?,?,?,?,?)"
_INSERT_EVENT = "INSERT OR REPLACE INTO events VALUES (?,?,?,?)"
_INSERT_SCORE = "INSERT OR REPLACE INTO scores VALUES (?,?,?)"
_MARK_SUCCESS = "UPDATE results SET status = 'success', failure_kind = NULL WHERE turn = ?"
_INSERT_FACT = "INSERT OR REPLACE INTO facts VALUES (?,?)"
_SETTLE_ENTRIES = "UPDATE journal SET attempt = 0 WHERE run_id = ? AND seed = ? AND attempt = ?"
_MOVE_TO_ATTEMPTS = (
    "INSERT OR REPLACE INTO attempts SELECT turn, attempt, session, status, failure_kind, "
    "cost_usd, tokens, latency_s, body, stdout, stderr FROM results JOIN bodies USING (turn) "
    "WHERE turn = ?",
    "DELETE FROM results WHERE turn = ?",
    "DELETE FROM bodies WHERE turn = ?",
    "DELETE FROM scores WHERE turn = ?",
)


class Ledger:
    """Write access to a ledger; see `LedgerReader` for read access. Threads may share it.

    connection: the SQLite connection
    path: the file; None for a ledger in memory
    notice: a message for the user about how the ledger is stored
    session: the number of the current session
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path | None, notice: str | None = None
    ) -> None:
        self.connection = connection
        self.path = path
        self._identity = file_identity(path)
        self.notice = notice
        self.session = 0
        self.committed = 0
        """How many results this session has committed."""
        self.reruns: dict[int, str] = {}
        """Runs with a result that are run again, and the status of that result. It stays until
        there is a new one."""
        self._lock = threading.RLock()
        self._waiting = CommitGroup()
        self._waiting_live: bytes | None = None
        self._event_counts: dict[tuple[int, int], int] = {}
        self._waiting_since = 0.0
        self._has_failed = False
        with explained(path):
            events = connection.execute("SELECT 1 FROM events LIMIT 1").fetchone()
            entries = connection.execute("SELECT 1 FROM journal LIMIT 1").fetchone()
        self._has_older_events = events is not None
        self.has_journals = entries is not None
        """Whether any run has a journal; the studies without one are spared the queries."""

    # -- the study --

    def fact(self, name: str) -> Any:
        """Return a fact of the study by its name; None if it isn't stored."""
        with explained(self.path):
            rows = self.connection.execute("SELECT value FROM facts WHERE name = ?", (name,))
            return next(rows, (None,))[0]

    def write_plan(
        self, facts: Mapping[str, Any], conditions: Sequence[Condition], order: array[int]
    ) -> None:
        """Store the plan: before the first run, or when it has changed.

        facts: facts of the study by name
        conditions: all conditions, in plan order
        order: the plan index for each execution index
        """
        with self._transaction():
            facts = {**facts, "order": array("I", order).tobytes()}
            self.connection.executemany(_INSERT_FACT, list(facts.items()))
            self.connection.execute("DELETE FROM conditions")
            self.connection.executemany(
                "INSERT INTO conditions VALUES (?,?)",
                ((index, pack_condition(item)) for index, item in enumerate(conditions)),
            )

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Store facts of the study by name; they replace earlier ones."""
        with self._transaction():
            self.connection.executemany(_INSERT_FACT, list(facts.items()))

    def begin_session(self, row: Mapping[str, Any]) -> None:
        """Record a new session.

        row: its columns of the table `sessions`
        """
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        with self._transaction():
            cursor = self.connection.execute(
                f"INSERT INTO sessions ({names}) VALUES ({marks})", tuple(row.values())
            )
            self.session = cursor.lastrowid or 0

    def end_session(self, ended_at: str, how: str) -> None:
        """Commit what is waiting, and record how the session ended."""
        self.commit()
        with self._transaction():
            self.connection.execute(
                "UPDATE sessions SET ended_at = ?, ended_how = ? WHERE session = ?",
                (ended_at, how, self.session),
            )

    # -- events and results --

    def add_event(self, event: Emitted) -> None:
        """Add an event of a run that is under way; commits the group when it is full."""
        key = (event.execution_index, event.attempt)
        with self._lock:
            number = self._event_counts.get(key, 0)
            self._event_counts[key] = number + 1
            if not number and self._has_older_events:
                self._waiting.overwritten.append(key)
            self._waiting.events.append((event.execution_index, event.attempt, number, event.data))
            self._count_waiting(len(event.data))

    def add_result(self, assignment: Assignment, report: Finished) -> None:
        """Add the result of a run; commits the group when it is full.

        If that commit fails, the result stays in memory for the next one.
        """
        outcome, spec, execution_index = report.outcome, assignment.spec, report.execution_index
        body, kind = outcome.body, outcome.failure_kind
        result = (
            execution_index,
            spec.run_id,
            spec.seed,
            outcome.status.value,
            None if kind is None else kind.value,
            report.attempt,
            self.session,
            *storable_numbers(outcome),
        )
        packed = (execution_index, body, report.stdout or None, report.stderr or None, crc32(body))
        with self._lock:
            self._waiting.results.append((result, packed))
            if self._event_counts:
                self._event_counts.pop((execution_index, report.attempt), None)
            self._count_waiting(len(body) + len(report.stdout) + len(report.stderr))

    def add_attempt(
        self, report: Finished, spec: RunSpec | None = None, session: int | None = None
    ) -> None:
        """Add an attempt that is not the run's result: broken and to be retried, or cancelled.

        spec: its run, if that may have a journal: its entries are marked as accounted for
        session: its session, if not the current one
        """
        outcome, kind = report.outcome, report.outcome.failure_kind
        attempt = (
            report.execution_index,
            report.attempt,
            self.session if session is None else session,
            outcome.status.value,
            None if kind is None else kind.value,
            *storable_numbers(outcome),
            outcome.body,
            report.stdout or None,
            report.stderr or None,
        )
        entries = None if spec is None else (spec.run_id, spec.seed, report.attempt)
        with self._lock:
            self._waiting.attempts.append((attempt, entries))
            self._event_counts.pop((report.execution_index, report.attempt), None)
            self._count_waiting(len(outcome.body) + len(report.stdout) + len(report.stderr))

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a separate transaction, which is on disk when the block ends.

        Raises `LedgerError` if the file was moved or can't be written.
        """
        with self._lock:
            if file_identity(self.path) != self._identity:
                raise ledger_moved(self.path)
            with self._transaction():
                yield self.connection

    def set_live(self, live: bytes) -> None:
        """Set the progress for `fairtrial status`; written with the next commit."""
        with self._lock:
            self._waiting_live = live

    def write_scores(self, evaluator: str, scores: Iterable[tuple[int, bytes]]) -> None:
        """Store the results of rescoring by execution index; they replace earlier ones.

        A run that had failed only because its evaluator failed becomes a success.

        evaluator: the name of the evaluator
        scores: packed `RescoredOutput`s
        """
        with self._transaction():
            for execution_index, rows in scores:
                self.connection.execute(_INSERT_SCORE, (execution_index, evaluator, rows))
                self.connection.execute(_MARK_SUCCESS, (execution_index,))

    # -- commits --

    @property
    def is_due(self) -> bool:
        """Whether something has waited for `COMMIT_S`."""
        return bool(self._waiting_since) and time.monotonic() - self._waiting_since >= COMMIT_S

    def commit(self) -> None:
        """Write what is waiting, in one transaction; raises `LedgerError` if that fails."""
        with self._lock:
            if not self._waiting_since and self._waiting_live is None:
                return
            if file_identity(self.path) != self._identity:
                raise ledger_moved(self.path)
            group, live, since = self._waiting, self._waiting_live, self._waiting_since
            try:
                with self._transaction():
                    self._write(group, live)
                    self._waiting, self._waiting_live, self._waiting_since = (
                        CommitGroup(),
                        None,
                        0.0,
                    )
            finally:
                # Not decided by the exception: an interrupt may come just after COMMIT.
                if self._has_failed:
                    self._waiting, self._waiting_live, self._waiting_since = group, live, since
                else:
                    self.committed += len(group.results)

    def _write(self, group: CommitGroup, live: bytes | None) -> None:
        write = self.connection.executemany
        if group.results:
            if self.reruns:
                self._move_to_attempts(result[0] for result, _ in group.results)
            write(_INSERT_RESULT, [result for result, _ in group.results])
            write(_INSERT_BODY, [body for _, body in group.results])
            if self.has_journals:
                write(_SETTLE_ENTRIES, [(row[1], row[2], row[5]) for row, _ in group.results])
        if group.attempts:
            write(_INSERT_ATTEMPT, [attempt for attempt, _ in group.attempts])
            write(
                _SETTLE_ENTRIES, [entries for _, entries in group.attempts if entries is not None]
            )
        if group.overwritten:  # events of an interrupted attempt with the same number
            write("DELETE FROM events WHERE turn = ? AND attempt = ?", group.overwritten)
        if group.events:
            write(_INSERT_EVENT, group.events)
        if live is not None:
            write(_INSERT_FACT, [("live", live)])

    def _move_to_attempts(self, execution_indexes: Iterable[int]) -> None:
        """Move the old results of runs that were run again to the attempts."""
        for execution_index in self.reruns.keys() & set(execution_indexes):
            for statement in _MOVE_TO_ATTEMPTS:
                self.connection.execute(statement, (execution_index,))

    def _count_waiting(self, size: int) -> None:
        group = self._waiting
        group.bytes += size
        if not self._waiting_since:
            self._waiting_since = time.monotonic()
        if len(group.results) >= COMMIT_RUNS or group.bytes >= COMMIT_BYTES:
            self.commit()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._has_failed, has_begun = True, False
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                has_begun = True
                yield
                self.connection.execute("COMMIT")
                self._has_failed = False
            except SQLITE_ERRORS as error:
                self._roll_back()
                raise explain(error, self.path) from error
            except BaseException:
                self._has_failed = not has_begun or self.connection.in_transaction
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # then SQLite does it when the file is next opened
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file; what wasn't committed is lost."""
        with self._lock:
            with suppress(sqlite3.Error):  # else the next opening does the checkpoint
                self.connection.execute("PRAGMA busy_timeout = 100")
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.connection.close()


def open_ledger(folder: Path | None) -> Ledger:
    """Open the ledger of an output directory for writing, created if there is none.

    folder: the directory; None for a ledger in memory
    """
    path = None if folder is None else folder / LEDGER_NAME
    connection, notice = open_for_writing(path)
    return Ledger(connection, path, notice)
