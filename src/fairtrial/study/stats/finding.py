"""The result type of all statistical tests, and helpers that the tests share.

Every test takes finite numbers and returns a `Finding`. Data that a test cannot use raise
`UntestableError`, whose message a report can print. No result contains NaN.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Codes = NDArray[np.intp]

Alternative = Literal["two-sided", "greater", "less"]
"""The alternative hypothesis: any difference, one above zero, or one below zero."""
Interval = tuple[float, float]
IntervalFunction = Callable[[float], "Interval | None"]
"""Returns the interval at a confidence level."""

CONFIDENCE = 0.95
SKEWNESS_FACTOR = 10.0
NEEDS_STATSMODELS = 'needs `pip install "fairtrial[stats]"`'


class UntestableError(Exception):
    """The data do not allow the requested test; the message says why."""


LARGEST_P = "largest p"
"""The statistic of a claim that several tests must all show."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one statistical test.

    method: name of the test
    p: p value
    statistic_name, statistic: the test statistic (t, U, F, ...); None if it is infinite
    df: degrees of freedom of the statistic, if it has any
    estimate: estimated difference; None for tests of more than two groups
    estimate_of: the quantity that is estimated: difference of means, of medians, ...
    interval: two-sided 95% confidence interval of the estimate, also for one-sided tests
    bounds: two-sided 95% confidence interval of the difference of *means*, whatever is estimated;
        compared with the smallest effect of interest
    effect_name, effect_size, effect_interval: standardized effect size
    rank_direction: for rank tests, above 0 if the first group tends to larger values; medians may
        be equal or differ in the other direction; None where the estimate has the direction
    p_opposite: p value of the opposite alternative, for one-sided tests
    notes: assumptions and caveats that a reader should know
    bounds_df: degrees of freedom of the bounds, if they are not those of a t or F statistic
    interval_by, bounds_by: compute interval and bounds at other confidence levels; by default they
        are rescaled by quantiles of Student's t or of the normal distribution
    """

    method: str
    p: float
    statistic_name: str
    statistic: float | None
    df: tuple[float, ...] = ()
    estimate: float | None = None
    estimate_of: str = ""
    interval: Interval | None = None
    bounds: Interval | None = None
    effect_name: str = ""
    effect_size: float | None = None
    effect_interval: Interval | None = None
    rank_direction: float | None = None
    p_opposite: float | None = None
    notes: tuple[str, ...] = ()
    bounds_df: float | None = None
    interval_by: IntervalFunction | None = field(default=None, repr=False, compare=False)
    bounds_by: IntervalFunction | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not math.isfinite(self.p):
            raise UntestableError(f"{self.method} has no number for these values")
        for name in ("statistic", "estimate", "effect_size", "rank_direction", "p_opposite"):
            object.__setattr__(self, name, finite(getattr(self, name)))
        for name in ("interval", "bounds", "effect_interval"):
            object.__setattr__(self, name, finite_interval(getattr(self, name)))
        object.__setattr__(self, "p", float(self.p))
        object.__setattr__(self, "df", tuple(float(value) for value in self.df))

    def with_notes(self, *notes: str) -> Finding:
        """Return a copy with further notes; empty notes are dropped."""
        return replace(self, notes=(*self.notes, *(note for note in notes if note)))

    def interval_at(self, confidence: float) -> Interval | None:
        """Return the two-sided interval of the estimate at a confidence level."""
        if self.interval is None or confidence == CONFIDENCE:
            return self.interval
        if self.interval_by is not None:
            return finite_interval(self.interval_by(confidence))
        return rescale_interval(self.interval, self.interval_df, confidence)

    def bounds_at(self, confidence: float) -> Interval | None:
        """Return the two-sided interval of the difference of means at a confidence level."""
        if self.bounds is None or confidence == CONFIDENCE:
            return self.bounds
        if self.bounds_by is not None:
            return finite_interval(self.bounds_by(confidence))
        return rescale_interval(self.bounds, self.interval_df, confidence)

    @property
    def interval_df(self) -> float | None:
        """Degrees of freedom of the bounds; None if they are those of a normal distribution."""
        if self.bounds_df is not None:
            return self.bounds_df
        return self.df[-1] if self.df and self.statistic_name in ("t", "F") else None


def rescale_interval(interval: Interval, df: float | None, confidence: float) -> Interval:
    """Convert a symmetric 95% interval to another confidence level.

    Args:
        interval: the 95% interval.
        df: degrees of freedom of Student's t; None for the normal distribution.
        confidence: the new level.
    """
    from scipy import stats

    distribution = stats.norm() if df is None else stats.t(df)
    levels = (0.5 + confidence / 2, 0.5 + CONFIDENCE / 2)
    ratio = float(distribution.ppf(levels[0]) / distribution.ppf(levels[1]))
    middle, half = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2
    return (middle - ratio * half, middle + ratio * half)


def finite(value: Any) -> float | None:
    """Convert a number to a float; return None for None, NaN and infinity."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def finite_interval(interval: Any) -> Interval | None:
    """Convert an interval to a pair of floats; return None unless both ends are finite."""
    if interval is None:
        return None
    low, high = (float(end) for end in interval)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Suppress warnings of numerical libraries inside the block."""
    import numpy as np

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def require_statsmodels() -> None:
    """Raise `UntestableError` with the install command if statsmodels is not installed."""
    try:
        import statsmodels  # noqa: F401
    except ImportError:
        raise UntestableError(NEEDS_STATSMODELS) from None


def has_statsmodels() -> bool:
    """Return whether statsmodels is installed."""
    try:
        require_statsmodels()
    except UntestableError:
        return False
    return True


def sample_sd(values: Values) -> float:
    """Compute the sample standard deviation.

    Returns:
        The standard deviation; 0 for fewer than two values, and if values differ only by rounding.
    """
    import numpy as np

    if len(values) < 2:
        return 0.0
    with suppress_warnings():
        deviation = float(np.std(values, ddof=1))
        # 0.1 + 0.2 and 0.3 count as the same value.
        return 0.0 if deviation <= 1e-12 * float(np.max(np.abs(values))) else deviation


def pooled_sd(groups: Sequence[Values]) -> float:
    """Compute the pooled within-group standard deviation; 0 if no group has two values."""
    df = sum(len(group) - 1 for group in groups if len(group) > 1)
    if df < 1:
        return 0.0
    squares = math.fsum((len(group) - 1) * sample_sd(group) ** 2 for group in groups)
    return math.sqrt(squares / df) if math.isfinite(squares) else 0.0


def check_group_sizes(groups: Sequence[Values], names: Sequence[str] = ()) -> None:
    """Raise `UntestableError` if a group has fewer than two values.

    Args:
        groups: values of each group.
        names: names of the groups for the message; by default they are numbered.
    """
    for index, group in enumerate(groups):
        name = f"'{names[index]}'" if names else f"group {index + 1}"
        if len(group) < 2:
            count = "no runs" if len(group) == 0 else "one run"
            raise UntestableError(f"{name} has {count} with a value; a test needs 2 or more")


def check_variation(groups: Sequence[Values]) -> None:
    """Raise `UntestableError` if no group has any within-group variation."""
    if any(sample_sd(group) > 0 for group in groups):
        return
    constants = [float(group[0]) for group in groups]
    if max(constants) - min(constants) <= 1e-12 * max(map(abs, constants)):
        raise UntestableError(f"every value is {constants[0]:g}")
    listed = ", ".join(f"{value:g}" for value in constants)
    raise UntestableError(f"the values don't vary within the groups ({listed})")


def check_skewness(groups: Sequence[Values]) -> None:
    """Raise `UntestableError` if values are too skewed for their number to show equal means.

    A few rare large values decide about the mean of a skewed distribution, and a sample that lacks
    them has a small variance, too: it looks equivalent. By simulation of lognormal values there are
    too many false positives below 10 times the squared skewness.
    """
    from scipy import stats

    for group in groups:
        if len(group) < 3 or sample_sd(group) == 0:
            continue
        with suppress_warnings():
            skewness = float(stats.skew(group, bias=False))
        needed = SKEWNESS_FACTOR * skewness**2
        if len(group) < needed:
            raise UntestableError(
                f"the values are too skewed to show that means are equivalent: a skewness of "
                f"{skewness:.2g} takes {needed:.0f} values, and a group has {len(group)}"
            )


def t_inference(
    estimate: float, error: float, df: float, alternative: Alternative
) -> tuple[float, float | None, Interval]:
    """Test an estimate against zero by Student's t distribution.

    Args:
        estimate: the estimated quantity.
        error: its standard error.
        df: degrees of freedom of the standard error.
        alternative: the alternative hypothesis.

    Returns:
        The p value, the p value of the opposite one-sided alternative (None if two-sided), and
        the two-sided 95% confidence interval.

    Raises:
        UntestableError: if the standard error is not positive.
    """
    from scipy import stats

    if not error > 0:
        raise UntestableError("the values don't vary around the model")
    t = estimate / error
    tails = {"two-sided": 2 * stats.t.sf(abs(t), df), "greater": stats.t.sf(t, df)}
    tails["less"] = stats.t.cdf(t, df)
    opposite = {"greater": tails["less"], "less": tails["greater"]}.get(alternative)
    interval = stats.t.interval(CONFIDENCE, df, estimate, error)
    return float(tails[alternative]), opposite, interval


def tost_p_value(estimate: float, error: float, df: float, margin: float) -> float:
    """Compute the p value of two one-sided t tests (TOST) that an estimate lies within ±margin.

    Raises:
        UntestableError: if the standard error is not positive.
    """
    from scipy import stats

    if not error > 0:
        raise UntestableError("the values don't vary around the model")
    above = stats.t.sf((estimate + margin) / error, df)
    below = stats.t.cdf((estimate - margin) / error, df)
    return float(max(above, below))
