"""Power of tests whose unit is the problem.

Each problem gives one contrast, such as a difference of means. Contrasts differ between problems
because the effect does (`slope_sd`) and because runs do; only the second part shrinks with more
replicates.

References::

    Snijders and Bosker (1993), J. Educ. Stat. 18, 237-259: power with two levels of sampling
    Moerbeek, van Breukelen and Berger (2000), J. Educ. Behav. Stat. 25, 271-284
"""

from __future__ import annotations

import functools
import math
from typing import Any

from fairtrial.study.stats.by_problem import MIN_PROBLEMS
from fairtrial.study.stats.power import (
    TestKind,
    check_arguments,
    noncentral_f_power,
    noncentral_t_power,
)
from fairtrial.study.stats.skewness import lost_power

MAX_SIGN_FLIP_PROBLEMS = 10
"""Beyond this many problems a sign-flip test has about the power of the t test."""
DRAWS = 2_000


def problem_power(
    effect: float,
    variance: float,
    problems: int,
    *,
    alpha: float = 0.05,
    test: TestKind = "two-sided",
    df1: int = 1,
    is_corrected: bool = True,
) -> float | None:
    """Compute the power of the test of the mean contrast of problems.

    Args:
        effect: mean contrast; for an equivalence test the margin, with a mean of 0.
        variance: variance of one problem's contrast, between problems and by runs together.
        problems: number of problems.
        alpha: significance level.
        test: the alternative; ignored if `df1` is above 1.
        df1: number of independent contrasts: levels minus 1, for an analysis of variance. The
            effect is then the largest difference, all other means half-way.
        is_corrected: whether the t test has a correction for skewness, which costs some power.

    Returns:
        The power, or None for fewer than three problems.
    """
    check_arguments(effect, alpha)
    if problems < MIN_PROBLEMS:
        return None
    if df1 > 1:
        noncentrality = problems * effect * effect / variance
        return noncentral_f_power(noncentrality, df1, df1 * (problems - 1), alpha)
    noncentrality = effect * math.sqrt(problems / variance)
    power = noncentral_t_power(noncentrality, problems - 1, alpha, test)
    lost = lost_power(noncentrality, problems, alpha, test) if is_corrected else 0.0
    return max(0.0, power - lost)


def sign_flip_power(
    effect: float,
    variance: float,
    problems: int,
    *,
    alpha: float = 0.05,
    test: TestKind = "two-sided",
) -> float | None:
    """Compute the power of the sign-flip permutation test of the mean contrast of problems.

    By simulation with a fixed seed, as its p values are few: with 5 problems none is below 1/32.
    What the correction for skewness costs is taken from the t test.

    Args:
        effect: mean contrast.
        variance: variance of one problem's contrast.
        problems: number of problems.
        alpha: significance level.
        test: the alternative.

    Returns:
        The power, or None for fewer than three problems.
    """
    if problems > MAX_SIGN_FLIP_PROBLEMS or test == "equivalence":
        return problem_power(effect, variance, problems, alpha=alpha, test=test)
    check_arguments(effect, alpha)
    if problems < MIN_PROBLEMS:
        return None
    draws, members = _draw_contrasts(problems)
    shift = effect / math.sqrt(variance)
    lost = lost_power(shift * math.sqrt(problems), problems, alpha, test)
    # Flipping the signs of a subset gives a larger mean just if the subset's sum is not above 0.
    sums = (draws + shift) @ members
    upper = (sums <= 0).mean(axis=1)
    if test == "one-sided":
        return max(0.0, float((upper < alpha).mean()) - lost)
    lower = (sums >= 0).mean(axis=1)
    return max(0.0, float(((2 * upper < alpha) | (2 * lower < alpha)).mean()) - lost)


@functools.lru_cache(maxsize=16)
def _draw_contrasts(problems: int) -> tuple[Any, Any]:
    """Return normal contrasts, a row for each simulated study, and all subsets as columns."""
    import numpy as np

    draws = np.random.default_rng(problems).standard_normal((DRAWS, problems))
    members = (np.arange(2**problems)[None, :] >> np.arange(problems)[:, None]) & 1
    return draws, members.astype(float)
