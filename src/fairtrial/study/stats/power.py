"""Power of planned comparisons.

Pure functions of numbers. Differences are standardized: they are measured in within-group standard
deviations (Cohen's d). Runs are assumed independent and normal, with the same standard deviation in
all groups. All functions return None if a group has fewer than two runs, since there is no test.

References::

    Cohen (1988), Statistical power analysis for the behavioral sciences, 2nd ed.
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15, 657-680: two one-sided tests
    Phillips (1990), J. Pharmacokinet. Biopharm. 18, 137-144: their exact power
    Lakens (2017), Soc. Psychol. Personal. Sci. 8, 355-362: the same outside pharmacy
    Scheffé (1959), The analysis of variance: noncentrality of contrasts and interactions
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from fairtrial.core import Mistake, StudyError

TestKind = Literal["two-sided", "one-sided", "equivalence"]
"""The alternative: a difference, a positive difference, or a difference within ±d."""

TARGET_POWER = 0.8
LEAST_RUNS = 2
"""Groups need this many runs to estimate their variance."""
MAX_NONCENTRALITY = 1e8
"""Effects of more standard errors than this have power 1; scipy returns NaN for them."""


def contrast_power(
    d: float,
    weights: Sequence[float],
    sizes: Sequence[int],
    *,
    alpha: float = 0.05,
    test: TestKind = "two-sided",
) -> float | None:
    """Compute the power of the t test of a contrast (a weighted sum of group means).

    The weights 1 and -1 compare two groups; 1, -1, -1, 1 test a difference of differences. Groups
    of weight 0 only contribute to the estimate of the standard deviation. t has noncentrality
    d / sqrt(sum of w²/n) (Scheffé 1959, ch. 3).

    Args:
        d: true value of the contrast.
        weights: weight of each group.
        sizes: runs in each group.
        alpha: significance level.
        test: the alternative.
    """
    check_arguments(d, alpha)
    if _too_few(sizes):
        return None
    error = math.sqrt(sum(w * w / n for w, n in zip(weights, sizes, strict=True)))
    return noncentral_t_power(d / error, sum(sizes) - len(sizes), alpha, test)


def anova_power(d: float, sizes: Sequence[int], *, alpha: float = 0.05) -> float | None:
    """Compute the power of a one-way analysis of variance.

    Assumes the least favorable pattern of means: two are `d` apart and all others half-way between,
    so that Cohen's f is d·sqrt(1/2k) for equal groups (Cohen 1988, ch. 8, pattern 1). With unequal
    groups the two smallest have the extreme means.

    Args:
        d: standardized difference of the largest and the smallest mean.
        sizes: runs in each group.
        alpha: significance level.
    """
    check_arguments(d, alpha)
    if _too_few(sizes):
        return None
    low, high = sorted(sizes)[:2]
    total = sum(sizes)
    noncentrality = (d * d / 4) * (low + high - (high - low) ** 2 / total)
    return noncentral_f_power(noncentrality, len(sizes) - 1, total - len(sizes), alpha)


def interaction_power(
    d: float, cells: Sequence[Sequence[int]], *, alpha: float = 0.05, test: TestKind = "two-sided"
) -> float | None:
    """Compute the power of the test of an interaction of two factors.

    Assumes the least favorable interaction: it is confined to the two rows and two columns with
    the largest sum of 1/n. F then has noncentrality d² / sum of 1/n over these four cells (Scheffé
    1959, ch. 4). A 2 × 2 interaction is one contrast, so its test can be one-sided or of
    equivalence; the test of a larger one has no direction.

    Args:
        d: largest difference of differences, (a1b1 - a1b2) - (a2b1 - a2b2), over all choices of
            two rows and two columns.
        cells: runs in each cell: a row for each level of one factor, a column for each level of
            the other.
        alpha: significance level.
        test: the alternative.
    """
    check_arguments(d, alpha)
    sizes = [size for row in cells for size in row]
    if len(cells) < 2 or len(cells[0]) < 2 or _too_few(sizes):
        return None
    if len(cells) == len(cells[0]) == 2:
        return contrast_power(d, (1, -1, -1, 1), sizes, alpha=alpha, test=test)
    if test == "equivalence":
        return None
    df1 = (len(cells) - 1) * (len(cells[0]) - 1)
    return noncentral_f_power(
        d * d / _largest_variance_factor(cells), df1, sum(sizes) - len(sizes), alpha
    )


def slope_power(
    d: float,
    runs_at: Mapping[float, int],
    *,
    span: float | None = None,
    alpha: float = 0.05,
    test: TestKind = "two-sided",
) -> float | None:
    """Compute the power of the t test of a regression slope (Cohen 1988, ch. 9).

    Args:
        d: standardized rise of the line over `span`.
        runs_at: number of runs at each x.
        span: range of x that `d` refers to; by default the range of `runs_at`.
        alpha: significance level.
        test: the alternative.
    """
    check_arguments(d, alpha)
    total = sum(runs_at.values())
    if len(runs_at) < 2 or total <= LEAST_RUNS:
        return None
    span = span or max(runs_at) - min(runs_at)
    mean = math.fsum(x * n for x, n in runs_at.items()) / total
    # In units of the span: the squares of very large or very small x would over- or underflow.
    root_sum_squares = math.sqrt(
        math.fsum(n * ((x - mean) / span) ** 2 for x, n in runs_at.items())
    )
    return noncentral_t_power(d * root_sum_squares, total - 2, alpha, test)


def smallest_n(
    power_at: Callable[[int], float | None], target: float = TARGET_POWER, limit: int = 2**20
) -> int | None:
    """Find the smallest n with at least the target power, by bisection.

    Args:
        power_at: power as a function of n; must grow with n where it is above about 0.1. (The
            power of an equivalence test may first fall a little below that.)
        target: required power.
        limit: largest n to try.

    Returns:
        The smallest such n, or None if it is above `limit`.
    """

    def reaches(n: int) -> bool:
        power = power_at(n)
        return power is not None and power >= target

    high = 1
    while not reaches(high):
        high *= 2
        if high > limit:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def noncentral_t_power(noncentrality: float, df: float, alpha: float, test: TestKind) -> float:
    """Compute the power of a t test from the noncentrality and the degrees of freedom.

    Args:
        noncentrality: true value in standard errors; for an equivalence test the margin.
        df: degrees of freedom.
        alpha: significance level.
        test: the alternative.
    """
    from scipy import stats

    if test == "equivalence":
        return _tost_power(noncentrality, df, alpha)
    noncentrality = max(-MAX_NONCENTRALITY, min(MAX_NONCENTRALITY, noncentrality))
    if test == "one-sided":
        critical = stats.t.isf(alpha, df)
        return _probability(stats.nct.sf(critical, df, noncentrality))
    critical = stats.t.isf(alpha / 2, df)
    # The lower tail is the upper tail of the mirrored distribution; scipy's cdf is NaN far out.
    above = stats.nct.sf(critical, df, noncentrality)
    below = stats.nct.sf(critical, df, -noncentrality)
    return _probability(above + below)


def noncentral_f_power(noncentrality: float, df1: int, df2: int, alpha: float) -> float:
    """Compute the power of an F test from the noncentrality and the degrees of freedom."""
    from scipy import stats

    if noncentrality == 0:
        return alpha  # scipy 1.17 returns a wrong value for this case
    noncentrality = min(MAX_NONCENTRALITY**2, noncentrality)
    return _probability(stats.ncf.sf(stats.f.isf(alpha, df1, df2), df1, df2, noncentrality))


def _tost_power(margin: float, df: float, alpha: float) -> float:
    """Compute the power of two one-sided tests if means are equal; the margin in standard errors.

    Given the estimated standard deviation s (in units of the true one), both tests reject if the
    estimate lies between -margin + t·s and margin - t·s; this probability is averaged over s.
    """
    import numpy as np
    from scipy import stats

    critical = float(stats.t.isf(alpha, df))
    scale = math.sqrt(df)
    low = float(stats.chi.ppf(1e-13, df)) / scale
    high = float(stats.chi.isf(1e-13, df)) / scale
    if critical > 0:
        high = min(high, margin / critical)
    if high <= low:
        return 0.0
    points, weights = _quadrature()
    s = low + (high - low) * points
    inside = stats.norm.cdf(margin - critical * s)
    inside -= stats.norm.cdf(critical * s - margin)
    density = stats.chi.pdf(s * scale, df) * scale
    return _probability((high - low) * np.sum(weights * inside * density))


@functools.cache
def _quadrature() -> tuple[Any, Any]:
    """Return Gauss-Legendre points and weights on [0, 1]."""
    import numpy as np

    points, weights = np.polynomial.legendre.leggauss(160)
    return (points + 1) / 2, weights / 2


def _largest_variance_factor(cells: Sequence[Sequence[int]]) -> float:
    """Return the largest sum of 1/n over the four cells of any two rows and two columns."""
    largest = 0.0
    for first_row, second_row in itertools.combinations(cells, 2):
        columns = sorted(1 / a + 1 / b for a, b in zip(first_row, second_row, strict=True))
        largest = max(largest, columns[-1] + columns[-2])
    return largest


def _too_few(sizes: Sequence[int]) -> bool:
    return len(sizes) < 2 or min(sizes) < LEAST_RUNS


def _probability(value: Any) -> float:
    """Convert a value to a float clipped to [0, 1]; raises `ArithmeticError` for NaN."""
    number = float(value)
    if math.isnan(number):
        raise ArithmeticError("scipy returned NaN for this power")
    return min(1.0, max(0.0, number))


def check_arguments(d: float, alpha: float) -> None:
    """Raise `StudyError` for an infinite effect or a level outside (0, 1)."""
    mistakes = []
    if not math.isfinite(d):
        mistakes.append(Mistake(("d",), f"must be a finite number, got {d}"))
    if not 0 < alpha < 1:
        mistakes.append(Mistake(("alpha",), f"must be between 0 and 1, got {alpha}"))
    if mistakes:
        raise StudyError(mistakes)
