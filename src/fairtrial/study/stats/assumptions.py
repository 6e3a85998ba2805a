"""Notes on what a test assumes and the data may not have: no test is changed by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairtrial.study.stats.anova import MAX_SD_RATIO
from fairtrial.study.stats.finding import sample_sd, suppress_warnings

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

COCHRAN_FACTOR = 25.0
"""Means of more values than this times the squared skewness are nearly normally distributed."""
MAX_SKEWNESS = 1.0
MIN_SHAPE_SIZE = 8
"""Fewer values don't show skewness or outliers."""
OUTLIER_DISTANCE = 3.0
"""Outliers lie further from the quartiles, in interquartile ranges (Tukey's outer fences)."""
MAX_TIED = 0.5


def mean_notes(groups: Sequence[Values], names: Sequence[str]) -> list[str]:
    """Return notes on skewness, outliers and unequal variances for a test of means.

    Args:
        groups: values of each group.
        names: names of the groups.
    """
    with suppress_warnings():
        return [
            *_skewness_notes(groups, names),
            *_outlier_notes(groups, names),
            *_spread_notes(groups, names),
        ]


def rank_notes(groups: Sequence[Values]) -> list[str]:
    """Return a note on ties for a test of ranks."""
    import numpy as np

    values = np.concatenate(list(groups))
    _, counts = np.unique(values, return_counts=True)
    tied = int(counts[counts > 1].sum())
    if tied <= MAX_TIED * len(values):
        return []
    return [f"{tied:,} of {len(values):,} values are tied: ranks tell them apart only in part"]


def _skewness_notes(groups: Sequence[Values], names: Sequence[str]) -> Iterator[str]:
    from scipy import stats

    skewed = [
        f"{name}: {skewness:.1f}"
        for group, name in zip(groups, names, strict=True)
        if len(group) >= MIN_SHAPE_SIZE and sample_sd(group) > 0
        if abs(skewness := float(stats.skew(group, bias=False))) > MAX_SKEWNESS
        and len(group) < COCHRAN_FACTOR * skewness**2
    ]
    if skewed:
        yield (
            f"values are skewed (skewness of {', '.join(skewed)}): with so few values p and "
            "interval of a mean are approximate"
        )


def _outlier_notes(groups: Sequence[Values], names: Sequence[str]) -> Iterator[str]:
    import numpy as np

    outliers = []
    for group, name in zip(groups, names, strict=True):
        if len(group) < MIN_SHAPE_SIZE:
            continue
        low, high = np.quantile(group, (0.25, 0.75))
        reach = OUTLIER_DISTANCE * (high - low)
        count = int(np.sum((group < low - reach) | (group > high + reach))) if reach > 0 else 0
        if count:
            outliers.append(f"{count:,} of {len(group):,} in {name}")
    if outliers:
        yield f"outliers ({', '.join(outliers)}) weigh heavily in a mean; medians are beside it"


def _spread_notes(groups: Sequence[Values], names: Sequence[str]) -> Iterator[str]:
    spreads = [(sample_sd(group), name) for group, name in zip(groups, names, strict=True)]
    (low, low_name), (high, high_name) = min(spreads), max(spreads)
    if len(spreads) > 1 and high > MAX_SD_RATIO * low:
        yield (f"standard deviations differ: {low:.3g} for {low_name}, {high:.3g} for {high_name}")
