"""Ratios with their intervals, shares and durations as text, with as few digits as are needed."""

from __future__ import annotations

import math

from fairtrial.arena.model.timings import Estimate

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
MOST_DIGITS, NARROW = 4, 2.5
"""The most decimal places, and how many units of the last place an interval must be wide."""


def estimate_text(estimate: Estimate | None) -> str:
    """Format an estimate like `1.42x [1.38, 1.46]`; an empty text for None."""
    if estimate is None:
        return ""
    digits = _count_digits(estimate)
    ratio, low, high = (
        f"{value:.{digits}f}" for value in (estimate.ratio, estimate.low, estimate.high)
    )
    return f"{ratio}x [{low}, {high}]"


def point_text(estimate: Estimate) -> str:
    """Format the ratio alone, like `1.42x`, with the same digits as beside its interval."""
    return estimate_text(estimate).partition(" ")[0]


def _count_digits(estimate: Estimate) -> int:
    """Return the fewest decimal places that show the width, and each bound's side of 1."""
    bounds = [bound for bound in (estimate.low, estimate.high) if math.isfinite(bound)]
    largest = max(estimate.ratio, *bounds)
    least = 0 if largest >= 100 else 1 if largest >= 10 else 2
    width = estimate.high - estimate.low
    most = MOST_DIGITS
    if 0 < estimate.ratio < 1:
        most -= math.floor(math.log10(estimate.ratio))  # leading zeros don't count
    for digits in range(least, most):
        is_wide = width * 10**digits >= NARROW
        if is_wide and all(bound == 1 or round(bound, digits) != 1 for bound in bounds):
            return digits
    return most


def ratio_text(ratio: float) -> str:
    """Format a ratio like `1.42x`, with more digits where 1.00 would hide its side of 1."""
    return point_text(Estimate(ratio, ratio / 1.02, ratio * 1.02, 0, 0.95))


def share_text(share: float) -> str:
    """Format a share like `97 %`."""
    return f"{100 * share:.0f} %" if math.isfinite(share) else "unknown"


def seconds_text(seconds: float) -> str:
    """Format a duration like `0.41 ms`, with three digits, in a unit that fits."""
    for size, unit in UNITS:
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
