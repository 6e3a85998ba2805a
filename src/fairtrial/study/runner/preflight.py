"""Check agents against their problems before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.agents.call_forms import Call
from fairtrial.study.agents.hooks import AgentHooks
from fairtrial.study.agents.task import Task
from fairtrial.study.design.runs import get_agents, get_problems
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study
from fairtrial.study.protocols import Problem
from fairtrial.study.runner.agent_variants import AgentVariants

MOST_ROWS = 3
"""How many rows of a dataset an agent is checked against."""


@dataclass(frozen=True, slots=True)
class HookedAgent:
    """A bound agent whose class has hooks.

    hooks: the agent itself
    call: the function that runs it on a task
    """

    hooks: AgentHooks
    call: Call

    def __call__(self, task: Task) -> Any:
        """Run the agent on a task."""
        return self.call(task)


def check_agent_problems(
    study: Study,
    conditions: Iterable[Condition],
    agents: Mapping[str, Call],
    problems: Mapping[str, Problem],
    *,
    imports: bool = True,
) -> list[Mistake]:
    """Return what agents report about the problems that some condition pairs them with.

    imports: whether functions of the user may be imported to see whether they exist
    """
    if not any(isinstance(agent, (HookedAgent, AgentVariants)) for agent in agents.values()):
        return []
    mistakes: dict[str, Mistake] = {}
    # Holds the agents, so that no two of them have the same id.
    checked: dict[tuple[int, str, frozenset[str]], HookedAgent] = {}
    for condition in conditions:
        for agent_name in get_agents(study, condition) if condition.admissible else ():
            agent = _find_agent(agents.get(agent_name or ""), condition)
            if not isinstance(agent, HookedAgent):
                continue
            factors = condition.factor_assignments
            for problem_name in _problems_to_check(study, condition):
                key = id(agent), problem_name or "", frozenset(factors)
                problem = problems.get(problem_name or "")
                if problem is None or key in checked:
                    continue
                checked[key] = agent
                for mistake in _check_problem(agent.hooks, problem, factors, imports=imports):
                    located = mistake.under(("agents", agent_name or "", "options"))
                    mistakes.setdefault(str(located), located)
    return list(mistakes.values())


def _problems_to_check(study: Study, condition: Condition) -> tuple[str | None, ...]:
    """Return the problems under a condition; of a dataset, whose rows are alike, a few."""
    names = get_problems(study, condition)
    return names if study.dataset is None else names[:MOST_ROWS]


def _find_agent(agent: Call | None, condition: Condition) -> Call | None:
    """Return the agent for a condition; None if it can't be made, which is reported elsewhere."""
    if not isinstance(agent, AgentVariants):
        return agent
    try:
        return agent.variant(condition.factor_assignments)
    except StudyError:
        return None


def _check_problem(
    hooks: AgentHooks, problem: Problem, factors: Mapping[str, Any], *, imports: bool
) -> tuple[Mistake, ...]:
    try:
        hooks.check_problem(problem, imports=imports)
        hooks.check_task(problem, factors)
    except StudyError as error:
        return error.mistakes
    return ()
