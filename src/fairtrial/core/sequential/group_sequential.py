"""Group-sequential bounds: the level of each planned look, so that all together keep one alpha.

The alpha is spent over the looks by a function of the information fraction t (Lan and DeMets): the
chance that a true null hypothesis is rejected at or before a look is what the function has spent by
then. The bounds follow by numerical integration over the joint distribution of the looks' z values,
whose correlation is sqrt(t1/t2). They depend only on the fractions, so that a look may come earlier
or later than planned.

Tests are compared with the *nominal level* of a look: the tail probability of its bound. A t test
with its own degrees of freedom then has nearly the error rate of the normal one.

References::

    Armitage, McPherson and Rowe (1969), J. R. Stat. Soc. A 132, 235-244: the integration
    O'Brien and Fleming (1979), Biometrics 35, 549-556; Pocock (1977), Biometrika 64, 191-199
    Lan and DeMets (1983), Biometrika 70, 659-663: alpha spending
    Jennison and Turnbull (2000), Group sequential methods, ch. 7, 11 and 19
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

Spending = Literal["obrien_fleming", "pocock"]
GRID_POINTS = 801
"""Points of the numerical integration: the spent alpha is right to 6 digits."""
LOWEST_Z = -8.0
"""Smaller z values have no probability that matters."""
MAX_Z = 38.0
"""The largest z whose tail probability is a number above 0."""
BISECTIONS = 60


def spent_alpha(fraction: float, alpha: float, spending: Spending) -> float:
    """Return the one-sided alpha that is spent at an information fraction.

    `obrien_fleming` spends little early and nearly all at the end; `pocock` spends evenly.
    """
    from scipy import special

    if fraction >= 1:
        return alpha
    if spending == "pocock":
        return alpha * math.log1p((math.e - 1) * fraction)
    return 2 * float(special.ndtr(special.ndtri(alpha / 2) / math.sqrt(fraction)))


def spent_levels(fractions: Sequence[float], alpha: float, spending: Spending) -> tuple[float, ...]:
    """Return the alpha that each look spends, as levels that hold for any test statistic.

    Their sum is `alpha`, so by Bonferroni's inequality they keep it however the looks depend on
    each other: for tests that have no z value, such as F tests of several groups.

    fractions: the information at each look, relative to the last one; increasing
    """
    _check(fractions, alpha)
    spent = [0.0, *(spent_alpha(fraction, alpha, spending) for fraction in fractions)]
    return tuple(now - before for before, now in itertools.pairwise(spent))


@functools.lru_cache(256)
def nominal_levels(
    fractions: tuple[float, ...], alpha: float, spending: Spending
) -> tuple[float, ...]:
    """Return the one-sided level of each look's test such that all looks together keep `alpha`.

    For a two-sided test take half the alpha, and twice the levels. Raises ValueError unless the
    fractions increase up to at most 1 and alpha is between 0 and 0.5.
    """
    from scipy import special

    increments = spent_levels(fractions, alpha, spending)
    levels = [increments[0]]
    bound = min(MAX_Z, -float(special.ndtri(max(increments[0], 1e-300))))
    points, weights = _first_grid(fractions[0], bound)
    for before, now, increment in zip(fractions, fractions[1:], increments[1:], strict=False):
        step = math.sqrt(now - before)
        bound = _solve_bound(points, weights, math.sqrt(now), step, increment)
        # The bound of Bonferroni's inequality holds too, where the integral is too coarse.
        level = max(float(special.ndtr(-bound)), increment)
        bound = -float(special.ndtri(level))
        levels.append(level)
        points, weights = _next_grid(points, weights, bound * math.sqrt(now), now, step)
    return tuple(levels)


def conditional_power(z: float, fraction: float, level: float, drift: float) -> float:
    """Return the chance that the last look's test rejects, given the z value of this look.

    z: the z value now, positive in the claimed direction
    fraction: the information now, relative to that at the last look
    level: the one-sided nominal level of the last look
    drift: the expected z value at the last look
    """
    from scipy import special

    if fraction >= 1:
        return float(special.ndtr(-z) < level)
    rest = 1 - fraction
    expected = z * math.sqrt(fraction) + drift * rest
    return float(special.ndtr((expected + special.ndtri(level)) / math.sqrt(rest)))


def _check(fractions: Sequence[float], alpha: float) -> None:
    if not 0 < alpha < 0.5:
        raise ValueError(f"a one-sided alpha must be between 0 and 0.5; got {alpha}")
    edges = [0.0, *fractions]
    if not fractions or any(b <= a for a, b in zip(edges, fractions, strict=False)):
        raise ValueError(f"information fractions must increase from above 0; got {fractions}")
    if fractions[-1] > 1:
        raise ValueError(f"information fractions end at 1; got {fractions[-1]:g}")


def _make_grid(low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Return the points and weights of Simpson's rule."""
    import numpy as np

    points = np.linspace(low, high, GRID_POINTS)
    weights = np.full(GRID_POINTS, 2.0)
    weights[1::2] = 4.0
    weights[0] = weights[-1] = 1.0
    return points, weights * (high - low) / (GRID_POINTS - 1) / 3


def _density(values: FloatArray) -> FloatArray:
    import numpy as np

    density: FloatArray = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    return density


def _first_grid(fraction: float, bound: float) -> tuple[FloatArray, FloatArray]:
    """Return score values at the first look and their probabilities below the bound."""
    root = math.sqrt(fraction)
    points, weights = _make_grid(LOWEST_Z * root, min(bound, -LOWEST_Z) * root)
    return points, weights * _density(points / root) / root


def _next_grid(
    points: FloatArray, weights: FloatArray, high: float, fraction: float, step: float
) -> tuple[FloatArray, FloatArray]:
    """Return score values at the next look and the probabilities of staying below the bounds."""
    limit = -LOWEST_Z * math.sqrt(fraction)
    new, new_weights = _make_grid(-limit, min(high, limit))
    kernel = _density((new[:, None] - points[None, :]) / step) / step
    return new, new_weights * (kernel @ weights)


def _solve_bound(
    points: FloatArray, weights: FloatArray, root: float, step: float, increment: float
) -> float:
    """Return the z value that is first exceeded at this look with the probability `increment`."""
    from scipy import special

    low, high = LOWEST_Z, MAX_Z
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        exceeded = float(weights @ special.ndtr((points - middle * root) / step))
        low, high = (middle, high) if exceeded > increment else (low, middle)
    return high
