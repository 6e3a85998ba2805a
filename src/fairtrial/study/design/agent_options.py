"""Factors that set an option of an agent, and the runs that they can touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairtrial.study.design.runs import AGENT_FACTORS
from fairtrial.study.model.study import Study


def find_option_factors(agent: str, factors: Iterable[str]) -> tuple[str, ...]:
    """The factors that set options of this agent."""
    return tuple(name for name in factors if name.startswith(f"agents.{agent}.options."))


def find_affected_agents(study: Study, name: str) -> frozenset[str] | None:
    """The agents whose runs can differ by a factor, as it sets their options; None if all can.

    Factors that are tied move together, and touch together what each of them does.
    """
    if study.condition_runner is not None:
        return None
    touched: set[str] = set()
    for each in _in_step(study, name):
        owners = [agent for agent in agent_names(study) if find_option_factors(agent, [each])]
        if not owners:
            return None
        touched.update(owners)
    return frozenset(touched)


def select_assignments(
    study: Study, agent: str | None, assigned: Mapping[str, Any]
) -> dict[str, Any]:
    """What a condition assigns, without the options of other agents than the one that runs."""
    return {
        name: value
        for name, value in assigned.items()
        if (touched := find_affected_agents(study, name)) is None or agent in touched
    }


def format_agents(agents: Iterable[str]) -> str:
    """Some agents by name, in words."""
    *others, last = sorted(agents)
    return f"{', '.join(others)} and {last}" if others else last


def _in_step(study: Study, name: str) -> set[str]:
    """A factor, and those that it is tied to or that are tied to it."""
    group = {name}
    size = 0
    while len(group) > size:
        size = len(group)
        for factor in study.factors:
            if factor.tied_to and {factor.name, factor.tied_to} & group:
                group |= {factor.name, factor.tied_to}
    return group


def agent_names(study: Study) -> Iterator[str]:
    """All agents that a study names: binds, lists, or has as levels of a factor."""
    yield from study.agents
    yield from study.agent_specs
    for factor in study.factors:
        if factor.name in AGENT_FACTORS:
            yield from (str(level.value) for level in factor.levels)
