"""Permutation tests of Welch's statistics.

They are exact if all groups have one distribution, whatever it is, and valid for large groups of
different variances, since the statistic is divided by its standard error.

Reference: Janssen (1997), Stat. Probab. Lett. 36, 9-21.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairtrial.study.stats.finding import suppress_warnings

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

SMALL_GROUP = 12
"""A permutation test is added if the smallest group has no more values."""
MIN_PERMUTATIONS = 900
"""With fewer permutations p could not become small: 4 + 4 values have 70."""
RESAMPLES = 4_999
ADDED = "with a permutation test (the larger p)"


def needs_permutations(groups: Sequence[Values]) -> bool:
    """Return whether groups are so small that a permutation test is added, and large enough."""
    sizes = [len(group) for group in groups]
    count = math.factorial(sum(sizes)) // math.prod(map(math.factorial, sizes))
    return min(sizes) <= SMALL_GROUP and count >= MIN_PERMUTATIONS


def permute_two_groups(left: Values, right: Values) -> dict[str, float]:
    """Compute p by permutations of Welch's t, for each alternative.

    All permutations if they are few, else random ones from a generator with a fixed seed.
    """
    import numpy as np

    values = np.concatenate((left, right))
    chosen, is_exact = _choose_members(len(left), len(values))
    with suppress_warnings():
        statistics = _welch_t(values - values.mean(), chosen)
        observed = float(_welch_t(values - values.mean(), np.arange(len(left))[None, :])[0])
    slack = 1e-9 * max(1.0, abs(observed))
    extra = 0 if is_exact else 1
    counts = {
        "two-sided": np.sum(np.abs(statistics) >= abs(observed) - slack),
        "greater": np.sum(statistics >= observed - slack),
        "less": np.sum(statistics <= observed + slack),
    }
    return {side: (int(count) + extra) / (len(chosen) + extra) for side, count in counts.items()}


@functools.lru_cache(maxsize=8)
def _choose_members(first: int, total: int) -> tuple[Codes, bool]:
    """Return the indices of the first group in each permutation, and whether they are all."""
    import numpy as np

    if math.comb(total, first) <= RESAMPLES:
        return np.asarray(list(itertools.combinations(range(total), first))), True
    return _choose_orders(total)[:, :first], False


@functools.lru_cache(maxsize=8)
def _choose_orders(total: int) -> Codes:
    """Return random orders of so many values; always the same ones."""
    import numpy as np

    return np.argsort(np.random.default_rng(0).random((RESAMPLES, total)), axis=1)


def _welch_t(values: Values, chosen: Codes) -> Values:
    """Compute Welch's t for each choice of the first group from centered values."""
    import numpy as np

    first, second = chosen.shape[1], len(values) - chosen.shape[1]
    members = values[chosen]
    sums, squares = members.sum(axis=1), (members**2).sum(axis=1)
    rest, rest_squares = values.sum() - sums, np.sum(values**2) - squares
    variances = (squares - sums**2 / first) / (first - 1) / first
    variances = variances + (rest_squares - rest**2 / second) / (second - 1) / second
    differences = sums / first - rest / second
    result: Values = differences / np.sqrt(np.maximum(variances, _floor(values)))
    return result


def permute_groups(groups: Sequence[Values]) -> float:
    """Compute p of the equality of several means, by permutations of Welch's F."""
    import numpy as np

    values = np.concatenate(list(groups))
    values = values - values.mean()
    sizes = [len(group) for group in groups]
    with suppress_warnings():
        observed = float(_welch_f(values[None, :], sizes, _floor(values))[0])
        statistics = _welch_f(values[_choose_orders(len(values))], sizes, _floor(values))
    count = int(np.sum(statistics >= observed - 1e-9 * max(1.0, observed)))
    return (count + 1) / (RESAMPLES + 1)


def _welch_f(rows: Values, sizes: Sequence[int], floor: float) -> Values:
    """Compute Welch's F of each row of values, whose groups follow one another."""
    import numpy as np

    parts = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    n, count = np.asarray(sizes, dtype=float), len(sizes)
    means = np.column_stack([part.mean(axis=1) for part in parts])
    variances = np.column_stack([part.var(axis=1, ddof=1) for part in parts])
    weights = n / np.maximum(variances, floor)
    total = weights.sum(axis=1, keepdims=True)
    centers = (weights * means).sum(axis=1, keepdims=True) / total
    between = (weights * (means - centers) ** 2).sum(axis=1) / (count - 1)
    correction = ((1 - weights / total) ** 2 / (n - 1)).sum(axis=1)
    result: Values = between / (1 + 2 * (count - 2) / (count**2 - 1) * correction)
    return result


def _floor(values: Values) -> float:
    """Return the least variance: groups that do not vary have none, apart from rounding."""
    import numpy as np

    return 1e-24 * float(np.max(values**2)) or 1e-300
