"""Variables that runs are grouped by, and the number of planned runs in each group.

Runs are counted from the conditions, without generating them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fairtrial.core import canonical_json, is_scalar, scalar_text
from fairtrial.study.design.agent_options import find_affected_agents, format_agents
from fairtrial.study.design.rows import is_number
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS, get_agents, get_problems
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study

Cell = tuple[str, ...]
"""A level of each of several variables."""
MANY_LEVELS = 10


class Variable:
    """A factor, a block, the agent or the problem: something that runs can be grouped by."""

    def __init__(self, study: Study, name: str) -> None:
        self.name = name
        self.source = _find_source(study, name)
        """What it is: factor, block, agent or problem; empty if the study has no such variable."""
        self.values: dict[str, Any] = {}
        """The value of each level, by name: the study's levels, then others found in the plan."""
        self._names: dict[str, str] = {}
        self._names_by_value: dict[Any, str | None] = {}
        self._only_declared = False
        for factor in study.factors:
            if factor.name == name:
                # Where such a factor doesn't apply it has its default, which is not a level.
                self._only_declared = factor.when is not None or factor.tied_to is not None
                for level in factor.levels:
                    self.values[level.name] = level.value
                    self._names[canonical_json(level.value)] = level.name
        self.declared = tuple(self.values)
        """The names of the levels that the study declares."""
        self.agents = find_affected_agents(study, name) if self.source == "factor" else None
        """The agents whose option it is; it doesn't apply to runs of others. None if it applies to
        all."""

    def get_assigned_level(self, condition: Condition) -> str | None:
        """Return the level that a condition assigns, by name; None if it assigns none."""
        assignments, key = condition.factor_assignments, self.name
        if self.source == "block":
            assignments = condition.block_assignments
            key = key if key in assignments else key.removeprefix("block_")
        if key not in assignments:
            return None
        value = assignments[key]
        # The type keeps 1, 1.0 and true apart.
        cache_key = (type(value), value if is_scalar(value) else canonical_json(value))
        if cache_key not in self._names_by_value:
            self._names_by_value[cache_key] = self._name_value(value)
        return self._names_by_value[cache_key]

    def get_level(self, assigned: str | None, agent: str | None, problem: str | None) -> str | None:
        """Return the level of a run by name, given its condition's level, its agent and problem.

        None if the variable doesn't apply to the run.
        """
        if self.source not in ("agent", "problem"):
            return assigned if self.agents is None or agent in self.agents else None
        name = agent if self.source == "agent" else problem
        return None if name is None else self._add_level(name, name)

    def _name_value(self, value: Any) -> str | None:
        text = canonical_json(value)
        name = self._names.get(text)
        if name is None and self._only_declared and self._names:
            return None
        return self._add_level(name or (scalar_text(value) if is_scalar(value) else text), value)

    def _add_level(self, name: str, value: Any) -> str:
        self.values.setdefault(name, value)
        return name

    def find_level(self, text: str) -> str | None:
        """Return the level with this name or, if there is none, with this value."""
        if text in self.values:
            return text
        for name, value in self.values.items():
            if text in (scalar_text(value), canonical_json(value)):
                return name
        return None

    def is_sampled(self, levels: Sequence[str]) -> bool:
        """Return whether levels are points on a scale rather than groups.

        They are if they are numbers that a design chose within a range, or if there are very many.
        """
        if len(levels) < 3 or not all(is_number(self.values[level]) for level in levels):
            return False
        return len(levels) > MANY_LEVELS or not set(levels) <= set(self.declared)


def _find_source(study: Study, name: str) -> str:
    if any(factor.name == name for factor in study.factors):
        return "factor"
    if any(name in (block.name, f"block_{block.name}") for block in study.blocks):
        return "block"
    if name in AGENT_FACTORS:
        return "agent"
    return "problem" if name in PROBLEM_FACTORS else ""


def count_cells(
    study: Study, conditions: Sequence[Condition], variables: Sequence[Variable]
) -> dict[Cell, int]:
    """Return the number of runs of one replicate in each cell, in the order of the levels."""
    by_agent = any(
        variable.source == "agent" or variable.agents is not None for variable in variables
    )
    by_problem = any(variable.source == "problem" for variable in variables)
    # Equal conditions are counted first: there may be many of them, times many problems.
    condition_counts: Counter[Any] = Counter()
    for condition in conditions:
        if condition.admissible:
            assigned = tuple(variable.get_assigned_level(condition) for variable in variables)
            agents, problems = get_agents(study, condition), get_problems(study, condition)
            condition_counts[assigned, agents, problems] += 1
    counts: Counter[Cell] = Counter()
    for (assigned, agents, problems), count in condition_counts.items():
        weight = count * (1 if by_agent else len(agents)) * (1 if by_problem else len(problems))
        for agent in agents if by_agent else agents[:1]:
            for problem in problems if by_problem else problems[:1]:
                pairs = zip(variables, assigned, strict=True)
                levels = [variable.get_level(level, agent, problem) for variable, level in pairs]
                cell = tuple(level for level in levels if level is not None)
                if len(cell) == len(levels):
                    counts[cell] += weight
    ranks = [{level: rank for rank, level in enumerate(v.values)} for v in variables]
    return {
        cell: counts[cell]
        for cell in sorted(
            counts, key=lambda cell: [r[c] for r, c in zip(ranks, cell, strict=True)]
        )
    }


def find_limiting_agents(
    study: Study, conditions: Sequence[Condition], variables: Sequence[Variable]
) -> tuple[str, ...]:
    """Return the agents whose runs have all these variables; empty if the runs of all agents do."""
    limits = [variable.agents for variable in variables if variable.agents is not None]
    if not limits:
        return ()
    planned = {
        agent
        for condition in conditions
        if condition.admissible
        for agent in get_agents(study, condition)
        if agent is not None
    }
    common = frozenset.intersection(*limits)
    return () if planned <= common else tuple(sorted(planned & common))


def explain_disjoint(variables: Sequence[Variable]) -> str:
    """Return why no run has two variables of which one is an option of some agents; else empty."""
    options = [variable for variable in variables if variable.agents is not None]
    if not options:
        return ""
    common = frozenset.intersection(*(v.agents for v in options if v.agents is not None))
    if not common:
        names = " and ".join(f"'{variable.name}'" for variable in options)
        return f"{names} are options of different agents: no run has both"
    if any(variable.name in AGENT_FACTORS for variable in variables) and len(common) < 2:
        agents = format_agents(common)
        return f"'{options[0].name}' is an option of {agents} alone: no other agent's runs have it"
    return ""
