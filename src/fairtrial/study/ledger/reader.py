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
from fairtrial.study.ledger.journal import untold_payments
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.opening import open_for_reading
from fairtrial.study.ledger.packing import UnreadableError, unpack
from fairtrial.study.ledger.rows import (
    ATTEMPT,
    BODY,
    LAST_ATTEMPT,
    RESULTS,
    SESSION,
    attempt_of,
    condition_of,
    result_of,
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

    def knowing(self, plan: RunPlan) -> LedgerReader:
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
    def as_of_now(self) -> Iterator[None]:
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
            return [condition_of(data) for (data,) in rows]

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
    def turns(self) -> array[int]:
        """For each place in the plan its turn."""
        order, length = self.order, len(self.plan)
        turns = array("I", bytes(4 * length))
        if len(order) - order.count(GONE) != length:
            raise damaged(self.path, f"the order of execution is not one of {length:,} runs")
        for turn, place in enumerate(order):
            if place < length:
                turns[place] = turn
            elif place != GONE:
                raise damaged(self.path, f"turn {turn} is at a place beyond the plan")
        return turns

    @property
    def sessions(self) -> dict[int, Mapping[str, Any]]:
        """Who ran the study, session by session."""
        rows = self._query(f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions ORDER BY session")
        return {row[0]: dict(zip(SESSION_COLUMNS, row, strict=True)) for row in rows}

    # -- the results --

    def results(self) -> Iterator[RunResult]:
        """What came of each run that is in the plan and done, in plan order; lazily."""
        for start in range(0, len(self.turns), BLOCK_RUNS):
            yield from self._block(range(start, min(start + BLOCK_RUNS, len(self.turns))))

    def result(self, place: int) -> RunResult | None:
        """What came of the run at a place in the plan; None if it isn't done."""
        return next(self._block(range(place, place + 1)), None)

    def _block(self, places: range) -> Iterator[RunResult]:
        """The results at some places; half at a time where they take much memory."""
        turns = [self.turns[place] for place in places]
        found = self._rows(turns, BLOCK_BYTES if len(turns) > 1 else math.inf)
        if found is None:
            middle = len(places) // 2
            yield from self._block(places[:middle])
            yield from self._block(places[middle:])
            return
        rows, events = found
        for place, turn in zip(places, turns, strict=True):
            row = rows.pop(turn, None)
            if row is not None:
                yield self._result(place, row, events.pop(turn, ()))

    def _result(self, place: int, row: tuple[Any, ...], events: Sequence[bytes]) -> RunResult:
        session = row[SESSION]
        run_by = self._run_by.get(session) or self._look_up(session)
        try:
            return result_of(self.plan.spec(place), row, events, run_by)
        except UnreadableError as error:
            raise damaged(self.path, f"the result of turn {row[0]}: {error}") from error

    def _rows(
        self, turns: Sequence[int], most_bytes: float
    ) -> tuple[dict[int, tuple[Any, ...]], dict[int, list[bytes]]] | None:
        """The rows of some turns, and their events; None if they take more than `most_bytes`."""
        among = f"WHERE turn IN ({','.join('?' * len(turns))})"
        rows: dict[int, tuple[Any, ...]] = {}
        events: dict[int, list[bytes]] = {}
        with explained(self.path):
            for row in self.connection.execute(f"{RESULTS} {among}", turns):
                rows[row[0]] = row
                most_bytes -= len(row[BODY] or b"")
                if most_bytes < 0:
                    return None
            query = f"SELECT turn, attempt, data FROM events {among} ORDER BY turn, attempt, number"
            for turn, attempt, data in self.connection.execute(query, turns):
                if turn in rows and rows[turn][ATTEMPT] == attempt:
                    events.setdefault(turn, []).append(data)
                    most_bytes -= len(data)
                    if most_bytes < 0:
                        return None
        return rows, events

    def _look_up(self, session: int) -> tuple[str | None, str | None]:
        """Executor and host of a session; a study that runs may have begun it just now."""
        self._run_by = {key: (row["executor"], row["host"]) for key, row in self.sessions.items()}
        return self._run_by.setdefault(session, (None, None))

    def events(self, turn: int, attempt: int) -> Iterator[Mapping[str, Any]]:
        """What an attempt emitted, in order."""
        rows = self._query(
            "SELECT data FROM events WHERE turn = ? AND attempt = ? ORDER BY number",
            (turn, attempt),
        )
        with self._read(f"an event of turn {turn}"):
            return iter([unpack(data) for (data,) in rows])

    def attempts(self, turn: int) -> list[Attempt]:
        """The attempts at a run that are not its result, in order."""
        rows = self._query("SELECT * FROM attempts WHERE turn = ? ORDER BY attempt", (turn,))
        with self._read(f"an attempt of turn {turn}"):
            return [attempt_of(row) for row in rows]

    # -- which runs --

    def done_turns(self) -> Iterator[int]:
        """The turns that have a result, in order; those of runs no longer in the plan too."""
        return self._turns("")

    def turns_with(self, status: RunStatus | str) -> Iterator[int]:
        """The turns of runs in the plan that came to a status, in order."""
        order = self.order
        known = (turn for turn in self._turns("AND status = ?", str(status)) if turn < len(order))
        return (turn for turn in known if order[turn] != GONE)

    def _turns(self, which: str, *values: Any) -> Iterator[int]:
        query = f"SELECT turn FROM results WHERE turn > ? {which} ORDER BY turn LIMIT {MANY}"
        last = -1
        while rows := self._query(query, (last, *values)):
            if rows[-1][0] <= last:  # pages that point at each other in a circle
                raise damaged(self.path, "its results are out of order")
            yield from (turn for (turn,) in rows)
            last = rows[-1][0]

    def last_attempt(self, turn: int) -> int:
        """The highest number that an attempt at a run went by so far, cut off or not; else 0."""
        rows = self._query(LAST_ATTEMPT, {"turn": turn})
        return int(rows[0][0] or 0)

    def identities_gone(self) -> Iterator[tuple[int, str, int]]:
        """Turn, run id and seed of each result whose run is no longer in the plan."""
        for row in self._gone("turn, run_id, seed"):
            yield row[0], row[1], row[2]

    def _gone(self, columns: str) -> Iterator[tuple[Any, ...]]:
        order = self.order if GONE in self.order else ()
        gone = (turn for turn, place in enumerate(order) if place == GONE)
        while turns := list(islice(gone, BLOCK_RUNS)):
            among = ",".join("?" * len(turns))
            yield from self._query(f"SELECT {columns} FROM results WHERE turn IN ({among})", turns)

    # -- at a glance --

    @property
    def left_out(self) -> int:
        """How many results there are of runs that are no longer in the plan."""
        return sum(1 for _ in self._gone("turn"))

    def summary(self) -> Summary:
        """How far the study has come; reads no result, nor the conditions."""
        with self.as_of_now():  # else an attempt that ends meanwhile might count twice, or not
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
        untold = untold_payments(self.connection, self.path)
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
