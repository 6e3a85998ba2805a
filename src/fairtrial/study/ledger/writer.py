"""Writing the ledger: results in groups, each group whole or not at all.

Only the process that owns the output directory writes. What is added waits in memory until
`commit`, and counts as done only then. A commit that fails (no room on the disk) leaves the ledger
as it was and the group in memory, so that a later one can still succeed.
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
from fairtrial.study.ledger.opening import open_for_writing
from fairtrial.study.ledger.rows import pack_condition
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.ledger.sqlite_errors import FAULTS, explain, explained, gone, file_identity
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import Assignment, Emitted, Finished, RunSpec

GROUP_RUNS = 256
GROUP_S = 0.05
"""Executors give the loop a chance every 50 ms: together, no result waits for more than 100 ms."""
GROUP_BYTES = 8 << 20
"""What may wait for a commit: so many runs, so long, so much."""
_RESULT = "INSERT INTO results VALUES (?,?,?,?,?,?,?,?,?,?)"
_BODY = "INSERT INTO bodies VALUES (?,?,?,?,?)"
_ATTEMPT = "INSERT OR REPLACE INTO attempts VALUES (?,?,?,?,?,?,?,?,?,?,?)"
_EVENT = "INSERT OR REPLACE INTO events VALUES (?,?,?,?)"
_SCORE = "INSERT OR REPLACE INTO scores VALUES (?,?,?)"
_JUDGED = "UPDATE results SET status = 'success', failure_kind = NULL WHERE turn = ?"
_FACT = "INSERT OR REPLACE INTO facts VALUES (?,?)"
_SETTLE = "UPDATE journal SET attempt = 0 WHERE run_id = ? AND seed = ? AND attempt = ?"
_SET_ASIDE = (
    "INSERT OR REPLACE INTO attempts SELECT turn, attempt, session, status, failure_kind, "
    "cost_usd, tokens, latency_s, body, stdout, stderr FROM results JOIN bodies USING (turn) "
    "WHERE turn = ?",
    "DELETE FROM results WHERE turn = ?",
    "DELETE FROM bodies WHERE turn = ?",
    "DELETE FROM scores WHERE turn = ?",
)


class Ledger:
    """The writing side of a ledger; see `reading` for the other. Threads may share it.

    notice: what the user should be told of how the ledger is kept
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
        self.again: dict[int, str] = {}
        """Runs that have a result and are run again, and what they came to; the new result takes
        the place of the old one, which nobody misses meanwhile."""
        self._lock = threading.RLock()
        self._group = CommitGroup()
        self._live: bytes | None = None
        self._numbers: dict[tuple[int, int], int] = {}
        self._since = 0.0
        self._has_failed = False
        with explained(path):
            events = connection.execute("SELECT 1 FROM events LIMIT 1").fetchone()
            entries = connection.execute("SELECT 1 FROM journal LIMIT 1").fetchone()
        self._has_older_events = events is not None
        self.has_journals = entries is not None
        """Whether any run keeps one: most studies do without, and are spared what goes with it."""

    # -- what the study is --

    def fact(self, name: str) -> Any:
        """A fact of the study; None if it isn't known."""
        with explained(self.path):
            rows = self.connection.execute("SELECT value FROM facts WHERE name = ?", (name,))
            return next(rows, (None,))[0]

    def write_plan(
        self, facts: Mapping[str, Any], conditions: Sequence[Condition], order: array[int]
    ) -> None:
        """Lay down what is to be run: before the first run, or when the plan has changed."""
        with self._transaction():
            facts = {**facts, "order": array("I", order).tobytes()}
            self.connection.executemany(_FACT, list(facts.items()))
            self.connection.execute("DELETE FROM conditions")
            self.connection.executemany(
                "INSERT INTO conditions VALUES (?,?)",
                ((plan_index, pack_condition(each)) for plan_index, each in enumerate(conditions)),
            )

    def begin_session(self, row: Mapping[str, Any]) -> None:
        """Note who runs the study from now on, and how."""
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        with self._transaction():
            cursor = self.connection.execute(
                f"INSERT INTO sessions ({names}) VALUES ({marks})", tuple(row.values())
            )
            self.session = cursor.lastrowid or 0

    def end_session(self, ended_at: str, how: str) -> None:
        """Commit what is left, and note how it ended."""
        self.commit()
        with self._transaction():
            self.connection.execute(
                "UPDATE sessions SET ended_at = ?, ended_how = ? WHERE session = ?",
                (ended_at, how, self.session),
            )

    # -- what happens --

    def add_event(self, event: Emitted) -> None:
        """An event of a run that is under way. Commits the group when it is full."""
        key = (event.execution_index, event.attempt)
        with self._lock:
            number = self._numbers.get(key, 0)
            self._numbers[key] = number + 1
            if not number and self._has_older_events:
                self._group.overwritten.append(key)
            self._group.events.append((event.execution_index, event.attempt, number, event.data))
            self._note(len(event.data))

    def add_result(self, assignment: Assignment, report: Finished) -> None:
        """The result of a run. Commits the group when it is full.

        If that fails the result is kept all the same, for the next commit.
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
            self._group.results.append((result, packed))
            if self._numbers:
                self._numbers.pop((execution_index, report.attempt), None)
            self._note(len(body) + len(report.stdout) + len(report.stderr))

    def add_attempt(
        self, report: Finished, spec: RunSpec | None = None, session: int | None = None
    ) -> None:
        """An attempt that is not the run's result: broken and to be tried again, or cancelled.

        spec: its run, if that may have a journal: what this attempt has paid is told from now on
        session: whose it was, if not that of the one that is under way
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
            self._group.attempts.append((attempt, entries))
            self._numbers.pop((report.execution_index, report.attempt), None)
            self._note(len(outcome.body) + len(report.stdout) + len(report.stderr))

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction of its own, beside what waits; all of it is on disk when it ends."""
        with self._lock:
            if file_identity(self.path) != self._identity:
                raise gone(self.path)
            with self._transaction():
                yield self.connection

    def set_live(self, live: bytes) -> None:
        """What is going on right now, for `fairtrial status`; written with the next commit."""
        with self._lock:
            self._live = live

    def write_scores(self, evaluator: str, scores: Iterable[tuple[int, bytes]]) -> None:
        """Verdicts of a later evaluator (`packing.Scores`), by turn; they replace earlier ones.

        A run that had failed only for want of a verdict is a success now.
        """
        with self._transaction():
            for execution_index, rows in scores:
                self.connection.execute(_SCORE, (execution_index, evaluator, rows))
                self.connection.execute(_JUDGED, (execution_index,))

    # -- commits --

    @property
    def is_due(self) -> bool:
        """Whether something has waited as long as it may."""
        return bool(self._since) and time.monotonic() - self._since >= GROUP_S

    def commit(self) -> None:
        """Write what waits, as one transaction."""
        with self._lock:
            if not self._since and self._live is None:
                return
            if file_identity(self.path) != self._identity:
                raise gone(self.path)
            group, live, since = self._group, self._live, self._since
            try:
                with self._transaction():
                    self._write(group, live)
                    self._group, self._live, self._since = CommitGroup(), None, 0.0
            finally:
                # Not by whether an exception came: an interrupt may come just after COMMIT.
                if self._has_failed:
                    self._group, self._live, self._since = group, live, since
                else:
                    self.committed += len(group.results)

    def _write(self, group: CommitGroup, live: bytes | None) -> None:
        write = self.connection.executemany
        if group.results:
            if self.again:
                self._set_aside(result[0] for result, _ in group.results)
            write(_RESULT, [result for result, _ in group.results])
            write(_BODY, [body for _, body in group.results])
            if self.has_journals:
                write(_SETTLE, [(row[1], row[2], row[5]) for row, _ in group.results])
        if group.attempts:
            write(_ATTEMPT, [attempt for attempt, _ in group.attempts])
            write(_SETTLE, [entries for _, entries in group.attempts if entries is not None])
        if group.overwritten:  # by an attempt that was cut off, and goes by the same number
            write("DELETE FROM events WHERE turn = ? AND attempt = ?", group.overwritten)
        if group.events:
            write(_EVENT, group.events)
        if live is not None:
            write(_FACT, [("live", live)])

    def _set_aside(self, execution_indexes: Iterable[int]) -> None:
        """What came of runs that were run again stays among the attempts."""
        for execution_index in self.again.keys() & set(execution_indexes):
            for statement in _SET_ASIDE:
                self.connection.execute(statement, (execution_index,))

    def _note(self, size: int) -> None:
        group = self._group
        group.bytes += size
        if not self._since:
            self._since = time.monotonic()
        if len(group.results) >= GROUP_RUNS or group.bytes >= GROUP_BYTES:
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
            except FAULTS as error:
                self._roll_back()
                raise explain(error, self.path) from error
            except BaseException:
                self._has_failed = not has_begun or self.connection.in_transaction
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # then SQLite does it, when the file is next read
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the file; what wasn't committed is lost."""
        with self._lock:
            with suppress(sqlite3.Error):  # what isn't folded back now is at the next opening
                self.connection.execute("PRAGMA busy_timeout = 100")
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.connection.close()


def open_ledger(folder: Path | None) -> Ledger:
    """The ledger of an output directory, made if there is none; None keeps it in memory."""
    path = None if folder is None else folder / LEDGER_NAME
    connection, notice = open_for_writing(path)
    return Ledger(connection, path, notice)
