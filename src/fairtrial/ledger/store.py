"""Writing the ledger: results in groups, each group whole or not at all.

Only the process that owns the output directory writes. What is added waits in memory until
`commit`, and counts as done only then. A commit that fails (no room on the disk) leaves the ledger
as it was and the group in memory.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairtrial.errors import LedgerError
from fairtrial.ledger.packing import pack
from fairtrial.ledger.schema import APPLICATION_ID, LEDGER_NAME, TABLES, VERSION
from fairtrial.model.conditions import Condition
from fairtrial.model.runs import Assignment, Emitted, Finished

GROUP_RUNS = 256
GROUP_S = 0.1
_RESULT = "INSERT INTO results VALUES (?,?,?,?,?,?,?,?,?,?)"
_BODY = "INSERT INTO bodies VALUES (?,?,?,?)"
_ATTEMPT = "INSERT OR REPLACE INTO attempts VALUES (?,?,?,?,?,?,?,?,?,?,?)"
_EVENT = "INSERT OR REPLACE INTO events VALUES (?,?,?,?)"


class Ledger:
    """The writing side of a ledger; see `reading` for the other."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self.connection = connection
        self.path = path
        self.session = 0
        self.committed = 0
        """How many results this session has committed."""
        self._lock = threading.RLock()
        self._results: list[tuple[Any, ...]] = []
        self._bodies: list[tuple[Any, ...]] = []
        self._attempts: list[tuple[Any, ...]] = []
        self._events: list[tuple[Any, ...]] = []
        self._live: bytes | None = None
        self._numbers: dict[tuple[int, int], int] = {}
        self._since = 0.0

    # -- what the study is --

    def fact(self, name: str) -> Any:
        """A fact of the study; None if it isn't known."""
        row = self.connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def write_plan(
        self, facts: Mapping[str, Any], conditions: Sequence[Condition], order: array[int]
    ) -> None:
        """Lay down what is to be run: before the first run, or when the plan has changed."""
        with self._transaction():
            self._set_facts({**facts, "order": array("I", order).tobytes()})
            self.connection.execute("DELETE FROM conditions")
            self.connection.executemany(
                "INSERT INTO conditions VALUES (?,?)",
                ((place, _pack_condition(each)) for place, each in enumerate(conditions)),
            )

    def begin_session(self, row: Mapping[str, Any]) -> None:
        """Note who runs the study from now on, and how."""
        names = ", ".join(row)
        marks = ", ".join("?" for _ in row)
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
        """An event of a run that is under way."""
        with self._lock:
            key = (event.turn, event.attempt)
            number = self._numbers.get(key, 0)
            self._numbers[key] = number + 1
            self._events.append((event.turn, event.attempt, number, event.data))
            self._touch()

    def add_result(self, assignment: Assignment, report: Finished) -> None:
        """The result of a run. Commits the group when it is full."""
        outcome, spec = report.outcome, assignment.spec
        with self._lock:
            self._results.append(
                (
                    report.turn,
                    spec.run_id,
                    spec.seed,
                    str(outcome.status),
                    None if outcome.failure_kind is None else str(outcome.failure_kind),
                    report.attempt,
                    self.session,
                    outcome.cost_usd,
                    outcome.tokens,
                    outcome.latency_s,
                )
            )
            self._bodies.append(
                (report.turn, outcome.body, report.stdout or None, report.stderr or None)
            )
            self._numbers.pop((report.turn, report.attempt), None)
            self._touch()
            if len(self._results) >= GROUP_RUNS:
                self.commit()

    def add_attempt(self, report: Finished) -> None:
        """An attempt that is not the run's result: broken and to be tried again, or cancelled."""
        outcome = report.outcome
        kind = None if outcome.failure_kind is None else str(outcome.failure_kind)
        with self._lock:
            self._attempts.append(
                (
                    report.turn,
                    report.attempt,
                    self.session,
                    str(outcome.status),
                    kind,
                    outcome.cost_usd,
                    outcome.tokens,
                    outcome.latency_s,
                    outcome.body,
                    report.stdout or None,
                    report.stderr or None,
                )
            )
            self._numbers.pop((report.turn, report.attempt), None)
            self._touch()

    def set_live(self, live: bytes) -> None:
        """What is going on right now, for `fairtrial status`; written with the next commit."""
        with self._lock:
            self._live = live

    def set_aside(self, turns: Sequence[int]) -> None:
        """Make runs pending again; what came of them stays among the attempts."""
        with self._transaction():
            for turn in turns:
                self.connection.execute(
                    "INSERT OR REPLACE INTO attempts SELECT turn, attempt, session, status, "
                    "failure_kind, cost_usd, tokens, latency_s, body, stdout, stderr "
                    "FROM results JOIN bodies USING (turn) WHERE turn = ?",
                    (turn,),
                )
                self.connection.execute("DELETE FROM results WHERE turn = ?", (turn,))
                self.connection.execute("DELETE FROM bodies WHERE turn = ?", (turn,))

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
            with self._transaction():
                self.connection.executemany(_RESULT, self._results)
                self.connection.executemany(_BODY, self._bodies)
                self.connection.executemany(_ATTEMPT, self._attempts)
                self.connection.executemany(_EVENT, self._events)
                if self._live is not None:
                    self._set_facts({"live": self._live})
            self.committed += len(self._results)
            for group in (self._results, self._bodies, self._attempts, self._events):
                group.clear()
            self._live, self._since = None, 0.0

    def _touch(self) -> None:
        if not self._since:
            self._since = time.monotonic()

    def _set_facts(self, facts: Mapping[str, Any]) -> None:
        self.connection.executemany(
            "INSERT OR REPLACE INTO facts VALUES (?,?)", list(facts.items())
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield
                self.connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                raise _explain(error, self.path) from error
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the file; what wasn't committed is lost."""
        self.connection.close()


def open_ledger(folder: Path | None) -> Ledger:
    """The ledger of an output directory, made if there is none; None keeps it in memory."""
    path = None if folder is None else folder / LEDGER_NAME
    try:
        connection = sqlite3.connect(
            ":memory:" if path is None else path, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        is_empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if is_empty:
            connection.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
                f"{TABLES} COMMIT;"
            )
        elif mark != APPLICATION_ID:
            raise LedgerError(f"{path} is not a ledger of fairtrial's; choose another --output")
        elif version > VERSION:
            raise LedgerError(f"{path} was written by a newer fairtrial (format {version})")
    except sqlite3.Error as error:
        raise _explain(error, path) from error
    return Ledger(connection, path)


def _pack_condition(condition: Condition) -> bytes:
    return pack(
        {
            "condition_id": condition.condition_id,
            "factors": condition.factor_assignments,
            "blocks": condition.block_assignments,
            "metadata": condition.metadata,
            "admissible": condition.admissible,
            "messages": condition.constraint_messages,
        }
    )


def _explain(error: sqlite3.Error, path: Path | None) -> LedgerError:
    return LedgerError(f"{path}: {error}")
