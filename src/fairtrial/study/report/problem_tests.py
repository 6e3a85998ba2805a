"""Tests by problem: of levels and interactions that vary within problems.

Each function returns a test result and the notes to be added to those of its finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.hypotheses.outcome_types import BINARY_TYPES
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.hypotheses.problem_units import RANK_TESTS, RATE_TESTS
from fairtrial.study.report.comparison_results import (
    FollowUpComparison,
    Margin,
    TestResult,
    describe_difference,
    describe_interaction,
    find_margin,
    name_cells,
    outcome_sd,
)
from fairtrial.study.report.follow_up_tests import (
    Compare,
    TitledComparisons,
    compare_pairs,
    describe_strata,
    equivalence_margin,
)
from fairtrial.study.report.problem_cells import (
    ProblemCells,
    average_cells,
    describe_unit,
    problem_notes,
)
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.anova import friedman_test
from fairtrial.study.stats.by_problem import (
    MIN_PROBLEMS,
    check_problem_count,
    contrast_columns,
    problem_anova,
    problem_rank_test,
    problem_t_test,
    sign_flip_test,
)
from fairtrial.study.stats.finding import LARGEST_P, Finding, UntestableError, pooled_sd
from fairtrial.study.stats.multiplicity import adjust_p
from fairtrial.study.stats.proportions import is_binary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Values

TWO_LEVEL_TESTS = ("barnard_exact", "mcnemar")
ContrastTest = Callable[["Values"], Finding]
"""A test that the mean of the problems' contrasts is 0."""


def is_yes_no(sample: ComparisonSample) -> bool:
    """Return whether the outcome is yes or no, as declared or by its values."""
    declared = sample.request.outcome.expected_type.strip().lower() in BINARY_TYPES
    return declared or is_binary(sample.y)


def run_levels_by_problem(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Compare levels that vary within problems.

    Raises `UntestableError` if too few problems have runs at all levels.
    """
    request, count = sample.request, len(sample.names)
    if name in RATE_TESTS and not is_yes_no(sample):
        raise UntestableError(f"{name} compares rates, and the values are not all 0 or 1")
    if name in TWO_LEVEL_TESTS and count > 2:
        raise UntestableError(f"{name} compares two levels; there are {count}")
    cells = average_cells(sample)
    used = complete_problems(cells)
    table = cells.means[used]
    margin = find_margin(request, pooled_sd(sample.values))
    by_rank = name in RANK_TESTS and not request.is_equivalence
    test = contrast_test(sample, name, margin)
    compare = _rank_compare(sample) if by_rank else _mean_compare(test)
    unit = describe_unit(cells, used)
    notes = problem_notes(len(table), int((~used).sum()))
    if count == 2:
        title, details = describe_strata(sample)
        finding = compare(*table.T)
        if finding.interval is None and not by_rank:
            notes.append(
                f"{len(table)} problems are too few for an interval of 95% by permutation: no "
                "result could be significant in a two-sided test"
            )
        result = TestResult(finding, unit, describe_difference(sample), margin, title, details)
        return result, notes
    title, details = compare_pairs(sample, compare, list(table.T), is_paired=True)
    if request.is_equivalence:
        finding = _combine_equivalence(details)
    elif by_rank:
        finding = friedman_test(table)
        finding = replace(finding, method=f"{finding.method} of the means of {len(table)} problems")
    else:
        method = f"repeated-measures analysis of variance by problem ({len(table)} problems)"
        finding = problem_anova(table @ contrast_columns(count), method)
    title = f"{title}, by problem"
    return TestResult(finding, unit, "", margin, title, details, is_omnibus=True), notes


def complete_problems(cells: ProblemCells) -> NDArray[np.bool_]:
    """Return which problems have runs at all levels.

    Raises `UntestableError` if there are too few of them.
    """
    used, total = cells.complete, len(cells.names)
    count = int(used.sum())
    if count < MIN_PROBLEMS <= total:
        raise UntestableError(
            f"{count} of {total} problems have runs at all compared levels, and the others at some "
            f"only: a comparison within problems needs {MIN_PROBLEMS} or more; mixed_effects can "
            "use all of them"
        )
    check_problem_count(count)
    return used


def contrast_test(sample: ComparisonSample, name: str, margin: Margin | None) -> ContrastTest:
    """Return the test of the problems' contrasts that a named test stands for."""
    request = sample.request
    uses_rates = name in RATE_TESTS or (name == DEFAULT_TEST and is_yes_no(sample))
    # Rates of few runs are far from normal, and equal in many problems.
    test = sign_flip_test if uses_rates else problem_t_test
    sd = outcome_sd(request) or pooled_sd(sample.values)
    size = equivalence_margin(request, margin)
    return lambda contrasts: test(contrasts, request.alternative, size, sd)


def _mean_compare(test: ContrastTest) -> Compare:
    return lambda left, right: test(left - right)


def _rank_compare(sample: ComparisonSample) -> Compare:
    return lambda left, right: problem_rank_test(left, right, sample.request.alternative)


def _combine_equivalence(details: Sequence[FollowUpComparison]) -> Finding:
    """Return the test that all pairs of levels are equivalent: its p is the largest one."""
    p_values = [detail.p for detail in details if detail.p is not None]
    if len(p_values) < len(details):
        raise UntestableError("some pairs of levels can't be compared")
    return Finding(
        method="two one-sided tests (TOST) of all pairs of levels, by problem",
        p=max(p_values),
        statistic_name=LARGEST_P,
        statistic=max(p_values),
    )


def run_interaction_by_problem(
    sample: ComparisonSample, name: str
) -> tuple[TestResult, Sequence[str]]:
    """Test the interaction of two variables that both vary within problems.

    Raises `UntestableError` if too few problems have runs at all combinations of levels.
    """
    import numpy as np

    request = sample.request
    rows, columns = request.levels(0), request.levels(1)
    cells = average_cells(sample)
    used = complete_problems(cells)
    means = cells.means[used].reshape(-1, len(rows), len(columns))
    margin = find_margin(request, pooled_sd(sample.values))
    test = contrast_test(sample, name, margin)
    is_omnibus = len(sample.names) > 4
    if is_omnibus:
        contrasts = np.kron(contrast_columns(len(rows)), contrast_columns(len(columns)))
        method = f"interaction in an analysis of variance by problem ({len(means)} problems)"
        finding = problem_anova(cells.means[used] @ contrasts, method)
    else:
        finding = test(interaction_contrasts(means))
    title, details = _simple_effects(sample, means)
    result = TestResult(
        finding,
        describe_unit(cells, used, "combination"),
        "" if is_omnibus else describe_interaction(request),
        margin,
        title,
        details,
        is_omnibus,
    )
    return result, problem_notes(len(means), int((~used).sum()))


def interaction_contrasts(means: Values) -> Values:
    """Return the difference of differences of each problem.

    means: problems × two levels × two levels
    """
    contrasts: Values = means[:, 0, 0] - means[:, 1, 0] - (means[:, 0, 1] - means[:, 1, 1])
    return contrasts


def _simple_effects(sample: ComparisonSample, means: Values) -> TitledComparisons:
    """Compare two levels at each level of a moderator, by problem."""
    rows, columns = name_cells(sample.request)
    if len(rows) != 2:
        return "", ()
    effects = [means[:, 0, index] - means[:, 1, index] for index in range(len(columns))]
    findings = [_try_t_test(contrasts) for contrasts in effects]
    p_values = iter(adjust_p([finding.p for finding in findings if finding], "holm"))
    details = tuple(
        FollowUpComparison(
            f"{rows[0]} − {rows[1]} at {column}",
            (len(means),),
            float(contrasts.mean()),
            finding.interval if finding else None,
            finding.bounds if finding else None,
            next(p_values) if finding else None,
        )
        for column, contrasts, finding in zip(columns, effects, findings, strict=True)
    )
    return "Simple effects (by problem, two-sided, p adjusted by Holm)", details


def _try_t_test(contrasts: Values) -> Finding | None:
    """Return the two-sided t test of the problems' contrasts; None if they don't allow it."""
    try:
        return problem_t_test(contrasts)
    except UntestableError:
        return None
