"""The result of a requested test: the finding, its margin, and follow-up comparisons."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.study.hypotheses.outcome_types import is_binary_outcome
from fairtrial.study.power.proportions import EVEN_SD
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.report.test_requests import TestRequest
from fairtrial.study.stats.finding import CONFIDENCE, Finding, Interval, rescale_interval


@dataclass(frozen=True, slots=True)
class Margin:
    """The smallest effect of interest.

    size: in the units of the outcome
    text: how it was stated and converted
    """

    size: float
    text: str


@dataclass(frozen=True, slots=True)
class FollowUpComparison:
    """A comparison within a test: two of several levels, or the effect in one stratum.

    label: what is compared
    n: number of runs in each group, or of pairs
    estimate, interval: estimated difference and its confidence interval, 95% simultaneous over all
        comparisons of the test
    bounds: 95% confidence interval of the difference of means
    p: p value, adjusted by Holm's method over all comparisons of the test; None if not tested
    p_opposite: the same for the opposite alternative
    estimate_of: the quantity that is estimated
    bounds_df: degrees of freedom of the bounds; None if they are those of a normal distribution
    """

    label: str
    n: tuple[int, ...]
    estimate: float | None
    interval: Interval | None = None
    bounds: Interval | None = None
    p: float | None = None
    p_opposite: float | None = None
    estimate_of: str = "difference of means"
    bounds_df: float | None = None

    def bounds_at(self, confidence: float) -> Interval | None:
        """Return the interval of the difference of means at a confidence level."""
        if self.bounds is None or confidence == CONFIDENCE:
            return self.bounds
        return rescale_interval(self.bounds, self.bounds_df, confidence)


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a requested test.

    finding: the statistical result
    unit: unit of analysis: runs, or pairs of runs
    difference: the difference that is estimated
    margin: the smallest effect of interest, if there is one
    details_title, details: heading and list of follow-up comparisons
    is_omnibus: whether more than two groups were tested at once
    notes: caveats for the reader
    """

    __test__ = False  # not a class of tests for pytest

    finding: Finding
    unit: str
    difference: str = ""
    margin: Margin | None = None
    details_title: str = ""
    details: tuple[FollowUpComparison, ...] = ()
    is_omnibus: bool = False
    notes: tuple[str, ...] = ()


def find_margin(request: TestRequest, sd: float) -> Margin | None:
    """Return the smallest effect of interest in the units of the outcome; None without one.

    sd: within-group standard deviation; the unit of the effect unless the outcome states an sd
    """
    effect = request.hypothesis.minimum_effect_of_interest
    if effect is None:
        return None
    name = request.outcome.name
    if request.outcome.sd is not None:
        return Margin(effect, f"{effect:g} in {name}'s own units, as its sd is stated")
    if not sd:
        return None
    is_binary = is_binary_outcome(request.study, name)
    planned = f"; before there were any, {EVEN_SD:g} was assumed" if is_binary else ""
    text = f"the runs' sd within groups is {sd:.3g}{planned}"
    return Margin(effect * sd, f"d = {effect:g}, here {effect * sd:.3g} ({text})")


def describe_difference(sample: ComparisonSample) -> str:
    """Describe the difference of the first two groups, as `first − second`.

    Numeric levels get the name of their variable, so that it doesn't look like arithmetic.
    """
    first, second = sample.names[:2]
    variables = sample.request.comparison.variables
    if len(variables) == 1 and _is_number(first) and _is_number(second):
        return f"{variables[0]} {first} − {variables[0]} {second}"
    return f"{first} − {second}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
