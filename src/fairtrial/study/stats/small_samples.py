"""A test of two means that holds in small and unequal groups.

Welch's t test has too many false positives if a group has two or three values, or if a small group
is compared with a large one and values are skewed. The test here is Welch's, made safer:

- a group of two values, or of three against more: the degrees of freedom are those of the smaller
  group;
- small groups with enough permutations: p is the larger of Welch's and that of a permutation test
  of Welch's t (`stats.permutations`);
- groups of different skewness: p and interval allow for it (`stats.skewness`).

Reference: Mickey and Brown (1966), Ann. Math. Stat. 37, 639-643: degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.stats.cells import limit_df
from fairtrial.study.stats.finding import Alternative, Finding, sample_sd
from fairtrial.study.stats.linear import coefficient_test
from fairtrial.study.stats.permutations import ADDED, needs_permutations, permute_two_groups
from fairtrial.study.stats.skewness import correct_two_groups
from fairtrial.study.stats.two_groups import welch_t_test

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

METHOD = "Welch's t test"


def mean_difference_test(
    left: Values, right: Values, alternative: Alternative = "two-sided"
) -> Finding:
    """Welch's t test of two independent groups, made safer for small groups.

    Args:
        left: values of the first group.
        right: values of the second group.
        alternative: the alternative hypothesis about left minus right.

    Raises:
        UntestableError: if a group has fewer than two values, or nothing varies.
    """
    finding = welch_t_test(left, right, alternative)
    df = limit_df(finding.df[0], (len(left), len(right)))
    if df < finding.df[0]:
        error = math.sqrt(sum(sample_sd(group) ** 2 / len(group) for group in (left, right)))
        return _with_fewer_df(finding, error, df, alternative)
    finding = correct_two_groups(finding, left, right, alternative)
    if not needs_permutations((left, right)):
        return finding
    p_values = permute_two_groups(left, right)
    p, opposite = p_values[alternative], p_values.get(_OPPOSITE.get(alternative, ""))
    return replace(
        finding,
        method=f"{finding.method} {ADDED}",
        p=max(finding.p, p),
        p_opposite=None if opposite is None else max(finding.p_opposite or 0.0, opposite),
    )


_OPPOSITE = {"greater": "less", "less": "greater"}


def _with_fewer_df(finding: Finding, error: float, df: float, alternative: Alternative) -> Finding:
    """Return a t test with other degrees of freedom.

    error: standard error of the estimate
    """
    test = coefficient_test(finding.estimate or 0.0, error, df, METHOD, alternative)
    return replace(
        finding,
        p=test.p,
        df=test.df,
        interval=test.interval,
        bounds=test.bounds,
        p_opposite=test.p_opposite,
        notes=(
            *finding.notes,
            f"a group has only {df + 1:g} values: the test takes the degrees of freedom of that "
            "group alone, and rests on normally distributed values",
        ),
    )
