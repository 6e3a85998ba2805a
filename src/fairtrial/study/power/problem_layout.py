"""How the planned runs of a comparison are spread over problems."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from fairtrial.study.design.runs import PROBLEM_FACTORS
from fairtrial.study.hypotheses.groups import Cell, Variable, count_cells
from fairtrial.study.hypotheses.planned_comparison import PlannedComparison
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study

ProblemRuns = Mapping[str, Mapping[Cell, int]]
"""For each problem the runs of one replicate in each cell of the compared variables."""


@dataclass(frozen=True, slots=True)
class ProblemLayout:
    """The runs of a comparison, problem by problem.

    problems: the number of problems that have runs in all compared groups
    total: the number of all problems in the comparison
    error: the variance of a problem's contrast with one replicate, if the variance of a run is 1
    parts: the same for each of two groups alone; empty for other comparisons
    contrasts: the number of independent contrasts: levels minus 1
    pairs: the number of pairs of levels
    nested: the number of problems of each of two groups, if no problem has runs in both
    runs: the mean number of runs of one replicate that a problem of these has
    """

    problems: int
    total: int
    error: float
    parts: tuple[float, ...] = ()
    contrasts: int = 1
    pairs: int = 1
    nested: tuple[int, ...] = ()
    runs: float = 1.0


def lay_out_problems(
    study: Study, conditions: Sequence[Condition], comparison: PlannedComparison
) -> ProblemLayout | None:
    """Return the layout of a comparison; None if it has no or only one problem, or compares them.

    None also if the groups of more than two levels have different problems.
    """
    if set(comparison.variables) & set(PROBLEM_FACTORS) or not comparison.levels:
        return None
    runs = _count_runs(study, conditions, comparison)
    if len(runs) < 2:
        return None
    if comparison.shape == "slope":
        return _lay_out_slope(study, comparison, runs)
    groups = list(itertools.product(*comparison.levels))
    complete = [cells for cells in runs.values() if all(cells.get(group) for group in groups)]
    if not complete:
        return _lay_out_nested(runs, groups)
    sizes = [len(levels) for levels in comparison.levels]
    inverse = [fmean(1 / cells[group] for cells in complete) for group in groups]
    # The variance of a difference of two cells, or of a difference of two differences.
    error = 2 ** len(sizes) * fmean(inverse)
    return ProblemLayout(
        problems=len(complete),
        total=len(runs),
        error=error,
        parts=tuple(inverse) if len(groups) == 2 else (),
        contrasts=math.prod(size - 1 for size in sizes),
        pairs=math.comb(sizes[0], 2),
    )


def _count_runs(
    study: Study, conditions: Sequence[Condition], comparison: PlannedComparison
) -> ProblemRuns:
    names = (*comparison.variables, PROBLEM_FACTORS[0])
    variables = [Variable(study, name) for name in names]
    runs: dict[str, dict[Cell, int]] = {}
    selected = [set(levels) for levels in comparison.levels]
    for (*cell, problem), count in count_cells(study, conditions, variables).items():
        if all(level in levels for level, levels in zip(cell, selected, strict=True)):
            runs.setdefault(problem, {})[tuple(cell)] = count
    return runs


def _lay_out_nested(runs: ProblemRuns, groups: Sequence[Cell]) -> ProblemLayout | None:
    if len(groups) != 2:
        return None
    counts = tuple(sum(group in cells for cells in runs.values()) for group in groups)
    size = fmean(sum(cells.values()) for cells in runs.values())
    return ProblemLayout(0, len(runs), 0.0, nested=counts, runs=size)


def _lay_out_slope(
    study: Study, comparison: PlannedComparison, runs: ProblemRuns
) -> ProblemLayout | None:
    """Return the layout of a slope: each problem has a line of its own."""
    variable = Variable(study, comparison.variables[0])
    values = {level: _to_number(variable, level) for level in comparison.levels[0]}
    declared = [_to_number(variable, level) for level in variable.declared]
    numbers = [*values.values(), *declared]
    span = max(numbers) - min(numbers)
    errors = []
    for cells in runs.values():
        total = sum(cells.values())
        mean = sum(values[level] * count for (level,), count in cells.items()) / total
        squares = sum(n * ((values[level] - mean) / span) ** 2 for (level,), n in cells.items())
        if squares > 0 and len(cells) > 2:
            errors.append(1 / squares)
    if not errors:
        return None
    return ProblemLayout(len(errors), len(runs), fmean(errors))


def _to_number(variable: Variable, level: str) -> float:
    return float(variable.values.get(level, level))
