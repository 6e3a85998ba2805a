"""Reading a ledger, finished or still being written: the study, its plan, its results."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from fairtrial.design.plan import RunPlan
from fairtrial.errors import LedgerError
from fairtrial.ledger.packing import unpack
from fairtrial.ledger.schema import LEDGER_NAME
from fairtrial.model.conditions import Condition
from fairtrial.model.runs import FailureKind, RunResult, RunSpec, RunStatus
from fairtrial.model.study import Study

GONE = 0xFFFFFFFF
"""The place of a run that is no longer in the plan."""
_JOINED = (
    "SELECT turn, run_id, status, failure_kind, attempt, session, cost_usd, latency_s, body, "
    "stdout, stderr, scores.rows "
    "FROM results JOIN bodies USING (turn) LEFT JOIN scores USING (turn)"
)


class LedgerReader:
    """All that a ledger tells; opens nothing for writing."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self.connection = connection
        self.path = path

    @classmethod
    def open(cls, folder: Path) -> LedgerReader:
        """The ledger of an output directory."""
        path = folder / LEDGER_NAME
        if not path.is_file():
            raise LedgerError(f"{folder} holds no study: there is no {LEDGER_NAME} in it")
        uri = f"{path.absolute().as_uri()}?mode=ro"
        try:
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            connection.execute("SELECT count(*) FROM facts").fetchone()
        except sqlite3.Error as error:
            raise LedgerError(f"{path}: {error}") from error
        return cls(connection, path)

    # -- the study --

    def fact(self, name: str) -> Any:
        """A fact of the study; None if it isn't known."""
        row = self.connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    @cached_property
    def study(self) -> Study:
        """The study, as it was when the plan was last laid down."""
        text = self.fact("study")
        if text is None:
            raise LedgerError(f"{self.path} holds no study: it was stopped before it began")
        study = Study.from_dict(json.loads(text))
        folder = self.fact("folder")
        if folder is not None:
            object.__setattr__(study, "folder", Path(folder))
        return study

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions, in plan order, inadmissible ones included."""
        rows = self.connection.execute("SELECT data FROM conditions ORDER BY place")
        return [_condition(unpack(data)) for (data,) in rows]

    @cached_property
    def plan(self) -> RunPlan:
        """The runs in plan order."""
        return RunPlan(self.study, self.conditions)

    @cached_property
    def order(self) -> array[int]:
        """For each turn the place in the plan; `GONE` for runs that are no longer in it."""
        order = array("I")
        order.frombytes(self.fact("order") or b"")
        return order

    @cached_property
    def turns(self) -> array[int]:
        """For each place in the plan its turn."""
        turns = array("I", bytes(4 * len(self.plan)))
        for turn, place in enumerate(self.order):
            if place != GONE:
                turns[place] = turn
        return turns

    @cached_property
    def sessions(self) -> dict[int, Mapping[str, Any]]:
        """Who ran the study, session by session."""
        cursor = self.connection.execute("SELECT * FROM sessions")
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        return {row["session"]: row for row in rows}

    # -- the results --

    def done_turns(self) -> Iterator[int]:
        """The turns that have a result, in order."""
        return (
            turn for (turn,) in self.connection.execute("SELECT turn FROM results ORDER BY turn")
        )

    def results(self) -> Iterator[RunResult]:
        """What came of each run that is in the plan and done, in plan order; lazily."""
        for place in range(len(self.plan)):
            result = self.result(place)
            if result is not None:
                yield result

    def result(self, place: int) -> RunResult | None:
        """What came of the run at a place in the plan; None if it isn't done."""
        row = self.connection.execute(f"{_JOINED} WHERE turn = ?", (self.turns[place],)).fetchone()
        return None if row is None else self._result(self.plan.spec(place), row)

    def events(self, turn: int, attempt: int) -> Iterator[Mapping[str, Any]]:
        """What an attempt emitted, in order."""
        rows = self.connection.execute(
            "SELECT data FROM events WHERE turn = ? AND attempt = ? ORDER BY number",
            (turn, attempt),
        )
        return (unpack(data) for (data,) in rows)

    def _result(self, spec: RunSpec, row: tuple[Any, ...]) -> RunResult:
        turn, run_id, status, kind, attempt, session, cost, latency, body, out, err, scores = row
        if run_id != spec.run_id:
            raise LedgerError(f"{self.path}: turn {turn} holds {run_id}, not {spec.run_id}")
        told = unpack(body)
        evaluations = told["evaluations"] if scores is None else unpack(scores)
        run_by = self.sessions.get(session, {})
        return RunResult(
            run_id=run_id,
            status=RunStatus(status),
            outputs=told["outputs"],
            metrics=told["metrics"],
            evaluator_outputs=tuple(evaluations),
            cost=cost,
            latency=latency,
            trace_refs=tuple(told["trace_refs"]),
            artifact_refs=tuple(told["artifact_refs"]),
            error_info=told["error_info"],
            provenance_info=told["provenance"],
            observations=tuple(self.events(turn, attempt)),
            run_spec=_told_spec(spec, told["execution_metadata"]),
            started_at=told["started_at"],
            ended_at=_later(told["started_at"], latency),
            failure_kind=None if kind is None else FailureKind(kind),
            attempt=attempt,
            executor=run_by.get("executor"),
            host=run_by.get("host"),
            traceback=told["traceback"],
            stdout=(out or b"").decode("utf-8", "replace"),
            stderr=(err or b"").decode("utf-8", "replace"),
        )

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()


def _told_spec(spec: RunSpec, metadata: Mapping[str, Any]) -> RunSpec:
    if not metadata:
        return spec
    return RunSpec(
        spec.run_id,
        spec.study_id,
        spec.condition_id,
        spec.problem_id,
        spec.replicate,
        spec.seed,
        spec.agent_spec_ref,
        spec.problem_spec_ref,
        {**spec.execution_metadata, **metadata},
    )


def _later(started_at: str | None, latency_s: float) -> str | None:
    """When a run ended: by its length, since the wall clock may have been set back meanwhile."""
    if started_at is None:
        return None
    ended = datetime.fromisoformat(started_at) + timedelta(seconds=latency_s)
    return ended.isoformat(timespec="milliseconds")


def _condition(told: Mapping[str, Any]) -> Condition:
    return Condition(
        told["condition_id"],
        told["factors"],
        told["blocks"],
        told["metadata"],
        told["admissible"],
        tuple(told["messages"]),
    )
