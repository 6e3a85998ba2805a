"""How many runs a plan gives to each level: counted from the conditions, without making a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fairtrial.core import canonical_json, is_scalar, scalar_text
from fairtrial.study.design.agent_options import agents_touched, spell_agents
from fairtrial.study.design.rows import is_number
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS, agents_of, problems_of
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study

Cell = tuple[str, ...]
MANY_LEVELS = 10


class Variable:
    """Something that runs can be grouped by: a factor, a block, the agent or the problem."""

    def __init__(self, study: Study, name: str) -> None:
        self.name = name
        self.source = _source(study, name)
        """Where its value stands: factor, block, agent, problem; empty if there is no such name."""
        self.values: dict[str, Any] = {}
        """The value behind each level's name: those of the study, then those met in the plan."""
        self._names: dict[str, str] = {}
        self._met: dict[Any, str | None] = {}
        self._only_declared = False
        for factor in study.factors:
            if factor.name == name:
                # Where such a factor doesn't apply it holds a default, which is not a level.
                self._only_declared = factor.when is not None or factor.tied_to is not None
                for level in factor.levels:
                    self.values[level.name] = level.value
                    self._names[canonical_json(level.value)] = level.name
        self.declared = tuple(self.values)
        self.agents = agents_touched(study, name) if self.source == "factor" else None
        """The agents whose option it is: it doesn't apply to runs of others; None if it is none."""

    def assigned(self, condition: Condition) -> str | None:
        """The name of the level that a condition has; None where the variable doesn't apply."""
        holder, key = condition.factor_assignments, self.name
        if self.source == "block":
            holder = condition.block_assignments
            key = key if key in holder else key.removeprefix("block_")
        if key not in holder:
            return None
        value = holder[key]
        # The type keeps 1, 1.0 and true apart.
        known = (type(value), value if is_scalar(value) else canonical_json(value))
        if known not in self._met:
            self._met[known] = self._name(value)
        return self._met[known]

    def level(self, assigned: str | None, agent: str | None, problem: str | None) -> str | None:
        """The name of the level that a run has, given its condition's, its agent and problem."""
        if self.source not in ("agent", "problem"):
            return assigned if self.agents is None or agent in self.agents else None
        met = agent if self.source == "agent" else problem
        return None if met is None else self._remember(met, met)

    def _name(self, value: Any) -> str | None:
        text = canonical_json(value)
        name = self._names.get(text)
        if name is None and self._only_declared and self._names:
            return None
        return self._remember(name or (scalar_text(value) if is_scalar(value) else text), value)

    def _remember(self, name: str, value: Any) -> str:
        self.values.setdefault(name, value)
        return name

    def find_level(self, text: str) -> str | None:
        """The level that a text means, by its name or else by its value."""
        if text in self.values:
            return text
        for name, value in self.values.items():
            if text in (scalar_text(value), canonical_json(value)):
                return name
        return None

    def is_sampled(self, levels: Sequence[str]) -> bool:
        """Whether these levels are points on a scale rather than groups: numbers that a design
        chose within a range, or very many of them."""
        if len(levels) < 3 or not all(is_number(self.values[level]) for level in levels):
            return False
        return len(levels) > MANY_LEVELS or not set(levels) <= set(self.declared)


def _source(study: Study, name: str) -> str:
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
    """The runs of one replicate by the variables' levels; levels stand in the study's order."""
    by_agent = any(each.source == "agent" or each.agents is not None for each in variables)
    by_problem = any(variable.source == "problem" for variable in variables)
    # Conditions that are alike are tallied first: there may be many of them, times many problems.
    tally: Counter[Any] = Counter()
    for condition in conditions:
        if condition.admissible:
            levels = tuple(variable.assigned(condition) for variable in variables)
            tally[levels, agents_of(study, condition), problems_of(study, condition)] += 1
    counts: Counter[Cell] = Counter()
    for (levels, agents, problems), times in tally.items():
        weight = times * (1 if by_agent else len(agents)) * (1 if by_problem else len(problems))
        for agent in agents if by_agent else agents[:1]:
            for problem in problems if by_problem else problems[:1]:
                pairs = zip(variables, levels, strict=True)
                cell = [variable.level(level, agent, problem) for variable, level in pairs]
                known = tuple(level for level in cell if level is not None)
                if len(known) == len(cell):
                    counts[known] += weight
    ranks = [{level: rank for rank, level in enumerate(v.values)} for v in variables]
    return {
        cell: counts[cell]
        for cell in sorted(
            counts, key=lambda cell: [r[c] for r, c in zip(ranks, cell, strict=True)]
        )
    }


def limiting_agents(
    study: Study, conditions: Sequence[Condition], variables: Sequence[Variable]
) -> tuple[str, ...]:
    """The agents whose runs alone have all these variables; empty if the runs of all agents do."""
    limits = [variable.agents for variable in variables if variable.agents is not None]
    if not limits:
        return ()
    tried = {
        agent
        for condition in conditions
        if condition.admissible
        for agent in agents_of(study, condition)
        if agent is not None
    }
    both = frozenset.intersection(*limits)
    return () if tried <= both else tuple(sorted(tried & both))


def why_apart(variables: Sequence[Variable]) -> str:
    """Why no run tells how two variables meet, where one of them is an option of some agents."""
    limited = [variable for variable in variables if variable.agents is not None]
    if not limited:
        return ""
    both = frozenset.intersection(*(each.agents for each in limited if each.agents is not None))
    if not both:
        names = " and ".join(f"'{each.name}'" for each in limited)
        return f"{names} are options of different agents: no run has both"
    if any(each.name in AGENT_FACTORS for each in variables) and len(both) < 2:
        who = spell_agents(both)
        return f"'{limited[0].name}' is an option of {who} alone: no other agent's runs have it"
    return ""
