"""A test of two means that holds in small and unequal groups.

Welch's t test has too many false positives if a group has two or three values, or if a small group
is compared with a large one and values are skewed. The test here is Welch's, made safer:

- groups of fewer than four values: the degrees of freedom are those of the smaller group;
- small groups with enough permutations: p is the larger of Welch's and that of a permutation test
  of Welch's t, which is exact if both groups have one distribution, whatever it is.

References::

    Mickey and Brown (1966), Ann. Math. Stat. 37, 639-643: degrees of freedom of the smaller group
    Janssen (1997), Stat. Probab. Lett. 36, 9-21: studentized permutation tests
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.stats.cells import TINY_GROUP
from fairtrial.study.stats.finding import Alternative, Finding, sample_sd, suppress_warnings
from fairtrial.study.stats.linear import coefficient_test
from fairtrial.study.stats.two_groups import welch_t_test

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

SMALL_GROUP = 12
"""A permutation test is added if the smaller group has no more values."""
MIN_PERMUTATIONS = 900
"""With fewer permutations p could not become small: 4 + 4 values have 70."""
RESAMPLES = 4_999
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
    smaller = min(len(left), len(right))
    if smaller < TINY_GROUP:
        error = math.sqrt(sum(sample_sd(group) ** 2 / len(group) for group in (left, right)))
        return _with_fewer_df(finding, error, smaller - 1, alternative)
    if smaller > SMALL_GROUP or math.comb(len(left) + len(right), smaller) < MIN_PERMUTATIONS:
        return finding
    p_values = _permutation_p_values(left, right)
    p, opposite = p_values[alternative], p_values.get(_OPPOSITE.get(alternative, ""))
    return replace(
        finding,
        method=f"{METHOD} with a permutation test (the larger p)",
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


def _permutation_p_values(left: Values, right: Values) -> dict[str, float]:
    """Compute p by permutations of Welch's t, for each alternative.

    All permutations if they are few, else random ones from a generator with a fixed seed.
    """
    import numpy as np

    values = np.concatenate((left, right))
    values = values - values.mean()
    chosen, is_exact = _choose_permutations(len(left), len(values))
    with suppress_warnings():
        statistics = _welch_statistics(values, chosen)
        observed = _welch_statistics(values, np.arange(len(left))[None, :])[0]
    slack = 1e-9 * max(1.0, abs(float(observed))) if math.isfinite(observed) else 0.0
    extra = 0 if is_exact else 1
    counts = {
        "two-sided": np.sum(np.abs(statistics) >= abs(observed) - slack),
        "greater": np.sum(statistics >= observed - slack),
        "less": np.sum(statistics <= observed + slack),
    }
    return {side: (int(count) + extra) / (len(chosen) + extra) for side, count in counts.items()}


def _choose_permutations(first: int, total: int) -> tuple[Codes, bool]:
    """Return the indices of the first group in each permutation, and whether they are all."""
    import numpy as np

    if math.comb(total, first) <= RESAMPLES:
        return np.asarray(list(itertools.combinations(range(total), first))), True
    order = np.argsort(np.random.default_rng(0).random((RESAMPLES, total)), axis=1)
    return order[:, :first], False


def _welch_statistics(values: Values, chosen: Codes) -> Values:
    """Compute Welch's t for each choice of the first group from centered values."""
    import numpy as np

    first, second = chosen.shape[1], len(values) - chosen.shape[1]
    members = values[chosen]
    sums, squares = members.sum(axis=1), (members**2).sum(axis=1)
    rest, rest_squares = values.sum() - sums, np.sum(values**2) - squares
    variances = (squares - sums**2 / first) / (first - 1) / first
    variances = variances + (rest_squares - rest**2 / second) / (second - 1) / second
    differences = sums / first - rest / second
    # Groups that do not vary: the difference is infinitely large, or none.
    floor = 1e-24 * float(np.max(values**2))
    result: Values = differences / np.sqrt(np.maximum(variances, floor))
    return result
