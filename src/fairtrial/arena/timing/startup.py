"""Start-up of a candidate: its limit, and after how many calls a longer start pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, median_low, stdev

from fairtrial.arena.model.timings import Estimate, Session, Timing

MOST_GROWTH, BEYOND_LIMIT = 2.0, 1.5
"""The largest growth that one session counts for, and the same as a multiple of the limit (the
larger of both holds), so that one extreme session can't add variance that hides the others."""
AGREEMENT_LEVEL = 0.005
"""The one-sided level of the test whether sessions agree on a figure."""
FEWEST_THAT_AGREE = 4
"""The fewest sessions that can agree: the limited figures of two may be equal by chance."""
MOST_CALLS = 10**12
"""From this number of calls on, a longer start never pays."""


def startup_ratio(sessions: Sequence[Session], limit: float) -> float | None:
    """Return start-up as a multiple of the base's; above the limit only if sessions agree."""
    growths = [session.startup_s.growth for session in sessions if session.startup_s]
    if not growths:
        return None
    middle = median_low(growths)
    most = max(MOST_GROWTH, BEYOND_LIMIT * limit)
    agreed = lower_bound([min(growth, most) for growth in growths])
    return middle if agreed > limit else min(middle, limit)


def startup_extra_s(sessions: Sequence[Session]) -> float | None:
    """Return how many seconds longer than the base the candidate takes to start."""
    pairs = [session.startup_s for session in sessions if session.startup_s]
    return median(pair.candidate - pair.base for pair in pairs) if pairs else None


def pays_after(extra_s: float | None, base_s: float, estimate: Estimate | None) -> int | None:
    """Return the number of calls that make up for a longer start.

    None if the start is no longer than the base's, or calls aren't faster.
    """
    if extra_s is None or estimate is None or extra_s <= 0 or not base_s > 0:
        return None
    saved_s = base_s * (1 - 1 / estimate.ratio)
    if saved_s <= 0 or extra_s / saved_s > MOST_CALLS:
        return None
    return math.ceil(extra_s / saved_s)


def startup_vetoes(timing: Timing, limit: float) -> list[str]:
    """Return the veto of a start-up above the limit, with the calls after which it pays."""
    if timing.startup is None or timing.startup <= limit:
        return []
    extra_s, calls = timing.startup_extra_s, timing.pays_after
    more = "" if extra_s is None or extra_s <= 0 else f" ({_seconds_text(extra_s)} more)"
    pays = "it never pays" if calls is None else f"it pays after {_round(calls):,} calls"
    return [
        f"{timing.benchmark}: it takes {timing.startup:.2f} times as long as the base to start "
        f"and get going{more}: work may have been moved there; {pays}, and max_startup_ratio "
        f"({limit:g}) allows less"
    ]


def lower_bound(values: Sequence[float], level: float = AGREEMENT_LEVEL) -> float:
    """Return a lower confidence bound of the mean; minus infinity with too few values.

    level: the one-sided error rate
    """
    from scipy import special

    if len(values) < FEWEST_THAT_AGREE:
        return -math.inf
    quantile = float(special.stdtrit(len(values) - 1, 1 - level))
    return fmean(values) - quantile * stdev(values) / math.sqrt(len(values))


def _seconds_text(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1e3 * seconds:.2g} ms"


def _round(calls: int) -> int:
    """Return a number with two significant digits, rounded up."""
    unit = int(10 ** max(len(str(calls)) - 2, 0))
    return math.ceil(calls / unit) * unit
