"""Intervals of session statistics that may be autocorrelated, by the von Neumann ratio.

The group-sequential t test assumes independent sessions. A machine whose state drifts from session
to session (temperature, frequency, memory, neighbors) makes successive sessions resemble each
other. Their standard error is then too small, and equal code is called faster or slower too often.

The von Neumann ratio compares the squared differences of successive sessions with their variance.
It is 2 for independent sessions and smaller for positively autocorrelated ones, so r = 1 - ratio/2
estimates the lag-1 autocorrelation, with mean 0 for independent normal sessions however few they
are. The standard error s / sqrt(n) of n sessions, and with it each interval, is multiplied by::

    max(1, (1.4 + 3/n) n^(r/2))

So r moves the standard error on a logarithmic scale between s / sqrt(n), that of independent
sessions (r = 0), and s, that of a single session (r = 1). 1.4 + 3/n, which is 1.9 with 6 sessions
and 1.7 with 10, allows for the autocorrelation that r doesn't show: r has a standard deviation of
0.34 with 6 sessions and of 0.28 with 10, and most false claims come from sessions that happen to
look independent. A test for autocorrelation before the t test would not find them.

The two coefficients are about the smallest with at most 5.5 % false claims up to rho = 0.4 and 6 %
at 0.6, for first-order autoregressive sessions (alpha 0.05, minimum effect 2 %, spread of sessions
1.5 or 5 %). At 0.8 there are 12 to 15 %. `benchmarks/statistics.py` measures that. A larger weight
of r costs power, a smaller one false claims at rho = 0.8. Other statistics would gain little: at
the same rate of false claims at rho = 0.6, the most powerful scale-invariant test (Neyman-Pearson,
for a known effect) finds a gain of two spreads in 28 instead of 25 % of comparisons with 6
sessions, and in 70 instead of 67 % with 10.

Reference: von Neumann (1941), Ann. Math. Stat. 12, 367-395: the ratio and its distribution
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.arena.timing.stats.sequential import (
    LOOKS,
    SessionLook,
    claim,
    interim_look,
    intervals,
)
from fairtrial.core import sequential

if TYPE_CHECKING:
    from fairtrial.arena.timing.stats.arrays import Values

ALLOWANCE, FEW_SESSIONS = 1.4, 3.0
"""The factor of n sessions that don't look autocorrelated is ALLOWANCE + FEW_SESSIONS / n."""
EARLY_LOOK, EARLY_SHARE = 3, 0.1
"""After how many sessions there is an early look, and its share of alpha. It comes on top of the
other looks, whose widened intervals use a part of alpha only: `benchmarks/statistics.py` shows the
rates of all looks together."""
CLEARLY_SLOWER = math.log(1.25)
"""The early look claims nothing but candidates that take longer than the base by more than this.
Gains always take six sessions: with three, nothing shows work outside of samples, slow starts or
totals that contradict the median."""
SUSPICIOUS = 2.0
"""From this many standard deviations above 0 on, r is reported as autocorrelation."""


def session_look(statistics: Sequence[float], *, alpha: float, min_effect: float) -> SessionLook:
    """Return what may be concluded after these sessions, even if they are autocorrelated.

    It is `interim_look`, with its interval widened; the rules for calling it are the same. In
    addition there is an early look after three sessions, at a candidate that is clearly slower.
    """
    import numpy as np

    look = interim_look(statistics, alpha=alpha, min_effect=min_effect)
    rows = np.asarray(statistics, dtype=float)[None, :]
    if len(statistics) == EARLY_LOOK:
        low, high = (float(bounds[0]) for bounds in early_intervals(rows, alpha))
        if low > CLEARLY_SLOWER:
            return replace(look, low=low, high=high, claim=claim(low, high, min_effect))
    if not math.isfinite(look.low):
        return look
    low, high = (float(bounds[0]) for bounds in widened_intervals(rows, alpha))
    return replace(look, low=low, high=high, claim=claim(low, high, min_effect))


def widened_intervals(statistics: Values, alpha: float) -> tuple[Values, Values]:
    """Return lower and upper bounds; each row is one comparison, each column a session."""
    low, high = intervals(statistics, alpha)
    extra = (widening(statistics) - 1) * (high - low) / 2
    return low - extra, high + extra


def early_intervals(statistics: Values, alpha: float) -> tuple[Values, Values]:
    """Return lower and upper bounds after `EARLY_LOOK` sessions, at their share of alpha."""
    import numpy as np
    from scipy import special

    sessions = statistics.shape[1]
    mean = np.mean(statistics, axis=1)
    sd = np.maximum(np.std(statistics, axis=1, ddof=1), sequential.LEAST_SPREAD)
    quantile = -float(special.stdtrit(sessions - 1, EARLY_SHARE * alpha / 2))
    width = quantile * sd / math.sqrt(sessions) * widening(statistics)
    return mean - width, mean + width


def widening(statistics: Values) -> Values:
    """Return the factor of each row's interval: 1 or more."""
    import numpy as np

    sessions = statistics.shape[1]
    growth = np.power(float(sessions), serial_correlations(statistics) / 2)
    factors: Values = np.maximum((ALLOWANCE + FEW_SESSIONS / sessions) * growth, 1.0)
    return factors


def serial_correlations(statistics: Values) -> Values:
    """Return r = 1 - (von Neumann ratio)/2 of each row: an estimate of lag-1 autocorrelation.

    0 for sessions that are equal but for rounding, which say nothing about it.
    """
    import numpy as np

    about_mean = statistics - np.mean(statistics, axis=1, keepdims=True)
    least = (statistics.shape[1] - 1) * sequential.LEAST_SPREAD**2
    squares = np.sum(about_mean * about_mean, axis=1)
    steps = np.diff(statistics, axis=1)
    ratios = np.sum(steps * steps, axis=1) / np.maximum(squares, least)
    correlations: Values = np.where(squares > least, 1 - ratios / 2, 0.0)
    return correlations


def serial_correlation(statistics: Sequence[float]) -> float | None:
    """Return r of one comparison; None with too few sessions for an interval."""
    import numpy as np

    if len(statistics) < LOOKS[0]:
        return None
    return float(serial_correlations(np.asarray(statistics, dtype=float)[None, :])[0])


def is_suspicious(correlation: float, sessions: int) -> bool:
    """Return whether r is larger than independent sessions explain.

    Their r has a standard deviation of sqrt((n - 2) / (n^2 - 1)).
    """
    sd = math.sqrt((sessions - 2) / (sessions * sessions - 1))
    return correlation > SUSPICIOUS * sd
