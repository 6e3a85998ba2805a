"""Execution of tests in studies of several problems: by problem, or within fixed problems.

Each function returns a test result and the notes to be added to those of its finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.hypotheses.problem_units import BETWEEN_PROBLEMS
from fairtrial.study.report.comparison_results import TestResult
from fairtrial.study.report.fixed_problem_tests import (
    STRATIFIED_TESTS,
    has_replicates,
    run_within_problems,
)
from fairtrial.study.report.model_execution import (
    CORRELATIONS,
    MODELS,
    check_interaction_test,
    check_slope_test,
)
from fairtrial.study.report.model_tests import adjust_for_covariates
from fairtrial.study.report.pairing import find_imbalance
from fairtrial.study.report.problem_cells import (
    average_cells,
    average_problems,
    center_problems,
    describe_unit,
    problem_codes,
    problem_notes,
)
from fairtrial.study.report.problem_models import (
    is_split,
    run_correlation_by_problem,
    run_slope_by_problem,
    run_split_interaction,
    varies_within_problems,
)
from fairtrial.study.report.problem_tests import (
    run_interaction_by_problem,
    run_levels_by_problem,
)
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.report.subject_tests import require_subjects
from fairtrial.study.stats.by_problem import check_problem_count
from fairtrial.study.stats.finding import UntestableError, check_group_sizes, sample_sd

RunByRuns = Callable[[ComparisonSample, str], tuple[TestResult, Sequence[str]]]
"""Applies a named test with the rows of a sample as units."""


def run_by_problem(
    sample: ComparisonSample, name: str, run_by_runs: RunByRuns
) -> tuple[TestResult, Sequence[str]]:
    """Apply a test with problems as units: within problems if the levels vary there."""
    shape = sample.request.comparison.shape
    if not all(map(len, sample.values)):
        check_group_sizes(sample.values, sample.names)
    if sample_sd(sample.y) == 0:
        raise UntestableError(f"every value is {sample.y[0]:g}")
    if shape == "slope":
        check_slope_test(sample, name)
    if shape == "interaction":
        check_interaction_test(name)
    if not varies_within_problems(sample):
        return _run_between_problems(sample, name, run_by_runs)
    if name in MODELS:
        sample = adjust_for_covariates(sample)
    if name in CORRELATIONS:
        result, notes = run_correlation_by_problem(sample, name)
    elif shape == "slope":
        result, notes = run_slope_by_problem(sample)
    elif shape == "interaction" and is_split(sample):
        result, notes = run_split_interaction(sample)
    elif shape == "interaction":
        result, notes = run_interaction_by_problem(sample, name)
    else:
        result, notes = run_levels_by_problem(sample, name)
    result, subject_notes = require_subjects(sample, name, result)
    return result, (*notes, *subject_notes, *find_imbalance(sample))


def run_slope_over_problems(sample: ComparisonSample) -> tuple[TestResult, Sequence[str]]:
    """Test the slopes of problems in place of a mixed model with one slope for all."""
    result, notes = run_slope_by_problem(adjust_for_covariates(sample))
    note = (
        "a mixed model would take the slope as the same in all problems: it is estimated in each "
        "of them instead"
    )
    return result, (*notes, note)


def _run_between_problems(
    sample: ComparisonSample, name: str, run_by_runs: RunByRuns
) -> tuple[TestResult, Sequence[str]]:
    """Compare the means of problems that each have runs at one level only."""
    plan = sample.request.plan
    if name in MODELS and plan is not None and plan.covariates:
        raise UntestableError(
            f"each problem has runs at one level only: {name} with covariates is not made of the "
            "problems' means; mixed_effects is"
        )
    cells = average_cells(sample)
    check_problem_count(len(cells.names))
    means = average_problems(sample)
    for level, values in zip(means.names, means.values, strict=True):
        if len(values) < 2:
            raise UntestableError(
                f"'{level}' has runs of one problem only, and each problem has runs at one level: "
                "problems, not replicates, are what is missing"
            )
    result, _ = run_by_runs(means, BETWEEN_PROBLEMS.get(name, name))
    unit = describe_unit(cells, cells.counts.sum(axis=1) > 0)
    finding = replace(result.finding, method=f"{result.finding.method} of the problems' means")
    notes = (
        "each problem has runs at one level only, so that problems are compared with each other",
        *problem_notes(len(cells.names), 0),
    )
    return replace(result, finding=finding, unit=unit), notes


def run_in_these_problems(
    sample: ComparisonSample, name: str, run_by_runs: RunByRuns
) -> tuple[TestResult, Sequence[str]]:
    """Apply a test of a claim about exactly these problems: within problems, as strata."""
    count = len(problem_codes(sample)[0])
    about = f"the claim is about exactly these {count} problems, as the plan says"
    if sample.request.comparison.shape == "slope":
        name = "regression" if name in (DEFAULT_TEST, "equivalence") else name
    elif sample.request.comparison.shape == "levels":
        check_group_sizes(sample.values, sample.names)
        if name in STRATIFIED_TESTS and has_replicates(sample):
            result, notes = run_within_problems(sample, name)
            return result, (about, *notes, *find_imbalance(sample))
        if name in STRATIFIED_TESTS:
            result, notes = run_levels_by_problem(sample, name)
            why = "without replicates that differ, problems are the only measure of error"
            return result, (about, why, *notes, *find_imbalance(sample))
    if name in CORRELATIONS:
        sample = center_problems(sample)
        about += "; each problem's mean is subtracted"
    result, notes = run_by_runs(sample, name)
    return result, (about, *notes)
