"""Tests of two groups: independent or paired, by means or by ranks, of difference or equivalence.

Differences are always of the first group minus the second. Intervals have two sides even where
the test has one.

References::

    Welch (1947), Biometrika 34, 28-35
    Mann and Whitney (1947), Ann. Math. Stat. 18, 50-60
    Wilcoxon (1945), Biometrics Bulletin 1, 80-83
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15, 657-680: two one-sided tests
    Efron (1987), J. Am. Stat. Assoc. 82, 171-185: BCa intervals
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairtrial.study.stats.finding import (
    CONFIDENCE,
    Alternative,
    Finding,
    Interval,
    UntestableError,
    check_groups,
    check_varies,
    has_statsmodels,
    pooled_sd,
    quiet,
    spread,
)

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

TwoGroups = Callable[["Values", "Values", Alternative], Finding]

RESAMPLES = 2_000
MOST_RESAMPLED = 20_000
"""Medians of more numbers than this are not resampled: it would take minutes."""
MOST_CORRECTED = 1_000
"""Up to this many numbers the bootstrap is corrected for bias (BCa), which costs their square."""
_OPPOSITE: dict[str, Alternative] = {"greater": "less", "less": "greater"}


def welch(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Welch's t test: the difference of two means, without assuming equal variances."""
    from scipy import stats

    check_groups((left, right))
    check_varies((left, right))
    return _t_test(
        "Welch's t test",
        lambda way: stats.ttest_ind(left, right, equal_var=False, alternative=way),
        alternative,
        left,
        right,
    )


def paired_t(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """The paired t test: the mean of the differences; the numbers stand pair by pair."""
    from scipy import stats

    differences = _differences(left, right)
    if spread(differences) == 0:
        raise UntestableError(f"the two values of every pair differ by {differences[0]:g}")
    return _t_test(
        "paired t test",
        lambda way: stats.ttest_rel(left, right, alternative=way),
        alternative,
        left,
        right,
    )


def _t_test(
    method: str,
    test: Callable[[str], Any],
    alternative: Alternative,
    left: Values,
    right: Values,
) -> Finding:
    with quiet():
        whole, asked = test("two-sided"), test(alternative)
        opposite = _OPPOSITE.get(alternative)
        estimate = float(left.mean() - right.mean())
        interval = whole.confidence_interval(CONFIDENCE)
        sd = pooled_sd((left, right))
        return Finding(
            method=method,
            p=asked.pvalue,
            statistic_name="t",
            statistic=asked.statistic,
            df=(asked.df,),
            estimate=estimate,
            estimate_of="difference of means",
            interval=interval,
            bounds=interval,
            effect_name="Cohen's d",
            effect_size=estimate / sd if sd else None,
            p_opposite=test(opposite).pvalue if opposite else None,
        )


def mann_whitney(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """The Mann-Whitney test: whether numbers of one group tend to be larger than the other's."""
    import numpy as np
    from scipy import stats

    check_groups((left, right))
    if spread(np.concatenate((left, right))) == 0:
        raise UntestableError(f"every value is {left[0]:g}")
    with quiet():
        asked = stats.mannwhitneyu(left, right, alternative=alternative)
        opposite = _OPPOSITE.get(alternative)
        larger = float(stats.mannwhitneyu(left, right).statistic) / (len(left) * len(right))
        return Finding(
            method="Mann-Whitney test",
            p=asked.pvalue,
            statistic_name="U",
            statistic=asked.statistic,
            estimate=float(np.median(left) - np.median(right)),
            estimate_of="difference of medians",
            interval=_median_interval(left, right),
            bounds=_mean_bounds(welch, left, right),
            effect_name="rank-biserial r",
            effect_size=2 * larger - 1,
            leaning=2 * larger - 1,
            effect_interval=_rank_interval(left, right),
            p_opposite=(
                stats.mannwhitneyu(left, right, alternative=opposite).pvalue if opposite else None
            ),
        )


def wilcoxon(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Wilcoxon's signed-rank test: whether paired differences lie to one side of zero."""
    import numpy as np
    from scipy import stats

    differences = _differences(left, right)
    if not np.any(differences):
        raise UntestableError("the two values of every pair are the same")
    with quiet():
        asked = stats.wilcoxon(differences, alternative=alternative)
        opposite = _OPPOSITE.get(alternative)
        ranks = stats.rankdata(np.abs(differences[differences != 0]))
        signs = np.sign(differences[differences != 0])
        leaning = float(np.sum(ranks * signs) / np.sum(ranks))
        median = stats.quantile_test(differences, q=0.0, p=0.5)
        return Finding(
            method="Wilcoxon's signed-rank test",
            p=asked.pvalue,
            statistic_name="W",
            statistic=asked.statistic,
            estimate=float(np.median(differences)),
            estimate_of="median of the differences",
            interval=median.confidence_interval(CONFIDENCE),
            bounds=_mean_bounds(paired_t, left, right),
            effect_name="rank-biserial r",
            effect_size=leaning,
            leaning=leaning,
            p_opposite=(
                stats.wilcoxon(differences, alternative=opposite).pvalue if opposite else None
            ),
        )


def equivalent(test: TwoGroups, left: Values, right: Values, margin: float) -> Finding:
    """Two one-sided tests that the groups differ by less than `margin`, each way.

    Moves one group by the margin either way and asks `test` whether it now lies beyond the other.
    Ranks need values finer than that: else a small step makes every tie a win.
    """
    if test in (mann_whitney, wilcoxon):
        _check_fine(left, right, margin)
    whole = test(left, right, "two-sided")
    above = test(left + margin, right, "greater")
    below = test(left - margin, right, "less")
    worse = above if above.p >= below.p else below
    return replace(
        whole,
        method=f"two one-sided tests (TOST), {whole.method}",
        p=worse.p,
        statistic=worse.statistic,
        df=worse.df,
        p_opposite=None,
    )


def _check_fine(left: Values, right: Values, margin: float) -> None:
    import numpy as np

    steps = np.diff(np.unique(np.concatenate((left, right))))
    if len(steps) and margin < 2 * float(steps.min()):
        raise UntestableError(
            f"the values move in steps of {steps.min():.3g}, too coarse for ranks to show a "
            f"difference within ±{margin:.3g}; welch_t and paired_t can"
        )


def _differences(left: Values, right: Values) -> Values:
    """The differences of pairs; what is left of rounding is none."""
    import numpy as np

    if len(left) < 2:
        count = "are no complete pairs" if len(left) == 0 else "is one complete pair"
        raise UntestableError(f"there {count}; a test needs 2 or more")
    differences = left - right
    differences[np.abs(differences) <= 1e-12 * np.maximum(np.abs(left), np.abs(right))] = 0.0
    return differences


def _mean_bounds(test: TwoGroups, left: Values, right: Values) -> Interval | None:
    try:
        return test(left, right, "two-sided").bounds
    except UntestableError:
        return None


def _rank_interval(left: Values, right: Values) -> Interval | None:
    """The interval of the rank-biserial correlation, from Brunner and Munzel's for P(left > right).

    None where statsmodels isn't there, or where the groups don't overlap.
    """
    if not has_statsmodels():
        return None
    from statsmodels.stats.nonparametric import rank_compare_2indep

    low, high = rank_compare_2indep(left, right).conf_int(alpha=1 - CONFIDENCE)
    return (max(-1.0, 2 * float(low) - 1), min(1.0, 2 * float(high) - 1))


def _median_interval(left: Values, right: Values) -> Interval | None:
    """A bootstrap interval of the difference of medians; the same numbers give the same one."""
    import numpy as np
    from scipy import stats

    count = max(len(left), len(right))
    if count > MOST_RESAMPLED:
        return None

    def difference(one: Values, other: Values, axis: int) -> Values:
        return np.asarray(np.median(one, axis=axis) - np.median(other, axis=axis))

    # scipy 1.15 renamed the argument.
    renamed = "rng" in inspect.signature(stats.bootstrap).parameters
    found = stats.bootstrap(
        (left, right),
        difference,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="BCa" if count <= MOST_CORRECTED else "percentile",
        batch=max(1, 1_000_000 // count),
        vectorized=True,
        **{"rng" if renamed else "random_state": np.random.default_rng(0)},
    )
    low, high = found.confidence_interval
    return (float(low), float(high))
