"""The record of one test of a hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.ledger.claim_changes import ClaimRole
from fairtrial.study.report.comparison_results import FollowUpComparison, ProblemEffect
from fairtrial.study.report.losses import LossAssessment
from fairtrial.study.report.samples import GroupSummary
from fairtrial.study.report.verdicts import TestVerdict
from fairtrial.study.stats.finding import CONFIDENCE, Interval


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """One test of a hypothesis on one outcome, and its verdict.

    hypothesis_id, label: the hypothesis
    analysis_plan_id: the plan that declared the test; None without a plan
    outcome: the tested outcome
    variables: the compared variables
    agents: the agents whose runs were tested, if the variable is an option of these; else empty
    test: name of the test in the plan
    decides: whether it is the first test of its plan, which decides about the hypothesis
    standing: confirmatory if hypothesis and plan were laid down before the first result and have
        not changed, nor its data; exploratory if not; unknown if it was not recorded
    verdict, why: the verdict and its reason
    verdict_with, verdict_without: what the verdict is with later changes of claims or data, if it
        were not exploratory for them, and what it would be without them; None if there were no
        changes, or it can't be computed
    without_changes: both in words, or why there is no verdict without them
    method: the statistical test that was used, with its direction
    unit: unit of analysis: problems with their runs, runs, or pairs of runs
    groups: summary of each group
    difference: the difference that is estimated
    estimate, interval: the estimate and its two-sided confidence interval
    confidence: confidence level of the intervals: 0.95 for the whole family of tests; lower for
        equivalence that was shown, whose two tests are one-sided
    bound: one-sided confidence bound of a one-sided claim, for a difference of means: the lower
        one if the claim is `greater`, the upper one if it is `less`
    estimate_of: the quantity that is estimated
    statistic_name, statistic, df: the test statistic and its degrees of freedom
    p_value, p_adjusted: the p value, and the p value adjusted for multiple comparisons
    p_opposite: adjusted p value of the opposite alternative, for one-sided tests; the claim is
        contradicted if it is below 0.025
    policy, family: the adjustment, and the number of tests in its family
    effect_name, effect_size, effect_interval: standardized effect size
    bounds: confidence interval of the difference of means, used to judge the effect's size
    minimum_effect: the smallest effect of interest, as stated and converted
    minimum_size: the same as a number, in the units of the outcome
    details_title, details: heading and list of follow-up comparisons
    notes: assumptions and caveats that a reader should know
    losses: how runs without a value affect the verdict; None if there are none
    aliases: effects that the runs can't tell from the tested one
    by_problem: the effect in each problem, if there are several
    look, looks: for a claim with planned looks: the look whose runs were tested (0 before the
        first), and the number of looks; the interval is then a repeated confidence interval
    level: the level that the p value is compared with at that look
    """

    hypothesis_id: str
    label: str
    analysis_plan_id: str | None
    outcome: str
    variables: tuple[str, ...]
    test: str
    decides: bool
    verdict: TestVerdict
    why: str
    method: str = ""
    unit: str = ""
    groups: tuple[GroupSummary, ...] = ()
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
    details: tuple[FollowUpComparison, ...] = ()
    notes: tuple[str, ...] = ()
    standing: ClaimRole = "unknown"
    agents: tuple[str, ...] = ()
    verdict_with: TestVerdict | None = None
    verdict_without: TestVerdict | None = None
    without_changes: str = ""
    losses: LossAssessment | None = None
    aliases: tuple[str, ...] = ()
    by_problem: tuple[ProblemEffect, ...] = ()
    confidence: float = CONFIDENCE
    bound: float | None = None
    look: int | None = None
    looks: int | None = None
    level: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data

    def to_row(self) -> dict[str, Any]:
        """Return the main results as one row; `render_significance_brief` accepts such rows."""
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
