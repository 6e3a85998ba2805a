"""The power of Fisher's exact test, for outcomes that are yes or no.

For each number of yeses in both groups together the test's p is that of the hypergeometric
distribution; the power adds up the chances of all tables that it rejects. Nothing is approximated
up to some thousand runs; beyond, the normal approximation with its continuity correction is.

References::

    Fisher (1935), J. R. Stat. Soc. 98, 39-82
    Casagrande, Pike & Smith (1978), Biometrics 34, 483-486
"""

from __future__ import annotations

import math

from fairtrial.study.stats.power import LEAST_RUNS

FISHER = "Fisher's exact test"
MOST_EXACT = 2_000
"""The runs of both groups together up to which every table is looked at."""
EVEN_SD = 0.5
"""The standard deviation of a yes/no outcome that is yes every other time."""
TIE = 1 + 1e-7
"""Tables whose chances differ by less than this are equally likely; scipy's test has the same."""
ROUNDED = 1 + 1e-9
"""What rounding may take from a p that is just as large as alpha, as some are (91/1820 of 0.05)."""


def assumed_rates(difference: float, sd: float = EVEN_SD) -> tuple[float, float] | None:
    """Two rates of yes that far apart, about the rate that has this standard deviation.

    None if there are no such two: rates lie between 0 and 1.
    """
    middle = (1 - math.sqrt(max(0.0, 1 - 4 * sd * sd))) / 2
    low = max(0.0, middle - difference / 2)
    high = low + difference
    return (low, high) if high <= 1 else None


def fisher_power(
    rates: tuple[float, float], n1: int, n2: int, *, alpha: float = 0.05, one_sided: bool = False
) -> float | None:
    """The power of Fisher's test of two groups; where it matters which has which rate, the less."""
    if min(n1, n2) < LEAST_RUNS:
        return None
    low, high = rates
    sizes = {(n1, n2), (n2, n1)}
    find = _exact if n1 + n2 <= MOST_EXACT else _approximate
    return min(find(high, low, a, b, alpha, one_sided) for a, b in sizes)


def _exact(high: float, low: float, n1: int, n2: int, alpha: float, one_sided: bool) -> float:
    import numpy as np
    from scipy import special, stats

    def ways(n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        k = np.arange(n + 1)
        logs = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        return np.asarray(logs, dtype=np.float64)

    first, second = (
        stats.binom.pmf(range(n1 + 1), n1, high),
        stats.binom.pmf(range(n2 + 1), n2, low),
    )
    ways1, ways2, ways_both = ways(n1), ways(n2), ways(n1 + n2)
    power = 0.0
    for yes in range(n1 + n2 + 1):
        k = np.arange(max(0, yes - n2), min(n1, yes) + 1)
        chances = np.exp(ways1[k] + ways2[yes - k] - ways_both[yes])
        if one_sided:
            p = np.cumsum(chances[::-1])[::-1]
        else:
            ranked = np.sort(chances)
            below = np.concatenate([[0.0], np.cumsum(ranked)])
            p = below[np.searchsorted(ranked, chances * TIE, side="right")]
        power += float(np.sum((first[k] * second[yes - k])[p * ROUNDED < alpha]))
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
