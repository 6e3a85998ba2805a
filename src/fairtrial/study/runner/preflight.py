"""Agents that look at their problems first: what they miss is told before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.agents.call_forms import Call
from fairtrial.study.agents.task import Task
from fairtrial.study.design.runs import agents_of, problems_of
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study
from fairtrial.study.protocols import Problem
from fairtrial.study.runner.agent_options import Varied


@dataclass(frozen=True, slots=True)
class Looking:
    """An agent that wants to see its problems first.

    agent: the plug-in itself; its ``check_problem(problem, imports=...)`` raises a `StudyError`
    call: how it is called
    """

    agent: Any
    call: Call

    def __call__(self, task: Task) -> Any:
        """One run."""
        return self.call(task)


def check_meetings(
    study: Study,
    conditions: Iterable[Condition],
    agents: Mapping[str, Call],
    problems: Mapping[str, Problem],
    *,
    imports: bool = True,
) -> list[Mistake]:
    """What agents miss of problems that some condition brings them together with.

    imports: whether functions of the user's own may be imported to see if they are there
    """
    if not any(isinstance(each, (Looking, Varied)) for each in agents.values()):
        return []
    mistakes: dict[str, Mistake] = {}
    met: dict[tuple[int, str], Looking] = {}  # whoever is in here keeps his id
    for condition in conditions:
        for name in agents_of(study, condition) if condition.admissible else ():
            agent = _find(agents.get(name or ""), condition)
            if not isinstance(agent, Looking):
                continue
            for other in problems_of(study, condition):
                problem = problems.get(other or "")
                if problem is None or (id(agent), other or "") in met:
                    continue
                met[id(agent), other or ""] = agent
                for each in _look(agent, problem, imports=imports):
                    placed = each.under(("agents", name or "", "options"))
                    mistakes.setdefault(str(placed), placed)
    return list(mistakes.values())


def _find(agent: Call | None, condition: Condition) -> Call | None:
    """The agent that a condition asks for; None if it can't be made, which is told elsewhere."""
    if not isinstance(agent, Varied):
        return agent
    try:
        return agent.find(condition.factor_assignments)
    except StudyError:
        return None


def _look(agent: Looking, problem: Problem, *, imports: bool) -> tuple[Mistake, ...]:
    try:
        agent.agent.check_problem(problem, imports=imports)
    except StudyError as error:
        return error.mistakes
    return ()
