"""The keyword arguments that agents of *design-research-experiments* may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairtrial import Task


def _get_problem_object(task: Task) -> Any:
    """Return the object that the problem packet was made from; None if there is none."""
    payload = getattr(task.problem, "payload", None)
    return payload.get("problem_object") if isinstance(payload, Mapping) else None


def _get_problem(task: Task) -> Any:
    problem_object = _get_problem_object(task)
    return task.problem if problem_object is None else problem_object


def _get_prompt(task: Task) -> Any:
    problem_object = _get_problem_object(task)
    return task.problem.brief if problem_object is None else problem_object


def _get_dependencies(task: Task) -> dict[str, Any]:
    dependencies = {
        "problem_packet": task.problem,
        "run_spec": task.run_spec,
        "condition": task.condition,
        "seed": task.run_spec.seed,
    }
    problem_object = _get_problem_object(task)
    if problem_object is not None:
        dependencies["problem"] = problem_object
    return dependencies


KEYWORD_ARGUMENTS: Mapping[str, Callable[[Task], Any]] = {
    "problem_packet": lambda task: task.problem,
    "problem": _get_problem,
    "brief": lambda task: task.problem.brief,
    "run_spec": lambda task: task.run_spec,
    "condition": lambda task: task.condition,
    "seed": lambda task: task.run_spec.seed,
    "prompt": _get_prompt,
    "input": _get_prompt,
    "request_id": lambda task: task.run_spec.run_id,
    "dependencies": _get_dependencies,
}
