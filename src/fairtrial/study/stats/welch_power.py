"""Power of Welch's tests, which estimate a variance for each group.

With few runs in a group Welch's test has few degrees of freedom, so that its power is far below
that of a test with a pooled variance.

References::

    Welch (1938), Biometrika 29, 350-362
    Satterthwaite (1946), Biometrics Bull. 2, 110-114: degrees of freedom
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from fairtrial.study.stats.power import (
    LEAST_RUNS,
    TestKind,
    check_arguments,
    noncentral_t_power,
)

LARGE_GROUP = 200
"""From this many runs in both groups on, the estimated degrees of freedom hardly vary."""
POINTS = 40
"""Points of the quadrature over each group's variance."""
TAIL = 1e-10


def welch_power(
    d: float, n1: int, n2: int, *, alpha: float = 0.05, test: TestKind = "two-sided"
) -> float | None:
    """Compute the power of Welch's t test of two groups with the same standard deviation.

    Integrates over the estimated variances of both groups; both the standard error and the degrees
    of freedom of the test depend on them.

    Args:
        d: standardized difference of the means; for an equivalence test the margin, with equal
            means.
        n1: runs in the first group.
        n2: runs in the second group.
        alpha: significance level.
        test: the alternative.

    Returns:
        The power, or None if a group has fewer than two runs.
    """
    check_arguments(d, alpha)
    if min(n1, n2) < LEAST_RUNS:
        return None
    if min(n1, n2) >= LARGE_GROUP:
        return welch_contrast_power(d, (1.0, -1.0), (n1, n2), alpha=alpha, test=test)
    return _integrate(d / math.sqrt(1 / n1 + 1 / n2), n1, n2, alpha, test)


def _integrate(noncentrality: float, n1: int, n2: int, alpha: float, test: TestKind) -> float:
    """Average the power over the estimated variances; `noncentrality` is in true errors."""
    import numpy as np
    from scipy import special

    (first, first_weights), (second, second_weights) = _variances(n1 - 1), _variances(n2 - 1)
    share = (1 / n1) / (1 / n1 + 1 / n2)
    part1, part2 = share * first[:, None], (1 - share) * second[None, :]
    variance = part1 + part2
    df = variance**2 / (part1**2 / (n1 - 1) + part2**2 / (n2 - 1))
    level = alpha / 2 if test == "two-sided" else alpha
    # The functions behind `scipy.stats`, which takes ten times as long.
    critical = -special.stdtrit(df, level) * np.sqrt(variance)
    reached = special.ndtr(noncentrality - critical)
    if test == "equivalence":
        reached = np.maximum(reached - special.ndtr(critical - noncentrality), 0.0)
    elif test == "two-sided":
        reached = reached + special.ndtr(-noncentrality - critical)
    power = float(first_weights @ reached @ second_weights)
    return min(1.0, max(0.0, power))


@functools.lru_cache(maxsize=256)
def _variances(df: int) -> tuple[Any, Any]:
    """Return quadrature points and weights of an estimated variance, as a share of the true one."""
    import numpy as np
    from scipy import stats

    points, weights = np.polynomial.legendre.leggauss(POINTS)
    # By the standard deviation, whose density is smooth also for one degree of freedom.
    low, high = (float(stats.chi.ppf(share, df)) for share in (TAIL, 1 - TAIL))
    chi = low + (high - low) * (points + 1) / 2
    mass = weights * stats.chi.pdf(chi, df)
    return chi**2 / df, mass / mass.sum()


def welch_contrast_power(
    d: float,
    weights: Sequence[float],
    sizes: Sequence[int],
    *,
    alpha: float = 0.05,
    test: TestKind = "two-sided",
) -> float | None:
    """Compute the power of Welch's t test of a contrast of group means.

    Uses the degrees of freedom of Satterthwaite's approximation for equal variances.

    Args:
        d: true value of the contrast in standard deviations.
        weights: weight of each group.
        sizes: runs in each group.
        alpha: significance level.
        test: the alternative.

    Returns:
        The power, or None if a group has fewer than two runs.
    """
    check_arguments(d, alpha)
    if min(sizes) < LEAST_RUNS:
        return None
    parts = [w * w / n for w, n in zip(weights, sizes, strict=True)]
    df = sum(parts) ** 2 / sum(part**2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    return noncentral_t_power(d / math.sqrt(sum(parts)), df, alpha, test)
