"""Verdicts on hypotheses, from p values and confidence intervals::

    supported       the claimed difference (or equivalence) was found
    supported if losses are harmless    found, but runs that were lost could explain it
    supported, or an alias is           found, but the design can't tell it from another effect
    not supported   a difference as large as the smallest of interest is ruled out
    contradicted    the opposite of the claim was found
    inconclusive    the data are compatible with both
    exploratory     not a test of a claim as planned: nothing is decided
    not tested      there was no test, and the report says why

Significance is judged by the p value after adjustment for multiple comparisons, effect sizes by
confidence intervals adjusted in the same way: one-sided for what a one-sided claim states, else
two-sided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.comparison_results import FollowUpComparison, TestResult
from fairtrial.study.report.direction_words import (
    ANY_DIRECTION,
    DirectionWords,
    describe_directions,
)
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
    request: TestRequest,
    result: TestResult,
    p: float,
    p_opposite: float | None,
    *,
    alpha: float = ALPHA,
) -> VerdictWithReason:
    """Return the verdict on a hypothesis and its reason.

    p, p_opposite: p values after adjustment for multiple comparisons
    alpha: error rate of the intervals by which sizes are judged, after the same adjustment
    """
    margin = None if result.margin is None else result.margin.size
    if request.is_equivalence and margin is not None:
        return judge_equivalence(result.finding, p, margin, alpha=alpha)
    if result.is_omnibus and request.comparison.shape == "interaction":
        return _judge_interaction(request.alternative, p)
    if result.is_omnibus:
        return judge_several(
            request.alternative, p, result.details, margin, p_opposite=p_opposite, alpha=alpha
        )
    words = describe_directions(request, result)
    return judge_difference(
        result.finding, request.alternative, p, p_opposite, margin, words=words, alpha=alpha
    )


def _judge_interaction(alternative: Alternative, p: float) -> VerdictWithReason:
    """Judge an interaction of more than 2 × 2 levels, whose test has no direction."""
    shown = "the effect depends on the moderator"
    if p >= ALPHA:
        return TestVerdict.INCONCLUSIVE, "no interaction was shown, and none is ruled out"
    if alternative == "two-sided":
        return TestVerdict.SUPPORTED, shown
    advice = "name two levels of each, by contrast and moderator, to test that"
    return TestVerdict.INCONCLUSIVE, f"{shown}; its direction is not tested: {advice}"


def judge_equivalence(
    finding: Finding, p: float, margin: float, *, alpha: float = ALPHA
) -> VerdictWithReason:
    """Judge the claim that a difference of means lies within ±margin."""
    if p < ALPHA:
        return TestVerdict.SUPPORTED, f"the difference lies within ±{margin:.3g}"
    bounds = finding.bounds_at(1 - alpha)
    if bounds is not None and bounds[0] > margin:
        return TestVerdict.CONTRADICTED, f"the difference is above {margin:.3g}"
    if bounds is not None and bounds[1] < -margin:
        return TestVerdict.CONTRADICTED, f"the difference is below {-margin:.3g}"
    return TestVerdict.INCONCLUSIVE, f"a difference beyond ±{margin:.3g} can't be ruled out"


def judge_difference(
    finding: Finding,
    alternative: Alternative,
    p: float,
    p_opposite: float | None,
    margin: float | None,
    *,
    words: DirectionWords = ANY_DIRECTION,
    alpha: float = ALPHA,
) -> VerdictWithReason:
    """Judge the claim that there is a difference, in the given direction or in any.

    finding: the result of the test
    alternative: the claimed direction
    p, p_opposite: adjusted p values of the claim and of its opposite
    margin: the smallest effect of interest, if there is one
    words: what a difference above and below zero means
    alpha: error rate of the intervals by which sizes are judged
    """
    estimate = finding.estimate if finding.estimate is not None else finding.effect_size or 0.0
    direction = estimate if finding.rank_direction is None else finding.rank_direction
    sign = {"greater": 1, "less": -1}.get(alternative, 1 if direction >= 0 else -1)
    claimed, opposite = (words.above, words.below)[::sign]
    # A test without a direction shows a difference; the sign of the estimate has its direction.
    is_opposite = p_opposite is None and sign * direction < 0
    size = _EffectSize(finding, alternative, sign, margin, alpha)
    if p < ALPHA and not is_opposite:
        return _judge_shown_difference(size, claimed)
    if (p_opposite is not None and p_opposite < ALPHA / 2) or (p < ALPHA and is_opposite):
        return TestVerdict.CONTRADICTED, f"the other way round: {opposite}"
    if margin is None:
        return TestVerdict.INCONCLUSIVE, "no difference was shown, and none is ruled out"
    return _judge_by_size(size, claimed, opposite)


@dataclass(frozen=True, slots=True)
class _EffectSize:
    """The size of a difference in the claimed direction, compared with the smallest of interest.

    finding: the result of the test
    alternative: the claimed direction
    sign: 1 if the claim is a difference above zero, -1 if below
    margin: the smallest effect of interest, if there is one
    alpha: error rate of the intervals
    """

    finding: Finding
    alternative: Alternative
    sign: int
    margin: float | None
    alpha: float

    @property
    def text(self) -> str:
        # Ranks have no effect size in units: the difference of means is compared with the margin.
        suffix = "" if self.finding.rank_direction is None else IN_THE_MEAN
        return f"{self.margin:.3g}{suffix}"

    @property
    def bounds(self) -> Interval | None:
        """The two-sided interval of the difference of means in the claimed direction."""
        return self._bounds_at(1 - self.alpha)

    @property
    def is_large(self) -> bool:
        """Whether it is at least the margin: by a one-sided bound if the claim is one-sided."""
        two_sided = self.alternative == "two-sided"
        bounds = self._bounds_at(1 - self.alpha if two_sided else 1 - 2 * self.alpha)
        return bounds is not None and self.margin is not None and bounds[0] >= self.margin

    @property
    def excludes_claim(self) -> bool:
        """Whether a difference of the margin in the claimed direction is ruled out."""
        return self.bounds is not None and self.margin is not None and self.bounds[1] < self.margin

    @property
    def excludes_opposite(self) -> bool:
        """Whether a difference of the margin in the opposite direction is ruled out."""
        return self.bounds is not None and self.margin is not None and self.bounds[0] > -self.margin

    @property
    def is_small(self) -> bool:
        """Whether a difference of the margin is ruled out, in all directions that are claimed."""
        # Ranks may differ in one direction and means in the other.
        is_one_sided = self.alternative != "two-sided"
        return self.excludes_claim and (is_one_sided or self.excludes_opposite)

    def _bounds_at(self, confidence: float) -> Interval | None:
        bounds = self.finding.bounds_at(confidence)
        if bounds is None or self.sign > 0:
            return bounds
        return (-bounds[1], -bounds[0])


def _judge_shown_difference(size: _EffectSize, claimed: str) -> VerdictWithReason:
    """Judge a significant difference in the claimed direction by its size."""
    if size.margin is None:
        return TestVerdict.SUPPORTED, claimed
    if size.bounds is None:
        return TestVerdict.SUPPORTED, f"{claimed}; by how much was not judged"
    if size.bounds[1] < 0:
        return TestVerdict.SUPPORTED, f"{claimed}, although its mean goes the other way"
    if size.is_small:
        small = f"but by less than {size.text}, the smallest effect of interest"
        return TestVerdict.NOT_SUPPORTED, f"{claimed}, {small}"
    if size.is_large:
        return TestVerdict.SUPPORTED, f"{claimed}, by at least {size.text}"
    return (
        TestVerdict.SUPPORTED,
        f"{claimed}, perhaps by less than {size.text}, the smallest effect of interest",
    )


def _judge_by_size(size: _EffectSize, claimed: str, opposite: str) -> VerdictWithReason:
    """Judge a difference that is not significant by what its interval rules out."""
    by = f"by {size.text} or more"
    if size.alternative != "two-sided":
        if size.is_small:
            return TestVerdict.NOT_SUPPORTED, f"it is ruled out that {claimed} {by}"
        return TestVerdict.INCONCLUSIVE, f"that {claimed} {by} is neither shown nor ruled out"
    if size.is_small:
        both = "in both directions"
        return TestVerdict.NOT_SUPPORTED, f"a difference of {size.text} is ruled out, {both}"
    if size.excludes_claim or size.excludes_opposite:
        excluded = claimed if size.excludes_claim else opposite
        left = opposite if size.excludes_claim else claimed
        ruled_out = f"it is ruled out that {excluded} {by}, not that {left} {by}"
        return TestVerdict.INCONCLUSIVE, f"no difference was shown; {ruled_out}"
    return TestVerdict.INCONCLUSIVE, f"a difference of {size.text} is neither shown nor ruled out"


def judge_several(
    alternative: Alternative,
    p: float,
    details: Sequence[FollowUpComparison],
    margin: float | None,
    *,
    p_opposite: float | None = None,
    alpha: float = ALPHA,
) -> VerdictWithReason:
    """Judge a claim about more than two levels.

    alternative: the claimed direction; with one the claim is about every level
    p: adjusted p value: that some levels differ, or that every level is on the claimed side of the
        baseline
    details: the comparisons of pairs of levels, or of every level with the baseline
    margin: the smallest effect of interest, if there is one
    p_opposite: adjusted p value of a directional claim: that some level is on the other side
    alpha: error rate of the intervals by which sizes are judged
    """
    bounds = [detail.bounds_at(1 - alpha) for detail in details]
    is_small = (
        margin is not None
        and bool(details)
        and all(ends is not None and -margin < ends[0] and ends[1] < margin for ends in bounds)
    )
    of_means = not any("median" in detail.estimate_of for detail in details)
    size = "" if margin is None else f"{margin:.3g}{'' if of_means else IN_THE_MEAN}"
    if alternative != "two-sided":
        small = size if is_small else ""
        return _judge_every_level(alternative, p, p_opposite, details, small)
    if p < ALPHA and is_small:
        return (
            TestVerdict.NOT_SUPPORTED,
            f"levels differ, but by less than {size}, the smallest effect of interest",
        )
    if p < ALPHA:
        return TestVerdict.SUPPORTED, "at least two of the levels differ"
    if is_small:
        return TestVerdict.NOT_SUPPORTED, f"differences of {size} are ruled out"
    return TestVerdict.INCONCLUSIVE, "no difference between the levels was shown"


def _judge_every_level(
    alternative: Alternative,
    p: float,
    p_opposite: float | None,
    details: Sequence[FollowUpComparison],
    small: str,
) -> VerdictWithReason:
    """Judge the claim that every level is above the baseline, or that every level is below.

    small: the smallest effect of interest, if differences as large are ruled out; else empty
    """
    claimed, reverse = {"less": ("below", "above")}.get(alternative, ("above", "below"))
    every = f"every level is {claimed} the baseline"
    if small and p < ALPHA:
        but = f"but by less than {small}, the smallest effect of interest"
        return TestVerdict.NOT_SUPPORTED, f"{every}, {but}"
    if small:
        return TestVerdict.NOT_SUPPORTED, f"differences of {small} are ruled out"
    if p < ALPHA:
        return TestVerdict.SUPPORTED, f"{every}, as claimed"
    supporting = [detail.label for detail in details if detail.p is not None and detail.p < ALPHA]
    opposing = [
        detail.label
        for detail in details
        if detail.p_opposite is not None and detail.p_opposite < ALPHA / 2
    ]
    is_contradicted = p_opposite is not None and p_opposite < ALPHA / 2
    if is_contradicted and not supporting:
        return (
            TestVerdict.CONTRADICTED,
            f"the other way round: {', '.join(opposing)} is {reverse} 0",
        )
    if details and len(supporting) == len(details):
        adjusted = "only without the adjustment for several claims"
        return TestVerdict.INCONCLUSIVE, f"that {every} is shown {adjusted}"
    if supporting:
        shown = f"shown for {', '.join(supporting)}, not for all levels"
        return TestVerdict.INCONCLUSIVE, f"that levels are {claimed} the baseline is {shown}"
    return TestVerdict.INCONCLUSIVE, f"no level is shown to be {claimed} the baseline"
