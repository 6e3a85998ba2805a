"""Comparisons within problems that are fixed: claims about exactly these problems.

Each problem is a stratum. Differences are averaged over strata with equal weights; their error is
the variation of runs within strata alone.

References::

    Welch (1951), Biometrika 38, 330-336: several means with unequal variances
    Mantel and Haenszel (1959), J. Natl. Cancer Inst. 22, 719-748: stratified 2 × 2 tables
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairtrial.study.stats.finding import (
    Alternative,
    Finding,
    UntestableError,
    sample_sd,
)
from fairtrial.study.stats.linear import coefficient_test

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

_OPPOSITE = {"greater": "less", "less": "greater"}


@dataclass(frozen=True, slots=True)
class StratifiedMean:
    """The mean of a group, averaged over strata.

    mean: the mean
    variance: squared standard error of the mean
    df: degrees of freedom of the variance
    """

    mean: float
    variance: float
    df: float


def average_strata(strata: Sequence[Values], *, is_binary: bool = False) -> StratifiedMean:
    """Average the means of strata with equal weights.

    Args:
        strata: the values of each stratum.
        is_binary: the values are 0 and 1; strata in which all are equal still have a variance.

    Raises:
        UntestableError: if no stratum has two values.
    """
    count = len(strata)
    mean = math.fsum(float(values.mean()) for values in strata) / count
    df = sum(len(values) - 1 for values in strata)
    if df < 1:
        raise UntestableError("no problem has several runs at one level")
    if min(len(values) for values in strata) < 2:
        squares = math.fsum(_variance(values, is_binary) * (len(values) - 1) for values in strata)
        inverse = math.fsum(1 / len(values) for values in strata)
        return StratifiedMean(mean, squares / df * inverse / count**2, float(df))
    terms = [
        (_variance(values, is_binary) / len(values) / count**2, len(values) - 1)
        for values in strata
    ]
    variance = math.fsum(term for term, _ in terms)
    weighted = math.fsum(term**2 / freedom for term, freedom in terms)
    return StratifiedMean(mean, variance, variance**2 / weighted if weighted else float(df))


def _variance(values: Values, is_binary: bool) -> float:
    if not is_binary:
        return sample_sd(values) ** 2
    rate = (float(values.sum()) + 0.5) / (len(values) + 1)
    return rate * (1 - rate)


def stratified_t_test(
    left: StratifiedMean,
    right: StratifiedMean,
    alternative: Alternative = "two-sided",
    margin: float = 0.0,
    sd: float = 0.0,
) -> Finding:
    """Welch's t test of two groups within strata.

    Args:
        left: mean of the first group.
        right: mean of the second group.
        alternative: the alternative hypothesis about left minus right.
        margin: if above 0, test instead that the difference lies within ±margin (TOST).
        sd: standard deviation of runs, the unit of the effect size; 0 if unknown.

    Raises:
        UntestableError: if the values don't vary within strata.
    """
    estimate, variance = left.mean - right.mean, left.variance + right.variance
    if variance <= 0:
        raise UntestableError("the values don't vary within problems and levels")
    df = variance**2 / (left.variance**2 / left.df + right.variance**2 / right.df)
    error = math.sqrt(variance)
    method = "Welch's t test within problems"
    finding = coefficient_test(estimate, error, df, method, alternative, margin)
    return replace(
        finding,
        estimate_of="difference of means, averaged over these problems",
        effect_name="Cohen's d",
        effect_size=estimate / sd if sd else None,
    )


def stratified_anova(groups: Sequence[StratifiedMean]) -> Finding:
    """Welch's analysis of variance of several groups within strata.

    Args:
        groups: mean of each group.

    Raises:
        UntestableError: if a group doesn't vary within strata.
    """
    from scipy import stats

    if min(group.variance for group in groups) <= 0:
        raise UntestableError("Welch's analysis of variance needs values that vary in every group")
    count = len(groups)
    weights = [1 / group.variance for group in groups]
    total = math.fsum(weights)
    pairs = list(zip(weights, groups, strict=True))
    center = math.fsum(weight * group.mean for weight, group in pairs) / total
    between = math.fsum(weight * (group.mean - center) ** 2 for weight, group in pairs)
    spread = math.fsum((1 - weight / total) ** 2 / group.df for weight, group in pairs)
    statistic = between / (count - 1) / (1 + 2 * (count - 2) / (count**2 - 1) * spread)
    df = (count - 1, (count**2 - 1) / (3 * spread))
    return Finding(
        method="Welch's analysis of variance within problems",
        p=float(stats.f.sf(statistic, *df)),
        statistic_name="F",
        statistic=statistic,
        df=df,
    )


def stratified_exact_test(
    left: Sequence[Values],
    right: Sequence[Values],
    alternative: Alternative = "two-sided",
    sd: float = 0.0,
) -> Finding:
    """Exact test of two proportions within strata, which is Fisher's test for one stratum.

    Args:
        left: ones and zeros of the first group in each stratum.
        right: ones and zeros of the second group in each stratum.
        alternative: the alternative hypothesis about left minus right.
        sd: standard deviation of runs, the unit of the effect size; 0 if unknown.

    Raises:
        UntestableError: if all values of each stratum are equal.
    """
    import numpy as np

    low, chances = _successes_distribution(left, right)
    if len(chances) < 2:
        raise UntestableError("all values of each problem are equal")
    observed = round(sum(float(values.sum()) for values in left)) - low
    tails = {
        "greater": float(chances[observed:].sum()),
        "less": float(chances[: observed + 1].sum()),
        # As likely as the observed one, or less; rounding errors don't break ties.
        "two-sided": float(chances[chances <= chances[observed] * (1 + 1e-7)].sum()),
    }
    means = [average_strata(group, is_binary=True) for group in (left, right)]
    finding = stratified_t_test(means[0], means[1], sd=sd)
    opposite = _OPPOSITE.get(alternative)
    return replace(
        finding,
        method="exact test of proportions within problems (Mantel-Haenszel)",
        p=float(np.clip(tails[alternative], 0.0, 1.0)),
        statistic_name="successes",
        statistic=float(observed + low),
        df=(),
        p_opposite=tails[opposite] if opposite else None,
    )


def _successes_distribution(left: Sequence[Values], right: Sequence[Values]) -> tuple[int, Values]:
    """Return the smallest number of successes on the left, and the chances of it and those above.

    The totals of each stratum are fixed, and its runs are exchangeable.
    """
    import numpy as np
    from scipy import stats

    smallest, chances = 0, np.ones(1)
    for first, second in zip(left, right, strict=True):
        successes = round(float(first.sum() + second.sum()))
        total, drawn = len(first) + len(second), len(first)
        low, high = max(0, drawn - (total - successes)), min(drawn, successes)
        counts = np.arange(low, high + 1)
        chances = np.convolve(chances, stats.hypergeom.pmf(counts, total, successes, drawn))
        smallest += low
    return smallest, chances
