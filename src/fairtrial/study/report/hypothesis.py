"""One test of a hypothesis, with all that a report tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtrial.core import dump
from fairtrial.study.ledger.claim_changes import Standing
from fairtrial.study.report.samples import Group
from fairtrial.study.report.test_result import Detail
from fairtrial.study.report.verdicts import Verdict
from fairtrial.study.stats.finding import Interval


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """One test of a hypothesis, on one outcome, and what it says.

    analysis_plan_id: the plan that declared the test; None if none did
    variables: what is compared
    agents: those whose runs alone were tested, as it is about their option; empty if all were
    test: the test, by the word of the plan
    decides: whether it is the first test of its plan, by which the plan decides
    standing: confirmatory if claim and plan were laid down before the first result and are the
        same now; exploratory if not; unknown if nobody noted it
    verdict, why: what the data say of the claim, in a word and in a sentence
    method: the test that was made, in words; with its side
    unit: what was counted: runs, or pairs of them
    groups: the runs of each level, in figures
    difference: which difference the estimate is of
    estimate, interval: its size, and its 95% confidence interval (both sides, whatever the test's)
    statistic_name, statistic, df: what the test computed
    p_value, p_adjusted: its p, and p after the plan's policy for several tests
    p_opposite: p of the opposite claim after that policy, for tests with a side; below 0.025 it
        contradicts the claim
    policy, family: that policy, and how many tests it was shared by
    effect_name, effect_size, effect_interval: the difference on a scale without units
    bounds: the 95% interval of the difference of means, which the verdict on sizes rests on
    minimum_effect: the smallest difference of interest, and how it was read
    minimum_size: the same as a number, in the outcome's own units
    details, details_title: smaller comparisons, and what they are
    notes: what to know before believing it
    """

    hypothesis_id: str
    label: str
    analysis_plan_id: str | None
    outcome: str
    variables: tuple[str, ...]
    test: str
    decides: bool
    verdict: Verdict
    why: str
    method: str = ""
    unit: str = ""
    groups: tuple[Group, ...] = ()
    difference: str = ""
    estimate: float | None = None
    estimate_of: str = ""
    interval: Interval | None = None
    statistic_name: str = ""
    statistic: float | None = None
    df: tuple[float, ...] = ()
    p_value: float | None = None
    p_adjusted: float | None = None
    p_opposite: float | None = None
    policy: str = "none"
    family: int = 1
    effect_name: str = ""
    effect_size: float | None = None
    effect_interval: Interval | None = None
    bounds: Interval | None = None
    minimum_effect: str = ""
    minimum_size: float | None = None
    details_title: str = ""
    details: tuple[Detail, ...] = ()
    notes: tuple[str, ...] = ()
    standing: Standing = "unknown"
    agents: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        data: dict[str, Any] = dump(self)
        return data

    def to_row(self) -> dict[str, Any]:
        """The figures as one row of a table; `render_significance_brief` takes such rows."""
        low, high = self.interval or (None, None)
        return {
            "hypothesis_id": self.hypothesis_id,
            "analysis_plan_id": self.analysis_plan_id,
            "outcome": self.outcome,
            "variables": " × ".join(self.variables),
            "test": self.test,
            "method": self.method,
            "n": sum(group.n for group in self.groups),
            "difference": self.difference,
            "estimate": self.estimate,
            "ci_low": low,
            "ci_high": high,
            "statistic": self.statistic,
            "df": " ".join(f"{value:g}" for value in self.df),
            "p_value": self.p_value,
            "p_adjusted": self.p_adjusted,
            "effect_size": self.effect_size,
            "effect_size_name": self.effect_name,
            "verdict": str(self.verdict),
            "why": self.why,
            "standing": self.standing,
        }
