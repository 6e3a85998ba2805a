"""A confidence sequence: bounds that hold at every number of sessions simultaneously.

It is meant for open-ended runs with an interim look after every session. Its interval is about a
quarter wider than that of the group-sequential test at the same number of sessions.

For each possible mean m, M_n(m) is the Bayes factor of "the mean is m + delta * sigma, delta normal
around 0 with standard deviation `mixture`" against "the mean is m", with a right Haar prior on
sigma. It depends only on the ratios of the sessions' distances from m, and is a martingale that
starts at 1 if the mean is m, whatever sigma is. So the chance that it ever exceeds 1/alpha is at
most alpha (Ville). The interval contains all m with M_n(m) below that::

    M_n(m) = (1 + n v)^(-1/2) * ((1 + q) / (1 + q / (1 + n v)))^(n/2)
    v = mixture^2,  q = n (mean - m)^2 / (sum of squares about the mean)

References::

    Ville (1939), Étude critique de la notion de collectif
    Lai (1976), Ann. Stat. 4, 265-280: confidence sequences for a normal mean, sigma unknown
    Wang and Ramdas (2023), arXiv:2310.03722: anytime-valid t tests, scale-invariant mixtures
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

LEAST_SPREAD = 1e-4
"""The smallest standard deviation of sessions that is assumed (0.01 %), whatever was measured.

Two pairs of fresh processes with the same time to the last digit are luck, a coarse clock or a
simulated one. No real machine has so little noise, so this only makes intervals wider.
"""
MIXTURE = 1.0
"""The default `mixture`: within 5 % of the narrowest possible interval from 9 to 50 sessions."""


def confidence_sequence(
    statistics: Sequence[float], alpha: float, mixture: float = MIXTURE
) -> tuple[float, float]:
    """Return bounds of the mean that are valid at every number of sessions simultaneously.

    The chance that the bounds ever miss the true mean of normal statistics, at any n from 2 on, is
    at most `alpha`. With too few sessions they are infinite.

    mixture: the true effect, in standard deviations, at which the bounds are tightest; it must be
        chosen before the sessions are seen
    """
    import numpy as np

    values = np.asarray(statistics, dtype=float)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise ValueError("the statistics must be a list of finite numbers, one for each session")
    if len(values) == 0:
        return -math.inf, math.inf
    mean = float(np.mean(values))
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    width = half_width(len(values), alpha, mixture) * max(sd, LEAST_SPREAD)
    return mean - width, mean + width


def half_width(sessions: int, alpha: float, mixture: float = MIXTURE) -> float:
    """Return half the width of the interval, in standard deviations of the sessions."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, e.g. 0.05; got {alpha}")
    if not 0 < mixture < math.inf:
        raise ValueError(f"mixture must be above 0; got {mixture}")
    if sessions < 2:
        return math.inf
    growth = 1 + sessions * mixture**2
    # log of the bound of (1 + q) / (1 + q / growth), which never exceeds growth itself
    reach = (math.log(1 / alpha) + math.log(growth) / 2) * 2 / sessions
    if reach >= math.log(growth):
        return math.inf
    q = math.expm1(reach) / -math.expm1(reach - math.log(growth))
    return math.sqrt(q * (sessions - 1) / sessions)


def running_intervals(
    statistics: Values, alpha: float, mixture: float = MIXTURE
) -> tuple[Values, Values]:
    """Return lower and upper bounds after each session; each row is one comparison."""
    import numpy as np

    counts = np.arange(1, statistics.shape[1] + 1)
    mean = np.cumsum(statistics, axis=1) / counts
    # Squares about each row's first number: about 0 they would lose precision.
    moved = statistics - statistics[:, :1]
    about = np.cumsum(moved**2, axis=1) - np.cumsum(moved, axis=1) ** 2 / counts
    sd = np.sqrt(np.maximum(about, 0) / np.maximum(counts - 1, 1))
    factors = np.array([half_width(int(count), alpha, mixture) for count in counts])
    width = factors * np.maximum(sd, LEAST_SPREAD)
    return mean - width, mean + width
