"""`run_study` and `resume_study` that take functions which make an agent for each condition."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from fairtrial import (
    RunResult,
    for_condition,
    resume_study as _resume_study,
    run_study as _run_study,
)
from fairtrial.compat.keyword_arguments import KEYWORD_ARGUMENTS

_AGENT_PARAMETERS = {*KEYWORD_ARGUMENTS, "task"}


def run_study(
    study: Any, *, agent_bindings: Mapping[str, Any] | None = None, **settings: Any
) -> Sequence[RunResult]:
    """Run a study as `fairtrial.run_study` does, with bindings as design-research-experiments takes
    them: a function with one positional parameter makes an agent from the run's condition, unless
    the parameter's name is one of an agent's (`task`, `problem_packet`, `seed`, ...).

    study: the study, or the path of its file
    agent_bindings: agents by name, and functions that make them
    settings: the other arguments of `fairtrial.run_study`
    """
    return _run_study(study, agent_bindings=_mark_makers(agent_bindings), **settings)


def resume_study(
    study: Any, *, agent_bindings: Mapping[str, Any] | None = None, **settings: Any
) -> Sequence[RunResult]:
    """Resume a study: `run_study` with ``resume=True``; starts it if there are no results yet."""
    return _resume_study(study, agent_bindings=_mark_makers(agent_bindings), **settings)


def _mark_makers(bindings: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if not isinstance(bindings, Mapping):
        return bindings
    return {
        name: for_condition(value) if _makes_agents(value) else value
        for name, value in bindings.items()
    }


def _makes_agents(binding: Any) -> bool:
    """Return whether a binding makes agents, by the rules of design-research-experiments."""
    is_function = callable(binding) and not isinstance(binding, type)
    if not is_function or callable(getattr(binding, "run", None)):
        return False
    try:
        parameters = list(inspect.signature(binding).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        len(parameters) == 1
        and parameters[0].kind in positional
        and parameters[0].name not in _AGENT_PARAMETERS
        and type(binding) is not type(for_condition(len))
    )
