"""Reading a ledger, finished or still being written: the study, its plan, its results.

No query stays open while what it found is used: a reader that takes its time would keep the
write-ahead log from being folded back, or the writer from writing.
"""

from __future__ import annotations

import json
import math
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from fairtrial.core import LedgerError
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.journal import unreported_payments
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.opening import open_for_reading
from fairtrial.study.ledger.packing import UnreadableError, unpack
from fairtrial.study.ledger.rows import (
    ATTEMPT,
    BODY,
    LAST_ATTEMPT,
    RESULTS,
    SESSION,
    read_attempt,
    read_condition,
    read_result,
)
from fairtrial.study.ledger.schema import GONE, LEDGER_NAME, SESSION_COLUMNS
from fairtrial.study.ledger.sqlite_errors import damaged, explained
from fairtrial.study.ledger.summary import Attempt, Summary, add_up
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study

__all__ = ["GONE", "Attempt", "LedgerReader", "Summary"]

BLOCK_RUNS = 256
BLOCK_BYTES = 8 << 20
"""How many results are read in one go, and how much of them at most."""
MANY = 10_000
Rows = list[tuple[Any, ...]]


class LedgerReader:
    """All that a ledger tells; writes nothing.

    The plan is that of the moment when it was first asked for; results, sessions and the summary
    are those of now.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self.connection = connection
        self.path = path
        self._run_by: dict[int, tuple[str | None, str | None]] = {}

    @classmethod
    def open(cls, folder: Path) -> LedgerReader:
        """The ledger of an output directory."""
        path = folder / LEDGER_NAME
        return cls(open_for_reading(path), path)

    def with_plan(self, plan: RunPlan) -> LedgerReader:
        """The same, spared from reading the plan: the caller has just laid this one down."""
        vars(self).update(study=plan.study, conditions=plan.conditions, plan=plan)
        return self

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    def _query(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        with explained(self.path):
            return self.connection.execute(query, values).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See the ledger as it is now until the block ends, whatever is added to it meanwhile."""
        if self.connection.in_transaction:
            yield
            return
        self._query("BEGIN")
        try:
            self._query("SELECT count(*) FROM facts")  # where the view is taken
            yield
        finally:
            self.connection.execute("ROLLBACK")

    @contextmanager
    def _read(self, what: str) -> Iterator[None]:
        try:
            yield
        except UnreadableError as error:
            raise damaged(self.path, f"{what}: {error}") from error

    # -- the study --

    def fact(self, name: str) -> Any:
        """A fact of the study; None if it isn't known."""
        rows = self._query("SELECT value FROM facts WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    @cached_property
    def study(self) -> Study:
        """The study, as it was when the plan was last laid down."""
        text = self.fact("study")
        if text is None:
            raise LedgerError(f"{self.path} holds no study: it was stopped before it began")
        folder = self.fact("folder")
        try:
            study = Study.from_dict(json.loads(text))
            if folder is not None:
                object.__setattr__(study, "folder", Path(folder))
        except (ValueError, TypeError) as error:  # StudyError is a ValueError
            raise damaged(self.path, f"the study in it can't be read: {error}") from error
        return study

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions, in plan order, inadmissible ones included."""
        rows = self._query("SELECT data FROM conditions ORDER BY place")
        with self._read("a condition"):
            return [read_condition(data) for (data,) in rows]

    @cached_property
    def plan(self) -> RunPlan:
        """The runs in plan order."""
        return RunPlan(self.study, self.conditions)

    @cached_property
    def order(self) -> array[int]:
        """For each turn the place in the plan; `GONE` for runs that are no longer in it."""
        order = array("I")
        try:
            order.frombytes(self.fact("order") or b"")
        except (ValueError, TypeError) as error:
            raise damaged(self.path, "the order of execution can't be read") from error
        return order

    @cached_property
    def execution_indexes(self) -> array[int]:
        """For each place in the plan its turn."""
        order, length = self.order, len(self.plan)
        execution_indexes = array("I", bytes(4 * length))
        if len(order) - order.count(GONE) != length:
            raise damaged(self.path, f"the order of execution is not one of {length:,} runs")
        for execution_index, plan_index in enumerate(order):
            if plan_index < length:
                execution_indexes[plan_index] = execution_index
            elif plan_index != GONE:
                raise damaged(self.path, f"turn {execution_index} is at a place beyond the plan")
        return execution_indexes

    @property
    def sessions(self) -> dict[int, Mapping[str, Any]]:
        """Who ran the study, session by session."""
        rows = self._query(f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions ORDER BY session")
        return {row[0]: dict(zip(SESSION_COLUMNS, row, strict=True)) for row in rows}

    # -- the results --

    def results(self) -> Iterator[RunResult]:
        """What came of each run that is in the plan and done, in plan order; lazily."""
        for start in range(0, len(self.execution_indexes), BLOCK_RUNS):
            yield from self._block(
                range(start, min(start + BLOCK_RUNS, len(self.execution_indexes)))
            )

    def result(self, plan_index: int) -> RunResult | None:
        """What came of the run at a place in the plan; None if it isn't done."""
        return next(self._block(range(plan_index, plan_index + 1)), None)

    def _block(self, plan_indexes: range) -> Iterator[RunResult]:
        """The results at some places; half at a time where they take much memory."""
        execution_indexes = [self.execution_indexes[plan_index] for plan_index in plan_indexes]
        found = self._rows(
            execution_indexes, BLOCK_BYTES if len(execution_indexes) > 1 else math.inf
        )
        if found is None:
            middle = len(plan_indexes) // 2
            yield from self._block(plan_indexes[:middle])
            yield from self._block(plan_indexes[middle:])
            return
        rows, events = found
        for plan_index, execution_index in zip(plan_indexes, execution_indexes, strict=True):
            row = rows.pop(execution_index, None)
            if row is not None:
                yield self._result(plan_index, row, events.pop(execution_index, ()))

    def _result(self, plan_index: int, row: tuple[Any, ...], events: Sequence[bytes]) -> RunResult:
        session = row[SESSION]
        run_by = self._run_by.get(session) or self._look_up(session)
        try:
            return read_result(self.plan.spec(plan_index), row, events, run_by)
        except UnreadableError as error:
            raise damaged(self.path, f"the result of turn {row[0]}: {error}") from error

    def _rows(
        self, execution_indexes: Sequence[int], most_bytes: float
    ) -> tuple[dict[int, tuple[Any, ...]], dict[int, list[bytes]]] | None:
        """The rows of some turns, and their events; None if they take more than `most_bytes`."""
        among = f"WHERE turn IN ({','.join('?' * len(execution_indexes))})"
        rows: dict[int, tuple[Any, ...]] = {}
        events: dict[int, list[bytes]] = {}
        with explained(self.path):
            for row in self.connection.execute(f"{RESULTS} {among}", execution_indexes):
                rows[row[0]] = row
                most_bytes -= len(row[BODY] or b"")
                if most_bytes < 0:
                    return None
            query = f"SELECT turn, attempt, data FROM events {among} ORDER BY turn, attempt, number"
            for execution_index, attempt, data in self.connection.execute(query, execution_indexes):
                if execution_index in rows and rows[execution_index][ATTEMPT] == attempt:
                    events.setdefault(execution_index, []).append(data)
                    most_bytes -= len(data)
                    if most_bytes < 0:
                        return None
        return rows, events

    def _look_up(self, session: int) -> tuple[str | None, str | None]:
        """Executor and host of a session; a study that runs may have begun it just now."""
        self._run_by = {key: (row["executor"], row["host"]) for key, row in self.sessions.items()}
        return self._run_by.setdefault(session, (None, None))

    def events(self, execution_index: int, attempt: int) -> Iterator[Mapping[str, Any]]:
        """What an attempt emitted, in order."""
        rows = self._query(
            "SELECT data FROM events WHERE turn = ? AND attempt = ? ORDER BY number",
            (execution_index, attempt),
        )
        with self._read(f"an event of turn {execution_index}"):
            return iter([unpack(data) for (data,) in rows])

    def attempts(self, execution_index: int) -> list[Attempt]:
        """The attempts at a run that are not its result, in order."""
        rows = self._query(
            "SELECT * FROM attempts WHERE turn = ? ORDER BY attempt", (execution_index,)
        )
        with self._read(f"an attempt of turn {execution_index}"):
            return [read_attempt(row) for row in rows]

    # -- which runs --

    def done_indexes(self) -> Iterator[int]:
        """The turns that have a result, in order; those of runs no longer in the plan too."""
        return self._turns("")

    def indexes_with_status(self, status: RunStatus | str) -> Iterator[int]:
        """The turns of runs in the plan that came to a status, in order."""
        order = self.order
        known = (
            execution_index
            for execution_index in self._turns("AND status = ?", str(status))
            if execution_index < len(order)
        )
        return (execution_index for execution_index in known if order[execution_index] != GONE)

    def _turns(self, which: str, *values: Any) -> Iterator[int]:
        query = f"SELECT turn FROM results WHERE turn > ? {which} ORDER BY turn LIMIT {MANY}"
        last = -1
        while rows := self._query(query, (last, *values)):
            if rows[-1][0] <= last:  # pages that point at each other in a circle
                raise damaged(self.path, "its results are out of order")
            yield from (execution_index for (execution_index,) in rows)
            last = rows[-1][0]

    def last_attempt(self, execution_index: int) -> int:
        """The highest number that an attempt at a run went by so far, cut off or not; else 0."""
        rows = self._query(LAST_ATTEMPT, {"turn": execution_index})
        return int(rows[0][0] or 0)

    def removed_identities(self) -> Iterator[tuple[int, str, int]]:
        """Turn, run id and seed of each result whose run is no longer in the plan."""
        for row in self._gone("turn, run_id, seed"):
            yield row[0], row[1], row[2]

    def _gone(self, columns: str) -> Iterator[tuple[Any, ...]]:
        order = self.order if GONE in self.order else ()
        gone = (
            execution_index
            for execution_index, plan_index in enumerate(order)
            if plan_index == GONE
        )
        while execution_indexes := list(islice(gone, BLOCK_RUNS)):
            among = ",".join("?" * len(execution_indexes))
            yield from self._query(
                f"SELECT {columns} FROM results WHERE turn IN ({among})", execution_indexes
            )

    # -- at a glance --

    @property
    def left_out(self) -> int:
        """How many results there are of runs that are no longer in the plan."""
        return sum(1 for _ in self._gone("turn"))

    def summary(self) -> Summary:
        """How far the study has come; reads no result, nor the conditions."""
        with self.snapshot():  # else an attempt that ends meanwhile might count twice, or not
            return self._summary()

    def _summary(self) -> Summary:
        sums = "count(*), total(cost_usd), total(tokens)"
        rows = self._query(
            f"SELECT status, failure_kind, {sums} FROM results GROUP BY status, failure_kind"
        )
        tally = Counter({(status, kind): number for status, kind, number, _, _ in rows})
        gone = Counter(self._gone("status, failure_kind"))
        tally.subtract(gone)
        rows += self._query(f"SELECT NULL, NULL, {sums} FROM attempts")
        untold = unreported_payments(self.connection, self.path)
        budget, length = self.study.run_budget, len(self.order) - self.order.count(GONE)
        planned = min(length, budget.max_runs or length) if budget.is_balanced else length
        return Summary(
            counts=add_up((status, number) for (status, _), number in tally.items()),
            failures=add_up((kind, number) for (_, kind), number in tally.items() if kind),
            planned=planned,
            skipped=length - planned,
            left_out=gone.total(),
            cost_usd=sum(row[3] for row in rows) + sum(paid.cost_usd for *_, paid in untold),
            tokens=int(sum(row[4] for row in rows)) + sum(paid.tokens for *_, paid in untold),
            live=self._live(),
            last_session=next(reversed(self.sessions.values()), None),
            is_running=self.path is not None and owner_of(self.path.parent) is not None,
        )

    def _live(self) -> Mapping[str, Any] | None:
        data = self.fact("live")
        with self._read("what is going on"):
            return None if data is None else unpack(data)
