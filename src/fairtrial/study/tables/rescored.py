"""Rescoring: evaluation of stored outputs by a new evaluator, without running agents again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Broken, LabError
from fairtrial.study.ledger.packing import pack
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.tables.primary_outcome import PRIMARY, primary_outcome
from fairtrial.study.tables.source import done_plan_indices

GROUP_RUNS = 256
FAILED_METRIC = "evaluation_error"
"""Metric of a run on which the evaluator failed: it has no value, and the reason in its notes."""
MAX_REASON_CHARS = 500
Judge = Callable[[RunResult], Sequence[Mapping[str, Any]]]
"""Takes a result; returns the rows of its evaluations."""


@dataclass(frozen=True, slots=True)
class RescoreResult:
    """The result of rescoring a study.

    scored: number of runs that were evaluated
    failures: reason for each run on which the evaluator failed; its earlier evaluation no longer
        counts, unless the failure was one of fairtrial itself
    passed_over: number of runs without output, because the agent failed or the run broke
    """

    scored: int
    failures: Mapping[str, str] = field(default_factory=dict)
    passed_over: int = 0


def rescore(ledger: Ledger, reader: LedgerReader, judge: Judge, *, evaluator: str) -> RescoreResult:
    """Evaluate the stored output of every run whose agent finished.

    The new evaluations replace earlier ones in tables and results; the ledger keeps the first
    ones. A run that had failed only in its evaluator becomes a success. Evaluations are stored in
    groups, so that an interrupted rescoring can be repeated.

    judge: returns the evaluations of a run; an exception counts as a failure of that run only
    evaluator: name of the evaluator for the ledger and the manifest
    """
    scored, passed_over = 0, 0
    failures: dict[str, str] = {}
    group: list[tuple[int, bytes]] = []
    for plan_index, result in zip(done_plan_indices(reader), reader.results(), strict=True):
        had_evaluator_error = result.evaluator_failed
        if result.status is not RunStatus.SUCCESS and not had_evaluator_error:
            passed_over += 1
            continue
        try:
            rows = [dict(row) for row in judge(result)]
            packed = pack(_scores(result, rows, reader.study.outcomes))
            scored += 1
        except (Exception, SystemExit) as error:  # the evaluator is user code
            reason = f"{type(error).__name__}: {error}"[:MAX_REASON_CHARS]
            failures[result.run_id] = reason
            if had_evaluator_error or isinstance(error, (LabError, Broken)):
                continue  # the run keeps its stored result
            row = _failed_evaluation(evaluator, reason)
            packed = pack(_scores(result, [row], reader.study.outcomes))
        group.append((reader.execution_indexes[plan_index], packed))
        if len(group) >= GROUP_RUNS:
            ledger.write_scores(evaluator, group)
            group = []
    ledger.write_scores(evaluator, group)
    return RescoreResult(scored, failures, passed_over)


def _scores(
    result: RunResult, rows: Sequence[Mapping[str, Any]], outcomes: Sequence[OutcomeSpec]
) -> dict[str, Any]:
    """Return the data to store: the evaluations, and the primary outcome if it derives from them.

    A primary outcome that the agent set itself is not changed.
    """
    metrics = {name: value for name, value in result.metrics.items() if name != PRIMARY}
    derived = primary_outcome(metrics, result.evaluator_outputs, outcomes)
    if repr(result.metrics.get(PRIMARY)) != repr(derived):  # repr, so that nan equals nan
        return {"rows": rows, "metrics": {}}
    return {"rows": rows, "metrics": {PRIMARY: primary_outcome(metrics, rows, outcomes)}}


def _failed_evaluation(evaluator: str, reason: str) -> dict[str, Any]:
    return {
        "evaluator_id": evaluator,
        "metric_name": FAILED_METRIC,
        "metric_value": None,
        "metric_unit": "unitless",
        "aggregation_level": "run",
        "notes_json": {"error": reason},
    }
