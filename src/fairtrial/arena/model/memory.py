"""Results of memory: how much a candidate needs at most, as a multiple of the base's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fairtrial.arena.model.figures import percent_text

TIME, PEAK_MEMORY = "time", "peak_memory"
"""What a benchmark can measure."""


class MemoryVerdict(StrEnum):
    """How a candidate's peak memory compares with the base's."""

    SMALLER = "smaller"
    LARGER = "larger"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """The peak memory of one benchmark, judged.

    verdict: whether the candidate needs less or more
    growth: the candidate's peak as a multiple of the base's: above 1 if it needs more
    low, high: the bounds of its interval, valid at whichever session timing stops
    confidence: the coverage of the interval, as a share
    base_mb, candidate_mb: the peaks: medians over the sessions
    """

    verdict: MemoryVerdict
    growth: float
    low: float
    high: float
    confidence: float
    base_mb: float
    candidate_mb: float

    def text(self) -> str:
        """Format like `peak memory: smaller, 0.80 times the base's [0.79, 0.81] (4 MB, ...)`."""
        digits = next((n for n in (2, 3, 4) if (self.high - self.low) * 10**n >= 1), 2)
        figures = [f"{value:.{digits}f}" for value in (self.growth, self.low, self.high)]
        word = self.verdict.value
        if self.verdict == MemoryVerdict.EQUIVALENT:
            most = max(self.high - 1, 1 - self.low)
            word += f" (a difference is below {percent_text(most)})" if most else " (the same)"
        ratio = f"{figures[0]} times the base's [{figures[1]}, {figures[2]}]"
        peaks = f"{megabytes(self.candidate_mb)}, the base {megabytes(self.base_mb)}"
        return f"peak memory: {word}, {ratio} ({peaks})"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--json`` prints it."""
        return {
            "verdict": self.verdict.value,
            "growth": self.growth,
            "interval": [self.low, self.high],
            "confidence": self.confidence,
            "peak_mb": {"base": self.base_mb, "candidate": self.candidate_mb},
        }


def megabytes(value: float) -> str:
    """Format an amount of memory in MB with two or three digits: `0.25 MB`, `48 MB`."""
    return (
        f"{value:.2f} MB" if value < 1 else f"{value:.1f} MB" if value < 100 else f"{value:.0f} MB"
    )
