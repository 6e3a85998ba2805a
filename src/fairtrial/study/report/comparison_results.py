"""The result of a requested test: the finding, its margin, and follow-up comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.study.hypotheses.outcome_types import is_binary_outcome
from fairtrial.study.power.proportions import EVEN_SD
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.finding import CONFIDENCE, Finding, Interval, rescale_interval
from fairtrial.study.stats.named_tests import missing_data_policy

MIN_SD_DF = 4
"""Fewer degrees of freedom than this give no usable standard deviation of an outcome."""

SWITCHES = ("true", "false", "yes", "no", "on", "off", "with", "without", "none")
AMOUNTS = ("high", "low", "more", "less", "small", "large", "short", "long")
VAGUE_LEVELS = frozenset([*SWITCHES, *AMOUNTS])
"""Levels that are named together with their factor."""


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
class ProblemEffect:
    """The effect in one problem, from its runs alone.

    problem: the problem
    n: number of its runs in each group
    estimate: the estimated difference
    interval: its 95% confidence interval; None without replicates that differ
    """

    problem: str
    n: tuple[int, ...]
    estimate: float
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a requested test.

    finding: the statistical result
    unit: unit of analysis: problems with their runs, runs, or pairs of runs
    difference: the difference that is estimated
    margin: the smallest effect of interest, if there is one
    details_title, details: heading and list of follow-up comparisons
    is_omnibus: whether more than two groups were tested at once
    notes: caveats for the reader
    by_problem: the effect in each problem
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
    by_problem: tuple[ProblemEffect, ...] = ()


def outcome_sd(request: TestRequest) -> float:
    """Return the standard deviation of an outcome's runs within conditions and agents.

    It is the same for all claims on the outcome. 0 if too few runs share a condition.
    """
    import numpy as np

    table = request.table
    values = table.values(request.outcome.name)
    if missing_data_policy(request.outcome.missing_data_policy) == "zero":
        values = np.nan_to_num(values)
    rows = np.flatnonzero(~np.isnan(values))
    keys = np.stack([table.column("condition")[rows], table.column("agent")[rows]])
    cell = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
    counts = np.bincount(cell)
    df = len(rows) - len(counts)
    if df < MIN_SD_DF:
        return 0.0
    residuals = values[rows] - (np.bincount(cell, weights=values[rows]) / counts)[cell]
    sd = float(np.sqrt(np.sum(residuals**2) / df))
    return 0.0 if sd <= 1e-12 * float(np.max(np.abs(values[rows]))) else sd


def find_margin(request: TestRequest, sd: float) -> Margin | None:
    """Return the smallest effect of interest in the units of the outcome; None without one.

    sd: standard deviation within the compared groups, used if that of the outcome is unknown
    """
    effect = request.hypothesis.minimum_effect_of_interest
    if effect is None:
        return None
    name = request.outcome.name
    if request.outcome.sd is not None:
        return Margin(effect, f"{effect:g} in {name}'s own units, as its sd is stated")
    common_sd = outcome_sd(request)
    sd = common_sd or sd
    if not sd:
        return None
    is_binary = is_binary_outcome(request.study, name)
    planned = f"; before there were any, {EVEN_SD:g} was assumed" if is_binary else ""
    within = "conditions" if common_sd else "groups"
    text = f"the runs' sd within {within} is {sd:.3g}{planned}"
    return Margin(effect * sd, f"d = {effect:g}, here {effect * sd:.3g} ({text})")


def describe_difference(sample: ComparisonSample) -> str:
    """Describe the difference of the first two groups, as `first − second`."""
    variables = sample.request.comparison.variables
    first, second = name_levels(variables, sample.names[:2])
    return f"{first} − {second}"


def describe_interaction(request: TestRequest) -> str:
    """Describe the difference of two differences: `(a − b at x) − (the same at y)`."""
    (first, second), columns = name_cells(request)
    return f"({first} − {second} at {columns[0]}) − (the same at {columns[1]})"


def name_cells(request: TestRequest) -> tuple[list[str], list[str]]:
    """Return the names of the levels of both variables of an interaction."""
    names = request.comparison.variables
    rows, columns = (
        name_levels(names[index : index + 1], request.levels(index)) for index in (0, 1)
    )
    return rows, columns


def name_levels(variables: Sequence[str], levels: Sequence[str]) -> list[str]:
    """Return the names of levels for use in a sentence.

    Numbers and words that say nothing by themselves, such as true or high, get the name of their
    variable, or the last part of a dotted one: a difference of numbers would look like arithmetic,
    and `high is higher than low` like a matter of course.
    """
    if len(variables) == 1 and all(
        _is_number(level) or level.lower() in VAGUE_LEVELS for level in levels
    ):
        variable = variables[0].rpartition(".")[2]
        return [f"{variable} {level}" for level in levels]
    return list(levels)


def _is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
