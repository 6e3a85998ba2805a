"""How likely a planned comparison is to find the difference that it looks for.

Pure functions of numbers. Differences are standardised: they are measured in standard deviations of
one run within its group (Cohen's d). Runs are taken as independent and normal, with the same
standard deviation in all groups. Where a group has fewer than two runs there is no test, and the
answer is None.

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

Test = Literal["two-sided", "one-sided", "equivalence"]
"""What is asked of a difference: is it there, is it there and positive, or is it within ±d."""

TARGET_POWER = 0.8
LEAST_RUNS = 2
"""A group of fewer runs says nothing about how much runs vary."""
MOST_ERRORS = 1e8
"""An effect of more standard errors than this is found for certain; scipy has no number for it."""


def t_test_power(
    d: float, n1: int, n2: int, *, alpha: float = 0.05, test: Test = "two-sided"
) -> float | None:
    """The power of a two-sample t test for means `d` apart (Cohen 1988, ch. 2).

    For an equivalence test `d` is the margin, and the means are the same.
    """
    return contrast_power(d, (1.0, -1.0), (n1, n2), alpha=alpha, test=test)


def contrast_power(
    d: float,
    weights: Sequence[float],
    sizes: Sequence[int],
    *,
    alpha: float = 0.05,
    test: Test = "two-sided",
) -> float | None:
    """The power of a t test of a weighted sum of group means whose true value is `d`.

    Weights 1 and -1 compare two groups, and zeros leave groups out of the comparison; these still
    help to estimate the standard deviation. The weights 1, -1, -1, 1 ask for a difference of
    differences. t has noncentrality d / sqrt(sum of w²/n) (Scheffé 1959, ch. 3).
    """
    _check(d, alpha)
    if _too_few(sizes):
        return None
    error = math.sqrt(sum(w * w / n for w, n in zip(weights, sizes, strict=True)))
    return _t_power(d / error, sum(sizes) - len(sizes), alpha, test)


def equivalence_power(
    margin: float, n1: int, n2: int, *, alpha: float = 0.05, true_d: float = 0.0
) -> float | None:
    """The power of two one-sided t tests to show that means differ by less than `margin`.

    Each test is at level `alpha`, which is the same as a 1 - 2·alpha interval that lies within
    ±margin (Schuirmann 1987). Exact, by Phillips' (1990) integral over the estimated standard
    deviation; `true_d` is how far apart the means really are.
    """
    _check(margin, alpha)
    _check(true_d, alpha)
    if _too_few((n1, n2)):
        return None
    error = math.sqrt(1 / n1 + 1 / n2)
    return _within_power(margin / error, true_d / error, n1 + n2 - 2, alpha)


def anova_power(d: float, sizes: Sequence[int], *, alpha: float = 0.05) -> float | None:
    """The power of a one-way analysis of variance when the outermost means are `d` apart.

    The other means lie half-way between. With equal groups no spread is harder to find, and Cohen's
    f is d·sqrt(1/2k) (Cohen 1988, ch. 8, pattern 1). With unequal groups the two smallest hold the
    outermost means.
    """
    _check(d, alpha)
    if _too_few(sizes):
        return None
    low, high = sorted(sizes)[:2]
    total = sum(sizes)
    noncentrality = (d * d / 4) * (low + high - (high - low) ** 2 / total)
    return _f_power(noncentrality, len(sizes) - 1, total - len(sizes), alpha)


def interaction_power(
    d: float, cells: Sequence[Sequence[int]], *, alpha: float = 0.05, test: Test = "two-sided"
) -> float | None:
    """The power of the test for an interaction of two factors.

    cells: the runs in each cell: a row for each level of one factor, a column for each of the other
    d: the largest difference of differences, (a1b1 - a1b2) - (a2b1 - a2b2), over all choices of two
        rows and two columns

    Of all interactions with that `d` the one that is hardest to find is taken: it sits in the two
    rows and two columns with the fewest runs (in the sense of the largest sum of 1/n) and nowhere
    else. F then has noncentrality d² / sum of 1/n over these four cells (Scheffé 1959, ch. 4). A
    2 × 2 interaction is one contrast, and can be one-sided or about equivalence; a larger one has
    no side.
    """
    _check(d, alpha)
    sizes = [size for row in cells for size in row]
    if len(cells) < 2 or len(cells[0]) < 2 or _too_few(sizes):
        return None
    if len(cells) == len(cells[0]) == 2:
        return contrast_power(d, (1, -1, -1, 1), sizes, alpha=alpha, test=test)
    if test == "equivalence":
        return None
    groups = (len(cells) - 1) * (len(cells[0]) - 1)
    return _f_power(d * d / _weakest_four(cells), groups, sum(sizes) - len(sizes), alpha)


def slope_power(
    d: float,
    runs_at: Mapping[float, int],
    *,
    span: float | None = None,
    alpha: float = 0.05,
    test: Test = "two-sided",
) -> float | None:
    """The power of the test for a straight line's slope (Cohen 1988, ch. 9).

    runs_at: how many runs are made at each x
    d: how far the line rises over `span`, which is the distance from the smallest to the largest x
        if it isn't given
    """
    _check(d, alpha)
    total = sum(runs_at.values())
    if len(runs_at) < 2 or total <= LEAST_RUNS:
        return None
    span = span or max(runs_at) - min(runs_at)
    middle = math.fsum(x * n for x, n in runs_at.items()) / total
    # In units of the span: the squares of very large or very small x would be no numbers.
    spread = math.sqrt(math.fsum(n * ((x - middle) / span) ** 2 for x, n in runs_at.items()))
    return _t_power(d * spread, total - 2, alpha, test)


def smallest_n(
    power_at: Callable[[int], float | None], target: float = TARGET_POWER, limit: int = 2**20
) -> int | None:
    """The smallest n at which a power that grows with n reaches `target`; None beyond `limit`.

    Powers grow with n from about 0.1 on; below, an equivalence test may lose a little at first.
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


def _t_power(noncentrality: float, df: int, alpha: float, test: Test) -> float:
    from scipy import stats

    if test == "equivalence":
        return _within_power(noncentrality, 0.0, df, alpha)
    noncentrality = max(-MOST_ERRORS, min(MOST_ERRORS, noncentrality))
    if test == "one-sided":
        critical = stats.t.isf(alpha, df)
        return _probability(stats.nct.sf(critical, df, noncentrality))
    critical = stats.t.isf(alpha / 2, df)
    # The lower tail is the upper one of the mirrored distribution; scipy's own is NaN far out.
    above = stats.nct.sf(critical, df, noncentrality)
    below = stats.nct.sf(critical, df, -noncentrality)
    return _probability(above + below)


def _f_power(noncentrality: float, df1: int, df2: int, alpha: float) -> float:
    from scipy import stats

    if noncentrality == 0:
        return alpha  # scipy 1.17 gives something else
    noncentrality = min(MOST_ERRORS**2, noncentrality)
    return _probability(stats.ncf.sf(stats.f.isf(alpha, df1, df2), df1, df2, noncentrality))


def _within_power(margin: float, true: float, df: int, alpha: float) -> float:
    """The power of two one-sided tests; margin and true difference in standard errors.

    Given the estimated standard deviation s (in units of the true one) both tests reject when the
    estimate falls between -margin + t·s and margin - t·s. That is averaged over s.
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
    inside = stats.norm.cdf(margin - true - critical * s)
    inside -= stats.norm.cdf(critical * s - margin - true)
    density = stats.chi.pdf(s * scale, df) * scale
    return _probability((high - low) * np.sum(weights * inside * density))


@functools.cache
def _quadrature() -> tuple[Any, Any]:
    """Gauss-Legendre points and weights on 0..1."""
    import numpy as np

    points, weights = np.polynomial.legendre.leggauss(160)
    return (points + 1) / 2, weights / 2


def _weakest_four(cells: Sequence[Sequence[int]]) -> float:
    """The largest sum of 1/n over the four cells in which two rows and two columns meet."""
    worst = 0.0
    for one, two in itertools.combinations(cells, 2):
        columns = sorted(1 / a + 1 / b for a, b in zip(one, two, strict=True))
        worst = max(worst, columns[-1] + columns[-2])
    return worst


def _too_few(sizes: Sequence[int]) -> bool:
    return len(sizes) < 2 or min(sizes) < LEAST_RUNS


def _probability(value: Any) -> float:
    """A plain float within 0..1, without what rounding adds beyond."""
    number = float(value)
    if math.isnan(number):
        raise ArithmeticError("scipy has no number for this power")
    return min(1.0, max(0.0, number))


def _check(d: float, alpha: float) -> None:
    mistakes = []
    if not math.isfinite(d):
        mistakes.append(Mistake(("d",), f"must be a finite number, got {d}"))
    if not 0 < alpha < 1:
        mistakes.append(Mistake(("alpha",), f"must be between 0 and 1, got {alpha}"))
    if mistakes:
        raise StudyError(mistakes)
