"""Comparisons of agents that average over levels of an option that only some agents have."""

from __future__ import annotations

from fairtrial.study.design.agent_options import find_affected_agents, format_agents
from fairtrial.study.design.runs import AGENT_FACTORS
from fairtrial.study.hypotheses.planned_comparison import PlannedComparison
from fairtrial.study.model.hypotheses import AnalysisPlan
from fairtrial.study.model.study import Study


def describe_averages(
    study: Study, plan: AnalysisPlan | None, comparison: PlannedComparison
) -> str:
    """Return which agents are compared by an average over levels of their options.

    Empty if none is. A filter of the plan may select a single level of an option, so that there is
    no average.
    """
    compared = {
        level
        for name, levels in zip(comparison.variables, comparison.levels, strict=False)
        if name in AGENT_FACTORS
        for level in levels
    }
    averages = []
    for factor in study.factors:
        affected = find_affected_agents(study, factor.name)
        if affected is None or factor.tied_to or len(factor.levels) < 2:
            continue
        if _filters_one_level(plan, factor.name):
            continue
        if compared & affected and compared - affected:
            agents = format_agents(compared & affected)
            averages.append(f"the runs of {agents} are those of all levels of {factor.name}")
    if not averages:
        return ""
    return (
        f"{'; '.join(averages)}: what is compared is their average; a filter in the analysis plan "
        "picks one level"
    )


def _filters_one_level(plan: AnalysisPlan | None, name: str) -> bool:
    values = plan.filters.get(name, ()) if plan is not None else ()
    return not isinstance(values, (list, tuple, set, frozenset)) or len(values) == 1
