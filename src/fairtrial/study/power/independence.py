"""What a power analysis assumes about the dependence of runs."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.study.design.runs import PROBLEM_FACTORS, get_problems
from fairtrial.study.hypotheses.groups import Cell, Variable, count_cells
from fairtrial.study.hypotheses.planned_comparison import PlannedComparison
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan
from fairtrial.study.model.study import Study
from fairtrial.study.power.power_models import BETWEEN_PROBLEMS, PowerModel

FEW_PROBLEMS = 10
"""With fewer problems than this, reports warn that a result may not hold for other problems."""


def count_problems(study: Study, conditions: Sequence[Condition]) -> int:
    """Return the number of different problems in the plan."""
    admissible = (condition for condition in conditions if condition.admissible)
    return len(
        {name for condition in admissible for name in get_problems(study, condition) if name}
    )


def describe_independence(
    study: Study,
    conditions: Sequence[Condition],
    comparison: PlannedComparison,
    problems: int,
    model: PowerModel,
    plan: AnalysisPlan | None,
) -> str:
    """Return what the power assumes about the dependence of runs.

    Where the mix of blocks or problems differs between groups, a difference may be due to it.
    """
    if model.test == BETWEEN_PROBLEMS:
        text = "the groups have different problems, so that problems, not runs, are compared"
    elif model.problems:
        text = "problems are taken as a random sample of those that the claim is about"
    else:
        text = "runs are taken as independent given the level"
    covariates = [block.name for block in study.blocks if len(block.levels) > 1]
    covariates += ["problem_id"] if problems > 1 and not model.problems else []
    compared = {
        *comparison.variables,
        *(name.removeprefix("block_") for name in comparison.variables),
    }
    if covariates and not compared & {*covariates, *PROBLEM_FACTORS}:
        uneven = [c for c in covariates if not _is_balanced(study, conditions, comparison, c)]
        if uneven:
            variables, causes = " × ".join(comparison.variables), " and ".join(uneven)
            text += (
                f"; but {variables} and {causes} don't meet evenly: a difference may be due to "
                f"{causes}"
            )
    if problems == 1 or (problems and plan and plan.generalize == "these_problems_only"):
        which = "the one problem" if problems == 1 else f"the {problems} problems"
        text += f"; the result will speak for {which} of the plan, not for others"
    return text


def _is_balanced(
    study: Study, conditions: Sequence[Condition], comparison: PlannedComparison, covariate: str
) -> bool:
    """Return whether each group has the same share of its runs at each level of a covariate."""
    names = (*comparison.variables, covariate)
    cells = count_cells(study, conditions, [Variable(study, name) for name in names])
    counts_by_group: dict[Cell, dict[str, int]] = {}
    for (*group, level), runs in cells.items():
        counts_by_group.setdefault(tuple(group), {})[level] = runs
    # The groups of a contrast are named by their levels; other comparisons use all groups.
    contrasted = [
        counts for group, counts in counts_by_group.items() if group[0] in comparison.groups
    ]
    compared = contrasted or list(counts_by_group.values())
    first = compared[0] if compared else {}
    return all(
        counts.keys() == first.keys()
        and all(
            counts[level] * sum(first.values()) == first[level] * sum(counts.values())
            for level in first
        )
        for counts in compared
    )
