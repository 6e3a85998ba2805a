"""Comparisons of how the effect of one variable depends on another."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from fairtrial.study.hypotheses.groups import (
    Cell,
    Variable,
    count_cells,
    explain_disjoint,
    find_limiting_agents,
)
from fairtrial.study.hypotheses.planned_comparison import (
    INTERACTION,
    HypothesisPlan,
    PlannedComparison,
    explain_missing_levels,
    find_contrast_levels,
)
from fairtrial.study.stats.power import interaction_power
from fairtrial.study.stats.welch_power import welch_contrast_power


def plan_interaction(plan: HypothesisPlan, name: str, moderator: str) -> PlannedComparison:
    """Return the comparison of a variable's effects at the levels of another variable."""
    variables = [Variable(plan.study, name), Variable(plan.study, moderator)]
    counts = count_cells(plan.study, plan.conditions, variables)
    rows, columns = _select_levels(plan, variables, counts)
    test = plan.name_test(INTERACTION)
    reason = _explain_untestable(plan, variables, (rows, columns))
    if reason:
        return PlannedComparison((name, moderator), test, reason=reason)
    table = [[counts.get((row, column), 0) for column in columns] for row in rows]

    def power_at(d: float, alpha: float, replicates: int) -> float | None:
        cells = [[runs * replicates for runs in row] for row in table]
        if len(rows) == len(columns) == 2:
            sizes = [*cells[0], *cells[1]]
            return welch_contrast_power(d, (1, -1, -1, 1), sizes, alpha=alpha, test=plan.test)
        return interaction_power(d, cells, alpha=alpha, test=plan.test)

    groups = {
        f"{name}={row}, {moderator}={column}": counts.get((row, column), 0)
        for row, column in itertools.product(rows, columns)
    }
    between = f"between the effects of {name} at two levels of {moderator}"
    side = plan.side
    if max(len(rows), len(columns)) > 2:
        between += f" ({len(rows)} × {len(columns)}, where runs are fewest)"
        side = ""
    comparison = PlannedComparison(
        (name, moderator),
        test,
        plan.count_all_replicates(groups),
        between,
        side,
        power_at,
        shape="interaction",
        levels=(tuple(rows), tuple(columns)),
    )
    return comparison.limit_to_agents(find_limiting_agents(plan.study, plan.conditions, variables))


def _select_levels(
    plan: HypothesisPlan, variables: Sequence[Variable], counts: Mapping[Cell, int]
) -> list[list[str]]:
    """Return the levels of both variables: those that the hypothesis names, otherwise all."""
    levels = []
    for position, variable in enumerate(variables):
        planned = {cell[position] for cell in counts}
        levels.append([level for level in variable.values if level in planned])
    for position, variable in enumerate(variables):
        if contrast_levels := find_contrast_levels(plan.hypothesis, variable):
            levels[position] = contrast_levels
            break
    for moderator in plan.hypothesis.moderators:
        if moderator.name == variables[1].name and moderator.levels:
            # A level that isn't planned is kept, so that its empty cells are reported by name.
            levels[1] = [variables[1].find_level(text) or text for text in moderator.levels]
    return levels


def _explain_untestable(
    plan: HypothesisPlan, variables: Sequence[Variable], levels: Sequence[Sequence[str]]
) -> str:
    """Return why the power of an interaction can't be computed; empty if it can."""
    if reason := explain_disjoint(variables):
        return reason
    for variable, selected in zip(variables, levels, strict=True):
        if len(set(selected)) < 2:
            return f"'{variable.name}' has fewer than two levels in the plan"
        if all(level in variable.values for level in selected) and variable.is_sampled(selected):
            return f"'{variable.name}' is sampled from a range; its interactions are not computed"
    contrast = plan.hypothesis.contrast
    if contrast and not any(find_contrast_levels(plan.hypothesis, v) for v in variables):
        return explain_missing_levels(contrast, [variable.name for variable in variables])
    if plan.test == "equivalence" and any(len(selected) > 2 for selected in levels):
        return "the equivalence of effects at more than 2 × 2 levels is not computed"
    return ""
