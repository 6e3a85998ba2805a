"""Read a ledger, finished or still being written: the study, its plan, its results.

No query stays open while its rows are used: a slow reader would keep the write-ahead log from being
checkpointed, or the writer from writing.
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
from fairtrial.study.ledger.journal_store import unreported_payments
from fairtrial.study.ledger.ledger_file import open_for_reading
from fairtrial.study.ledger.ledger_rows import (
    ATTEMPT_COLUMN,
    BODY_COLUMN,
    RUN_ID_COLUMN,
    SEED_COLUMN,
    SELECT_LAST_ATTEMPT,
    SELECT_RESULTS,
    SESSION_COLUMN,
    read_attempt,
    read_condition,
    read_result,
)
from fairtrial.study.ledger.ledger_summary import Attempt, Summary, sum_counts
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.packing import UnreadableError, unpack
from fairtrial.study.ledger.planned_looks import PLANNED_LOOKS_FACT, LookLog, parse_look_log
from fairtrial.study.ledger.schema import LEDGER_NAME, REMOVED, SESSION_COLUMNS
from fairtrial.study.ledger.sqlite_errors import damaged, explained
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study

PROBLEM_NAMES_FACT = "problem names"
BATCH_RUNS = 256
BATCH_BYTES = 8 << 20
"""How many results are read at once, and their size at most."""
INDEX_BATCH = 10_000
Rows = list[tuple[Any, ...]]


class LedgerReader:
    """Read access to a ledger.

    Study, conditions and plan are read once and cached; results, sessions and the summary are
    always current.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self.connection = connection
        self.path = path
        self.own_session: int | None = None
        """The session of this process; what it has written is not verified again."""
        self._run_by: dict[int, tuple[str | None, str | None]] = {}

    @classmethod
    def open(cls, folder: Path) -> LedgerReader:
        """Open the ledger of an output directory; raises `LedgerError` if it can't be read."""
        path = folder / LEDGER_NAME
        return cls(open_for_reading(path), path)

    def with_plan(self, plan: RunPlan) -> LedgerReader:
        """Return this reader with a plan that the caller has just stored, instead of reading it."""
        vars(self).update(study=plan.study, conditions=plan.conditions, plan=plan)
        return self

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def _query(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        with explained(self.path):
            return self.connection.execute(query, values).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the ledger in its current state within the block, whatever is added meanwhile."""
        if self.connection.in_transaction:
            yield
            return
        self._query("BEGIN")
        try:
            self._query("SELECT count(*) FROM facts")  # this starts the read transaction
            yield
        finally:
            self.connection.execute("ROLLBACK")

    @contextmanager
    def _explain_unreadable(self, name: str) -> Iterator[None]:
        try:
            yield
        except UnreadableError as error:
            raise damaged(self.path, f"{name}: {error}") from error

    # -- the study --

    def fact(self, name: str) -> Any:
        """Return a fact of the study by its name; None if it isn't stored."""
        rows = self._query("SELECT value FROM facts WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    @cached_property
    def study(self) -> Study:
        """The study as it was when the plan was last stored."""
        text = self.fact("study")
        if text is None and self.fact("lock") is not None:
            raise LedgerError(
                f"{self.path} holds the lock of a study that was not run yet: `fairtrial show "
                f"{self.path and self.path.parent} lock` shows it, `fairtrial run` starts the study"
            )
        if text is None:
            raise LedgerError(f"{self.path} holds no study: it was stopped before it began")
        folder = self.fact("folder")
        try:
            study = Study.from_dict(json.loads(text))
            if folder is not None:
                study.set_folder(Path(folder))
            names = self.fact(PROBLEM_NAMES_FACT)
            if study.dataset is not None and names is not None:
                study.dataset.use_stored(json.loads(names))
        except (ValueError, TypeError, KeyError) as error:  # StudyError is a ValueError
            raise damaged(self.path, f"the study in it can't be read: {error}") from error
        return study

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions, in plan order, inadmissible ones included."""
        rows = self._query("SELECT data FROM conditions ORDER BY place")
        with self._explain_unreadable("a condition"):
            return [read_condition(data) for (data,) in rows]

    @cached_property
    def plan(self) -> RunPlan:
        """The plan: all runs in plan order."""
        plan = RunPlan(self.study, self.conditions)
        self.look_log().apply(plan)
        return plan

    def look_log(self) -> LookLog:
        """Return the planned looks that were made."""
        try:
            return parse_look_log(self.fact(PLANNED_LOOKS_FACT))
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(self.path, f"the planned looks can't be read: {error}") from error

    @cached_property
    def order(self) -> array[int]:
        """The plan index for each execution index; `REMOVED` for runs no longer in the plan."""
        order = array("I")
        try:
            order.frombytes(self.fact("order") or b"")
        except (ValueError, TypeError) as error:
            raise damaged(self.path, "the order of execution can't be read") from error
        return order

    @cached_property
    def execution_indexes(self) -> array[int]:
        """The execution index for each plan index."""
        order, length = self.order, len(self.plan)
        execution_indexes = array("I", bytes(4 * length))
        if len(order) - order.count(REMOVED) != length:
            raise damaged(self.path, f"the order of execution is not one of {length:,} runs")
        for execution_index, plan_index in enumerate(order):
            if plan_index < length:
                execution_indexes[plan_index] = execution_index
            elif plan_index != REMOVED:
                raise damaged(self.path, f"execution index {execution_index} is beyond the plan")
        return execution_indexes

    @property
    def sessions(self) -> dict[int, Mapping[str, Any]]:
        """The sessions that ran the study, by number."""
        rows = self._query(f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions ORDER BY session")
        return {row[0]: dict(zip(SESSION_COLUMNS, row, strict=True)) for row in rows}

    # -- the results --

    def results(self) -> Iterator[RunResult]:
        """Yield the results of all runs in the plan that are done, in plan order."""
        for start in range(0, len(self.execution_indexes), BATCH_RUNS):
            yield from self.results_at(
                range(start, min(start + BATCH_RUNS, len(self.execution_indexes)))
            )

    def result_batches(self) -> Iterator[list[tuple[int, RunResult]]]:
        """Yield the same results in the order of execution, some at a time, with plan indexes.

        They are stored in this order, so that reading them takes a fraction of the time.
        """
        order, start = self.order, 0
        while start < len(order):
            rows, events = self._next_rows(start)
            if not rows:
                return
            start = rows[-1][0] + 1
            yield [
                (order[row[0]], self._result(order[row[0]], row, events.get(row[0], ())))
                for row in rows
                if row[0] < len(order) and order[row[0]] != REMOVED
            ]

    def _next_rows(self, start: int) -> tuple[Rows, dict[int, list[bytes]]]:
        """Return some rows from an execution index on, in order, with their events."""
        rows: Rows = []
        events: dict[int, list[bytes]] = {}
        size = 0
        with explained(self.path):
            query = f"{SELECT_RESULTS} WHERE turn >= ? ORDER BY turn LIMIT {BATCH_RUNS}"
            for row in self.connection.execute(query, (start,)):
                if rows and row[0] <= rows[-1][0]:  # damaged pages that form a cycle
                    raise damaged(self.path, "its results are out of order")
                rows.append(row)
                size += len(row[BODY_COLUMN] or b"")
                if size > BATCH_BYTES:
                    break
            if not rows:
                return rows, events
            attempts = {row[0]: row[ATTEMPT_COLUMN] for row in rows}
            query = (
                "SELECT turn, attempt, data FROM events WHERE turn BETWEEN ? AND ? "
                "ORDER BY turn, attempt, number"
            )
            size = 0
            for index, attempt, data in self.connection.execute(query, (start, rows[-1][0])):
                if attempts.get(index) != attempt:
                    continue
                size += len(data)
                if size > BATCH_BYTES and index > rows[0][0]:  # leave this run to the next batch
                    events.pop(index, None)
                    return [row for row in rows if row[0] < index], events
                events.setdefault(index, []).append(data)
        return rows, events

    def result(self, plan_index: int) -> RunResult | None:
        """Return the result of the run with this plan index; None if it isn't done."""
        return next(self.results_at(range(plan_index, plan_index + 1)), None)

    def results_at(self, plan_indexes: Sequence[int]) -> Iterator[RunResult]:
        """Yield the results of some runs that are done; half at a time if they take much memory."""
        indexes = [self.execution_indexes[plan_index] for plan_index in plan_indexes]
        batch = self._rows(indexes, BATCH_BYTES if len(indexes) > 1 else math.inf)
        if batch is None:
            middle = len(plan_indexes) // 2
            yield from self.results_at(plan_indexes[:middle])
            yield from self.results_at(plan_indexes[middle:])
            return
        rows, events = batch
        for plan_index, index in zip(plan_indexes, indexes, strict=True):
            row = rows.pop(index, None)
            if row is not None:
                yield self._result(plan_index, row, events.pop(index, ()))

    def _result(self, plan_index: int, row: tuple[Any, ...], events: Sequence[bytes]) -> RunResult:
        session = row[SESSION_COLUMN]
        run_by = self._run_by.get(session) or self._find_session(session)
        is_own = session == self.own_session
        try:
            if is_own:
                spec = self.plan.known_spec(plan_index, row[RUN_ID_COLUMN], row[SEED_COLUMN])
            else:
                spec = self.plan.spec(plan_index)
            return read_result(spec, row, events, run_by, is_own=is_own)
        except UnreadableError as error:
            raise damaged(self.path, f"the result at execution index {row[0]}: {error}") from error

    def _rows(
        self, indexes: Sequence[int], most_bytes: float
    ) -> tuple[dict[int, tuple[Any, ...]], dict[int, list[bytes]]] | None:
        """Return the rows and events of some runs; None if they exceed `most_bytes`."""
        where = f"WHERE turn IN ({','.join('?' * len(indexes))})"
        rows: dict[int, tuple[Any, ...]] = {}
        events: dict[int, list[bytes]] = {}
        with explained(self.path):
            for row in self.connection.execute(f"{SELECT_RESULTS} {where}", indexes):
                rows[row[0]] = row
                most_bytes -= len(row[BODY_COLUMN] or b"")
                if most_bytes < 0:
                    return None
            query = f"SELECT turn, attempt, data FROM events {where} ORDER BY turn, attempt, number"
            for index, attempt, data in self.connection.execute(query, indexes):
                if index in rows and rows[index][ATTEMPT_COLUMN] == attempt:
                    events.setdefault(index, []).append(data)
                    most_bytes -= len(data)
                    if most_bytes < 0:
                        return None
        return rows, events

    def _find_session(self, session: int) -> tuple[str | None, str | None]:
        """Return executor and host of a session; reads anew, since it may have just started."""
        self._run_by = {key: (row["executor"], row["host"]) for key, row in self.sessions.items()}
        return self._run_by.setdefault(session, (None, None))

    def events(self, execution_index: int, attempt: int, first: int = 0) -> list[Mapping[str, Any]]:
        """Return what an attempt at a run has emitted so far, also while it is under way.

        first: how many of its events are left out
        """
        rows = self._query(
            "SELECT data FROM events WHERE turn = ? AND attempt = ? ORDER BY number "
            "LIMIT -1 OFFSET ?",
            (execution_index, attempt, first),
        )
        with self._explain_unreadable(f"an event at execution index {execution_index}"):
            return [unpack(data) for (data,) in rows]

    def attempts(self, execution_index: int) -> list[Attempt]:
        """Return the attempts at a run that are not its result, in order."""
        rows = self._query(
            "SELECT * FROM attempts WHERE turn = ? ORDER BY attempt", (execution_index,)
        )
        with self._explain_unreadable(f"an attempt at execution index {execution_index}"):
            return [read_attempt(row) for row in rows]

    # -- which runs --

    def done_indexes(self) -> Iterator[int]:
        """Yield the execution indexes with a result, in order, also of runs that left the plan."""
        return self._select_indexes("")

    def indexes_with_status(self, status: RunStatus | str) -> Iterator[int]:
        """Yield the execution indexes of runs in the plan with this status, in order."""
        order = self.order
        indexes = (
            index
            for index in self._select_indexes("AND status = ?", str(status))
            if index < len(order)
        )
        return (index for index in indexes if order[index] != REMOVED)

    def _select_indexes(self, where: str, *values: Any) -> Iterator[int]:
        query = f"SELECT turn FROM results WHERE turn > ? {where} ORDER BY turn LIMIT {INDEX_BATCH}"
        last = -1
        while rows := self._query(query, (last, *values)):
            if rows[-1][0] <= last:  # damaged pages that form a cycle
                raise damaged(self.path, "its results are out of order")
            yield from (index for (index,) in rows)
            last = rows[-1][0]

    def last_attempt(self, execution_index: int) -> int:
        """Return the highest number of an attempt at a run, finished or not; 0 if there is none."""
        rows = self._query(SELECT_LAST_ATTEMPT, {"turn": execution_index})
        return int(rows[0][0] or 0)

    def removed_identities(self) -> Iterator[tuple[int, str, int]]:
        """Yield execution index, run id and seed of each result whose run left the plan."""
        for row in self._select_removed("turn, run_id, seed"):
            yield row[0], row[1], row[2]

    def _select_removed(self, columns: str) -> Iterator[tuple[Any, ...]]:
        order = self.order if REMOVED in self.order else ()
        removed = (index for index, plan_index in enumerate(order) if plan_index == REMOVED)
        while indexes := list(islice(removed, BATCH_RUNS)):
            marks = ",".join("?" * len(indexes))
            yield from self._query(
                f"SELECT {columns} FROM results WHERE turn IN ({marks})", indexes
            )

    # -- summary --

    @property
    def left_out(self) -> int:
        """How many results belong to runs that are no longer in the plan."""
        return sum(1 for _ in self._select_removed("turn"))

    def summary(self) -> Summary:
        """Return the progress of the study; reads neither results nor conditions."""
        with (
            self.snapshot()
        ):  # else an attempt that ends meanwhile might count twice, or not at all
            return self._summary()

    def _summary(self) -> Summary:
        sums = "count(*), total(cost_usd), total(tokens)"
        rows = self._query(
            f"SELECT status, failure_kind, {sums} FROM results GROUP BY status, failure_kind"
        )
        counts = Counter({(status, kind): number for status, kind, number, _, _ in rows})
        removed = Counter(self._select_removed("status, failure_kind"))
        counts.subtract(removed)
        rows += self._query(f"SELECT NULL, NULL, {sums} FROM attempts")
        unreported = unreported_payments(self.connection, self.path)
        budget, length = self.study.run_budget, len(self.order) - self.order.count(REMOVED)
        planned = min(length, budget.max_runs or length) if budget.is_balanced else length
        decided_early = self.look_log().skipped
        return Summary(
            counts=sum_counts((status, number) for (status, _), number in counts.items()),
            failures=sum_counts((kind, number) for (_, kind), number in counts.items() if kind),
            planned=planned - decided_early,
            skipped=length - planned,
            decided_early=decided_early,
            left_out=removed.total(),
            cost_usd=sum(row[3] for row in rows) + sum(paid.cost_usd for *_, paid in unreported),
            tokens=int(sum(row[4] for row in rows)) + sum(paid.tokens for *_, paid in unreported),
            live=self._live(),
            last_session=next(reversed(self.sessions.values()), None),
            is_running=self.path is not None and owner_of(self.path.parent) is not None,
        )

    def _live(self) -> Mapping[str, Any] | None:
        data = self.fact("live")
        with self._explain_unreadable("what is going on"):
            return None if data is None else unpack(data)
