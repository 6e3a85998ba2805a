"""One value for all replicates of a problem: pass@k and the like.

All are unbiased: the mean over every choice of k of the n runs that there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

PASSED = 1.0
"""The value of a run that passes."""


def combine(rule: str, values: Sequence[float]) -> float:
    """Return the value of `over_replicates` for the values of some replicates.

    NaN if there are fewer values than it takes together.

    rule: `mean`, `pass@k`, `pass^k` or `worst@k`
    """
    if not values:
        return math.nan
    if rule == "mean":
        return math.fsum(values) / len(values)
    name, count = rule.rstrip("0123456789"), int(rule.lstrip("pasworteh@^"))
    if len(values) < count:
        return math.nan
    if name == "worst@":
        return _expected_lowest(values, count)
    passed, total = sum(value >= PASSED for value in values), len(values)
    if name == "pass^":
        return math.comb(passed, count) / math.comb(total, count)
    return 1 - math.comb(total - passed, count) / math.comb(total, count)


def _expected_lowest(values: Sequence[float], count: int) -> float:
    """Return the mean of the lowest of `count` values over all choices."""
    choices = math.comb(len(values), count)
    ranked = enumerate(sorted(values), 1)
    return math.fsum(
        value * (math.comb(len(values) - rank, count - 1) / choices) for rank, value in ranked
    )
