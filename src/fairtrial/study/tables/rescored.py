"""A new evaluator over stored outputs: no agent runs again, and the first verdicts are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Broken, LabError
from fairtrial.study.ledger.packing import pack
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.runs import EVALUATOR_FAILED, RunResult, RunStatus
from fairtrial.study.tables.primary_outcome import PRIMARY, primary_outcome
from fairtrial.study.tables.source import done_places

GROUP_RUNS = 256
FAILED_METRIC = "evaluation_error"
"""The metric of a run that the evaluator failed on: without a value, the reason in its notes."""
LONGEST_REASON = 500
Judge = Callable[[RunResult], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Rescored:
    """What a new evaluator came to.

    scored: how many runs it judged
    failures: for each run that it failed on why; its earlier verdict no longer counts, unless it
        was the lab that broke
    passed_over: how many runs have no output to judge: their agent failed, or they broke
    """

    scored: int
    failures: Mapping[str, str] = field(default_factory=dict)
    passed_over: int = 0


def rescore(ledger: Ledger, reader: LedgerReader, judge: Judge, *, evaluator: str) -> Rescored:
    """Judge the stored output of every run anew whose agent was done.

    A run that failed since its evaluator did is a success once it is judged.

    judge: gives the rows of evaluations for a run; whatever it raises is that run's affair
    evaluator: its name, for the ledger and the manifest

    Takes the place of all earlier verdicts, in tables and results; the first ones stay in the
    ledger. Stored in groups: what an interruption leaves undone is done by calling it again.
    """
    scored, passed_over = 0, 0
    failures: dict[str, str] = {}
    group: list[tuple[int, bytes]] = []
    for place, result in zip(done_places(reader), reader.results(), strict=True):
        was_unjudged = (result.error_info or "").startswith(EVALUATOR_FAILED)
        if result.status is not RunStatus.SUCCESS and not was_unjudged:
            passed_over += 1
            continue
        try:
            rows = [dict(row) for row in judge(result)]
            packed = pack(_scores(result, rows, reader.study.outcomes))
            scored += 1
        except (Exception, SystemExit) as error:  # the evaluator is not ours
            reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
            failures[result.run_id] = reason
            if was_unjudged or isinstance(error, (LabError, Broken)):
                continue  # it stays as it was
            packed = pack(_scores(result, [_failed(evaluator, reason)], reader.study.outcomes))
        group.append((reader.turns[place], packed))
        if len(group) >= GROUP_RUNS:
            ledger.write_scores(evaluator, group)
            group = []
    ledger.write_scores(evaluator, group)
    return Rescored(scored, failures, passed_over)


def _scores(
    result: RunResult, rows: Sequence[Mapping[str, Any]], outcomes: Sequence[OutcomeSpec]
) -> dict[str, Any]:
    """What is stored: the rows and, where it came from an evaluation, the new primary outcome."""
    others = {name: value for name, value in result.metrics.items() if name != PRIMARY}
    judged = primary_outcome(others, result.evaluator_outputs, outcomes)
    if repr(result.metrics.get(PRIMARY)) != repr(judged):  # so that nan is nan
        return {"rows": rows, "metrics": {}}  # the agent's own
    return {"rows": rows, "metrics": {PRIMARY: primary_outcome(others, rows, outcomes)}}


def _failed(evaluator: str, reason: str) -> dict[str, Any]:
    return {
        "evaluator_id": evaluator,
        "metric_name": FAILED_METRIC,
        "metric_value": None,
        "metric_unit": "unitless",
        "aggregation_level": "run",
        "notes_json": {"error": reason},
    }
