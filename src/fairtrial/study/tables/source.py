"""What tables are made of: a study, conditions, results; from a ledger or from Python."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.amendments import read_record
from fairtrial.study.ledger.reader import GONE, LedgerReader
from fairtrial.study.ledger.sqlite_errors import explained
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.tables.provenance import gather
from fairtrial.study.tables.spending import Spending

INCOMPLETE = (RunStatus.FAILED, RunStatus.BROKEN, RunStatus.SKIPPED)
"""What runs that are left out of complete cases have come to."""


@dataclass(frozen=True, slots=True)
class Source:
    """What tables are made of.

    results: all runs that have a row, in plan order; may be gone through more than once
    provenance: where and how they were run
    sessions: who ran them, session by session
    left_out: how many results and runs are not among them, and why
    rescored: how many runs were judged anew, by evaluator
    claims: which claims were laid down before results, and what was changed later
    spent: on all attempts; None if no ledger tells
    """

    study: Study
    conditions: Sequence[Condition]
    results: Callable[[], Iterator[RunResult]]
    provenance: Mapping[str, Any]
    sessions: Sequence[Mapping[str, Any]] = ()
    left_out: Mapping[str, Any] = field(default_factory=dict)
    rescored: Mapping[str, int] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    spent: Spending | None = None


def ledger_source(reader: LedgerReader) -> Source:
    """What a ledger tells right now; to go through it twice, have it seen `as_of_now`."""
    done = done_places(reader)
    sessions = [dict(session) for session in reader.sessions.values()]
    told = [session.pop("provenance", None) for session in sessions]
    scores = "SELECT evaluator, count(*) FROM scores GROUP BY evaluator ORDER BY evaluator"
    with explained(reader.path):
        stored = reader.connection.execute("SELECT count(*) FROM results").fetchone()[0]
        rescored = dict(reader.connection.execute(scores).fetchall())
    pending = reader.plan.runnable - sum(not reader.plan.is_skipped(place) for place in done)
    return Source(
        reader.study,
        reader.conditions,
        lambda: with_skipped(reader.plan, done, reader.results()),
        json.loads(told[-1]) if told and told[-1] else {},
        sessions,
        {"not_in_plan": stored - len(done), "pending": pending},
        rescored,
        read_record(reader).to_dict(reader.study),
        Spending.of(reader.summary()),
    )


def object_source(
    study: Study, conditions: Sequence[Condition], results: Sequence[RunResult]
) -> Source:
    """What Python code has at hand."""
    for index, result in enumerate(results):
        if result.run_spec is None:
            message = f"{result.run_id} has no run_spec: its condition, seed and agent are unknown"
            raise StudyError(Mistake(("run_results", index), message))
    return Source(study, conditions, lambda: iter(results), gather(study))


def only_complete(source: Source) -> Source:
    """The same without failed, broken and skipped runs, and with how many of each there were."""
    counts: dict[str, int] = {}
    for result in source.results():
        if result.status in INCOMPLETE:
            counts[str(result.status)] = counts.get(str(result.status), 0) + 1

    def results() -> Iterator[RunResult]:
        return (result for result in source.results() if result.status not in INCOMPLETE)

    return replace(source, results=results, left_out={**source.left_out, **counts})


def done_places(reader: LedgerReader) -> Sequence[int]:
    """The places in the plan whose runs are done, in order."""
    is_done = bytearray(len(reader.plan))
    order = reader.order
    for turn in reader.done_turns():
        place = order[turn] if turn < len(order) else GONE
        if place != GONE:
            is_done[place] = 1
    if all(is_done):
        return range(len(is_done))
    return array("I", (place for place, done in enumerate(is_done) if done))


def with_skipped(
    plan: RunPlan, done: Sequence[int], results: Iterator[RunResult]
) -> Iterator[RunResult]:
    """Results in plan order; runs that a balanced `max_runs` leaves out are `skipped`.

    done: the places of the results
    """
    if plan.runnable == len(plan):
        yield from results
        return
    places = iter(done)
    next_done = next(places, None)
    for place in range(len(plan)):
        if place == next_done:
            yield next(results)
            next_done = next(places, None)
        elif plan.is_skipped(place):
            spec = plan.spec(place)
            yield RunResult(spec.run_id, RunStatus.SKIPPED, run_spec=spec)
