"""The statistic of a session, computed from its samples; verdicts depend on nothing else.

Only sessions are replicates. Rounds of one session share two processes, and these differ by one per
cent or more however often they are called (by their memory layout, by their hash seeds). Another
round makes the session's statistic more precise, but only another session is independent evidence.

Reference: Kalibera and Jones (2013), ISMM '13, 63-74: repeat at the level that varies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median, quantiles

from fairtrial.arena.model.timings import Arm, Sample, Session

LEAST_SHARE = 0.02
"""The share of a sample that remains at least when the time of an empty one is subtracted."""
FEWEST_FOR_NOISE = 4
"""The fewest rounds whose quartiles say something."""
QUARTILES_APART = 1.349
"""How many standard deviations the quartiles of normal values are apart."""


def session_statistic(base_s: Sequence[float], candidate_s: Sequence[float]) -> float:
    """Return the median of log(candidate/base) over the rounds of a session; below 0 for faster.

    Ratios of neighboring samples cancel a temporary slowdown of both, and the median limits the
    weight of a disturbed round.
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
    """Return the median over kept rounds of log(candidate/base) in wall time.

    The time of a request and its reply, known from the base's empty samples, is subtracted from
    both: it would bias every ratio towards 1. None if there is no complete round.
    """
    return _ratio(samples, lambda sample: sample.wall_s)


def session_cpu_ratio(samples: Sequence[Sample]) -> float | None:
    """Return the same statistic in CPU time; None where the kernel doesn't report it."""
    if any(sample.cpu_s is None for sample in samples):
        return None
    return _ratio(samples, lambda sample: sample.cpu_s or 0.0)


def seconds_per_call(samples: Sequence[Sample], arm: Arm) -> float:
    """Return how long one call takes: the median over kept rounds."""
    empty_s = _empty(samples, lambda sample: sample.wall_s)
    kept = [sample for sample in samples if sample.is_kept and sample.arm == arm and sample.calls]
    if not kept:
        return math.nan
    return median(_net(sample.wall_s, empty_s) / sample.calls for sample in kept)


def round_noise(sessions: Sequence[Sequence[tuple[float, float]]]) -> float | None:
    """Return what log(candidate/base) varies by over the rounds of a session.

    It is the median over sessions of a standard deviation by the quartiles, to which a few
    interrupted rounds add nothing. None with fewer than four rounds.

    sessions: seconds of base and candidate in each round
    """
    spreads = []
    for rounds in sessions:
        if len(rounds) >= FEWEST_FOR_NOISE:
            low, _, high = quantiles([math.log(new / old) for old, new in rounds], n=4)
            spreads.append((high - low) / QUARTILES_APART)
    return median(spreads) if spreads else None


def timed_share(sessions: Sequence[Session]) -> float | None:
    """Return the share of the sessions' time that was spent in samples; None if it isn't known."""
    total_s = sum(session.seconds for session in sessions)
    if not total_s > 0:
        return None
    timed_s = sum(
        sample.wall_s for session in sessions for sample in session.samples if sample.calls
    )
    return min(timed_s / total_s, 1.0)


def mean_ratio(ratios: Sequence[float]) -> float:
    """Return the statistic of several benchmarks: the log of the geometric mean of ratios."""
    return fmean(ratios)


def net_rounds(
    samples: Sequence[Sample], figure: Callable[[Sample], float]
) -> dict[int, tuple[float, float]]:
    """Return a figure of base and candidate in each kept round that is complete.

    The figure of an empty sample is subtracted from both.
    """
    empty = _empty(samples, figure)
    rounds: dict[int, dict[Arm, float]] = {}
    for sample in samples:
        if sample.is_kept and sample.calls:
            rounds.setdefault(sample.round, {})[sample.arm] = _net(figure(sample), empty)
    return {
        number: (arms["base"], arms["candidate"])
        for number, arms in rounds.items()
        if len(arms) == 2 and min(arms.values()) > 0
    }


def _ratio(samples: Sequence[Sample], figure: Callable[[Sample], float]) -> float | None:
    complete = net_rounds(samples, figure).values()
    if not complete:
        return None
    return session_statistic([base for base, _ in complete], [new for _, new in complete])


def _empty(samples: Sequence[Sample], figure: Callable[[Sample], float]) -> float:
    """Return the figure of a sample without any call."""
    empties = [figure(sample) for sample in samples if not sample.calls]
    return median(empties) if empties else 0.0


def _net(figure: float, empty: float) -> float:
    return max(figure - empty, LEAST_SHARE * figure)
