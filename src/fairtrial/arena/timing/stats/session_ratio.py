"""The statistic of a session, from its samples: all that a verdict is computed from.

Only sessions are replicates. Rounds of one session share two processes, and these differ by a per
cent or more however often they are called (where their memory lies, how their hashes fall). A round
more makes the session's number more exact, but is no independent evidence; a session more is.

Reference: Kalibera and Jones (2013), ISMM '13, 63-74: repeat at the level that varies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median

from fairtrial.arena.model.timings import Arm, Sample

LEAST_SHARE = 0.02
"""What is left at least of a sample when the time of an empty one is taken off it."""


def session_statistic(base_s: Sequence[float], candidate_s: Sequence[float]) -> float:
    """The median of log(candidate/base) over the rounds of a session; below 0 for faster.

    The median of ratios of neighbours: what slows both down for a while cancels, and a round that
    something fell into doesn't count for more than any other.
    """
    if len(base_s) != len(candidate_s) or not base_s:
        raise ValueError(
            f"a session needs as many times of the base as of the candidate, at least one of each; "
            f"got {len(base_s)} and {len(candidate_s)}"
        )
    for seconds in (*base_s, *candidate_s):
        if not 0 < seconds < math.inf:
            raise ValueError(f"a time must be more than 0 seconds, got {seconds}")
    return median(math.log(new / old) for old, new in zip(base_s, candidate_s, strict=True))


def session_ratio(samples: Sequence[Sample]) -> float | None:
    """The median over kept rounds of log(candidate/base), by the clock on the wall.

    The time that asking and replying take is taken off both alike, as the base's own empty samples
    show it: it would make every ratio look smaller than it is. None if there is no whole round.
    """
    return _ratio(samples, lambda sample: sample.wall_s)


def session_cpu_ratio(samples: Sequence[Sample]) -> float | None:
    """The same by CPU time; None where the kernel doesn't tell it."""
    if any(sample.cpu_s is None for sample in samples):
        return None
    return _ratio(samples, lambda sample: sample.cpu_s or 0.0)


def seconds_per_call(samples: Sequence[Sample], arm: Arm) -> float:
    """How long one call takes: the median over kept rounds."""
    empty_s = _empty(samples, lambda sample: sample.wall_s)
    kept = [each for each in samples if each.is_kept and each.arm == arm and each.calls]
    if not kept:
        return math.nan
    return median(_net(each.wall_s, empty_s) / each.calls for each in kept)


def mean_ratio(ratios: Sequence[float]) -> float:
    """What one replicate of several benchmarks comes to: the log of a geometric mean of ratios."""
    return fmean(ratios)


def _ratio(samples: Sequence[Sample], figure: Callable[[Sample], float]) -> float | None:
    empty = _empty(samples, figure)
    rounds: dict[int, dict[Arm, float]] = {}
    for sample in samples:
        if sample.is_kept and sample.calls:
            rounds.setdefault(sample.round, {})[sample.arm] = _net(figure(sample), empty)
    whole = [each for each in rounds.values() if len(each) == 2 and min(each.values()) > 0]
    if not whole:
        return None
    return session_statistic(
        [each["base"] for each in whole], [each["candidate"] for each in whole]
    )


def _empty(samples: Sequence[Sample], figure: Callable[[Sample], float]) -> float:
    """What a sample takes in which nothing is called."""
    empties = [figure(sample) for sample in samples if not sample.calls]
    return median(empties) if empties else 0.0


def _net(figure: float, empty: float) -> float:
    return max(figure - empty, LEAST_SHARE * figure)
