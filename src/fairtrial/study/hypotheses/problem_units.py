"""Whether a planned comparison is made by problem, and which tests take which form then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.study.design.runs import PROBLEM_FACTORS
from fairtrial.study.hypotheses.groups import Variable, count_cells
from fairtrial.study.hypotheses.planned_comparison import PlannedComparison
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan
from fairtrial.study.model.study import Study

RANK_TESTS = ("mann_whitney", "wilcoxon", "kruskal_wallis")
"""By problem, these are rank tests of the means of problems."""
RATE_TESTS = ("fisher_exact", "barnard_exact", "chi_square", "mcnemar")
"""By problem, these are permutation tests of the rates of problems."""
BETWEEN_PROBLEMS = {
    "paired_t": "welch_t",
    "wilcoxon": "mann_whitney",
    **dict.fromkeys(RATE_TESTS, "welch_t"),
}
"""The test of the means of problems in place of tests of pairs, or of values that are 0 and 1."""


@dataclass(frozen=True, slots=True)
class ProblemUnit:
    """The problems of a planned comparison.

    problems: number of problems with runs at the compared levels
    is_within: whether the compared variable varies within problems
    generalizes: whether the claim is about problems like these, so that the problem is the unit
    """

    problems: int
    is_within: bool
    generalizes: bool


def find_problem_unit(
    study: Study,
    conditions: Sequence[Condition],
    plan: AnalysisPlan | None,
    comparison: PlannedComparison,
) -> ProblemUnit | None:
    """Return the problems of a comparison; None for one problem, or if problems are compared."""
    if not comparison.levels or set(comparison.variables) & set(PROBLEM_FACTORS):
        return None
    variables = [Variable(study, name) for name in comparison.variables]
    cells = count_cells(study, conditions, [*variables, Variable(study, PROBLEM_FACTORS[0])])
    levels_by_problem: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for *levels, problem in cells:
        if all(level in chosen for level, chosen in zip(levels, comparison.levels, strict=True)):
            levels_by_problem[problem].add(tuple(levels))
    if len(levels_by_problem) < 2:
        return None
    is_within = any(len(levels) > 1 for levels in levels_by_problem.values())
    generalizes = plan is None or plan.generalize == "problems"
    return ProblemUnit(len(levels_by_problem), is_within, generalizes)
