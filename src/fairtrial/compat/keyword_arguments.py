"""The ten keywords that an agent's parameters may be named by, and what each of them gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairtrial.study import Task


def _problem_object(task: Task) -> Any:
    """The object that a packet was made of, where it was made of one."""
    payload = getattr(task.problem, "payload", None)
    return payload.get("problem_object") if isinstance(payload, Mapping) else None


def _problem(task: Task) -> Any:
    found = _problem_object(task)
    return task.problem if found is None else found


def _prompt(task: Task) -> Any:
    found = _problem_object(task)
    return task.problem.brief if found is None else found


def _dependencies(task: Task) -> dict[str, Any]:
    told = {
        "problem_packet": task.problem,
        "run_spec": task.run_spec,
        "condition": task.condition,
        "seed": task.run_spec.seed,
    }
    found = _problem_object(task)
    return told if found is None else {**told, "problem": found}


KEYWORDS: Mapping[str, Callable[[Task], Any]] = {
    "problem_packet": lambda task: task.problem,
    "problem": _problem,
    "brief": lambda task: task.problem.brief,
    "run_spec": lambda task: task.run_spec,
    "condition": lambda task: task.condition,
    "seed": lambda task: task.run_spec.seed,
    "prompt": _prompt,
    "input": _prompt,
    "request_id": lambda task: task.run_spec.run_id,
    "dependencies": _dependencies,
}
