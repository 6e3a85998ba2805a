"""Detectable effects: the smallest effect that a number of sessions detects on a machine.

The machine's noise is measured by timing the base against itself. Effects are shares, like
`min_effect`: 0.03 is a candidate 1.03 times as fast as the base. An effect is detected when the
interval of the group-sequential test excludes 1 on the right side at one of its looks. (It may
still be smaller than `min_effect`.)

The power comes from a simulation with a fixed seed: sessions are independent and normal. Each
simulated run has a smallest effect, in units of the session spread, that one of its looks detects:
the minimum of factor * t * sd / sqrt(n) - mean over the looks at n sessions, where the factor
allows for autocorrelated sessions (`autocorrelation`). The effect detected with a power of 80 % is
the 80th percentile of these, so one simulation answers for every effect, with a standard error of
about 0.5 % of it.

References::

    Jennison and Turnbull (2000), Group sequential methods, ch. 4 and 11: power over all looks
    Clopper and Pearson (1934), Biometrika 26, 404-413: the interval of a proportion
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtrial.arena.timing.stats.autocorrelation import widening
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim, nominal_level
from fairtrial.core import sequential

if TYPE_CHECKING:
    from fairtrial.arena.timing.stats.arrays import Values

TARGET_POWER = 0.8
RUNS = 20_000
"""Simulated runs."""
SEED = 20_240_607


@dataclass(frozen=True, slots=True)
class Rate:
    """A proportion with its interval.

    count: number of events
    total: number of trials
    low, high: the exact (Clopper-Pearson) interval of the share
    """

    count: int
    total: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share; 0 without any trial."""
        return self.count / self.total if self.total else 0.0


def spread(statistics: Sequence[float]) -> float:
    """Return the standard deviation of session statistics: 0.015 if sessions differ by 1.5 %.

    It includes outliers, as in the test's own denominator.
    """
    import numpy as np

    values = np.asarray(statistics, dtype=float)
    if values.ndim != 1 or len(values) < 2 or not np.all(np.isfinite(values)):
        raise ValueError("a spread takes two session statistics or more, all of them finite")
    return float(np.std(values, ddof=1))


def largest_spread(statistics: Sequence[float], confidence: float = 0.8) -> float:
    """Return an upper bound of the spread: few sessions may differ less than others will."""
    from scipy.special import chdtri

    freedom = len(statistics) - 1
    return spread(statistics) * math.sqrt(freedom / float(chdtri(freedom, confidence)))


def visible_effect(
    spread: float, sessions: int, alpha: float, power: float = TARGET_POWER
) -> float | None:
    """Return the smallest effect that is detected with this power within so many sessions.

    None if they are too few for the first look. Sessions beyond the last look are ignored.
    """
    _check(spread, alpha, power)
    if sessions < LOOKS[0]:
        return None
    thresholds = _draw_thresholds(min(sessions, LOOKS[-1]), alpha)
    # The smallest threshold with at least that share of runs at or below it.
    detected = thresholds[min(math.ceil(power * len(thresholds)), len(thresholds)) - 1]
    return math.expm1(float(detected) * max(spread, sequential.LEAST_SPREAD))


def sessions_needed(
    effect: float, spread: float, alpha: float, power: float = TARGET_POWER
) -> int | None:
    """Return how many sessions must be allowed to detect an effect with this power.

    Most runs that detect it end earlier. None if the last look has too few sessions.
    """
    if effect <= 0:
        raise ValueError(f"the effect must be above 0, e.g. 0.02 for 2 %; got {effect}")
    for sessions in range(LOOKS[0], LOOKS[-1] + 1):
        visible = visible_effect(spread, sessions, alpha, power)
        if visible is not None and visible <= effect:
            return sessions
    return None


def seconds_needed(
    effect: float, spread: float, session_s: float, alpha: float, power: float = TARGET_POWER
) -> float | None:
    """Return how long detecting an effect takes, with sessions of `session_s` seconds.

    None if it can't be detected.
    """
    _check_seconds(session_s)
    sessions = sessions_needed(effect, spread, alpha, power)
    return None if sessions is None else sessions * session_s


def visible_within(
    spread: float, session_s: float, seconds: float, alpha: float, power: float = TARGET_POWER
) -> float | None:
    """Return the smallest effect that is detected with this power within so many seconds.

    None if they are too few for the first look.
    """
    _check_seconds(session_s)
    # Six sessions of 0.1 s fit into 0.6 s in spite of rounding errors.
    sessions = math.floor(min(seconds / session_s + 1e-9, LOOKS[-1]))
    return visible_effect(spread, sessions, alpha, power)


def false_positive_rate(claims: Sequence[Claim], confidence: float = 0.95) -> Rate:
    """Return the rate of comparisons of equal code that claimed a difference, either way."""
    from scipy.special import betaincinv

    total = len(claims)
    count = sum(claim in {Claim.FASTER, Claim.SLOWER} for claim in claims)
    tail = (1 - confidence) / 2
    low = float(betaincinv(count, total - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - tail)) if count < total else 1.0
    return Rate(count, total, low, high)


@functools.lru_cache(maxsize=64)
def _draw_thresholds(sessions: int, alpha: float) -> Values:
    """Return each simulated run's smallest detected effect, in spreads, in ascending order.

    The last look may come early, when no more sessions fit.
    """
    import numpy as np
    from scipy.special import stdtrit

    runs = _draw_runs()
    level = nominal_level(alpha)
    least = np.full(RUNS, np.inf)
    for at in (*(look for look in LOOKS if look < sessions), sessions):
        quantile = -float(stdtrit(at - 1, level / 2))
        first = runs[:, :at]
        error = widening(first) * np.std(first, axis=1, ddof=1) / math.sqrt(at)
        least = np.minimum(least, quantile * error - np.mean(first, axis=1))
    # Below 0 there is no effect: such a run claims a difference where there is none.
    return np.sort(np.maximum(least, 0.0))


@functools.lru_cache(maxsize=1)
def _draw_runs() -> Values:
    """Return sessions of simulated runs, each row a run, with mean 0 and spread 1."""
    import numpy as np

    return np.random.default_rng(SEED).standard_normal((RUNS, LOOKS[-1]))


def _check(spread: float, alpha: float, power: float) -> None:
    if not 0 <= spread < math.inf:
        raise ValueError(f"the spread must be 0 or more, e.g. 0.015 for 1.5 %; got {spread}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, e.g. 0.05; got {alpha}")
    if not 0 < power < 1:
        raise ValueError(f"the power must be between 0 and 1, e.g. 0.8; got {power}")


def _check_seconds(session_s: float) -> None:
    if not 0 < session_s < math.inf:
        raise ValueError(f"a session must take more than 0 seconds; got {session_s}")
