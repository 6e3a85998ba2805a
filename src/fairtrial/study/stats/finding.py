"""What a test finds, and why some tests can't be made.

All tests take finite numbers and give a `Finding`; numbers that no test can use raise
`UntestableError`, which says why in words that a report can print. No `nan` ever leaves here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Codes = NDArray[np.intp]

Alternative = Literal["two-sided", "greater", "less"]
"""Which difference is looked for: any, one above zero, or one below."""
Interval = tuple[float, float]

CONFIDENCE = 0.95
NEEDS_STATSMODELS = 'needs `pip install "fairtrial[stats]"`'


class UntestableError(Exception):
    """These numbers can't be tested in this way."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a test says of some numbers.

    method: the test, in words
    p: the probability of such numbers, or more extreme ones, were there no difference
    statistic_name, statistic: what the test computes: t, U, F, ...; None where that is infinite
    df: its degrees of freedom, where it has any
    estimate: the size of the difference; None for tests of several groups at once
    estimate_of: what that is the size of: a difference of means, of medians, ...
    interval: its 95% confidence interval, both sides, whatever the test's
    bounds: the same of the difference of *means*, whatever the estimate is of: a smallest
        difference of interest is held against it
    effect_name, effect_size, effect_interval: the difference on a scale without units
    leaning: above 0 if the first group tends to larger numbers, for tests of ranks: medians may be
        the same, or lie the other way; None where the estimate says so
    p_opposite: p of the opposite claim, for one-sided tests
    notes: what to know before believing it
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
    leaning: float | None = None
    p_opposite: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.p):
            raise UntestableError(f"{self.method} has no number for these values")
        for name in ("statistic", "estimate", "effect_size", "leaning", "p_opposite"):
            object.__setattr__(self, name, finite(getattr(self, name)))
        for name in ("interval", "bounds", "effect_interval"):
            object.__setattr__(self, name, finite_interval(getattr(self, name)))
        object.__setattr__(self, "p", float(self.p))
        object.__setattr__(self, "df", tuple(float(value) for value in self.df))

    def noting(self, *notes: str) -> Finding:
        """The same with more to know about it."""
        return replace(self, notes=(*self.notes, *(note for note in notes if note)))


def finite(value: Any) -> float | None:
    """A plain finite number, or None."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def finite_interval(interval: Any) -> Interval | None:
    """A pair of plain finite numbers, or None."""
    if interval is None:
        return None
    low, high = (float(end) for end in interval)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


@contextmanager
def quiet() -> Iterator[list[str]]:
    """A block in which libraries' warnings are collected, not printed."""
    import numpy as np

    messages: list[str] = []
    with np.errstate(all="ignore"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield messages
        finally:
            messages.extend(str(warning.message) for warning in caught)


def need_statsmodels() -> None:
    """Refuse, with what to install, where statsmodels isn't there."""
    try:
        import statsmodels  # noqa: F401
    except ImportError:
        raise UntestableError(NEEDS_STATSMODELS) from None


def has_statsmodels() -> bool:
    """Whether tests that need statsmodels can be made."""
    try:
        need_statsmodels()
    except UntestableError:
        return False
    return True


def spread(values: Values) -> float:
    """The standard deviation; 0 for fewer than two numbers, and where rounding is all there is."""
    import numpy as np

    if len(values) < 2:
        return 0.0
    with quiet():
        deviation = float(np.std(values, ddof=1))
        # 0.1 + 0.2 and 0.3 are not two values.
        return 0.0 if deviation <= 1e-12 * float(np.max(np.abs(values))) else deviation


def pooled_sd(groups: Sequence[Values]) -> float:
    """The standard deviation of a run within its group, over all groups; 0 if there is none."""
    freedom = sum(len(group) - 1 for group in groups if len(group) > 1)
    if freedom < 1:
        return 0.0
    squares = math.fsum((len(group) - 1) * spread(group) ** 2 for group in groups)
    return math.sqrt(squares / freedom) if math.isfinite(squares) else 0.0


def check_groups(groups: Sequence[Values], names: Sequence[str] = ()) -> None:
    """Refuse groups that say nothing about how much runs vary."""
    for index, group in enumerate(groups):
        name = f"'{names[index]}'" if names else f"group {index + 1}"
        if len(group) < 2:
            count = "no runs" if len(group) == 0 else "one run"
            raise UntestableError(f"{name} has {count} with a value; a test needs 2 or more")


def check_varies(groups: Sequence[Values]) -> None:
    """Refuse groups within which all runs are alike: there is nothing to measure them against."""
    if any(spread(group) > 0 for group in groups):
        return
    firsts = [float(group[0]) for group in groups]
    if max(firsts) - min(firsts) <= 1e-12 * max(map(abs, firsts)):
        raise UntestableError(f"every value is {firsts[0]:g}")
    shown = ", ".join(f"{value:g}" for value in firsts)
    raise UntestableError(f"the values don't vary within the groups ({shown})")


def from_estimate(
    estimate: float, error: float, df: float, alternative: Alternative
) -> tuple[float, float | None, Interval]:
    """p, p of the opposite, and the interval of an estimate with a standard error, by t."""
    from scipy import stats

    if not error > 0:
        raise UntestableError("the values don't vary around the model")
    t = estimate / error
    tails = {"two-sided": 2 * stats.t.sf(abs(t), df), "greater": stats.t.sf(t, df)}
    tails["less"] = stats.t.cdf(t, df)
    opposite = {"greater": tails["less"], "less": tails["greater"]}.get(alternative)
    interval = stats.t.interval(CONFIDENCE, df, estimate, error)
    return float(tails[alternative]), opposite, interval


def equivalence_p(estimate: float, error: float, df: float, margin: float) -> float:
    """p of two one-sided t tests that an estimate lies within ±margin."""
    from scipy import stats

    if not error > 0:
        raise UntestableError("the values don't vary around the model")
    above = stats.t.sf((estimate + margin) / error, df)
    below = stats.t.cdf((estimate - margin) / error, df)
    return float(max(above, below))
