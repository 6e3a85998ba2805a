"""Agents compared though a factor varies an option that only some of them have."""

from __future__ import annotations

from fairtrial.study.design.agent_options import find_affected_agents, format_agents
from fairtrial.study.design.runs import AGENT_FACTORS
from fairtrial.study.hypotheses.comparisons import Comparison
from fairtrial.study.model.hypotheses import AnalysisPlan
from fairtrial.study.model.study import Study


def describe_averages(study: Study, plan: AnalysisPlan | None, comparison: Comparison) -> str:
    """Which agents stand for an average over their options; empty if none does.

    plan: its filters may leave one level, of which there is no average
    """
    compared = {
        level
        for name, levels in zip(comparison.variables, comparison.levels, strict=False)
        if name in AGENT_FACTORS
        for level in levels
    }
    told = []
    for factor in study.factors:
        touched = find_affected_agents(study, factor.name)
        if touched is None or factor.tied_to or len(factor.levels) < 2:
            continue
        if _is_picked(plan, factor.name):
            continue
        if compared & touched and compared - touched:
            who = format_agents(compared & touched)
            told.append(f"the runs of {who} are those of all levels of {factor.name}")
    if not told:
        return ""
    return (
        f"{'; '.join(told)}: what is compared is their average; a filter in the analysis plan "
        "picks one level"
    )


def _is_picked(plan: AnalysisPlan | None, name: str) -> bool:
    wanted = plan.filters.get(name, ()) if plan is not None else ()
    return not isinstance(wanted, (list, tuple, set, frozenset)) or len(wanted) == 1
