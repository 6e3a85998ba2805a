"""Agents whose options are factors of the study: a factor named `agents.opt.options.model`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Mistake, StudyError, canonical_json, did_you_mean
from fairtrial.study.agents.call_forms import Call
from fairtrial.study.agents.task import Task
from fairtrial.study.design.agent_options import find_varied
from fairtrial.study.design.runs import agents_of
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study

Make = Callable[[Mapping[str, Any]], Call]


@dataclass(slots=True)
class Varied:
    """An agent that is made for the options that a run's condition gives it; once for equal ones.

    agent: its name in the study
    options: what the study says of them
    factors: the factors that say otherwise
    make: makes the agent for its options
    """

    agent: str
    options: Mapping[str, Any]
    factors: tuple[str, ...]
    make: Make
    _made: dict[str, Call] = field(default_factory=dict)

    def __call__(self, task: Task) -> Any:
        """One run."""
        return self.find(task.factors)(task)

    def find(self, assignments: Mapping[str, Any]) -> Call:
        """The agent for what a condition assigns; `StudyError` if it can't be made."""
        options = dict(self.options)
        for name in self.factors:
            if name in assignments:  # a factor may be there under some conditions only
                path = name.removeprefix(f"agents.{self.agent}.options.").split(".")
                _put(options, path, assignments[name], name)
        key = canonical_json(options)
        if key not in self._made:
            self._made[key] = self.make(options)
        return self._made[key]


def _put(options: dict[str, Any], path: Sequence[str], value: Any, name: str) -> None:
    """Set an option, or one in a mapping of options; what is given is left as it is."""
    first, *rest = path
    if not rest:
        options[first] = value
        return
    inner = options.get(first, {})
    if not isinstance(inner, Mapping):
        message = f"'{name}': the option {first} is no mapping, so nothing can be set in it"
        raise StudyError(Mistake(("factors",), message))
    options[first] = dict(inner)
    _put(options[first], rest, value, name)


def check_varied(
    study: Study, conditions: Iterable[Condition], agents: Mapping[str, Call]
) -> list[Mistake]:
    """What is wrong with agents that some condition asks for: told before anything runs."""
    stray = _stray(list(agents), [factor.name for factor in study.factors])
    return [*stray, *check_levels(study, conditions, agents)]


def check_levels(
    study: Study, conditions: Iterable[Condition], agents: Mapping[str, Call]
) -> list[Mistake]:
    """What is wrong with the options that conditions give to these agents."""
    mistakes: list[Mistake] = []
    told: set[str] = set()
    for condition in conditions:
        for name in agents_of(study, condition) if condition.admissible else ():
            agent = agents.get(name or "")
            if isinstance(agent, Varied):
                try:
                    agent.find(condition.factor_assignments)
                except StudyError as error:
                    new = [each for each in error.mistakes if str(each) not in told]
                    told.update(map(str, new))
                    mistakes.extend(each.under(("agents", name or "")) for each in new)
    return mistakes


def _stray(agents: Sequence[str], factors: Sequence[str]) -> list[Mistake]:
    """Factors that look as if they set an option, of an agent that there isn't."""
    known = {name for agent in agents for name in find_varied(agent, factors)}
    return [
        Mistake(
            ("factors",),
            f"'{name}' sets an option of an agent that the study doesn't bind",
            did_you_mean(name.split(".")[1], agents),
        )
        for name in factors
        if name.startswith("agents.") and ".options." in name and name not in known
    ]
