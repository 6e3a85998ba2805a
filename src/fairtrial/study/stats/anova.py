"""Tests of several groups at once.

They have no direction: they say that some of the groups differ, not which.

References::

    Fisher (1925), Statistical methods for research workers
    Welch (1951), Biometrika 38, 330-336
    Kruskal and Wallis (1952), J. Am. Stat. Assoc. 47, 583-621
    Friedman (1937), J. Am. Stat. Assoc. 32, 675-701
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairtrial.study.stats.finding import (
    Finding,
    UntestableError,
    check_groups,
    check_varies,
    need_statsmodels,
    quiet,
    spread,
)

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

UNEVEN = 2.0
"""Standard deviations this many times apart are no longer about equal."""


def one_way(groups: Sequence[Values]) -> Finding:
    """The one-way analysis of variance; assumes equal variances."""
    from scipy import stats

    check_groups(groups)
    check_varies(groups)
    between, within = len(groups) - 1, sum(map(len, groups)) - len(groups)
    with quiet():
        found = stats.f_oneway(*groups)
        explained = float(found.statistic) * between
        return Finding(
            method="one-way analysis of variance",
            p=found.pvalue,
            statistic_name="F",
            statistic=found.statistic,
            df=(between, within),
            effect_name="η²",
            effect_size=explained / (explained + within),
            notes=_uneven(groups),
        )


def _uneven(groups: Sequence[Values]) -> tuple[str, ...]:
    deviations = [spread(group) for group in groups]
    if max(deviations) <= UNEVEN * min(deviations):
        return ()
    shown = f"{min(deviations):.3g} to {max(deviations):.3g}"
    return (f"it assumes equal standard deviations, and they are {shown}: welch_anova does not",)


def welch_anova(groups: Sequence[Values]) -> Finding:
    """Welch's analysis of variance: one-way, without assuming equal variances."""
    check_groups(groups)
    check_varies(groups)
    if any(spread(group) == 0 for group in groups):
        raise UntestableError("Welch's analysis of variance needs values that vary in every group")
    need_statsmodels()
    from statsmodels.stats.oneway import anova_oneway

    with quiet():
        found = anova_oneway(list(groups), use_var="unequal", welch_correction=True)
        return Finding(
            method="Welch's analysis of variance",
            p=found.pvalue,
            statistic_name="F",
            statistic=found.statistic,
            df=(found.df_num, found.df_denom),
        )


def kruskal(groups: Sequence[Values]) -> Finding:
    """The Kruskal-Wallis test: whether some group tends to larger numbers."""
    import numpy as np
    from scipy import stats

    check_groups(groups)
    if spread(np.concatenate(list(groups))) == 0:
        raise UntestableError(f"every value is {groups[0][0]:g}")
    count = sum(map(len, groups))
    with quiet():
        found = stats.kruskal(*groups)
        return Finding(
            method="Kruskal-Wallis test",
            p=found.pvalue,
            statistic_name="H",
            statistic=found.statistic,
            df=(len(groups) - 1,),
            effect_name="ε²",
            effect_size=float(found.statistic) / (count - 1),
        )


def friedman(table: Values) -> Finding:
    """Friedman's test: the same for groups whose numbers stand in sets; a row for each set."""
    from scipy import stats

    _check_sets(table)
    with quiet():
        found = stats.friedmanchisquare(*table.T)
        return Finding(
            method="Friedman's test",
            p=found.pvalue,
            statistic_name="χ²",
            statistic=found.statistic,
            df=(table.shape[1] - 1,),
            effect_name="Kendall's W",
            effect_size=float(found.statistic) / (len(table) * (table.shape[1] - 1)),
        )


def repeated_measures(table: Values) -> Finding:
    """The repeated-measures analysis of variance; a row for each set of numbers."""
    import numpy as np

    _check_sets(table)
    residuals = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    if np.abs(residuals).max() <= 1e-12 * np.abs(table).max():
        raise UntestableError("the differences don't vary from set to set")
    need_statsmodels()
    import pandas as pd
    from statsmodels.stats.anova import AnovaRM

    sets, groups = table.shape
    data = pd.DataFrame(
        {
            "value": table.ravel(),
            "set": np.repeat(np.arange(sets), groups),
            "group": np.tile(np.arange(groups), sets),
        }
    )
    with quiet():
        row = AnovaRM(data, "value", "set", within=["group"]).fit().anova_table.iloc[0]
        return Finding(
            method="repeated-measures analysis of variance",
            p=row["Pr > F"],
            statistic_name="F",
            statistic=row["F Value"],
            df=(row["Num DF"], row["Den DF"]),
            notes=("it assumes that all differences between groups vary alike (sphericity)",),
        )


def _check_sets(table: Values) -> None:
    if len(table) < 2:
        count = "no complete sets" if len(table) == 0 else "one complete set"
        raise UntestableError(f"there is {count} of runs, one at each level; needs 2 or more")
    if spread(table.ravel()) == 0:
        raise UntestableError(f"every value is {table[0, 0]:g}")
