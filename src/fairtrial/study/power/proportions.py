"""The power of Fisher's exact test, for binary outcomes.

Given the number of successes in both groups together, the p-value of a table follows from the
hypergeometric distribution; the power is the sum of the probabilities of all tables that the test
rejects. It is exact for up to `MAX_EXACT` runs; for more the normal approximation with continuity
correction is used.

References::

    Fisher (1935), J. R. Stat. Soc. 98, 39-82
    Casagrande, Pike & Smith (1978), Biometrics 34, 483-486
"""

from __future__ import annotations

import math

from fairtrial.study.stats.power import LEAST_RUNS

FISHER = "Fisher's exact test"
MAX_EXACT = 2_000
"""The largest number of runs in both groups together for which the power is exact."""
EVEN_SD = 0.5
"""The standard deviation of a binary outcome with a rate of one half."""
TIE = 1 + 1e-7
"""Tables whose probabilities differ by less than this factor count as equally likely, as in scipy's
test."""
ROUNDING = 1 + 1e-9
"""A p-value may equal alpha exactly (91/1820 and 0.05); this factor absorbs rounding errors."""


def assumed_rates(difference: float, sd: float = EVEN_SD) -> tuple[float, float] | None:
    """Return two rates with this difference, around the rate with this standard deviation.

    None if there are no such rates, as rates lie between 0 and 1.
    """
    middle = (1 - math.sqrt(max(0.0, 1 - 4 * sd * sd))) / 2
    low = max(0.0, middle - difference / 2)
    high = low + difference
    return (low, high) if high <= 1 else None


def fisher_power(
    rates: tuple[float, float], n1: int, n2: int, *, alpha: float = 0.05, one_sided: bool = False
) -> float | None:
    """Return the power of Fisher's exact test of two groups; None if a group is too small.

    If the power depends on which group has which rate, the lower one is returned.
    """
    if min(n1, n2) < LEAST_RUNS:
        return None
    low, high = rates
    sizes = {(n1, n2), (n2, n1)}
    compute = _compute_exact if n1 + n2 <= MAX_EXACT else _approximate
    return min(compute(high, low, a, b, alpha, one_sided) for a, b in sizes)


def _compute_exact(
    high: float, low: float, n1: int, n2: int, alpha: float, one_sided: bool
) -> float:
    import numpy as np
    from scipy import special, stats

    def log_binomials(n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        k = np.arange(n + 1)
        logs = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        return np.asarray(logs, dtype=np.float64)

    first, second = (
        stats.binom.pmf(range(n1 + 1), n1, high),
        stats.binom.pmf(range(n2 + 1), n2, low),
    )
    logs1, logs2, logs_both = log_binomials(n1), log_binomials(n2), log_binomials(n1 + n2)
    power = 0.0
    for successes in range(n1 + n2 + 1):
        k = np.arange(max(0, successes - n2), min(n1, successes) + 1)
        probabilities = np.exp(logs1[k] + logs2[successes - k] - logs_both[successes])
        if one_sided:
            p = np.cumsum(probabilities[::-1])[::-1]
        else:
            ranked = np.sort(probabilities)
            below = np.concatenate([[0.0], np.cumsum(ranked)])
            p = below[np.searchsorted(ranked, probabilities * TIE, side="right")]
        power += float(np.sum((first[k] * second[successes - k])[p * ROUNDING < alpha]))
    return min(1.0, power)


def _approximate(high: float, low: float, n1: int, n2: int, alpha: float, one_sided: bool) -> float:
    from scipy import stats

    critical = float(stats.norm.isf(alpha if one_sided else alpha / 2))
    inverse = 1 / n1 + 1 / n2
    pooled = (high * n1 + low * n2) / (n1 + n2)
    needed = critical * math.sqrt(pooled * (1 - pooled) * inverse) + inverse / 2
    error = math.sqrt(high * (1 - high) / n1 + low * (1 - low) / n2)
    if error == 0:
        return 1.0 if high - low > needed else 0.0
    return float(stats.norm.cdf((high - low - needed) / error))
