"""The keyword arguments that agents of *design-research-experiments* may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairtrial import Task
from fairtrial.compat.siblings import get_dependencies, get_problem_object


def _get_problem(task: Task) -> Any:
    problem_object = get_problem_object(task.problem)
    return task.problem if problem_object is None else problem_object


def _get_prompt(task: Task) -> Any:
    problem_object = get_problem_object(task.problem)
    return task.problem.brief if problem_object is None else problem_object


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
    "dependencies": get_dependencies,
}
