"""One alpha for many comparisons: how much of it each gets.

By Bonferroni's inequality the chance of any false claim among comparisons is at most the sum of
their levels, however they depend on each other.

References::

    Bonferroni (1936), Pubbl. R. Ist. Super. Sci. Econ. Commer. Firenze 8, 3-62
    Foster and Stine (2008), J. R. Stat. Soc. B 70, 429-444: spending alpha along a stream
    Tian and Ramdas (2021), Stat. Methods Med. Res. 30, 976-993: family-wise error online
"""

from __future__ import annotations

import math


def spend(alpha: float, arrival: int) -> float:
    """The level for the comparison that arrives as number 1, 2, 3, ... of a stream without end.

    alpha * (1/log2(k + 1) - 1/log2(k + 2)) for number k. The terms cancel in pairs, so that the
    first n add up to alpha * (1 - 1/log2(n + 2)), below alpha for ever. The first gets 37 % of
    alpha, the tenth 1 %, the hundredth 0.03 %: slower than 1/k², which would starve late arrivals,
    and late arrivals are where an optimiser has learnt something.
    """
    _check(alpha, arrival, "arrival")
    before, after = math.log(arrival + 1), math.log(arrival + 2)
    # The difference of the two fractions, without the digits that subtracting them loses.
    return alpha * math.log(2) * math.log1p(1 / (arrival + 1)) / (before * after)


def share(alpha: float, count: int) -> float:
    """The level for each comparison of a family whose size is known beforehand: alpha / count."""
    _check(alpha, count, "count")
    return alpha / count


def _check(alpha: float, number: int, name: str) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, e.g. 0.05; got {alpha}")
    if number < 1:
        raise ValueError(f"{name} counts from 1; got {number}")
