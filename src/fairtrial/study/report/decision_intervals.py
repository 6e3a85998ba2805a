"""Confidence intervals that match the decision of a test.

They have the error rate that the adjustment for multiple comparisons leaves to the test. A
one-sided claim that is shown has a one-sided bound, equivalence that is shown the interval of its
two one-sided tests. Where the test and its interval disagree about zero (Holm's method rejects
more than simultaneous intervals show; exact tests are no inversion of an interval), the test
decides, and the interval ends at zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.stats.finding import Alternative, Finding, Interval


@dataclass(frozen=True, slots=True)
class DecisionIntervals:
    """Intervals of an estimate that match the decision.

    confidence: confidence level of `interval` and `bounds`; that of `bound`, too
    interval: two-sided interval of the estimate
    bounds: two-sided interval of the difference of means
    bound: one-sided bound of the difference of means for a one-sided claim: the lower one if the
        claim is `greater`, the upper one if it is `less`
    """

    confidence: float
    interval: Interval | None
    bounds: Interval | None
    bound: float | None = None


def find_intervals(
    finding: Finding,
    alternative: Alternative,
    p: float,
    p_opposite: float | None,
    *,
    is_equivalence: bool,
    alpha: float,
) -> DecisionIntervals:
    """Return the intervals that match the decision of a test.

    p, p_opposite: adjusted p values
    alpha: error rate of the intervals after adjustment
    """
    if is_equivalence:
        confidence = 1 - (2 * alpha if p < ALPHA else alpha)
        return DecisionIntervals(
            confidence, finding.interval_at(confidence), finding.bounds_at(confidence)
        )
    confidence = 1 - alpha
    interval, bounds = finding.interval_at(confidence), finding.bounds_at(confidence)
    if finding.rank_direction is not None:
        # Ranks, medians and means may differ in different directions.
        bound = _one_sided_bound(finding, alternative, alpha)
        return DecisionIntervals(confidence, interval, bounds, bound)
    is_shown, is_contradicted = p < ALPHA, p_opposite is not None and p_opposite < ALPHA / 2
    bound = _one_sided_bound(finding, alternative, alpha)
    if bound is not None:
        # The claimed side of zero is above it for `greater`, below it for `less`.
        keep_above = is_shown == (alternative == "greater")
        bound = max(bound, 0.0) if keep_above else min(bound, 0.0)
    sign = _decided_sign(finding, alternative, is_shown, is_contradicted)
    return DecisionIntervals(
        confidence, match_zero(interval, sign), match_zero(bounds, sign), bound
    )


def _one_sided_bound(finding: Finding, alternative: Alternative, alpha: float) -> float | None:
    bounds = finding.bounds_at(1 - 2 * alpha)
    if bounds is None or alternative == "two-sided":
        return None
    return bounds[0] if alternative == "greater" else bounds[1]


def _decided_sign(
    finding: Finding, alternative: Alternative, is_shown: bool, is_contradicted: bool
) -> int | None:
    """Return the direction that was shown: 1, -1, or 0 for none; None to leave zero alone.

    A one-sided test that shows its claim has a bound; its two-sided interval may reach beyond zero.
    """
    estimate = finding.estimate or 0.0
    if alternative == "two-sided" or (is_shown and finding.p_opposite is None):
        return (1 if estimate > 0 else -1) if is_shown else 0
    if is_shown:
        return None
    return (-1 if alternative == "greater" else 1) if is_contradicted else 0


def scale_interval(interval: Interval | None, center: float, factor: float) -> Interval | None:
    """Return an interval that is so many times as wide on both sides of a value.

    None if it is infinite.
    """
    if interval is None or not math.isfinite(factor):
        return None
    low, high = (center + factor * (end - center) for end in interval)
    return (min(low, center), max(high, center))


def match_zero(interval: Interval | None, sign: int | None) -> Interval | None:
    """Return an interval that agrees with a test about zero.

    sign: 1 if a difference above zero was shown, -1 for one below, 0 for none; None for no change
    """
    if interval is None or sign is None:
        return interval
    low, high = interval
    if sign > 0:
        return (max(low, 0.0), max(high, 0.0))
    if sign < 0:
        return (min(low, 0.0), min(high, 0.0))
    return (min(low, 0.0), max(high, 0.0))
