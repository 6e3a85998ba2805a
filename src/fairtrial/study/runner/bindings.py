"""Bind the names of a study to agents and problems; everything is checked before it runs."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.agents.call_forms import Call
from fairtrial.study.design.agent_options import find_option_factors
from fairtrial.study.design.runs import DEFAULT_AGENT, DEFAULT_PROBLEM, get_agents, get_problems
from fairtrial.study.extensions import extensions
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.problems import Dataset, ProblemBinding, named_code
from fairtrial.study.model.study import AgentBinding, Study
from fairtrial.study.problems.packet import ProblemPacket
from fairtrial.study.protocols import Problem
from fairtrial.study.runner.agent_variants import check_agent_factors, check_option_levels
from fairtrial.study.runner.bound_objects import (
    BindingSource,
    make_agent,
    make_problem,
    make_runner,
)
from fairtrial.study.runner.dataset_problems import DatasetProblems
from fairtrial.study.runner.preflight import check_agent_problems

NO_PROBLEM = ProblemPacket(DEFAULT_PROBLEM, family="none")
"""The problem that agents get in a study without problems."""


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

    @property
    def single_problems(self) -> Mapping[str, Problem]:
        """The problems that aren't rows of a dataset."""
        problems = self.problems
        return problems.maps[0] if isinstance(problems, ChainMap) else problems

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
        problems = _without_rows(study, problems, given_problems)
        _find_elsewhere("agents", agents, given_agents, study)
        _find_elsewhere("problems", problems, given_problems, study)
        sources = _select_sources("agents", agents, given_agents, mistakes)
        if problems == [DEFAULT_PROBLEM] and not given_problems:
            given_problems = {DEFAULT_PROBLEM: BindingSource((), NO_PROBLEM)}
        sources |= _select_sources("problems", problems, given_problems, mistakes)
        sources |= _dataset_source(study)
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
    sources |= _dataset_source(study, imports=False)
    bindings = _build_bindings(sources, mistakes)
    mistakes.extend(check_option_levels(study, conditions, bindings.agents))
    bound = bindings.agents, bindings.problems
    return [*mistakes, *check_agent_problems(study, conditions, *bound, imports=False)]


def _needs_import(binding: AgentBinding | ProblemBinding) -> bool:
    """Return whether a binding refers to a `module:callable` of the user."""
    if isinstance(binding, ProblemBinding):
        return bool(named_code({"": binding}))
    return ":" in binding.use


# -- from names to sources --


def _names_in_use(study: Study, conditions: Iterable[Condition]) -> tuple[list[str], list[str]]:
    agents: dict[str | None, None] = {}
    problems: dict[str | None, None] = {}
    seen: set[tuple[tuple[str | None, ...], ...]] = set()
    for condition in conditions:
        if condition.admissible:
            names = get_agents(study, condition), get_problems(study, condition)
            if names not in seen:
                seen.add(names)
                agents |= dict.fromkeys(names[0])
                problems |= dict.fromkeys(names[1])
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

    if isinstance(given, Dataset):
        hint = "Study(..., problems=Dataset(...))"
        raise StudyError(Mistake((argument,), "a dataset is the study's own `problems`", hint))
    own = {} if isinstance(getattr(study, section), Dataset) else getattr(study, section)
    bound = {name: source(section, name, value) for name, value in own.items()}
    return bound | {name: source(argument, name, value) for name, value in (given or {}).items()}


def _without_rows(
    study: Study, names: Sequence[str], given: Mapping[str, BindingSource]
) -> list[str]:
    """Return the names of problems that aren't rows of the study's dataset."""
    if study.dataset is None:
        return list(names)
    return [name for name in names if name in given or name not in study.dataset]


def _dataset_source(study: Study, *, imports: bool = True) -> dict[tuple[str, str], BindingSource]:
    """Return the source of a dataset's problems; none if it has evaluators to import."""
    dataset = study.dataset
    if dataset is None or (not imports and named_code(dataset)):
        return {}
    source = BindingSource(("problems",), dataset, study.folder, (), study.run_budget)
    return {("dataset", ""): source}


def _find_elsewhere(
    section: str, names: Sequence[str], given: dict[str, BindingSource], study: Study
) -> None:
    """Add the sources of names that are bound to nothing, but known to an extension."""
    for name in names:
        if name in given or name in (DEFAULT_AGENT, DEFAULT_PROBLEM):
            continue
        for extension in extensions():
            is_agent = section == "agents"
            binding = extension.find_agent(name) if is_agent else extension.find_problem(name)
            if binding is not None:
                path = (section, name)
                given[name] = BindingSource(path, binding, study.folder, (), study.run_budget)


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
        "problems": lambda name, source: make_problem(
            name, source.value, source.folder, source.budget
        ),
        "dataset": lambda name, source: DatasetProblems(source.value, source.folder, source.budget),
        "runner": lambda name, source: make_runner(source.value, source.folder),
    }
    built: dict[str, dict[str, Any]] = {section: {} for section in makers}
    for (section, name), source in sources.items():
        try:
            built[section][name] = makers[section](name, source)
        except StudyError as error:
            mistakes.extend(mistake.under(source.path) for mistake in error.mistakes)
    problems: Mapping[str, Problem] = built["problems"]
    if "" in built["dataset"]:
        problems = ChainMap(built["problems"], built["dataset"][""])
    return Bindings(built["agents"], problems, built["runner"].get(""), sources)
