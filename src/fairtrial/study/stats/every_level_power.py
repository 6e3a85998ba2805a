"""Power of the claim that every level is on one side of the baseline.

Each level is compared with the baseline by a one-sided test, adjusted by Holm; the claim is
supported if all of them are significant. Power is simulated with a fixed seed, since the
comparisons share the baseline.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from fairtrial.study.stats.by_problem import MIN_PROBLEMS
from fairtrial.study.stats.power import LEAST_RUNS, check_arguments
from fairtrial.study.stats.skewness import MAX_SIMULATED, correct_statistics, standardize

DRAWS = 2_000


def every_level_power(d: float, sizes: Sequence[int], *, alpha: float = 0.05) -> float | None:
    """Compute the power of Welch's tests of every level against the baseline.

    Args:
        d: standardized difference of every level from the baseline.
        sizes: runs at each level, the baseline last.
        alpha: significance level of the claim.

    Returns:
        The power, or None if a level has fewer than two runs.
    """
    import numpy as np
    from scipy import special

    check_arguments(d, alpha)
    if min(sizes) < LEAST_RUNS:
        return None
    rng = np.random.default_rng(sum(sizes))
    counts = np.array(sizes, dtype=float)
    means = rng.standard_normal((DRAWS, len(sizes))) / np.sqrt(counts)
    squares = rng.chisquare(counts - 1, (DRAWS, len(sizes))) / (counts - 1) / counts
    errors, parts = squares[:, :-1] + squares[:, -1:], squares**2 / (counts - 1)
    df = errors**2 / (parts[:, :-1] + parts[:, -1:])
    t = (abs(d) + means[:, :-1] - means[:, -1:]) / np.sqrt(errors)
    return _share_all_significant(special.stdtr(df, -t), alpha)


def every_level_problem_power(
    effect: float,
    variance: float,
    problems: int,
    levels: int,
    *,
    alpha: float = 0.05,
    is_corrected: bool = True,
) -> float | None:
    """Compute the power of tests by problem of every level against the baseline.

    Args:
        effect: mean contrast of every level with the baseline.
        variance: variance of one problem's contrast, between problems and by runs together.
        problems: number of problems.
        levels: number of levels without the baseline.
        alpha: significance level of the claim.
        is_corrected: whether the t tests have a correction for skewness.

    Returns:
        The power, or None for fewer than three problems.
    """
    from scipy import special

    check_arguments(effect, alpha)
    if problems < MIN_PROBLEMS:
        return None
    means, sds, slopes = _draw_contrasts(problems, levels)
    t = (means + abs(effect) * math.sqrt(problems / variance)) / sds
    if is_corrected and problems <= MAX_SIMULATED:
        t = correct_statistics(t, slopes)
    return _share_all_significant(special.stdtr(problems - 1, -t), alpha)


def _share_all_significant(p_values: Any, alpha: float) -> float:
    """Return the share of rows whose p values are all significant after Holm's adjustment."""
    import numpy as np

    count = p_values.shape[1]
    levels = alpha / np.arange(count, 0, -1)
    return float((np.sort(p_values, axis=1) <= levels).all(axis=1).mean())


@functools.lru_cache(maxsize=64)
def _draw_contrasts(problems: int, levels: int) -> tuple[Any, Any, Any]:
    """Return √n × mean, standard deviation and slope of contrasts that share a baseline."""
    import numpy as np

    rng = np.random.default_rng((problems, levels))
    if problems > MAX_SIMULATED:
        values = rng.standard_normal((DRAWS, levels + 1))
        means = (values[:, :-1] - values[:, -1:]) / math.sqrt(2)
        sds = np.sqrt(rng.chisquare(problems - 1, means.shape) / (problems - 1))
        return means, sds, 0.0
    values = rng.standard_normal((DRAWS, levels + 1, problems))
    return standardize((values[:, :-1] - values[:, -1:]) / math.sqrt(2))
