"""Agents of *design-research-agents* and problems of *design-research-problems*, by name.

Neither library is needed: without it a name is simply not found there.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Mapping
from typing import Any

from fairtrial import (
    AgentBinding,
    Condition,
    ProblemBinding,
    ProblemPacket,
    Task,
    for_condition,
)
from fairtrial.core import Mistake, StudyError

AGENTS, PROBLEMS = "design_research_agents", "design_research_problems"


def find_agent(name: str) -> AgentBinding | None:
    """Return the binding of an agent that *design-research-agents* exports; None if it doesn't.

    Raises `StudyError` for a class that can't be made without arguments.
    """
    agent = getattr(importlib.import_module(AGENTS), name, None) if _is_installed(AGENTS) else None
    if agent is None:
        return None
    if isinstance(agent, type):
        needed = [
            parameter.name
            for parameter in inspect.signature(agent).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        if needed:
            message = f"{AGENTS}.{name} can't be made without {', '.join(needed)}"
            hint = f"bind it from Python: agent_bindings={{'{name}': {name}(...)}}"
            raise StudyError(Mistake(("agents", name), message, hint))
    return AgentBinding("fairtrial.compat.siblings:packaged_agent", {"name": name})


def find_problem(name: str) -> ProblemBinding | None:
    """Return the binding of a problem in the catalog of *design-research-problems*; None if it
    isn't there."""
    if not _is_installed(PROBLEMS):
        return None
    library = importlib.import_module(PROBLEMS)
    if name not in library.list_problems():
        return None
    return ProblemBinding("fairtrial.compat.siblings:make_problem", {"name": name})


def _make_agent(condition: Condition, name: str) -> Any:
    """Return an agent that *design-research-agents* exports; one that is a class is made anew."""
    agent = getattr(importlib.import_module(AGENTS), name)
    return agent() if isinstance(agent, type) else agent


packaged_agent = for_condition(_make_agent)
"""Makes the agent called `name` for each run."""


def make_problem(name: str) -> ProblemPacket:
    """Return a problem of *design-research-problems*, with its own evaluation.

    Raises `StudyError` if the library can't make it, such as without one of its extras.

    name: its name in the library's catalog
    """
    try:
        integration = importlib.import_module(f"{PROBLEMS}.integration")
        binding = integration.resolve_problem_binding(name)
    except Exception as error:  # whatever the library and its parts raise
        message = f"{PROBLEMS} can't make '{name}': {type(error).__name__}: {error}"
        raise StudyError(Mistake(("name",), message)) from error

    def evaluate(answer: Any) -> Any:
        return integration.evaluate_problem_output(binding, {"candidate": answer})

    has_evaluator = getattr(binding.problem_object, "evaluate", None) is not None
    return ProblemPacket(
        name,
        binding.family,
        binding.brief,
        {"problem_object": binding.problem_object},
        binding.metadata,
        evaluate if has_evaluator else None,
    )


def get_dependencies(task: Task) -> dict[str, Any]:
    """Return what agents of *design-research-agents* are given beside the prompt."""
    dependencies = {
        "problem_packet": task.problem,
        "run_spec": task.run_spec,
        "condition": task.condition,
        "seed": task.run_spec.seed,
    }
    problem = get_problem_object(task.problem)
    return dependencies if problem is None else {**dependencies, "problem": problem}


def get_problem_object(problem: Any) -> Any:
    """Return the object that a problem packet was made from; None if there is none."""
    payload = getattr(problem, "payload", None)
    return payload.get("problem_object") if isinstance(payload, Mapping) else None


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ValueError:  # a module without a spec, made by hand
        return False
