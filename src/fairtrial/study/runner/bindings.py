"""Bind the names of a study to agents and problems; everything is checked before it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.core import (
    FieldPath,
    Mistake,
    PluginError,
    StudyError,
    build_record,
    did_you_mean,
    plugins,
)
from fairtrial.study.agents.call_forms import Call, bind_agent, callable_name, construct, preset
from fairtrial.study.agents.hooks import AgentHooks
from fairtrial.study.design.agent_options import find_option_factors
from fairtrial.study.design.runs import DEFAULT_AGENT, DEFAULT_PROBLEM, get_agents, get_problems
from fairtrial.study.extensions import extensions
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import AgentBinding, ProblemBinding, RunBudget, Study
from fairtrial.study.problems.hooks import ProblemReference
from fairtrial.study.problems.packet import ProblemPacket, resolve_problem
from fairtrial.study.protocols import Problem
from fairtrial.study.runner.agent_variants import (
    AgentVariants,
    check_agent_factors,
    check_option_levels,
)
from fairtrial.study.runner.preflight import HookedAgent, check_agent_problems

NO_PROBLEM = ProblemPacket(DEFAULT_PROBLEM, family="none")
"""The problem that agents get in a study without problems."""


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


@dataclass(frozen=True, slots=True)
class Bindings:
    """Agents and problems by name, ready to be called, or a condition runner instead of both.

    Pickled as their sources: another process imports the same modules and builds the same objects.

    agents: agents by name
    problems: problems by name
    condition_runner: runs a condition without agent and problem
    sources: the source of each, by section and name
    """

    agents: Mapping[str, Call] = field(default_factory=dict)
    problems: Mapping[str, Problem] = field(default_factory=dict)
    condition_runner: Callable[..., Any] | None = None
    sources: Mapping[tuple[str, str], BindingSource] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebind, (dict(self.sources),)


def bind(
    study: Study,
    conditions: Iterable[Condition],
    agent_bindings: Mapping[str, Any] | None = None,
    problem_registry: Mapping[str, Any] | None = None,
    condition_runner: Callable[..., Any] | str | None = None,
) -> Bindings:
    """Bind every name that the conditions use; arguments take precedence over the study.

    Raises one `StudyError` with all mistakes.
    """
    mistakes: list[Mistake] = []
    runner = study.condition_runner if condition_runner is None else condition_runner
    if runner is not None:
        sources = {("runner", ""): BindingSource(("condition_runner",), runner, study.folder)}
    else:
        agents, problems = _names_in_use(study, conditions)
        given_agents = _collect_sources("agent_bindings", agent_bindings, "agents", study)
        given_problems = _collect_sources("problem_registry", problem_registry, "problems", study)
        sources = _select_sources("agents", agents, given_agents, mistakes)
        if problems == [DEFAULT_PROBLEM] and not given_problems:
            given_problems = {DEFAULT_PROBLEM: BindingSource((), NO_PROBLEM)}
        sources |= _select_sources("problems", problems, given_problems, mistakes)
    bindings = _build_bindings(sources, mistakes)
    if not mistakes:
        mistakes.extend(check_agent_factors(study, conditions, bindings.agents))
        mistakes.extend(check_agent_problems(study, conditions, bindings.agents, bindings.problems))
    if mistakes:
        raise StudyError(mistakes)
    return bindings


def find_plugin_mistakes(study: Study, conditions: Iterable[Condition]) -> list[Mistake]:
    """Return what keeps runs from starting here, as far as it shows without importing user code.

    That covers the plug-ins that the study names, such as an optimizer and its code problem.
    """
    mistakes: list[Mistake] = []
    names = dict(zip(("agents", "problems"), _names_in_use(study, conditions), strict=True))
    if study.condition_runner is not None:
        return mistakes
    sources = {
        (section, name): source
        for section, used in names.items()
        for name, source in _collect_sources("", None, section, study).items()
        if name in used and not _needs_import(source.value)
    }
    bindings = _build_bindings(sources, mistakes)
    mistakes.extend(check_option_levels(study, conditions, bindings.agents))
    bound = bindings.agents, bindings.problems
    return [*mistakes, *check_agent_problems(study, conditions, *bound, imports=False)]


def _needs_import(binding: AgentBinding | ProblemBinding) -> bool:
    """Return whether a binding refers to a `module:callable` of the user."""
    evaluator = binding.evaluator if isinstance(binding, ProblemBinding) else None
    return ":" in (binding.use or "") or evaluator is not None


# -- from names to sources --


def _names_in_use(study: Study, conditions: Iterable[Condition]) -> tuple[list[str], list[str]]:
    agents: dict[str | None, None] = {}
    problems: dict[str | None, None] = {}
    for condition in conditions:
        if condition.admissible:
            agents |= dict.fromkeys(get_agents(study, condition))
            problems |= dict.fromkeys(get_problems(study, condition))
    return [name for name in agents if name], [name for name in problems if name]


def _collect_sources(
    argument: str, given: Mapping[str, Any] | None, section: str, study: Study
) -> dict[str, BindingSource]:
    """Return the sources of a section by name; the argument takes precedence over the study."""
    if not isinstance(given, Mapping | None):
        raise StudyError(Mistake((argument,), "must be a mapping: {name: what it stands for}"))
    factors = [factor.name for factor in study.factors] if section == "agents" else []

    def source(origin: str, name: str, value: Any) -> BindingSource:
        own_factors = find_option_factors(name, factors)
        return BindingSource((origin, name), value, study.folder, own_factors, study.run_budget)

    bound = {name: source(section, name, value) for name, value in getattr(study, section).items()}
    return bound | {name: source(argument, name, value) for name, value in (given or {}).items()}


def _select_sources(
    section: str, names: Sequence[str], given: Mapping[str, BindingSource], mistakes: list[Mistake]
) -> dict[tuple[str, str], BindingSource]:
    """Return the sources of the names in use; add a mistake for each name without one."""
    mistakes.extend(_unbound_mistake(section, name, given) for name in names if name not in given)
    return {(section, name): given[name] for name in names if name in given}


def _unbound_mistake(section: str, name: str, given: Mapping[str, BindingSource]) -> Mistake:
    kind = section.removesuffix("s")
    argument, listed = (
        ("agent_bindings", "agent_specs")
        if section == "agents"
        else ("problem_registry", "problem_ids")
    )
    bind_it = f"bind it under `{section}`, or pass {argument}={{'{name}': ...}}"
    if name in (DEFAULT_AGENT, DEFAULT_PROBLEM):
        message = f"the study doesn't say which {kind} to use"
        return Mistake(
            (listed,), message, f"list it here; bound are {', '.join(given)}" if given else bind_it
        )
    similar = f"{did_you_mean(name, given)}; " if given else ""
    return Mistake((section,), f"nothing is bound to the {kind} '{name}'", similar + bind_it)


# -- from sources to objects --


def _rebind(sources: Mapping[tuple[str, str], BindingSource]) -> Bindings:
    mistakes: list[Mistake] = []
    bindings = _build_bindings(sources, mistakes)
    if mistakes:
        raise StudyError(mistakes)
    return bindings


def _build_bindings(
    sources: Mapping[tuple[str, str], BindingSource], mistakes: list[Mistake]
) -> Bindings:
    makers: Mapping[str, Callable[[str, BindingSource], Any]] = {
        "agents": make_agent,
        "problems": lambda name, source: make_problem(name, source.value, source.folder),
        "runner": lambda name, source: make_runner(source.value, source.folder),
    }
    built: dict[str, dict[str, Any]] = {section: {} for section in makers}
    for (section, name), source in sources.items():
        try:
            built[section][name] = makers[section](name, source)
        except StudyError as error:
            mistakes.extend(mistake.under(source.path) for mistake in error.mistakes)
    return Bindings(built["agents"], built["problems"], built["runner"].get(""), sources)


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


def make_problem(name: str, value: Any, folder: Path | None) -> Problem:
    """Return the problem for an object, a mapping, a reference or a `ProblemBinding`.

    Raises `StudyError` if it is no problem, or its evaluator doesn't take one argument.
    """
    if isinstance(value, str):
        value = ProblemBinding(use=value)
    if isinstance(value, ProblemBinding):
        problem = _build_problem(name, value, folder)
    else:
        for extension in extensions():
            value = extension.adapt_problem(name, value) or value
        problem = resolve_problem(name, registry={name: _load_evaluator(value, folder)})
    evaluator = problem.evaluator if isinstance(problem, ProblemPacket) else problem.evaluate
    if evaluator is not None and not (callable(evaluator) and _takes_arguments(evaluator, 1)):
        message = (
            f"{callable_name(evaluator)} must be a function of one argument: the answer to judge"
        )
        raise StudyError(Mistake(("evaluator",), message))
    return problem


def _build_problem(name: str, binding: ProblemBinding, folder: Path | None) -> Problem:
    if binding.use is None:
        evaluator = binding.evaluator
        return ProblemPacket(
            name,
            binding.family or "unknown",
            binding.brief,
            binding.payload,
            binding.metadata,
            None if evaluator is None else _load(evaluator, folder, "evaluator"),
        )
    if ":" not in binding.use:
        problem = _build_plugin("problems", binding.use, binding.options)
    else:
        problem = _call_factory(_load(binding.use, folder), binding.options)
    if isinstance(problem, ProblemReference):
        problem = problem.bind(name, folder)
    return resolve_problem(name, registry={name: problem})


def _load_evaluator(problem: Any, folder: Path | None) -> Any:
    """Return a packet or mapping with its evaluator loaded if that is a `module:callable`."""
    if isinstance(problem, Mapping) and isinstance(problem.get("evaluator"), str):
        return {**problem, "evaluator": _load(problem["evaluator"], folder, "evaluator")}
    if isinstance(problem, ProblemPacket) and isinstance(problem.evaluator, str):
        return replace(problem, evaluator=_load(problem.evaluator, folder, "evaluator"))
    return problem


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
