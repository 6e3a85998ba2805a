"""Prepare a study before anything runs: find all mistakes, bind all names, make the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from fairtrial.core import Mistake, StudyError, build_record, describe_value, plugins
from fairtrial.study.design.build import build_design
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.design.runs import MAX_RUNS, refuse_collisions
from fairtrial.study.files.reading import StudySource, as_study
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.large_counts import format_large_count
from fairtrial.study.model.problems import named_code
from fairtrial.study.model.study import Study
from fairtrial.study.protocols import Executor
from fairtrial.study.runner.bindings import Bindings, bind
from fairtrial.study.runner.executors.pickling import check_reachable
from fairtrial.study.runner.machine_room import (
    find_environment_mistakes,
    find_needs,
    find_room_mistakes,
)
from fairtrial.study.runner.pilot import (
    check_expression,
    find_expression_mistakes,
    refuse_empty_selection,
    selection_warnings,
)
from fairtrial.study.runner.run_attempt import StudyWork
from fairtrial.study.runner.run_settings import RunSettings
from fairtrial.study.validation import concerns_plan, find_study_mistakes

RETRY_CHOICES = ("broken", "failed")
ENDPOINT_AGENTS = ("chat", "http")
"""The agents whose runs only wait for an endpoint."""


@dataclass(frozen=True, slots=True)
class PreparedStudy:
    """A study that is ready to run.

    study: the study with the settings applied
    plan: its runs
    bindings: its agents and problems
    executor: where runs execute
    slots: how many runs execute at once (not the slots of an arena)
    """

    study: Study
    plan: RunPlan
    bindings: Bindings
    executor: Executor
    slots: int


@dataclass(frozen=True, slots=True)
class DryRunReport:
    """The result of a dry run.

    errors: what keeps the study from running
    planned_runs: how many runs it would have
    """

    errors: list[str]
    planned_runs: int


def dry_run_validate(
    study: StudySource,
    *,
    conditions: Sequence[Condition] | None = None,
    agent_bindings: Mapping[str, Any] | None = None,
    problem_registry: Mapping[str, Any] | None = None,
    condition_runner: Callable[..., Any] | None = None,
    parallelism: int | None = None,
    executor: str | Executor | None = None,
) -> DryRunReport:
    """Return every error that would keep a study from running, and how many runs it would have.

    The arguments are those of `run_study`.
    """
    settings = RunSettings(
        conditions=conditions,
        agent_bindings=agent_bindings,
        problem_registry=problem_registry,
        condition_runner=condition_runner,
        parallelism=parallelism,
        executor=executor,
    )
    mistakes: list[Mistake] = []
    plan, _, _, _ = _inspect(settings.apply(as_study(study)), settings, mistakes)
    return DryRunReport([str(mistake) for mistake in mistakes], plan.runnable if plan else 0)


def prepare(study: Study, settings: RunSettings) -> PreparedStudy:
    """Return everything that running a study needs; raises one `StudyError` with all mistakes."""
    study = settings.apply(study)
    mistakes: list[Mistake] = []
    plan, bindings, executor, slots = _inspect(study, settings, mistakes)
    if mistakes or plan is None or bindings is None or executor is None:
        raise StudyError(mistakes)
    for warning in selection_warnings(plan, settings.only) if settings.only is not None else ():
        settings.notify(str(warning))
    return PreparedStudy(study, plan, bindings, executor, slots)


def _inspect(
    study: Study, settings: RunSettings, mistakes: list[Mistake]
) -> tuple[RunPlan | None, Bindings | None, Executor | None, int]:
    """Return as much as can be prepared; all mistakes are added to `mistakes`."""
    plan, bindings = _plan_and_bind(study, settings, mistakes)
    executor, slots = choose_executor(study, settings, mistakes)
    if executor is not None:
        mistakes.extend(executor.find_mistakes())
    is_distributed = executor is not None and executor.is_distributed
    if executor is not None and is_distributed and not mistakes:
        mistakes.extend(executor.find_study_mistakes(find_needs(study)))
    mistakes.extend(find_environment_mistakes(study))
    if not is_distributed:
        mistakes.extend(find_room_mistakes(study))
    if bindings is not None and executor is not None and not executor.is_forking:
        try:
            check_reachable(StudyWork(bindings, outcomes=study.outcomes))
        except StudyError as error:
            mistakes.extend(error.mistakes)
    return plan, bindings, executor, slots


def _plan_and_bind(
    study: Study, settings: RunSettings, mistakes: list[Mistake]
) -> tuple[RunPlan | None, Bindings | None]:
    study_errors = find_study_mistakes(study, with_plan=False)
    mistakes.extend(study_errors)
    if settings.only is not None:
        mistakes.extend(find_expression_mistakes(study, settings.only))
    if settings.limit is not None and settings.limit < 1:
        mistakes.append(Mistake(("limit",), f"must be 1 or more, got {settings.limit}"))
    if settings.retry not in RETRY_CHOICES:
        expected = " or ".join(map(repr, RETRY_CHOICES))
        mistakes.append(Mistake(("retry",), f"expected {expected}, got {settings.retry!r}"))
    if any(map(concerns_plan, study_errors)):
        return None, None
    try:
        plan = RunPlan(study, _make_conditions(study, settings))
        plan_errors = _find_plan_mistakes(study, plan)
        mistakes.extend(plan_errors)
        if not plan_errors:
            refuse_collisions(study, plan.conditions, len(plan))
        if settings.only is not None and not mistakes:
            check_expression(plan, settings.only)
            refuse_empty_selection(plan, settings.only)
    except StudyError as error:
        mistakes.extend(error.mistakes)
        return None, None
    return plan, _bind(study, plan, settings, mistakes)


def _make_conditions(study: Study, settings: RunSettings) -> list[Condition]:
    if settings.conditions is None:
        return build_design(study)
    conditions = list(settings.conditions)
    if not all(isinstance(condition, Condition) for condition in conditions):
        raise StudyError(
            Mistake(("conditions",), "must be a list of Condition, as build_design gives it")
        )
    return conditions


def _bind(
    study: Study, plan: RunPlan, settings: RunSettings, mistakes: list[Mistake]
) -> Bindings | None:
    try:
        return bind(
            study,
            plan.conditions,
            settings.agent_bindings,
            settings.problem_registry,
            settings.condition_runner,
        )
    except StudyError as error:
        mistakes.extend(error.mistakes)
        return None


def _find_plan_mistakes(study: Study, plan: RunPlan) -> list[Mistake]:
    max_runs = study.run_budget.max_runs
    if not len(plan):
        return [Mistake(("factors",), "no condition is left to run")]
    if max_runs is not None and plan.runnable > max_runs:
        return [
            Mistake(
                ("run_budget", "max_runs"),
                f"the plan has {format_large_count(len(plan))} runs, max_runs allows {max_runs:,}",
                "raise max_runs, ask for fewer replicates or conditions, or let "
                "max_runs_policy: balanced leave runs out evenly",
            )
        ]
    if len(plan) > MAX_RUNS:
        return [
            Mistake(
                ("run_budget", "replicates"),
                f"the plan has {format_large_count(len(plan))} runs; a study can tell {MAX_RUNS:,} "
                "apart by their ids",
                "ask for fewer replicates or conditions",
            )
        ]
    return []


def choose_executor(
    study: Study, settings: RunSettings, mistakes: list[Mistake]
) -> tuple[Executor | None, int]:
    """Return the executor and the number of slots; mistakes are added to `mistakes`."""
    slots = settings.parallelism
    if slots is None:
        slots = study.run_budget.parallelism
    elif not isinstance(slots, Integral) or isinstance(slots, bool):
        message = f"expected a whole number, got {describe_value(slots)}"
        mistakes.append(Mistake(("parallelism",), message))
        slots = 1
    elif slots < 1:
        mistakes.append(Mistake(("parallelism",), f"must be 1 or more, got {slots}"))
    chosen = settings.executor
    if chosen is None:
        # Only a worker process can be stopped when it exceeds its time limit.
        is_serial = slots == 1 and study.run_budget.timeout_s is None
        several = "async" if _only_asks(study, settings) else "processes"
        chosen = "serial" if is_serial else several
    elif study.run_budget.timeout_s is not None and _name_of(chosen) == "serial":
        chosen, slots = "processes", 1
    if not isinstance(chosen, (str, Executor)):
        message = f"expected a name or an executor, got {describe_value(chosen)}"
        hint = "'serial', 'processes', 'threads', 'async', 'ray', a plug-in's name, or an Executor"
        mistakes.append(Mistake(("executor",), message, hint))
        return None, 1
    executor = _load_executor(chosen, mistakes) if isinstance(chosen, str) else chosen
    if executor is None or chosen == "serial":
        return executor, 1
    return executor, _default_slots(executor, study, settings) or slots


def _only_asks(study: Study, settings: RunSettings) -> bool:
    """Return whether runs only ask endpoints, and none executes code of the user.

    Such runs share one process, and with it the rate limits of the endpoints.
    """
    bound = (settings.agent_bindings, settings.problem_registry, settings.condition_runner)
    if any(bound) or study.condition_runner or study.run_budget.timeout_s is not None:
        return False
    agents = study.agents
    if not agents or not set(study.agent_specs) <= agents.keys():
        return False
    if any(
        agent.use not in ENDPOINT_AGENTS or agent.options.get("tools") for agent in agents.values()
    ):
        return False
    is_code = study.dataset is None and any(item.use for item in study.problems.values())
    return not is_code and not named_code(study.problems)


def _name_of(executor: str | Executor) -> str:
    return executor.name if isinstance(executor, Executor) else executor


def _load_executor(name: str, mistakes: list[Mistake]) -> Executor | None:
    """Return the executor of a name with its default options; mistakes are added to `mistakes`."""
    try:
        executor_class = plugins.load("executors", name)
    except StudyError as error:
        mistakes.extend(replace(mistake, path=("executor",)) for mistake in error.mistakes)
        return None
    if not (isinstance(executor_class, type) and issubclass(executor_class, Executor)):
        message = f"the plug-in {name} is no executor: it doesn't derive from `Executor`"
        hint = "derive it from `fairtrial.study.executors.Executor`"
        mistakes.append(Mistake(("executor",), message, hint))
        return None
    executor: Executor = build_record(executor_class, {}, ("executor",), mistakes)
    return executor


def _default_slots(executor: Executor, study: Study, settings: RunSettings) -> int | None:
    """Return how many slots an executor takes by default, if neither study nor settings say."""
    if settings.parallelism is not None or study.run_budget.parallelism > 1:
        return None
    return executor.default_slots
