"""Verdicts on hypotheses, from p values and confidence intervals::

    supported       the claimed difference (or equivalence) was found
    supported if losses are harmless    found, but runs that were lost could explain it
    supported, or an alias is           found, but the design can't tell it from another effect
    not supported   a difference as large as the smallest of interest is ruled out
    contradicted    the opposite of the claim was found
    inconclusive    the data are compatible with both
    exploratory     not a test of a claim as planned: nothing is decided
    not tested      there was no test, and the report says why

Effect sizes are judged by the 95% confidence interval, significance by the p value after the
plan's adjustment for multiple comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.test_requests import TestRequest
from fairtrial.study.report.test_results import FollowUpComparison, TestResult
from fairtrial.study.stats.finding import Alternative, Finding, Interval


class TestVerdict(StrEnum):
    """The verdict of a test on a hypothesis."""

    __test__ = False  # not a class of tests for pytest

    SUPPORTED = "supported"
    SUPPORTED_IF_LOSSES_HARMLESS = "supported if losses are harmless"
    SUPPORTED_OR_ALIAS = "supported, or an alias is"
    NOT_SUPPORTED = "not supported"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    EXPLORATORY = "exploratory"
    NOT_TESTED = "not tested"


IN_THE_MEAN = " in the mean"
VerdictWithReason = tuple[TestVerdict, str]


def judge(
    request: TestRequest, result: TestResult, p: float, p_opposite: float | None
) -> VerdictWithReason:
    """Return the verdict on a hypothesis and its reason.

    p, p_opposite: p values after adjustment for multiple comparisons
    """
    margin = None if result.margin is None else result.margin.size
    if request.is_equivalence and margin is not None:
        return judge_equivalence(result.finding, p, margin)
    if result.is_omnibus and request.comparison.shape == "interaction":
        return _judge_interaction(request.alternative, p)
    if result.is_omnibus:
        return judge_several(request.alternative, p, result.details, margin)
    return judge_difference(result.finding, request.alternative, p, p_opposite, margin)


def _judge_interaction(alternative: Alternative, p: float) -> VerdictWithReason:
    """Judge an interaction of more than 2 × 2 levels, whose test has no direction."""
    shown = "the effect depends on the moderator"
    if p >= ALPHA:
        return TestVerdict.INCONCLUSIVE, "no interaction was shown, and none is ruled out"
    if alternative == "two-sided":
        return TestVerdict.SUPPORTED, shown
    advice = "name two levels of each, by contrast and moderator, to test that"
    return TestVerdict.INCONCLUSIVE, f"{shown}; its direction is not tested: {advice}"


def judge_equivalence(finding: Finding, p: float, margin: float) -> VerdictWithReason:
    """Judge the claim that a difference lies within ±margin."""
    if p < ALPHA:
        return TestVerdict.SUPPORTED, f"the difference lies within ±{margin:.3g}"
    if finding.interval is not None and _is_outside(finding.interval, margin):
        return TestVerdict.CONTRADICTED, f"the difference is larger than {margin:.3g}"
    return TestVerdict.INCONCLUSIVE, f"a difference beyond ±{margin:.3g} can't be ruled out"


def judge_difference(
    finding: Finding,
    alternative: Alternative,
    p: float,
    p_opposite: float | None,
    margin: float | None,
) -> VerdictWithReason:
    """Judge the claim that there is a difference, in the given direction or in any.

    finding: the result of the test
    alternative: the claimed direction
    p, p_opposite: adjusted p values of the claim and of its opposite
    margin: the smallest effect of interest, if there is one
    """
    estimate = finding.estimate if finding.estimate is not None else finding.effect_size or 0.0
    direction = estimate if finding.rank_direction is None else finding.rank_direction
    sign = {"greater": 1, "less": -1}.get(alternative, 1 if direction >= 0 else -1)
    bounds = _multiply(finding.bounds, sign)
    # A test without a direction shows a difference; the sign of the estimate has its direction.
    is_opposite = p_opposite is None and sign * direction < 0
    is_small = margin is not None and _is_ruled_out(bounds, margin, alternative)
    # Ranks have no effect size in units: the difference of means is compared with the margin.
    suffix = "" if finding.rank_direction is None else IN_THE_MEAN
    size = "" if margin is None else f"{margin:.3g}{suffix}"
    if p < ALPHA and not is_opposite:
        return _judge_shown_difference(bounds, margin, is_small, size)
    if (p_opposite is not None and p_opposite < ALPHA / 2) or (p < ALPHA and is_opposite):
        return TestVerdict.CONTRADICTED, "the difference goes the other way"
    if margin is None:
        return TestVerdict.INCONCLUSIVE, "no difference was shown, and none is ruled out"
    if is_small:
        return TestVerdict.NOT_SUPPORTED, f"a difference of {size} is ruled out"
    return TestVerdict.INCONCLUSIVE, f"a difference of {size} is neither shown nor ruled out"


def _is_ruled_out(bounds: Interval | None, margin: float, alternative: Alternative) -> bool:
    """Return whether the interval excludes a difference of `margin` in the claimed direction.

    For a two-sided claim it must exclude such differences in both directions.
    """
    if bounds is None or bounds[1] >= margin:
        return False
    # Ranks may differ in one direction and means in the other.
    return alternative != "two-sided" or bounds[0] > -margin


def _judge_shown_difference(
    bounds: Interval | None, margin: float | None, is_small: bool, size: str
) -> VerdictWithReason:
    """Judge a significant difference in the claimed direction by its size."""
    if margin is None:
        return TestVerdict.SUPPORTED, "a difference was found"
    if bounds is None:
        return TestVerdict.SUPPORTED, "a difference was found; its size was not judged"
    if is_small:
        return (
            TestVerdict.NOT_SUPPORTED,
            f"there is a difference, but smaller than {size}, the smallest of interest",
        )
    if bounds[0] >= margin:
        return TestVerdict.SUPPORTED, f"the difference is at least {size}"
    return TestVerdict.SUPPORTED, f"a difference was found; it may be smaller than {size}"


def judge_several(
    alternative: Alternative, p: float, details: Sequence[FollowUpComparison], margin: float | None
) -> VerdictWithReason:
    """Judge a claim about more than two levels.

    alternative: the claimed direction
    p: adjusted p value of the omnibus test
    details: the comparisons of pairs of levels
    margin: the smallest effect of interest, if there is one
    """
    is_small = (
        margin is not None
        and bool(details)
        and all(
            detail.bounds is not None and -margin < detail.bounds[0] and detail.bounds[1] < margin
            for detail in details
        )
    )
    of_means = all(detail.bounds == detail.interval for detail in details)
    size = "" if margin is None else f"{margin:.3g}{'' if of_means else IN_THE_MEAN}"
    if p < ALPHA and is_small:
        return (
            TestVerdict.NOT_SUPPORTED,
            f"levels differ, but by less than {size}, the smallest of interest",
        )
    if p >= ALPHA and is_small:
        return TestVerdict.NOT_SUPPORTED, f"differences of {size} are ruled out"
    if p >= ALPHA:
        return TestVerdict.INCONCLUSIVE, "no difference between the levels was shown"
    if alternative == "two-sided":
        return TestVerdict.SUPPORTED, "at least two of the levels differ"
    return _judge_direction(details)


def _judge_direction(details: Sequence[FollowUpComparison]) -> VerdictWithReason:
    """Judge a directional claim by one-sided comparisons of all levels with the baseline."""
    supporting = [detail.label for detail in details if detail.p is not None and detail.p < ALPHA]
    opposing = [
        detail.label
        for detail in details
        if detail.p_opposite is not None and detail.p_opposite < ALPHA / 2
    ]
    if details and len(supporting) == len(details):
        return TestVerdict.SUPPORTED, "every level differs from the baseline as claimed"
    if opposing and not supporting:
        return TestVerdict.CONTRADICTED, f"the other way round: {', '.join(opposing)}"
    if supporting:
        return TestVerdict.INCONCLUSIVE, f"it holds for {', '.join(supporting)}, not for all levels"
    return TestVerdict.INCONCLUSIVE, "levels differ, but none from the baseline as claimed"


def _multiply(interval: Interval | None, sign: int) -> Interval | None:
    """Multiply an interval by 1 or -1."""
    if interval is None:
        return None
    return interval if sign > 0 else (-interval[1], -interval[0])


def _is_outside(interval: Interval, margin: float) -> bool:
    return interval[0] > margin or interval[1] < -margin
