"""Ratios with their intervals as text: as few digits as tell what there is to tell."""

from __future__ import annotations

import math

from fairtrial.arena.model.timings import Estimate

MOST_DIGITS, NARROW = 4, 2.5
"""Of an interval, so that at least as many steps of its last digit lie in it."""


def estimate_text(estimate: Estimate | None) -> str:
    """`1.42x [1.38, 1.46]`; nothing for nothing."""
    if estimate is None:
        return ""
    digits = _digits(estimate)
    ratio, low, high = (
        f"{each:.{digits}f}" for each in (estimate.ratio, estimate.low, estimate.high)
    )
    return f"{ratio}x [{low}, {high}]"


def point_text(estimate: Estimate) -> str:
    """`1.42x`: the ratio alone, with the digits that it has beside its interval."""
    return estimate_text(estimate).partition(" ")[0]


def _digits(estimate: Estimate) -> int:
    """As few as do: the width must be seen, and on which side of 1 each bound is."""
    bounds = [each for each in (estimate.low, estimate.high) if math.isfinite(each)]
    largest = max(estimate.ratio, *bounds)
    least = 0 if largest >= 100 else 1 if largest >= 10 else 2
    width = estimate.high - estimate.low
    most = MOST_DIGITS
    if 0 < estimate.ratio < 1:
        most -= math.floor(math.log10(estimate.ratio))  # zeros tell nothing
    for digits in range(least, most):
        is_wide = width * 10**digits >= NARROW
        if is_wide and all(each == 1 or round(each, digits) != 1 for each in bounds):
            return digits
    return most


def ratio_text(ratio: float) -> str:
    """`1.42x`; more digits where 1.00 would hide on which side of 1 it is."""
    return point_text(Estimate(ratio, ratio / 1.02, ratio * 1.02, 0, 0.95))
