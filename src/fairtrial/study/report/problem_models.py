"""Tests by problem of slopes, of correlations, and of effects that differ between problems.

Each function returns a test result and the notes to be added to those of its finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.report.comparison_results import (
    TestResult,
    describe_interaction,
    find_margin,
)
from fairtrial.study.report.follow_up_tests import Compare, two_group_test
from fairtrial.study.report.model_tests import level_range, numeric_levels
from fairtrial.study.report.problem_cells import (
    ProblemCells,
    average_cells,
    describe_unit,
    problem_codes,
    problem_notes,
)
from fairtrial.study.report.problem_tests import contrast_test
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.anova import classic_anova, welch_anova
from fairtrial.study.stats.by_problem import check_problem_count, problem_t_test
from fairtrial.study.stats.finding import (
    Finding,
    UntestableError,
    pooled_sd,
    sample_sd,
)
from fairtrial.study.stats.linear import fit_slope
from fairtrial.study.stats.two_groups import welch_t_test

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

RISE = "rise of the line over the range, averaged over problems"


def varies_within_problems(sample: ComparisonSample) -> bool:
    """Return whether some problem has runs at several values of the compared variables."""
    import numpy as np

    _, problem = problem_codes(sample)
    return any(
        len(np.unique(part[problem == code])) > 1
        for part in sample.parts
        for code in np.unique(problem)
    )


def run_slope_by_problem(sample: ComparisonSample) -> tuple[TestResult, Sequence[str]]:
    """Test the mean of the problems' slopes over a numeric variable.

    Raises `UntestableError` if too few problems have runs at several values of the variable.
    """
    request = sample.request
    variable = request.comparison.variables[0]
    x, (low, high) = numeric_levels(sample), level_range(sample)
    margin = find_margin(request, fit_slope(x, sample.y, high - low).residual_sd)
    slopes = [_slope(x[runs], sample.y[runs]) for runs in _runs_by_problem(sample, x)]
    check_problem_count(len(slopes))
    finding = contrast_test(sample, "regression", margin)(_to_array(slopes) * (high - low))
    method = finding.method.replace("differences", "slopes")
    finding = replace(finding, method=method, estimate_of=RISE)
    difference = f"{variable} = {high:g} − {variable} = {low:g}, on a straight line"
    cells = average_cells(sample)
    unit = describe_unit(cells, cells.complete)
    notes = problem_notes(len(slopes), len(cells.names) - len(slopes))
    return TestResult(finding, unit, difference, margin), notes


def run_correlation_by_problem(
    sample: ComparisonSample, name: str
) -> tuple[TestResult, Sequence[str]]:
    """Test the mean of the problems' correlations with a numeric variable.

    Raises `UntestableError` if too few problems have values that vary.
    """
    from scipy import stats

    request = sample.request
    if request.is_equivalence:
        raise UntestableError("a correlation doesn't test equivalence")
    x = numeric_levels(sample)
    correlate = stats.spearmanr if name == "spearman" else stats.pearsonr
    values = [
        float(correlate(x[runs], sample.y[runs]).statistic)
        for runs in _runs_by_problem(sample, x)
        if len(runs) > 2 and sample_sd(sample.y[runs]) > 0
    ]
    check_problem_count(len(values))
    finding = problem_t_test(_to_array(values), request.alternative)
    low, high = finding.interval or (-1.0, 1.0)
    finding = replace(
        finding,
        method=finding.method.replace("differences", "correlations"),
        estimate=None,
        estimate_of="",
        interval=None,
        bounds=None,
        effect_name=f"mean of the problems' {'Spearman ρ' if name == 'spearman' else 'Pearson r'}",
        effect_size=finding.estimate,
        effect_interval=(max(-1.0, low), min(1.0, high)),
    )
    cells = average_cells(sample)
    unit = describe_unit(cells, cells.counts.sum(axis=1) > 0)
    difference = f"correlation with {request.comparison.variables[0]}"
    notes = problem_notes(len(values), len(cells.names) - len(values))
    return TestResult(finding, unit, difference), notes


def _runs_by_problem(sample: ComparisonSample, x: Values) -> list[Codes]:
    """Return the runs of each problem that has several values of x."""
    import numpy as np

    names, problem = problem_codes(sample)
    runs = [np.flatnonzero(problem == code) for code in range(len(names))]
    return [chosen for chosen in runs if sample_sd(x[chosen]) > 0]


def _slope(x: Values, y: Values) -> float:
    centered = x - x.mean()
    return float(centered @ y / (centered @ centered))


def _to_array(values: Sequence[float]) -> Values:
    import numpy as np

    return np.asarray(values)


def is_split(sample: ComparisonSample) -> bool:
    """Return whether one of two variables varies within problems, and the other only between."""
    return _find_between(sample) is not None


def _find_between(sample: ComparisonSample) -> int | None:
    """Return which of two variables has one level in each problem while the other varies."""
    import numpy as np

    _, problem = problem_codes(sample)
    varying = [
        any(len(np.unique(part[problem == code])) > 1 for code in np.unique(problem))
        for part in sample.parts
    ]
    return varying.index(False) if sorted(varying) == [False, True] else None


def run_split_interaction(sample: ComparisonSample) -> tuple[TestResult, Sequence[str]]:
    """Test whether an effect within problems differs between groups of problems.

    Raises `UntestableError` if the variable within problems has more than two levels.
    """
    request = sample.request
    between = _find_between(sample)
    rows, columns = request.levels(0), request.levels(1)
    inner, outer = (rows, columns) if between == 1 else (columns, rows)
    if len(inner) != 2:
        raise UntestableError(
            f"'{request.comparison.variables[1 - (between or 0)]}' has {len(inner)} levels within "
            "problems; name two of them by a contrast, or use mixed_effects"
        )
    cells = average_cells(sample)
    groups = _effects_by_group(cells, len(rows), len(columns), between == 1)
    count = sum(len(group) for group in groups)
    margin = find_margin(request, pooled_sd(sample.values))
    finding = _compare_effects(groups, two_group_test(request, welch_t_test, margin))
    is_omnibus = len(outer) > 2
    result = TestResult(
        replace(finding, method=f"{finding.method} of the effects in {count} problems"),
        describe_unit(cells, cells.counts.sum(axis=1) > 0, "combination"),
        "" if is_omnibus else describe_interaction(request),
        margin,
        is_omnibus=is_omnibus,
    )
    return result, problem_notes(count, len(cells.names) - count)


def _effects_by_group(
    cells: ProblemCells, rows: int, columns: int, is_column: bool
) -> list[Values]:
    """Return the effects of the problems in each group of problems.

    is_column: whether columns are the groups of problems
    """
    means = cells.means.reshape(-1, rows, columns)
    counts = cells.counts.reshape(-1, rows, columns)
    if not is_column:
        means, counts = means.swapaxes(1, 2), counts.swapaxes(1, 2)
    groups = []
    for index in range(means.shape[2]):
        used = (counts[:, :, index] > 0).all(axis=1)
        groups.append(means[used, 0, index] - means[used, 1, index])
    return groups


def _compare_effects(groups: Sequence[Values], compare: Compare) -> Finding:
    """Compare the effects of groups of problems: two by Welch's t, more by analysis of variance."""
    for group in groups:
        if len(group) < 2:
            raise UntestableError(
                "a group of problems has fewer than two of them: problems, not replicates, are "
                "what is missing"
            )
    if len(groups) == 2:
        return compare(*groups)
    varies = all(sample_sd(group) > 0 for group in groups)
    return welch_anova(groups) if varies else classic_anova(groups)
