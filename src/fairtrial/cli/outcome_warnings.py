"""Outcomes that no run measures: told while there is still time, and at the end at the latest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from fairtrial.study import Results, RunResult, RunStatus, Study, unmeasured

MOST_READ = 200
"""So many results are looked at; an outcome that none of them has is none that is measured."""


@dataclass(slots=True)
class Measured:
    """Whether the outcomes of a study are measured; what isn't is told once.

    has_told: whether something was told already
    """

    study: Study
    has_told: bool = False

    def look_early(self, results: Sequence[RunResult]) -> list[str]:
        """What the first results lack."""
        missing = unmeasured(self.study, results)
        self.has_told = bool(missing)
        return [f"so far, in {len(results)} runs: {each}" for each in missing]

    def look_back(self, results: Results) -> list[str]:
        """What all results lack, unless that was told."""
        return [] if self.has_told else unmeasured(self.study, _some(results))


def _some(results: Results) -> Iterator[RunResult]:
    """Results that succeeded, in the order of execution, which is a random one."""
    reader = results.reader
    for turn in islice(reader.turns_with(RunStatus.SUCCESS), MOST_READ):
        result = reader.result(reader.order[turn])
        if result is not None:
            yield result
