"""Two-sample tests: independent or paired, of means or ranks, of difference or equivalence.

Differences are of the first group minus the second. Intervals are two-sided, also for one-sided
tests. Equivalence is about means, whatever test is named.

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
    check_group_sizes,
    check_skewness,
    check_variation,
    has_statsmodels,
    pooled_sd,
    sample_sd,
    suppress_warnings,
)

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

TwoSampleTest = Callable[["Values", "Values", Alternative], Finding]

RESAMPLES = 2_000
MIN_MEDIAN_SIZE = 6
"""Smaller groups get no interval of ranks and medians: no 95% interval of a median exists."""
MAX_BOOTSTRAP_SIZE = 20_000
"""Larger groups get no bootstrap interval: it would take minutes."""
MAX_BCA_SIZE = 1_000
"""Larger groups get percentile intervals: the cost of BCa grows with the square of the size."""
_OPPOSITE: dict[str, Alternative] = {"greater": "less", "less": "greater"}


def welch_t_test(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Welch's t test of two independent groups; does not assume equal variances.

    Args:
        left: values of the first group.
        right: values of the second group.
        alternative: the alternative hypothesis about left minus right.

    Raises:
        UntestableError: if a group has fewer than two values, or nothing varies.
    """
    from scipy import stats

    check_group_sizes((left, right))
    check_variation((left, right))
    return _t_test(
        "Welch's t test",
        lambda side: stats.ttest_ind(left, right, equal_var=False, alternative=side),
        alternative,
        left,
        right,
    )


def paired_t_test(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Paired t test.

    Args:
        left: first value of each pair.
        right: second value of each pair.
        alternative: the alternative hypothesis about left minus right.

    Raises:
        UntestableError: if there are fewer than two pairs, or all differences are equal.
    """
    from scipy import stats

    differences = _differences(left, right)
    if sample_sd(differences) == 0:
        raise UntestableError(f"the two values of every pair differ by {differences[0]:g}")
    return _t_test(
        "paired t test",
        lambda side: stats.ttest_rel(left, right, alternative=side),
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
    with suppress_warnings():
        two_sided, result = test("two-sided"), test(alternative)
        opposite = _OPPOSITE.get(alternative)
        estimate = float(left.mean() - right.mean())
        interval = two_sided.confidence_interval(CONFIDENCE)
        sd = pooled_sd((left, right))
        return Finding(
            method=method,
            p=result.pvalue,
            statistic_name="t",
            statistic=result.statistic,
            df=(result.df,),
            estimate=estimate,
            estimate_of="difference of means",
            interval=interval,
            bounds=interval,
            effect_name="Cohen's d",
            effect_size=estimate / sd if sd else None,
            p_opposite=test(opposite).pvalue if opposite else None,
        )


def mann_whitney_u(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Mann-Whitney U test of two independent groups.

    Args:
        left: values of the first group.
        right: values of the second group.
        alternative: the alternative hypothesis: left tends to larger ("greater") or smaller
            ("less") values than right.

    Raises:
        UntestableError: if a group has fewer than two values, or all values are equal.
    """
    import numpy as np
    from scipy import stats

    check_group_sizes((left, right))
    if sample_sd(np.concatenate((left, right))) == 0:
        raise UntestableError(f"every value is {left[0]:g}")
    means = _test_means(welch_t_test, left, right)
    with suppress_warnings():
        result = stats.mannwhitneyu(left, right, alternative=alternative)
        opposite = _OPPOSITE.get(alternative)
        p_larger = float(stats.mannwhitneyu(left, right).statistic) / (len(left) * len(right))
        return Finding(
            method="Mann-Whitney test",
            p=result.pvalue,
            statistic_name="U",
            statistic=result.statistic,
            estimate=float(np.median(left) - np.median(right)),
            estimate_of="difference of medians",
            interval=_median_interval(left, right, CONFIDENCE),
            interval_by=lambda confidence: _median_interval(left, right, confidence),
            bounds=None if means is None else means.bounds,
            bounds_df=None if means is None else means.df[0],
            effect_name="rank-biserial r",
            effect_size=2 * p_larger - 1,
            rank_direction=2 * p_larger - 1,
            effect_interval=_rank_interval(left, right),
            p_opposite=(
                stats.mannwhitneyu(left, right, alternative=opposite).pvalue if opposite else None
            ),
        )


def wilcoxon_signed_rank(
    left: Values, right: Values, alternative: Alternative = "two-sided"
) -> Finding:
    """Wilcoxon's signed-rank test of paired differences.

    Args:
        left: first value of each pair.
        right: second value of each pair.
        alternative: the alternative hypothesis about left minus right.

    Raises:
        UntestableError: if there are fewer than two pairs, or all differences are zero.
    """
    import numpy as np
    from scipy import stats

    differences = _differences(left, right)
    if not np.any(differences):
        raise UntestableError("the two values of every pair are the same")
    means = _test_means(paired_t_test, left, right)
    with suppress_warnings():
        result = stats.wilcoxon(differences, alternative=alternative)
        opposite = _OPPOSITE.get(alternative)
        ranks = stats.rankdata(np.abs(differences[differences != 0]))
        signs = np.sign(differences[differences != 0])
        rank_biserial = float(np.sum(ranks * signs) / np.sum(ranks))
        median = stats.quantile_test(differences, q=0.0, p=0.5)
        return Finding(
            method="Wilcoxon's signed-rank test",
            p=result.pvalue,
            statistic_name="W",
            statistic=result.statistic,
            estimate=float(np.median(differences)),
            estimate_of="median of the differences",
            interval=median.confidence_interval(CONFIDENCE),
            interval_by=median.confidence_interval,
            bounds=None if means is None else means.bounds,
            bounds_df=None if means is None else means.df[0],
            effect_name="rank-biserial r",
            effect_size=rank_biserial,
            rank_direction=rank_biserial,
            p_opposite=(
                stats.wilcoxon(differences, alternative=opposite).pvalue if opposite else None
            ),
        )


def tost(test: TwoSampleTest, left: Values, right: Values, margin: float) -> Finding:
    """Two one-sided tests (TOST) of equivalence: the means differ by less than `margin`.

    Shifts the first group by plus and minus the margin and applies `test` to each. A rank test is
    replaced by a t test: groups whose ranks are alike may have means that differ by more than the
    margin.

    Args:
        test: the two-sample test that was asked for.
        left: values of the first group.
        right: values of the second group.
        margin: the equivalence margin, in the units of the values.

    Raises:
        UntestableError: if the test can't use the data, or equivalence would rest on values that
            are too skewed for their number.
    """
    notes: tuple[str, ...] = ()
    if test in (mann_whitney_u, wilcoxon_signed_rank):
        test = welch_t_test if test is mann_whitney_u else paired_t_test
        notes = ("the margin is a difference of means, which ranks can't test: means are compared",)
    two_sided = test(left, right, "two-sided")
    lower = test(left + margin, right, "greater")
    upper = test(left - margin, right, "less")
    weaker = lower if lower.p >= upper.p else upper
    if weaker.p < 1 - CONFIDENCE:
        check_skewness((left - right,) if test is paired_t_test else (left, right))
    return replace(
        two_sided,
        method=f"two one-sided tests (TOST), {two_sided.method}",
        p=weaker.p,
        statistic=weaker.statistic,
        df=weaker.df,
        p_opposite=None,
        notes=(*two_sided.notes, *notes),
    )


def _differences(left: Values, right: Values) -> Values:
    """Return the differences of pairs, with rounding errors set to 0."""
    import numpy as np

    if len(left) < 2:
        count = "are no complete pairs" if len(left) == 0 else "is one complete pair"
        raise UntestableError(f"there {count}; a test needs 2 or more")
    differences = left - right
    differences[np.abs(differences) <= 1e-12 * np.maximum(np.abs(left), np.abs(right))] = 0.0
    return differences


def _test_means(test: TwoSampleTest, left: Values, right: Values) -> Finding | None:
    """Return a t test of the difference of means; None if it can't use the values."""
    try:
        return test(left, right, "two-sided")
    except UntestableError:
        return None


def _rank_interval(left: Values, right: Values) -> Interval | None:
    """Return the interval of the rank-biserial correlation, by Brunner and Munzel's method.

    None for small groups, and if statsmodels is not installed.
    """
    if min(len(left), len(right)) < MIN_MEDIAN_SIZE or not has_statsmodels():
        return None
    from statsmodels.stats.nonparametric import rank_compare_2indep

    low, high = rank_compare_2indep(left, right).conf_int(alpha=1 - CONFIDENCE)
    return (max(-1.0, 2 * float(low) - 1), min(1.0, 2 * float(high) - 1))


def _median_interval(left: Values, right: Values, confidence: float) -> Interval | None:
    """Return a bootstrap interval of the difference of medians; None for small and huge groups.

    The generator has a fixed seed, so that the same values give the same interval.
    """
    import numpy as np
    from scipy import stats

    size = max(len(left), len(right))
    if size > MAX_BOOTSTRAP_SIZE or min(len(left), len(right)) < MIN_MEDIAN_SIZE:
        return None

    def difference(first: Values, second: Values, axis: int) -> Values:
        return np.asarray(np.median(first, axis=axis) - np.median(second, axis=axis))

    # scipy 1.15 renamed the argument.
    has_rng = "rng" in inspect.signature(stats.bootstrap).parameters
    result = stats.bootstrap(
        (left, right),
        difference,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="BCa" if size <= MAX_BCA_SIZE else "percentile",
        batch=max(1, 1_000_000 // size),
        vectorized=True,
        **{"rng" if has_rng else "random_state": np.random.default_rng(0)},
    )
    low, high = result.confidence_interval
    return (float(low), float(high))
