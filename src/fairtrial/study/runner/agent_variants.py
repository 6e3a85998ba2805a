"""Agents whose options are factors of the study, such as `agents.opt.options.model`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Mistake, StudyError, canonical_json, did_you_mean
from fairtrial.study.agents.call_forms import Call
from fairtrial.study.agents.task import Task
from fairtrial.study.design.agent_options import find_option_factors
from fairtrial.study.design.runs import get_agents
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study

MakeAgent = Callable[[Mapping[str, Any]], Call]


@dataclass(slots=True)
class AgentVariants:
    """An agent that is built for the options of each condition, once for equal options.

    agent: its name in the study
    options: the options that the study gives
    factors: the factors that override them
    make: builds the agent from its options
    """

    agent: str
    options: Mapping[str, Any]
    factors: tuple[str, ...]
    make: MakeAgent
    _variants: dict[str, Call] = field(default_factory=dict)

    def __call__(self, task: Task) -> Any:
        """Run the variant for the task's condition."""
        return self.variant(task.factors)(task)

    def variant(self, assignments: Mapping[str, Any]) -> Call:
        """Return the agent for factor assignments; raises `StudyError` if it can't be made."""
        options = dict(self.options)
        for name in self.factors:
            if name in assignments:  # a factor may apply under some conditions only
                path = name.removeprefix(f"agents.{self.agent}.options.").split(".")
                _set_option(options, path, assignments[name], name)
        key = canonical_json(options)
        if key not in self._variants:
            self._variants[key] = self.make(options)
        return self._variants[key]


def _set_option(options: dict[str, Any], path: Sequence[str], value: Any, name: str) -> None:
    """Set an option, or one in a nested mapping, which is copied first."""
    first, *rest = path
    if not rest:
        options[first] = value
        return
    inner = options.get(first, {})
    if not isinstance(inner, Mapping):
        message = f"'{name}': the option {first} is no mapping, so nothing can be set in it"
        raise StudyError(Mistake(("factors",), message))
    options[first] = dict(inner)
    _set_option(options[first], rest, value, name)


def check_agent_factors(
    study: Study, conditions: Iterable[Condition], agents: Mapping[str, Call]
) -> list[Mistake]:
    """Return what is wrong with the factors that set options of agents."""
    unbound = _find_unbound_factors(list(agents), [factor.name for factor in study.factors])
    return [*unbound, *check_option_levels(study, conditions, agents)]


def check_option_levels(
    study: Study, conditions: Iterable[Condition], agents: Mapping[str, Call]
) -> list[Mistake]:
    """Return what is wrong with the options that conditions give to these agents."""
    mistakes: list[Mistake] = []
    messages: set[str] = set()
    for condition in conditions:
        for name in get_agents(study, condition) if condition.admissible else ():
            agent = agents.get(name or "")
            if isinstance(agent, AgentVariants):
                try:
                    agent.variant(condition.factor_assignments)
                except StudyError as error:
                    new = [mistake for mistake in error.mistakes if str(mistake) not in messages]
                    messages.update(map(str, new))
                    mistakes.extend(mistake.under(("agents", name or "")) for mistake in new)
    return mistakes


def _find_unbound_factors(agents: Sequence[str], factors: Sequence[str]) -> list[Mistake]:
    """Return a mistake for each factor that sets an option of an unknown agent."""
    bound = {name for agent in agents for name in find_option_factors(agent, factors)}
    return [
        Mistake(
            ("factors",),
            f"'{name}' sets an option of an agent that the study doesn't bind",
            did_you_mean(name.split(".")[1], agents),
        )
        for name in factors
        if name.startswith("agents.") and ".options." in name and name not in bound
    ]
