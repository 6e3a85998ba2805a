"""Families of tests: which p values are adjusted together, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.study.model.hypotheses import AnalysisPlan, HypothesisKind
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.comparison_results import TestResult
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.multiplicity import (
    adjust_p,
    interval_error_rate,
    is_policy,
    policy_name,
)

FALLBACK_POLICY = "bonferroni"
"""The strictest policy replaces an unknown one."""


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """A test that was requested and tried.

    request: the requested test
    test_name: name of the test in the plan
    decides: whether it is the first test of its plan
    sample: the runs; None if there are none to test
    result: the result; None if the test could not be done
    reason: why there is no result
    """

    __test__ = False  # not a class of tests for pytest

    request: TestRequest
    test_name: str
    decides: bool
    sample: ComparisonSample | None
    result: TestResult | None
    reason: str = ""

    @property
    def family(self) -> tuple[str, ...]:
        """The key of the tests whose p values are adjusted together.

        All claims of the study that are decided under one policy are a family, whichever plan they
        are in. Other tests of a plan are a family each, and so are its questions.
        """
        plan = self.request.plan
        is_claim = self.request.hypothesis.kind is not HypothesisKind.EXPLORATORY
        if plan is None:
            return ("no plan", self.request.hypothesis.hypothesis_id)
        if self.decides and is_claim:
            return ("claims", find_policy(plan)[0])
        return (plan.analysis_plan_id, self.test_name, str(is_claim))


@dataclass(frozen=True, slots=True)
class Adjustment:
    """The p values of a test after adjustment for multiple comparisons.

    p, p_opposite: adjusted p values of the claim and of its opposite
    policy: the adjustment
    family: number of tests in the family
    alpha: error rate of each interval of the family
    """

    p: float
    p_opposite: float | None
    policy: str
    family: int
    alpha: float


def find_policy(plan: AnalysisPlan | None) -> tuple[str, str]:
    """Return the policy for multiple comparisons, and a note if the declared one is unknown."""
    declared = "none" if plan is None else plan.multiple_comparison_policy
    if is_policy(declared):
        return policy_name(declared), ""
    note = f"policy '{declared}' is unknown; {FALLBACK_POLICY}, the strictest, is used instead"
    return FALLBACK_POLICY, note


def adjust_families(outcomes: Sequence[TestOutcome]) -> list[Adjustment | None]:
    """Adjust the p values of all tests in their families; None for tests without a result."""
    families: dict[tuple[str, ...], list[int]] = {}
    for index, outcome in enumerate(outcomes):
        if outcome.result is not None:
            families.setdefault(outcome.family, []).append(index)
    adjustments: list[Adjustment | None] = [None] * len(outcomes)
    for indices in families.values():
        for index, adjustment in zip(
            indices, _adjust_family([outcomes[index] for index in indices]), strict=True
        ):
            adjustments[index] = adjustment
    return adjustments


def _adjust_family(outcomes: Sequence[TestOutcome]) -> list[Adjustment]:
    findings = [outcome.result.finding for outcome in outcomes if outcome.result is not None]
    policy, _ = find_policy(outcomes[0].request.plan)
    p_values = adjust_p([finding.p for finding in findings], policy)
    one_sided = [finding.p_opposite for finding in findings if finding.p_opposite is not None]
    opposite = iter(adjust_p(one_sided, policy))
    alpha = interval_error_rate(p_values, policy, ALPHA)
    return [
        Adjustment(
            p,
            None if finding.p_opposite is None else next(opposite),
            policy,
            len(findings),
            alpha,
        )
        for finding, p in zip(findings, p_values, strict=True)
    ]
