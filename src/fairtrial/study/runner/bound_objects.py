"""Build agents, problems and condition runners from what names are bound to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial.core import (
    FieldPath,
    Mistake,
    PluginError,
    StudyError,
    build_record,
    convert_value,
    plugins,
)
from fairtrial.study.agents.call_forms import Call, bind_agent, callable_name, construct, preset
from fairtrial.study.agents.hooks import AgentHooks
from fairtrial.study.evaluators.evaluator_set import EvaluatorSet, build_evaluators
from fairtrial.study.extensions import extensions
from fairtrial.study.model.problems import (
    EvaluatorBinding,
    EvaluatorField,
    ProblemBinding,
    list_evaluators,
)
from fairtrial.study.model.study import AgentBinding, RunBudget
from fairtrial.study.problems.hooks import ProblemReference
from fairtrial.study.problems.packet import ProblemPacket, resolve_problem
from fairtrial.study.protocols import Problem
from fairtrial.study.runner.agent_variants import AgentVariants
from fairtrial.study.runner.preflight import HookedAgent


@dataclass(frozen=True, slots=True)
class BindingSource:
    """The value that a name is bound to, with what it takes to bind it in another process.

    path: where in the study or in the arguments it stands, for messages
    value: a Python object, a reference or a binding
    folder: the study's folder
    factors: the factors of the study that set its options
    budget: the limits of the study, for agents that check them before they start
    """

    path: FieldPath
    value: Any
    folder: Path | None = None
    factors: tuple[str, ...] = ()
    budget: RunBudget | None = None


def make_agent(name: str, source: BindingSource) -> Call:
    """Return the agent for an object, a `module:callable` or an `AgentBinding`.

    Raises `StudyError` if it can't be built or its own checks fail.
    """
    value, factors = source.value, source.factors
    binding = AgentBinding(use=value) if isinstance(value, str) else value
    if not isinstance(binding, AgentBinding):
        if factors:
            message = f"the factor '{factors[0]}' sets its options, but it was made already"
            raise StudyError(Mistake((), message, "bind it by name: {use: ..., options: ...}"))
        return _check_hooks(value, bind_agent(value), source)

    def make(options: Mapping[str, Any]) -> Call:
        return _build_named_agent(replace(binding, options=options), source)

    return AgentVariants(name, binding.options, factors, make) if factors else make(binding.options)


def _build_named_agent(binding: AgentBinding, source: BindingSource) -> Call:
    options: Mapping[str, Any] = binding.options
    if ":" not in binding.use:
        agent, options = _build_plugin("agents", binding.use, options), {}
    else:
        agent = _load(binding.use, source.folder)
        if isinstance(agent, type):
            agent, options = construct(agent, options), {}
    if isinstance(agent, AgentHooks):
        agent = agent.in_folder(source.folder)
    return _check_hooks(agent, bind_agent(agent, options), source)


def _check_hooks(agent: Any, call: Call, source: BindingSource) -> Call:
    """Return the call of an agent, together with its hooks if it has any.

    Raises `StudyError` if the agent's `check_start` does.
    """
    if not isinstance(agent, AgentHooks):
        return call
    if source.budget is not None:
        try:
            agent.check_start(source.budget)
        except StudyError as error:
            raise StudyError([mistake.under(("options",)) for mistake in error.mistakes]) from error
    return HookedAgent(agent, call)


def make_problem(
    name: str, value: Any, folder: Path | None, budget: RunBudget | None = None
) -> Problem:
    """Return the problem for an object, a mapping, a reference or a `ProblemBinding`.

    Raises `StudyError` if it is no problem, or its evaluator doesn't take one argument.

    budget: the limits of the study, for evaluators that check them before anything runs
    """
    if isinstance(value, str):
        value = ProblemBinding(use=value)
    if isinstance(value, ProblemBinding):
        problem = _build_problem(name, value, folder, budget)
    else:
        for extension in extensions():
            value = extension.adapt_problem(name, value) or value
        problem = resolve_problem(name, registry={name: _load_evaluator(value, folder)})
    check_evaluator(problem.evaluator if isinstance(problem, ProblemPacket) else problem.evaluate)
    return problem


def check_evaluator(evaluator: Any) -> None:
    """Raise `StudyError` if an evaluator can't be called with one argument; None is none."""
    if evaluator is not None and not (callable(evaluator) and _takes_arguments(evaluator, 1)):
        message = (
            f"{callable_name(evaluator)} must be a function of one argument: the answer to judge"
        )
        raise StudyError(Mistake(("evaluator",), message))


def _build_problem(
    name: str, binding: ProblemBinding, folder: Path | None, budget: RunBudget | None
) -> Problem:
    if binding.use is None:
        evaluator = build_evaluators(list_evaluators(binding.evaluator), folder, budget)
        if isinstance(evaluator, EvaluatorSet):
            evaluator.require_reference(binding.reference is not None)
        return ProblemPacket(
            name,
            binding.family or "unknown",
            binding.brief,
            binding.payload,
            binding.metadata,
            evaluator,
            binding.reference,
        )
    if ":" not in binding.use:
        problem = _build_plugin("problems", binding.use, binding.options)
    else:
        problem = _call_factory(_load(binding.use, folder), binding.options)
    if isinstance(problem, ProblemReference):
        problem = problem.bind(name, folder)
    return resolve_problem(name, registry={name: problem})


def _load_evaluator(problem: Any, folder: Path | None) -> Any:
    """Return a packet or mapping with its evaluators built if it names them."""
    is_mapping = isinstance(problem, Mapping)
    if not is_mapping and not isinstance(problem, ProblemPacket):
        return problem
    named = problem.get("evaluator") if is_mapping else problem.evaluator
    if not isinstance(named, (str, Mapping, list, tuple, EvaluatorBinding)):
        return problem
    mistakes: list[Mistake] = []
    bindings = convert_value(named, EvaluatorField, ("evaluator",), mistakes)
    if mistakes:
        raise StudyError(mistakes)
    built = build_evaluators(list_evaluators(bindings), folder)
    return {**problem, "evaluator": built} if is_mapping else replace(problem, evaluator=built)


def make_runner(value: Any, folder: Path | None) -> Callable[..., Any]:
    """Return the condition runner for a function or a `module:callable`.

    Raises `StudyError` if it doesn't take two arguments.
    """
    runner = _load(value, folder, "") if isinstance(value, str) else value
    if not callable(runner):
        raise StudyError(f"a value of type {type(runner).__qualname__} is no condition runner")
    if not _takes_arguments(runner, 2):
        raise StudyError(f"{callable_name(runner)} must take two arguments: run_spec and condition")
    return runner


def _call_factory(target: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return the problem that a class or function makes; `StudyError` if it raises."""
    if isinstance(target, type):
        return construct(target, options)
    try:
        return preset(target, options)()
    except StudyError:
        raise
    except Exception as error:
        message = f"{callable_name(target)} made no problem: {type(error).__name__}: {error}"
        raise StudyError(Mistake(("use",), message)) from error


def _load(reference: str, folder: Path | None, name: str = "use") -> Callable[..., Any]:
    try:
        return plugins.load_reference(reference, folder)
    except PluginError as error:
        path = (name,) if name else ()
        raise PluginError([mistake.under(path) for mistake in error.mistakes]) from error


def _build_plugin(group: str, name: str, options: Mapping[str, Any]) -> Any:
    try:
        plugin_class = plugins.load(group, name)
    except PluginError as error:
        hint = "a function of your own is written module:callable"
        raise PluginError(
            [
                replace(mistake, path=("use",), hint=f"{mistake.hint}; {hint}".lstrip("; "))
                for mistake in error.mistakes
            ]
        ) from error
    mistakes: list[Mistake] = []
    plugin = build_record(plugin_class, options, ("options",), mistakes)
    if mistakes:
        raise StudyError(mistakes)
    return plugin


def _takes_arguments(target: Callable[..., Any], count: int) -> bool:
    """Return whether a callable takes so many positional arguments; True if that is unknown."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
