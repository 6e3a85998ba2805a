"""Execution of tests by models: linear and mixed models, slopes, interactions, correlations.

Each function returns a test result and the notes to be added to those of its finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.report.comparison_results import (
    TestResult,
    describe_difference,
    describe_interaction,
    find_margin,
)
from fairtrial.study.report.follow_up_tests import (
    TitledComparisons,
    compare_pairs,
    describe_strata,
    equivalence_margin,
    simple_effects,
    two_group_test,
)
from fairtrial.study.report.model_tests import (
    fit_factorial,
    fit_mixed,
    fit_mixed_pair,
    fit_regression,
    level_range,
    numeric_levels,
)
from fairtrial.study.report.pairing import find_caveats
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.finding import Finding, UntestableError, pooled_sd
from fairtrial.study.stats.linear import correlation, fit_slope
from fairtrial.study.stats.two_groups import welch_t_test

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes

MODELS = {
    "regression": fit_regression,
    "factorial_anova": fit_factorial,
    "mixed_effects": fit_mixed,
}
CORRELATIONS = ("correlation", "spearman")


def run_model_test(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Compare levels by a linear or mixed model."""
    request, is_omnibus = sample.request, len(sample.names) > 2
    if request.is_equivalence and is_omnibus:
        raise UntestableError(f"{name} doesn't test the equivalence of more than two levels")
    margin = find_margin(request, pooled_sd(sample.values))
    finding = MODELS[name](sample, request.alternative, equivalence_margin(request, margin))
    if is_omnibus:
        title, details = _compare_modeled_levels(sample, name)
    else:
        title, details = describe_strata(sample)
    difference = "" if is_omnibus else describe_difference(sample)
    notes = find_caveats(sample, is_paired=False, is_mixed=name == "mixed_effects")
    return TestResult(finding, "run", difference, margin, title, details, is_omnibus), notes


def _compare_modeled_levels(sample: ComparisonSample, name: str) -> TitledComparisons:
    """Compare two levels at a time: by mixed models of their runs, else by Welch's test."""
    import numpy as np

    if name != "mixed_effects":
        compare = two_group_test(sample.request, welch_t_test, None)
        title, details = compare_pairs(sample, compare, sample.values)
        return f"{title}, by Welch's t without the model", details

    def compare_rows(left: Codes, right: Codes) -> Finding:
        return fit_mixed_pair(sample, left, right, sample.request.alternative)

    rows = [np.flatnonzero(sample.group == group) for group in range(len(sample.names))]
    title, details = compare_pairs(sample, compare_rows, rows)
    untested = tuple(
        detail if detail.p is not None else replace(detail, estimate=None) for detail in details
    )
    return f"{title}, by mixed models of two levels at a time", untested


def run_correlation(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Test the correlation of the outcome with a numeric variable."""
    request = sample.request
    if request.is_equivalence:
        raise UntestableError("a correlation doesn't test equivalence")
    by_rank = name == "spearman"
    finding = correlation(numeric_levels(sample), sample.y, request.alternative, by_rank=by_rank)
    difference = f"correlation with {request.comparison.variables[0]}"
    return TestResult(finding, "run", difference), find_caveats(sample, is_paired=False)


def check_slope_test(sample: ComparisonSample, name: str) -> None:
    """Raise `UntestableError` if a test doesn't suit a variable that is sampled from a range."""
    if name not in (DEFAULT_TEST, "regression", "mixed_effects", "equivalence", *CORRELATIONS):
        variable = sample.request.comparison.variables[0]
        raise UntestableError(
            f"{name} compares groups, and '{variable}' is sampled from a range; use regression"
        )


def check_interaction_test(name: str) -> None:
    """Raise `UntestableError` if a test doesn't suit an interaction."""
    if name not in (DEFAULT_TEST, "equivalence", *MODELS):
        raise UntestableError(
            f"{name} doesn't test whether an effect depends on another factor; use factorial_anova"
        )


def run_slope_test(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Test the slope of the outcome over a numeric variable that is sampled from a range."""
    request = sample.request
    variable = request.comparison.variables[0]
    check_slope_test(sample, name)
    if name in CORRELATIONS:
        return run_correlation(sample, name)
    x, (low, high) = numeric_levels(sample), level_range(sample)
    margin = find_margin(request, fit_slope(x, sample.y, high - low).residual_sd)
    width = equivalence_margin(request, margin)
    if name in MODELS:
        finding = MODELS[name](sample, request.alternative, width)
    else:
        finding = fit_slope(x, sample.y, high - low, request.alternative, width).finding
    difference = f"{variable} = {high:g} − {variable} = {low:g}, on a straight line"
    notes = find_caveats(sample, is_paired=False, is_mixed=name == "mixed_effects")
    return TestResult(finding, "run", difference, margin), notes


def run_interaction_test(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Test the interaction of two variables."""
    request = sample.request
    check_interaction_test(name)
    name = "factorial_anova" if name in (DEFAULT_TEST, "equivalence") else name
    margin = find_margin(request, pooled_sd(sample.values))
    finding = MODELS[name](sample, request.alternative, equivalence_margin(request, margin))
    is_omnibus = len(sample.names) > 4
    title, details = simple_effects(sample)
    result = TestResult(
        finding,
        "run",
        "" if is_omnibus else describe_interaction(request),
        margin,
        title,
        details,
        is_omnibus,
    )
    return result, find_caveats(sample, is_paired=False, is_mixed=name == "mixed_effects")
