"""Tests of contrasts of independent cell means whose variances may differ.

A single contrast is tested by Student's t with the degrees of freedom of Welch and Satterthwaite,
several contrasts at once by the approximate F of Welch, James and Johansen. For the differences
between the means of one factor the latter is Welch's analysis of variance.

References::

    Satterthwaite (1946), Biometrics Bulletin 2, 110-114
    Johansen (1980), Biometrika 67, 85-92
    Brown and Forsythe (1974), Technometrics 16, 129-132
    Mehrotra (1997), Commun. Stat. Simul. 26, 1139-1145: its degrees of freedom
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtrial.study.stats.finding import UntestableError, sample_sd

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

TINY_GROUP = 4
"""With a smaller group Welch's degrees of freedom are too many: up to 12% false positives at 5%."""


@dataclass(frozen=True, slots=True)
class TermEstimate:
    """Estimated coefficients or contrasts, and how they are tested.

    estimates: the estimates
    covariance: their covariance matrix
    df: denominator degrees of freedom
    scale: factor that turns the Wald statistic of several estimates into F
    """

    estimates: Values
    covariance: Values
    df: float
    scale: float = 1.0

    def wald_f(self) -> float:
        """Return the F statistic of all estimates at once."""
        import numpy as np

        solved = np.linalg.solve(self.covariance, self.estimates)
        return self.scale * float(self.estimates @ solved)


def estimate_contrasts(cells: Sequence[Values], contrasts: Values) -> TermEstimate:
    """Estimate contrasts of cell means, each cell with its own variance.

    Args:
        cells: values of each cell, two or more each.
        contrasts: a row of weights for each contrast, linearly independent.

    Raises:
        UntestableError: if cells that do not vary leave a contrast without a standard error.
    """
    import numpy as np

    sizes = np.asarray([len(cell) for cell in cells], dtype=float)
    means = np.asarray([cell.mean() for cell in cells])
    variances = np.asarray([sample_sd(cell) for cell in cells]) ** 2 / sizes
    estimates = contrasts @ means
    covariance = (contrasts * variances) @ contrasts.T
    if not np.isfinite(covariance).all():
        raise UntestableError("the values are too large to compute with")
    if np.linalg.matrix_rank(covariance) < len(contrasts):
        raise UntestableError("too few of the groups have values that vary")
    if len(contrasts) == 1:
        parts = contrasts[0] ** 2 * variances
        df = float(parts.sum() ** 2 / np.sum(parts**2 / (sizes - 1)))
        return TermEstimate(estimates, covariance, limit_df(df, sizes[parts > 0].tolist()))
    # Johansen's correction for the estimated variances.
    count = len(contrasts)
    shares = (variances[:, None] * contrasts.T) @ np.linalg.solve(covariance, contrasts)
    diagonal = np.diag(shares)
    correction = float(np.sum(diagonal**2 / (sizes - 1)))
    divisor = count + 2 * correction - 6 * correction / (count + 2)
    df = count * (count + 2) / (3 * correction)
    return TermEstimate(estimates, covariance, limit_df(df, sizes.tolist()), 1 / divisor)


def limit_df(df: float, sizes: Sequence[float]) -> float:
    """Return no more degrees of freedom than the smallest of some groups has, if that is tiny.

    With these degrees of freedom there are never too many false positives. Three or more values
    in each of several groups of the same size need no limit.
    """
    smallest = min(sizes)
    is_pair = len(sizes) == 2 and smallest == 2
    is_tiny = smallest < TINY_GROUP and (is_pair or smallest < max(sizes))
    return min(df, smallest - 1) if is_tiny else df


def brown_forsythe(groups: Sequence[Values]) -> tuple[float, tuple[float, float]]:
    """Compute Brown and Forsythe's F of the equality of means; variances may differ or be 0.

    Returns:
        The F statistic, and its degrees of freedom by Mehrotra.
    """
    import numpy as np

    sizes = np.asarray([len(group) for group in groups], dtype=float)
    means = np.asarray([group.mean() for group in groups])
    variances = np.asarray([sample_sd(group) ** 2 for group in groups])
    total = sizes.sum()
    between = float(np.sum(sizes * (means - np.sum(sizes * means) / total) ** 2))
    within = (1 - sizes / total) * variances
    weighted = float(np.sum(sizes * variances)) / total
    numerator = float(within.sum()) ** 2 / (
        float(np.sum(variances**2)) + weighted**2 - 2 * float(np.sum(sizes * variances**2)) / total
    )
    denominator = float(within.sum()) ** 2 / float(np.sum(within**2 / (sizes - 1)))
    return between / float(within.sum()), (numerator, denominator)
