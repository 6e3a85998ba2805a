"""Factors named ``agents.<agent>.options.<option>``, and the agents whose runs they affect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairtrial.study.design.runs import AGENT_FACTORS
from fairtrial.study.model.study import Study


def find_option_factors(agent: str, factors: Iterable[str]) -> tuple[str, ...]:
    """Return the factors that set options of an agent."""
    return tuple(name for name in factors if name.startswith(f"agents.{agent}.options."))


def find_affected_agents(study: Study, name: str) -> frozenset[str] | None:
    """Return the agents whose options a factor sets; None if it can affect runs of all agents.

    Tied factors change together, so the result is that of all factors tied to this one.
    """
    if study.condition_runner is not None:
        return None
    affected: set[str] = set()
    for tied in _find_tied_factors(study, name):
        owners = [agent for agent in agent_names(study) if find_option_factors(agent, [tied])]
        if not owners:
            return None
        affected.update(owners)
    return frozenset(affected)


def select_assignments(
    study: Study, agent: str | None, assigned: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a condition's assignments without options of other agents than the one that runs."""
    return {
        name: value
        for name, value in assigned.items()
        if (affected := find_affected_agents(study, name)) is None or agent in affected
    }


def format_agents(agents: Iterable[str]) -> str:
    """Return names of agents as an enumeration: `a, b and c`."""
    *others, last = sorted(agents)
    return f"{', '.join(others)} and {last}" if others else last


def _find_tied_factors(study: Study, name: str) -> set[str]:
    """Return a factor with all factors that it is tied to, directly or indirectly."""
    group = {name}
    size = 0
    while len(group) > size:
        size = len(group)
        for factor in study.factors:
            if factor.tied_to and {factor.name, factor.tied_to} & group:
                group |= {factor.name, factor.tied_to}
    return group


def agent_names(study: Study) -> Iterator[str]:
    """Yield all agents that a study binds, lists, or has as levels of a factor."""
    yield from study.agents
    yield from study.agent_specs
    for factor in study.factors:
        if factor.name in AGENT_FACTORS:
            yield from (str(level.value) for level in factor.levels)
