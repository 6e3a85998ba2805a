"""Warnings about outcomes that no run measures, early in a session or at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from fairtrial.study.evaluators.normalizing import NO_ANSWER
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.report.outcome_reader import find_unmeasured_outcomes
from fairtrial.study.tables.results import Results

CHECKED_RESULTS = 200
"""An outcome without a value in that many results counts as not measured."""


@dataclass(slots=True)
class OutcomeMonitor:
    """Finds the outcomes of a study that no run measures, and reports them once.

    study: the study
    has_reported: whether it has reported something
    """

    study: Study
    has_reported: bool = False

    def check_early_results(self, results: Sequence[RunResult]) -> list[str]:
        """Return a warning for each outcome that the first results of a session lack."""
        missing = [*find_unmeasured_outcomes(self.study, results), *_find_unanswered(results)]
        self.has_reported = bool(missing)
        return [f"so far, in {len(results)} runs: {message}" for message in missing]

    def check_all_results(self, results: Results) -> list[str]:
        """Return a warning for each outcome that all results lack, unless it was reported."""
        if self.has_reported:
            return []
        successes = list(_select_successes(results))
        return [
            *find_unmeasured_outcomes(self.study, successes),
            *_find_unanswered(successes),
        ]


def _find_unanswered(results: Sequence[RunResult]) -> Iterator[str]:
    """Yield a message for each evaluator that found no answer in any of the outputs."""
    unanswered: dict[str, bool] = {}
    for result in results:
        for row in result.evaluator_outputs:
            notes, name = row.get("notes_json"), str(row.get("evaluator_id"))
            note = notes.get("note") if isinstance(notes, Mapping) else None
            unanswered[name] = unanswered.get(name, True) and note == NO_ANSWER
    keys = ", ".join(sorted({str(key) for result in results for key in result.outputs}))
    for name in sorted(name for name, is_true in unanswered.items() if is_true):
        yield (
            f"'{name}' found no answer in any output, so that all score 0: name where it is by the "
            f"evaluator's option `field` (the outputs have: {keys or 'nothing'})"
        )


def _select_successes(results: Results) -> Iterator[RunResult]:
    """Yield successful results in the order of execution, which is random."""
    reader = results.reader
    for index in islice(reader.indexes_with_status(RunStatus.SUCCESS), CHECKED_RESULTS):
        result = reader.result(reader.order[index])
        if result is not None:
            yield result
