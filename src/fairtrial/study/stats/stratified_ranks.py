"""Rank tests within strata: ranks are taken among the runs of each problem.

References::

    van Elteren (1960), Bull. Int. Stat. Inst. 37, 351-361
    Landis, Heyman and Koch (1978), Int. Stat. Rev. 46, 237-254: several groups
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairtrial.study.stats.finding import Alternative, Finding, UntestableError

if TYPE_CHECKING:
    import numpy as np

    from fairtrial.study.stats.finding import Values

DRAWS = 9_999
MAX_DRAWN = 48
"""Two groups of up to this many runs in all are tested by permutation within strata."""
METHOD = "rank test within problems (van Elteren)"


def stratified_rank_test(
    groups: Sequence[Sequence[Values]], alternative: Alternative = "two-sided"
) -> Finding:
    """Test by ranks within strata that groups don't differ.

    Args:
        groups: for each group its values in each stratum.
        alternative: the alternative hypothesis about the first of two groups minus the second.

    Raises:
        UntestableError: if all values of each stratum are equal.
    """
    import numpy as np
    from scipy import stats

    count = len(groups)
    is_small = count == 2 and sum(len(values) for group in groups for values in group) <= MAX_DRAWN
    # The generator has a fixed seed, so that the same values give the same result.
    shuffled, rng = np.zeros(DRAWS), np.random.default_rng(0)
    excess, covariance = np.zeros(count), np.zeros((count, count))
    for strata in zip(*groups, strict=True):
        sizes = np.asarray([len(values) for values in strata], dtype=float)
        total = sizes.sum()
        scores = stats.rankdata(np.concatenate(strata)) / (total + 1)
        ends = np.cumsum(sizes).astype(int)
        sums = np.asarray([part.sum() for part in np.split(scores, ends[:-1])])
        excess += sums - sizes * scores.mean()
        if is_small:
            shuffled += _shuffle_excess(rng, scores, len(strata[0]))
        spread = float(np.var(scores, ddof=1))
        covariance += spread * (np.diag(sizes) - np.outer(sizes, sizes) / total)
    if covariance[0, 0] <= 0:
        raise UntestableError("all values of each problem are equal")
    if count > 2:
        statistic = float(excess[:-1] @ np.linalg.solve(covariance[:-1, :-1], excess[:-1]))
        p = float(stats.chi2.sf(statistic, count - 1))
        return Finding(METHOD, p, "χ²", statistic, (count - 1,))
    z = float(excess[0]) / math.sqrt(covariance[0, 0])
    tails = {"greater": float(stats.norm.sf(z)), "less": float(stats.norm.cdf(z))}
    if is_small:
        tails["greater"] = float((shuffled >= excess[0] - 1e-9).sum() + 1) / (DRAWS + 1)
        tails["less"] = float((shuffled <= excess[0] + 1e-9).sum() + 1) / (DRAWS + 1)
    tails["two-sided"] = min(1.0, 2 * min(tails.values()))
    opposite = {"greater": "less", "less": "greater"}.get(alternative)
    return Finding(
        method=f"{METHOD}, by permutation" if is_small else METHOD,
        p=tails[alternative],
        statistic_name="z",
        statistic=z,
        effect_name="rank-biserial r, averaged over problems",
        effect_size=_rank_biserial(*groups),
        rank_direction=z,
        p_opposite=tails[opposite] if opposite else None,
    )


def _shuffle_excess(rng: np.random.Generator, scores: Values, size: int) -> Values:
    """Return by how much the scores of a group exceed their expectation if runs are shuffled."""
    import numpy as np

    drawn = rng.permuted(np.tile(scores, (DRAWS, 1)), axis=1)[:, :size]
    excess: Values = drawn.sum(axis=1) - size * scores.mean()
    return excess


def _rank_biserial(left: Sequence[Values], right: Sequence[Values]) -> float:
    """Return how much more often a run of the first group is above one of the second than below."""
    import numpy as np

    shares = [
        float(np.sign(first[:, None] - second).mean())
        for first, second in zip(left, right, strict=True)
    ]
    return math.fsum(shares) / len(shares)
