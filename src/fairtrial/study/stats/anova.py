"""Omnibus tests of more than two groups.

They have no direction: they show that some groups differ, not which.

References::

    Fisher (1925), Statistical methods for research workers
    Welch (1951), Biometrika 38, 330-336
    Greenhouse and Geisser (1959), Psychometrika 24, 95-112
    Kruskal and Wallis (1952), J. Am. Stat. Assoc. 47, 583-621
    Friedman (1937), J. Am. Stat. Assoc. 32, 675-701
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairtrial.study.stats.cells import brown_forsythe, estimate_contrasts
from fairtrial.study.stats.finding import (
    Finding,
    UntestableError,
    check_group_sizes,
    check_variation,
    sample_sd,
    suppress_warnings,
)
from fairtrial.study.stats.permutations import ADDED, needs_permutations, permute_groups

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

MAX_SD_RATIO = 2.0
"""Standard deviations that differ by a larger factor are reported as unequal."""


def classic_anova(groups: Sequence[Values]) -> Finding:
    """Fisher's one-way analysis of variance, which assumes equal variances.

    Args:
        groups: values of each group.

    Raises:
        UntestableError: if a group has fewer than two values, or nothing varies.
    """
    from scipy import stats

    check_group_sizes(groups)
    check_variation(groups)
    df_between, df_within = len(groups) - 1, sum(map(len, groups)) - len(groups)
    with suppress_warnings():
        result = stats.f_oneway(*groups)
        explained = float(result.statistic) * df_between
        return Finding(
            method="one-way analysis of variance",
            p=result.pvalue,
            statistic_name="F",
            statistic=result.statistic,
            df=(df_between, df_within),
            effect_name="η²",
            effect_size=explained / (explained + df_within),
            notes=_note_unequal_variances(groups),
        )


def _note_unequal_variances(groups: Sequence[Values]) -> tuple[str, ...]:
    deviations = [sample_sd(group) for group in groups]
    if max(deviations) <= MAX_SD_RATIO * min(deviations):
        return ()
    sd_range = f"{min(deviations):.3g} to {max(deviations):.3g}"
    return (f"it assumes equal standard deviations, and they are {sd_range}: welch_anova does not",)


def welch_anova(groups: Sequence[Values]) -> Finding:
    """Welch's one-way analysis of variance, which does not assume equal variances.

    Where two or more groups do not vary, it has no value, and Brown and Forsythe's test is used.
    For small groups p is the larger of its own and that of a permutation test.

    Args:
        groups: values of each group.

    Raises:
        UntestableError: if a group has fewer than two values, or nothing varies.
    """
    import numpy as np
    from scipy import stats

    check_group_sizes(groups)
    check_variation(groups)
    # The scale does not matter, and squares of huge values would overflow.
    scale = max(float(np.max(np.abs(group))) for group in groups)
    groups = [group / scale for group in groups]
    count = len(groups)
    constant = sum(sample_sd(group) == 0 for group in groups)
    notes: tuple[str, ...] = ()
    with suppress_warnings():
        if constant > 1:
            f, df = brown_forsythe(groups)
            method = "Brown and Forsythe's analysis of variance"
            notes = (f"{constant} of {count} groups have the same value in all runs",)
        else:
            contrasts = np.column_stack([np.eye(count - 1), -np.ones(count - 1)])
            term = estimate_contrasts(groups, contrasts)
            f = term.wald_f()
            df, method = (count - 1, term.df), "Welch's analysis of variance"
        p = float(stats.f.sf(f, *df))
    if constant < 2 and needs_permutations(groups):
        p, method = max(p, permute_groups(groups)), f"{method} {ADDED}"
    return Finding(method, p, "F", f, df, notes=notes)


def kruskal_wallis(groups: Sequence[Values]) -> Finding:
    """Kruskal-Wallis rank test of independent groups.

    Args:
        groups: values of each group.

    Raises:
        UntestableError: if a group has fewer than two values, or all values are equal.
    """
    import numpy as np
    from scipy import stats

    check_group_sizes(groups)
    if sample_sd(np.concatenate(list(groups))) == 0:
        raise UntestableError(f"every value is {groups[0][0]:g}")
    count = sum(map(len, groups))
    with suppress_warnings():
        result = stats.kruskal(*groups)
        return Finding(
            method="Kruskal-Wallis test",
            p=result.pvalue,
            statistic_name="H",
            statistic=result.statistic,
            df=(len(groups) - 1,),
            effect_name="ε²",
            effect_size=float(result.statistic) / (count - 1),
        )


def friedman_test(table: Values) -> Finding:
    """Friedman's rank test of repeated measures.

    Args:
        table: a row for each matched set, a column for each group.

    Raises:
        UntestableError: if there are fewer than two sets, or all values are equal.
    """
    from scipy import stats

    _check_matched_sets(table)
    with suppress_warnings():
        result = stats.friedmanchisquare(*table.T)
        return Finding(
            method="Friedman's test",
            p=result.pvalue,
            statistic_name="χ²",
            statistic=result.statistic,
            df=(table.shape[1] - 1,),
            effect_name="Kendall's W",
            effect_size=float(result.statistic) / (len(table) * (table.shape[1] - 1)),
        )


def repeated_measures_anova(table: Values) -> Finding:
    """Repeated-measures analysis of variance with Greenhouse and Geisser's correction.

    Differences between groups may have different variances.

    Args:
        table: a row for each matched set, a column for each group.

    Raises:
        UntestableError: if there are fewer than two sets, or the differences between groups do not
            vary.
    """
    import numpy as np
    from scipy import stats

    _check_matched_sets(table)
    sets, groups = table.shape
    deviations = table.mean(axis=0) - table.mean()
    residuals = table - table.mean(axis=1, keepdims=True) - deviations
    if np.abs(residuals).max() <= 1e-12 * np.abs(table).max():
        raise UntestableError("the differences don't vary from set to set")
    with suppress_warnings():
        squares = residuals.T @ residuals
        within = float(np.trace(squares))
        epsilon = within**2 / ((groups - 1) * float(np.sum(squares**2)))
        f = sets * float(deviations @ deviations) * (sets - 1) / within
        df = (epsilon * (groups - 1), epsilon * (groups - 1) * (sets - 1))
        return Finding(
            method="repeated-measures analysis of variance (Greenhouse-Geisser)",
            p=stats.f.sf(f, *df),
            statistic_name="F",
            statistic=f,
            df=df,
            notes=(
                "degrees of freedom are corrected for differences that vary unequally "
                f"(Greenhouse-Geisser ε = {epsilon:.2f}; 1 if all vary alike)",
            ),
        )


def _check_matched_sets(table: Values) -> None:
    if len(table) < 2:
        count = "no complete sets" if len(table) == 0 else "one complete set"
        raise UntestableError(f"there is {count} of runs, one at each level; needs 2 or more")
    if sample_sd(table.ravel()) == 0:
        raise UntestableError(f"every value is {table[0, 0]:g}")
