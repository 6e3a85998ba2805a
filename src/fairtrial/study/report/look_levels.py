"""The level of a test at a planned look, and its repeated confidence interval.

Each confirmatory claim gets an equal share of alpha (Bonferroni), which is spent over the looks;
claims of several plans share it if their plans have the same policy. With the policy `none` each
gets the whole. Holm's method would need all p values at the same time, but claims are decided at
different looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fairtrial.core import sequential
from fairtrial.study.design.look_schedule import LookSchedule
from fairtrial.study.hypotheses.planned_tests import planned_tests
from fairtrial.study.ledger.planned_looks import LookClaimKey
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan
from fairtrial.study.model.study import Study
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.claim_families import Adjustment, TestOutcome
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.comparison_results import FollowUpComparison, TestResult
from fairtrial.study.stats.finding import Finding
from fairtrial.study.stats.multiplicity import is_policy, policy_name

ANYTIME: Final = "anytime"


@dataclass(frozen=True, slots=True)
class LookLevel:
    """The levels of the tests of one plan at one planned look.

    schedule: the planned looks
    number: the number of the look; 0 before the first one, where nothing can be decided
    alpha: the share of alpha of each claim
    """

    schedule: LookSchedule
    number: int
    alpha: float

    def p_level(self, request: TestRequest, result: TestResult) -> float:
        """Return the level that the p value of a test is compared with."""
        if result.is_omnibus:
            return self._any_level()
        is_one_sided = result.finding.p_opposite is not None or request.is_equivalence
        df = _degrees_of_freedom(result.finding)
        return (1 if is_one_sided else 2) * self.tail(is_one_sided=is_one_sided, df=df)

    def tail(self, *, is_one_sided: bool, df: float | None = None) -> float:
        """Return the one-sided tail probability of the bound of this look.

        df: the degrees of freedom of a t test; used for confidence sequences only
        """
        if self.schedule.stopping.spending == ANYTIME:
            return self._anytime_tail(df)
        return self._tail(self.alpha if is_one_sided else self.alpha / 2)

    def interval_alpha(self, finding: Finding) -> float:
        """Return the error rate of a two-sided repeated confidence interval at this look."""
        return 2 * self.tail(is_one_sided=False, df=_degrees_of_freedom(finding))

    def restate_details(self, result: TestResult) -> TestResult:
        """Return a result whose follow-up comparisons have the level of this look."""
        return replace(result, details=tuple(map(self._restate_detail, result.details)))

    def _restate_detail(self, detail: FollowUpComparison) -> FollowUpComparison:
        level = self._any_level()
        return replace(
            detail,
            p=scale_optional(detail.p, level),
            p_opposite=scale_optional(detail.p_opposite, level),
        )

    def _tail(self, alpha: float) -> float:
        """Return the one-sided nominal level of this look for a one-sided alpha."""
        if not self.number:
            return 0.0
        schedule = self.schedule
        spending = schedule.stopping.spending
        assert spending != ANYTIME
        levels = sequential.nominal_levels(schedule.fractions, alpha, spending)
        counts = tuple(max(2, count) for count in schedule.counts)
        corrected = sequential.small_sample_levels(levels, counts, alpha, schedule.clusters)
        return corrected[self.number - 1]

    def _any_level(self) -> float:
        """Return a level that holds for any test statistic, by Bonferroni's inequality."""
        if not self.number:
            return 0.0
        spending = self.schedule.stopping.spending
        if spending == ANYTIME:  # the sum of all 1/n² is π²/6
            return self.alpha * 6 / (math.pi * self.number) ** 2
        return sequential.spent_levels(self.schedule.fractions, self.alpha, spending)[
            self.number - 1
        ]

    def _anytime_tail(self, df: float | None) -> float:
        """Return the tail probability of the bound of a confidence sequence."""
        from scipy import special

        if not self.number:
            return 0.0
        if df is None:
            df = max(1.0, (self.schedule.clusters or self.schedule.counts[self.number - 1]) - 1)
        count = math.floor(df) + 1
        bound = sequential.half_width(count, self.alpha) * math.sqrt(count)
        return 0.0 if math.isinf(bound) else float(special.stdtr(df, -bound))


def scale_p(p: float, level: float) -> float:
    """Return a p value scaled so that it is below `ALPHA` if it was below `level`."""
    return min(1.0, p * ALPHA / level) if level > 0 else 1.0


def scale_optional(p: float | None, level: float) -> float | None:
    """Return the scaled p value, if there is one."""
    return None if p is None else scale_p(p, level)


def adjust_at_look(look: LookLevel, outcomes: Sequence[TestOutcome]) -> list[Adjustment | None]:
    """Return p values that are below `ALPHA` if the test is significant at a look."""
    adjustments: list[Adjustment | None] = []
    for outcome in outcomes:
        if outcome.result is None:
            adjustments.append(None)
            continue
        finding, level = outcome.result.finding, look.p_level(outcome.request, outcome.result)
        adjustments.append(
            Adjustment(
                p=scale_p(finding.p, level),
                p_opposite=scale_optional(finding.p_opposite, level),
                policy="none",
                family=1,
                alpha=look.interval_alpha(finding),
            )
        )
    return adjustments


def find_look_level(
    study: Study,
    conditions: Sequence[Condition],
    schedule: LookSchedule,
    plan: AnalysisPlan,
    number: int,
) -> LookLevel:
    """Return the levels of a plan's tests at a planned look."""
    policy = _find_policy(plan)
    policies = {other.analysis_plan_id: _find_policy(other) for other in study.analysis_plans}
    claims = [key for key in find_look_claims(study, conditions) if policies[str(key[0])] == policy]
    count = 1 if policy == "none" else max(1, len(claims))
    return LookLevel(schedule, number, sequential.alpha_share(ALPHA, count))


def _find_policy(plan: AnalysisPlan) -> str:
    policy = plan.multiple_comparison_policy
    return policy_name(policy) if is_policy(policy) else policy


def find_look_claims(study: Study, conditions: Sequence[Condition]) -> list[LookClaimKey]:
    """Return the claims that planned looks test: those of plans with `stopping`, if testable."""
    stopping = {plan.analysis_plan_id for plan in study.analysis_plans if plan.stopping}
    return [
        (test.analysis_plan_id, test.hypothesis_id, test.outcome, test.variables, test.agents)
        for test in planned_tests(study, conditions)
        if test.analysis_plan_id in stopping and not test.is_exploratory and not test.reason
    ]


def _degrees_of_freedom(finding: Finding) -> float | None:
    """Return the degrees of freedom of a t test, or of an F test like it; None for other tests."""
    df = finding.df
    if finding.statistic_name == "t" and len(df) == 1:
        return max(1.0, df[0])
    is_like_t = finding.statistic_name == "F" and len(df) == 2 and df[0] == 1
    return max(1.0, df[1]) if is_like_t else None
