"""Names to agents and problems: all of them found, made and checked before anything runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.core import (
    Mistake,
    Place,
    PluginError,
    Record,
    StudyError,
    build,
    did_you_mean,
    plugins,
)
from fairtrial.study.agents.call_forms import Call, bind_agent, construct, name_of, preset
from fairtrial.study.design.agent_options import find_varied
from fairtrial.study.design.runs import DEFAULT_AGENT, DEFAULT_PROBLEM, agents_of, problems_of
from fairtrial.study.extensions import extensions
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import AgentBinding, ProblemBinding, RunBudget, Study
from fairtrial.study.problems.packet import ProblemPacket, resolve_problem
from fairtrial.study.protocols import Problem
from fairtrial.study.runner.agent_options import Varied, check_levels, check_varied
from fairtrial.study.runner.preflight import Looking, check_meetings

NO_PROBLEM = ProblemPacket(DEFAULT_PROBLEM, family="none")
"""What agents of a study without problems are given."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a name was bound to, and where: enough to bind it again in another process.

    varied: factors of the study that set its options
    budget: what the study may spend, for agents that have to know before they start
    """

    place: Place
    given: Any
    folder: Path | None = None
    varied: tuple[str, ...] = ()
    budget: RunBudget | None = None


@dataclass(frozen=True, slots=True)
class Bindings:
    """Agents and problems by name, ready to be called; or a condition runner, instead of both.

    Pickled as what they were made of: another process imports the same modules and makes the
    same objects.
    """

    agents: Mapping[str, Call] = field(default_factory=dict)
    problems: Mapping[str, Problem] = field(default_factory=dict)
    condition_runner: Callable[..., Any] | None = None
    sources: Mapping[tuple[str, str], Source] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return _bind_again, (dict(self.sources),)


def bind(
    study: Study,
    conditions: Iterable[Condition],
    agent_bindings: Mapping[str, Any] | None = None,
    problem_registry: Mapping[str, Any] | None = None,
    condition_runner: Callable[..., Any] | str | None = None,
    *,
    mistakes: list[Mistake] | None = None,
) -> Bindings:
    """Bind every name that the conditions use; what Python gives goes before what the study says.

    With `mistakes` what is wrong is appended there, else it is raised: all of it at once.
    """
    found: list[Mistake] = []
    runner = study.condition_runner if condition_runner is None else condition_runner
    if runner is not None:
        sources = {("runner", ""): Source(("condition_runner",), runner, study.folder)}
    else:
        agents, problems = _names_in_use(study, conditions)
        given_agents = _sources("agent_bindings", agent_bindings, "agents", study)
        given_problems = _sources("problem_registry", problem_registry, "problems", study)
        sources = _choose("agents", agents, given_agents, found)
        if problems == [DEFAULT_PROBLEM] and not given_problems:
            given_problems = {DEFAULT_PROBLEM: Source((), NO_PROBLEM)}
        sources |= _choose("problems", problems, given_problems, found)
    bindings = _make_all(sources, found)
    if not found:
        found.extend(check_varied(study, conditions, bindings.agents))
        found.extend(check_meetings(study, conditions, bindings.agents, bindings.problems))
    if mistakes is not None:
        mistakes.extend(found)
    elif found:
        raise StudyError(found)
    return bindings


def foresee(study: Study, conditions: Iterable[Condition]) -> list[Mistake]:
    """What keeps runs from starting here, as far as it shows without importing anybody's code.

    That is: all about plug-ins that the study names, such as an optimiser and its code problem.
    """
    found: list[Mistake] = []
    names = dict(zip(("agents", "problems"), _names_in_use(study, conditions), strict=True))
    if study.condition_runner is not None:
        return found
    sources = {
        (section, name): source
        for section, used in names.items()
        for name, source in _sources("", None, section, study).items()
        if name in used and not _imports(source.given)
    }
    bindings = _make_all(sources, found)
    found.extend(check_levels(study, conditions, bindings.agents))
    met = bindings.agents, bindings.problems
    return [*found, *check_meetings(study, conditions, *met, imports=False)]


def _imports(given: AgentBinding | ProblemBinding) -> bool:
    """Whether a `module:callable` of the user's has to be imported for it."""
    evaluator = given.evaluator if isinstance(given, ProblemBinding) else None
    return ":" in (given.use or "") or evaluator is not None


# -- which names there are, and what they stand for --


def _names_in_use(study: Study, conditions: Iterable[Condition]) -> tuple[list[str], list[str]]:
    agents: dict[str | None, None] = {}
    problems: dict[str | None, None] = {}
    for condition in conditions:
        if condition.admissible:
            agents |= dict.fromkeys(agents_of(study, condition))
            problems |= dict.fromkeys(problems_of(study, condition))
    return [name for name in agents if name], [name for name in problems if name]


def _sources(
    argument: str, given: Mapping[str, Any] | None, section: str, study: Study
) -> dict[str, Source]:
    """What is bound: by the study, and, before that, by the argument of that name."""
    if not isinstance(given, Mapping | None):
        raise StudyError(Mistake((argument,), "must be a mapping: {name: what it stands for}"))
    factors = [factor.name for factor in study.factors] if section == "agents" else []

    def source(place: str, name: str, value: Any) -> Source:
        varied = find_varied(name, factors)
        return Source((place, name), value, study.folder, varied, study.run_budget)

    told = {name: source(section, name, each) for name, each in getattr(study, section).items()}
    return told | {name: source(argument, name, each) for name, each in (given or {}).items()}


def _choose(
    section: str, names: Sequence[str], given: Mapping[str, Source], mistakes: list[Mistake]
) -> dict[tuple[str, str], Source]:
    """The sources of the names in use; the names without one are mistakes."""
    mistakes.extend(_unbound(section, name, given) for name in names if name not in given)
    return {(section, name): given[name] for name in names if name in given}


def _unbound(section: str, name: str, given: Mapping[str, Source]) -> Mistake:
    what = section.removesuffix("s")
    argument, listed = (
        ("agent_bindings", "agent_specs")
        if section == "agents"
        else ("problem_registry", "problem_ids")
    )
    bind_it = f"bind it under `{section}`, or pass {argument}={{'{name}': ...}}"
    if name in (DEFAULT_AGENT, DEFAULT_PROBLEM):
        message = f"the study doesn't say which {what} to use"
        return Mistake(
            (listed,), message, f"list it here; bound are {', '.join(given)}" if given else bind_it
        )
    known = f"{did_you_mean(name, given)}; " if given else ""
    return Mistake((section,), f"nothing is bound to the {what} '{name}'", known + bind_it)


# -- from sources to objects --


def _bind_again(sources: Mapping[tuple[str, str], Source]) -> Bindings:
    mistakes: list[Mistake] = []
    bindings = _make_all(sources, mistakes)
    if mistakes:
        raise StudyError(mistakes)
    return bindings


def _make_all(sources: Mapping[tuple[str, str], Source], mistakes: list[Mistake]) -> Bindings:
    makers: Mapping[str, Callable[[str, Source], Any]] = {
        "agents": make_agent,
        "problems": lambda name, source: make_problem(name, source.given, source.folder),
        "runner": lambda name, source: make_runner(source.given, source.folder),
    }
    made: dict[str, dict[str, Any]] = {section: {} for section in makers}
    for (section, name), source in sources.items():
        try:
            made[section][name] = makers[section](name, source)
        except StudyError as error:
            mistakes.extend(mistake.under(source.place) for mistake in error.mistakes)
    return Bindings(made["agents"], made["problems"], made["runner"].get(""), sources)


def make_agent(name: str, source: Source) -> Call:
    """The agent that an object, a `module:callable` or an `AgentBinding` stands for."""
    given, varied = source.given, source.varied
    binding = AgentBinding(use=given) if isinstance(given, str) else given
    if not isinstance(binding, AgentBinding):
        if varied:
            message = f"the factor '{varied[0]}' sets its options, but it was made already"
            raise StudyError(Mistake((), message, "bind it by name: {use: ..., options: ...}"))
        call = bind_agent(given)
        # Of what is the user's own a method may happen to have that name.
        return _checked(given, call, source) if isinstance(given, Record) else call
    if varied:
        options = binding.options
        return Varied(
            name, options, varied, lambda own: _named(replace(binding, options=own), source)
        )
    return _named(binding, source)


def _named(binding: AgentBinding, source: Source) -> Call:
    if ":" in binding.use:
        return bind_agent(_load(binding.use, source.folder), binding.options)
    agent = _plug_in("agents", binding.use, binding.options)
    return _checked(agent, bind_agent(agent), source)


def _checked(agent: Any, call: Call, source: Source) -> Call:
    """The agent as it is called, if nothing keeps it from starting; some look for that."""
    if source.budget is not None and hasattr(agent, "check_start"):
        try:
            agent.check_start(source.budget)
        except StudyError as error:
            raise StudyError([each.under(("options",)) for each in error.mistakes]) from error
    return Looking(agent, call) if hasattr(agent, "check_problem") else call


def make_problem(name: str, given: Any, folder: Path | None) -> Problem:
    """The problem that an object, a mapping, a reference or a `ProblemBinding` stands for."""
    if isinstance(given, str):
        given = ProblemBinding(use=given)
    if isinstance(given, ProblemBinding):
        problem = _bound_problem(name, given, folder)
    else:
        for extension in extensions():
            given = extension.adapt_problem(name, given) or given
        problem = resolve_problem(name, registry={name: _with_evaluator(given, folder)})
    evaluator = problem.evaluator if isinstance(problem, ProblemPacket) else problem.evaluate
    if evaluator is not None and not (callable(evaluator) and _takes(evaluator, 1)):
        message = f"{name_of(evaluator)} must be a function of one argument: the answer to judge"
        raise StudyError(Mistake(("evaluator",), message))
    return problem


def _bound_problem(name: str, binding: ProblemBinding, folder: Path | None) -> Problem:
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
        made = _plug_in("problems", binding.use, binding.options)
    else:
        made = _call(_load(binding.use, folder), binding.options)
    if hasattr(made, "bound"):  # it stands for a file of the study's folder
        made = made.bound(name, folder)
    return resolve_problem(name, registry={name: made})


def _with_evaluator(given: Any, folder: Path | None) -> Any:
    """A packet or mapping whose evaluator may be written `module:callable`."""
    if isinstance(given, Mapping) and isinstance(given.get("evaluator"), str):
        return {**given, "evaluator": _load(given["evaluator"], folder, "evaluator")}
    if isinstance(given, ProblemPacket) and isinstance(given.evaluator, str):
        return replace(given, evaluator=_load(given.evaluator, folder, "evaluator"))
    return given


def make_runner(given: Any, folder: Path | None) -> Callable[..., Any]:
    """The function that runs a condition without agent and problem."""
    runner = _load(given, folder, "") if isinstance(given, str) else given
    if not callable(runner):
        raise StudyError(f"a value of type {type(runner).__qualname__} is no condition runner")
    if not _takes(runner, 2):
        raise StudyError(f"{name_of(runner)} must take two arguments: run_spec and condition")
    return runner


def _call(target: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """What a class or function that makes a problem gives."""
    if isinstance(target, type):
        return construct(target, options)
    try:
        return preset(target, options)()
    except StudyError:
        raise
    except Exception as error:
        message = f"{name_of(target)} made no problem: {type(error).__name__}: {error}"
        raise StudyError(Mistake(("use",), message)) from error


def _load(reference: str, folder: Path | None, name: str = "use") -> Callable[..., Any]:
    try:
        return plugins.load_reference(reference, folder)
    except PluginError as error:
        place = (name,) if name else ()
        raise PluginError([mistake.under(place) for mistake in error.mistakes]) from error


def _plug_in(group: str, name: str, options: Mapping[str, Any]) -> Any:
    try:
        kind = plugins.load(group, name)
    except PluginError as error:
        hint = "a function of your own is written module:callable"
        raise PluginError(
            [
                replace(mistake, path=("use",), hint=f"{mistake.hint}; {hint}".lstrip("; "))
                for mistake in error.mistakes
            ]
        ) from error
    mistakes: list[Mistake] = []
    made = build(kind, options, ("options",), mistakes)
    if mistakes:
        raise StudyError(mistakes)
    return made


def _takes(target: Callable[..., Any], count: int) -> bool:
    """Whether a callable can be given so many arguments by place, as far as it says."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
