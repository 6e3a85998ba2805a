"""Which runs the undecided claims of a study still need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from fairtrial.study.design.run_plan import RunCell
from fairtrial.study.design.runs import get_agents, get_problems
from fairtrial.study.hypotheses.comparisons import plan_comparisons
from fairtrial.study.hypotheses.groups import Variable
from fairtrial.study.hypotheses.planned_comparison import PlannedComparison
from fairtrial.study.ledger.planned_looks import LookClaimKey
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study


def find_needed_cells(
    study: Study, conditions: Sequence[Condition], undecided: Set[LookClaimKey]
) -> tuple[RunCell, ...] | None:
    """Return the conditions and agents whose runs undecided claims compare; None if all are."""
    names = {key[1] for key in undecided}
    comparisons = [
        comparison
        for hypothesis in study.hypotheses
        if hypothesis.hypothesis_id in names
        for comparison in plan_comparisons(study, conditions, hypothesis)
        if (comparison.variables, comparison.agents) in {key[3:] for key in undecided}
    ]
    cells = [
        (condition.condition_id, agent, _is_needed(study, condition, agent, comparisons))
        for condition in conditions
        if condition.admissible
        for agent in get_agents(study, condition)
    ]
    if all(needed for *_, needed in cells):
        return None
    return tuple((condition, agent) for condition, agent, needed in cells if needed)


def _is_needed(
    study: Study,
    condition: Condition,
    agent: str | None,
    comparisons: Sequence[PlannedComparison],
) -> bool:
    return any(
        all(_has_level(study, condition, agent, *pair) for pair in _levels(comparison))
        for comparison in comparisons
    )


def _levels(comparison: PlannedComparison) -> Iterator[tuple[str, tuple[str, ...]]]:
    return zip(comparison.variables, comparison.levels, strict=False)


def _has_level(
    study: Study, condition: Condition, agent: str | None, name: str, levels: tuple[str, ...]
) -> bool:
    """Return whether runs of an agent under a condition have one of the levels of a variable."""
    variable = Variable(study, name)
    assigned = variable.get_assigned_level(condition)
    return any(
        variable.get_level(assigned, agent, problem) in levels
        for problem in get_problems(study, condition)
    )
