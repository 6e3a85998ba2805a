"""Intervals of session statistics that may be autocorrelated, by the von Neumann ratio.

The group-sequential t test assumes independent sessions. A machine whose state drifts from session
to session (temperature, frequency, memory, neighbors) makes successive sessions resemble each
other. Their standard error is then too small, and equal code is called faster or slower too often.

The von Neumann ratio compares the squared differences of successive sessions with their variance.
It is 2 for independent sessions and smaller for positively autocorrelated ones, so r = 1 - ratio/2
estimates the lag-1 autocorrelation, with mean 0 for independent normal sessions however few they
are. Each interval of the test is multiplied by a factor between 1 and 5::

    exp(0.2 + 1.6 (6/n)^2 + 2.75 r)

A test for autocorrelation has next to no power with 6 or 10 sessions: r has a standard deviation of
0.34 and 0.28. So the factor is large there unless r speaks against autocorrelation, and only
effects that are large relative to the spread end the comparison that early. The coefficients come
from a random search for few sessions under a constraint: at most 5 % false claims at alpha 0.05, a
minimum effect of 2 % and a spread of 1.5 %, for first-order autoregressive sessions with rho from 0
to 0.8. `benchmarks/statistics.py` measures that with other seeds.

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
from fairtrial.core import LEAST_SPREAD

if TYPE_CHECKING:
    from fairtrial.arena.timing.stats.arrays import Values

AT_LEAST, AT_FIRST, PER_CORRELATION = 0.2, 1.6, 2.75
"""The coefficients of the logarithm of the factor: constant, of (6/n)^2 and of r."""
MOST_WIDENING = 5.0
"""The largest factor: a little more than autocorrelated sessions with rho 0.8 need."""
SUSPICIOUS = 2.0
"""From this many standard deviations above 0 on, r is reported as autocorrelation."""


def session_look(statistics: Sequence[float], *, alpha: float, min_effect: float) -> SessionLook:
    """Return what may be concluded after these sessions, even if they are autocorrelated.

    It is `interim_look`, with its interval widened; the rules for calling it are the same.
    """
    import numpy as np

    look = interim_look(statistics, alpha=alpha, min_effect=min_effect)
    if not math.isfinite(look.low):
        return look
    rows = np.asarray(statistics, dtype=float)[None, :]
    low, high = (float(bounds[0]) for bounds in widened_intervals(rows, alpha))
    return replace(look, low=low, high=high, claim=claim(low, high, min_effect))


def widened_intervals(statistics: Values, alpha: float) -> tuple[Values, Values]:
    """Return lower and upper bounds; each row is one comparison, each column a session."""
    low, high = intervals(statistics, alpha)
    extra = (widening(statistics) - 1) * (high - low) / 2
    return low - extra, high + extra


def widening(statistics: Values) -> Values:
    """Return the factor of each row's interval, from 1 to 5."""
    import numpy as np

    at_first = AT_FIRST * (LOOKS[0] / statistics.shape[1]) ** 2
    logs = AT_LEAST + at_first + PER_CORRELATION * serial_correlations(statistics)
    factors: Values = np.clip(np.exp(logs), 1.0, MOST_WIDENING)
    return factors


def serial_correlations(statistics: Values) -> Values:
    """Return r = 1 - (von Neumann ratio)/2 of each row: an estimate of lag-1 autocorrelation.

    0 for sessions that are equal but for rounding, which say nothing about it.
    """
    import numpy as np

    about_mean = statistics - np.mean(statistics, axis=1, keepdims=True)
    least = (statistics.shape[1] - 1) * LEAST_SPREAD**2
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
