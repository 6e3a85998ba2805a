"""From a test's figures to a word, and no further than they carry::

    supported       the claimed difference (or equivalence) was found
    not supported   a difference as large as the smallest of interest is ruled out
    contradicted    the opposite of the claim was found
    inconclusive    the data can't tell
    exploratory     no claim was tested as planned: nothing is decided
    not tested      there is no test, and the report says why

Sizes are judged by the 95% interval, significance by p after the plan's policy for several tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.test_questions import Question
from fairtrial.study.report.test_result import Answer, Detail
from fairtrial.study.stats.finding import Alternative, Finding, Interval


class Verdict(StrEnum):
    """What the data say of a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    EXPLORATORY = "exploratory"
    NOT_TESTED = "not tested"


IN_THE_MEAN = " in the mean"
Judgement = tuple[Verdict, str]


def judge(question: Question, answer: Answer, p: float, p_opposite: float | None) -> Judgement:
    """The verdict on a claim; `p` and `p_opposite` are adjusted for the tests of the plan."""
    margin = None if answer.margin is None else answer.margin.size
    if question.is_equivalence and margin is not None:
        return judge_equivalence(answer.finding, p, margin)
    if answer.is_omnibus and question.comparison.shape == "interaction":
        return _judge_interaction(question.alternative, p)
    if answer.is_omnibus:
        return judge_several(question.alternative, p, answer.details, margin)
    return judge_difference(answer.finding, question.alternative, p, p_opposite, margin)


def _judge_interaction(alternative: Alternative, p: float) -> Judgement:
    """The verdict on an interaction of more than 2 × 2 levels, whose test has no side."""
    found = "the effect depends on the moderator"
    if p >= ALPHA:
        return Verdict.INCONCLUSIVE, "no interaction was shown, and none is ruled out"
    if alternative == "two-sided":
        return Verdict.SUPPORTED, found
    advice = "name two levels of each, by contrast and moderator, to test that"
    return Verdict.INCONCLUSIVE, f"{found}; which way is not tested: {advice}"


def judge_equivalence(finding: Finding, p: float, margin: float) -> Judgement:
    """The verdict on a claim that a difference lies within ±margin."""
    if p < ALPHA:
        return Verdict.SUPPORTED, f"the difference lies within ±{margin:.3g}"
    if finding.interval is not None and _outside(finding.interval, margin):
        return Verdict.CONTRADICTED, f"the difference is larger than {margin:.3g}"
    return Verdict.INCONCLUSIVE, f"a difference beyond ±{margin:.3g} can't be ruled out"


def judge_difference(
    finding: Finding,
    alternative: Alternative,
    p: float,
    p_opposite: float | None,
    margin: float | None,
) -> Judgement:
    """The verdict on a claim that there is a difference, this way or that."""
    estimate = finding.estimate if finding.estimate is not None else finding.effect_size or 0.0
    rank_direction = estimate if finding.rank_direction is None else finding.rank_direction
    sign = {"greater": 1, "less": -1}.get(alternative, 1 if rank_direction >= 0 else -1)
    bounds = _turned(finding.bounds, sign)
    # A test without sides says that there is a difference; its sign says which way it goes.
    goes_wrong = p_opposite is None and sign * rank_direction < 0
    is_small = margin is not None and _within(bounds, margin, alternative)
    # Ranks have no size: it is the means' that is held against the smallest of interest.
    size = (
        ""
        if margin is None
        else f"{margin:.3g}{'' if finding.rank_direction is None else IN_THE_MEAN}"
    )
    if p < ALPHA and not goes_wrong:
        return _found(bounds, margin, is_small, size)
    if (p_opposite is not None and p_opposite < ALPHA / 2) or (p < ALPHA and goes_wrong):
        return Verdict.CONTRADICTED, "the difference goes the other way"
    if margin is None:
        return Verdict.INCONCLUSIVE, "no difference was shown, and none is ruled out"
    if is_small:
        return Verdict.NOT_SUPPORTED, f"a difference of {size} is ruled out"
    return Verdict.INCONCLUSIVE, f"a difference of {size} is neither shown nor ruled out"


def _within(bounds: Interval | None, margin: float, alternative: Alternative) -> bool:
    """Whether a difference of interest, this way or, for a claim without a side, either, is out."""
    if bounds is None or bounds[1] >= margin:
        return False
    # Ranks may lean one way and means the other.
    return alternative != "two-sided" or bounds[0] > -margin


def _found(bounds: Interval | None, margin: float | None, is_small: bool, size: str) -> Judgement:
    if margin is None:
        return Verdict.SUPPORTED, "a difference was found"
    if bounds is None:
        return Verdict.SUPPORTED, "a difference was found; its size was not judged"
    if is_small:
        return (
            Verdict.NOT_SUPPORTED,
            f"there is a difference, but smaller than {size}, the smallest of interest",
        )
    if bounds[0] >= margin:
        return Verdict.SUPPORTED, f"the difference is at least {size}"
    return Verdict.SUPPORTED, f"a difference was found; it may be smaller than {size}"


def judge_several(
    alternative: Alternative, p: float, details: Sequence[Detail], margin: float | None
) -> Judgement:
    """The verdict on a claim about more than two levels, by the test of all and those of pairs."""
    is_small = (
        margin is not None
        and bool(details)
        and all(
            each.bounds is not None and -margin < each.bounds[0] and each.bounds[1] < margin
            for each in details
        )
    )
    of_means = all(each.bounds == each.interval for each in details)
    size = "" if margin is None else f"{margin:.3g}{'' if of_means else IN_THE_MEAN}"
    if p < ALPHA and is_small:
        return (
            Verdict.NOT_SUPPORTED,
            f"levels differ, but by less than {size}, the smallest of interest",
        )
    if p >= ALPHA and is_small:
        return Verdict.NOT_SUPPORTED, f"differences of {size} are ruled out"
    if p >= ALPHA:
        return Verdict.INCONCLUSIVE, "no difference between the levels was shown"
    if alternative == "two-sided":
        return Verdict.SUPPORTED, "at least two of the levels differ"
    return _judge_direction(details)


def _judge_direction(details: Sequence[Detail]) -> Judgement:
    """All levels against the baseline, each with a side."""
    held = [each.label for each in details if each.p is not None and each.p < ALPHA]
    against = [
        each.label
        for each in details
        if each.p_opposite is not None and each.p_opposite < ALPHA / 2
    ]
    if details and len(held) == len(details):
        return Verdict.SUPPORTED, "every level differs from the baseline as claimed"
    if against and not held:
        return Verdict.CONTRADICTED, f"the other way round: {', '.join(against)}"
    if held:
        return Verdict.INCONCLUSIVE, f"it holds for {', '.join(held)}, not for all levels"
    return Verdict.INCONCLUSIVE, "levels differ, but none from the baseline as claimed"


def _turned(interval: Interval | None, sign: int) -> Interval | None:
    if interval is None:
        return None
    return interval if sign > 0 else (-interval[1], -interval[0])


def _outside(interval: Interval, margin: float) -> bool:
    return interval[0] > margin or interval[1] < -margin
