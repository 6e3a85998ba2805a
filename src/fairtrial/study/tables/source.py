"""The data that tables are made of: a study with its conditions and results.

They come from a ledger or from Python objects.
"""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.claim_history import read_claim_history
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import REMOVED
from fairtrial.study.ledger.sqlite_errors import explained
from fairtrial.study.ledger.study_lock import StudyLock, read_lock
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.tables.provenance import collect_provenance
from fairtrial.study.tables.spending import Spending

Batch = list[tuple[int, RunResult]]
BATCH_RUNS = 256
INCOMPLETE = (RunStatus.FAILED, RunStatus.BROKEN, RunStatus.SKIPPED)
"""Statuses of the runs that are left out of complete cases."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """The data that a set of tables is made of.

    study: the study
    conditions: its conditions, in plan order
    results: returns the results of all runs that get a row, in plan order; can be called repeatedly
    batches: returns the same results in the order that they are fastest read in, some at a time,
        each with its position in plan order
    provenance: where and how the study was run
    sessions: records of the sessions that ran it
    left_out: number of results and runs that get no row, by reason
    rescored: number of rescored runs, by evaluator
    claims: which hypotheses were registered before the first result, and later changes
    lock: the lock of the study; None if none was recorded
    is_planned: whether the runs are those of a plan, so that their ids are known to be valid
    spent: cost of all attempts; None without a ledger
    """

    study: Study
    conditions: Sequence[Condition]
    results: Callable[[], Iterator[RunResult]]
    batches: Callable[[], Iterator[Batch]]
    provenance: Mapping[str, Any]
    sessions: Sequence[Mapping[str, Any]] = ()
    left_out: Mapping[str, Any] = field(default_factory=dict)
    rescored: Mapping[str, int] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    spent: Spending | None = None
    lock: StudyLock | None = None
    is_planned: bool = False


def ledger_source(reader: LedgerReader) -> TableSource:
    """Return the data of a ledger.

    Results are read on each call: read more than once inside `reader.snapshot()` to see the same.
    """
    done = done_plan_indices(reader)
    sessions = [dict(session) for session in reader.sessions.values()]
    provenances = [session.pop("provenance", None) for session in sessions]
    scores = "SELECT evaluator, count(*) FROM scores GROUP BY evaluator ORDER BY evaluator"
    with explained(reader.path):
        stored = reader.connection.execute("SELECT count(*) FROM results").fetchone()[0]
        rescored = dict(reader.connection.execute(scores).fetchall())
    pending = reader.plan.runnable - sum(not reader.plan.is_skipped(index) for index in done)
    return TableSource(
        reader.study,
        reader.conditions,
        lambda: add_skipped(reader.plan, done, reader.results()),
        lambda: itertools.chain(reader.result_batches(), _skipped_batches(reader.plan, done)),
        json.loads(provenances[-1]) if provenances and provenances[-1] else {},
        sessions,
        {"not_in_plan": stored - len(done), "pending": pending},
        rescored,
        read_claim_history(reader).to_dict(reader.study),
        Spending.from_summary(reader.summary()),
        read_lock(reader),
        is_planned=True,
    )


def object_source(
    study: Study, conditions: Sequence[Condition], results: Sequence[RunResult]
) -> TableSource:
    """Return the data of Python objects; raises `StudyError` for results without a run_spec."""
    for index, result in enumerate(results):
        if result.run_spec is None:
            message = f"{result.run_id} has no run_spec: its condition, seed and agent are unknown"
            raise StudyError(Mistake(("run_results", index), message))
    return TableSource(
        study,
        conditions,
        lambda: iter(results),
        lambda: _batches(enumerate(results)),
        collect_provenance(study),
    )


def only_complete_cases(source: TableSource) -> TableSource:
    """Return a copy of a source without failed, broken and skipped runs.

    Its `left_out` has the number of each.
    """
    counts: dict[str, int] = {}
    for result in source.results():  # in plan order, which the counts are in
        if result.status in INCOMPLETE:
            counts[str(result.status)] = counts.get(str(result.status), 0) + 1

    def results() -> Iterator[RunResult]:
        return (result for result in source.results() if result.status not in INCOMPLETE)

    def batches() -> Iterator[Batch]:
        for batch in source.batches():
            yield [(place, result) for place, result in batch if result.status not in INCOMPLETE]

    left_out = {**source.left_out, **counts}
    return replace(source, results=results, batches=batches, left_out=left_out)


def done_plan_indices(reader: LedgerReader) -> Sequence[int]:
    """Return the plan indices of the runs that have a result, in order."""
    is_done = bytearray(len(reader.plan))
    order = reader.order
    for execution_index in reader.done_indexes():
        plan_index = order[execution_index] if execution_index < len(order) else REMOVED
        if plan_index != REMOVED:
            is_done[plan_index] = 1
    if all(is_done):
        return range(len(is_done))
    return array("I", (plan_index for plan_index, done in enumerate(is_done) if done))


def add_skipped(
    plan: RunPlan, done: Sequence[int], results: Iterator[RunResult]
) -> Iterator[RunResult]:
    """Yield results in plan order, with a `skipped` result for each run that is left out.

    done: plan indices of the results
    """
    if plan.runnable == len(plan):
        yield from results
        return
    done_indices = iter(done)
    next_done = next(done_indices, None)
    for plan_index in range(len(plan)):
        if plan_index == next_done:
            yield next(results)
            next_done = next(done_indices, None)
        elif plan.is_skipped(plan_index):
            spec = plan.spec(plan_index)
            yield RunResult(spec.run_id, RunStatus.SKIPPED, run_spec=spec)


def _skipped_batches(plan: RunPlan, done: Sequence[int]) -> Iterator[Batch]:
    """Yield a `skipped` result for each run that is left out and has no result."""
    if plan.runnable == len(plan):
        return
    is_done = bytearray(len(plan))
    for plan_index in done:
        is_done[plan_index] = 1
    indices = (i for i in range(len(plan)) if not is_done[i] and plan.is_skipped(i))
    specs = ((plan_index, plan.spec(plan_index)) for plan_index in indices)
    yield from _batches(
        (plan_index, RunResult(spec.run_id, RunStatus.SKIPPED, run_spec=spec))
        for plan_index, spec in specs
    )


def _batches(results: Iterable[tuple[int, RunResult]]) -> Iterator[Batch]:
    remaining = iter(results)
    while batch := list(itertools.islice(remaining, BATCH_RUNS)):
        yield batch
