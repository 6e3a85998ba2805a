"""Before anything runs: every mistake found, every name bound, the plan made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.core import Mistake, StudyError, build, plugins, spell_count
from fairtrial.study.design.build import build_design
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.design.runs import MOST_RUNS, refuse_collisions
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study
from fairtrial.study.protocols import Executor
from fairtrial.study.runner.bindings import Bindings, bind
from fairtrial.study.runner.executors.pickling import check_reachable
from fairtrial.study.runner.pilot import (
    check_expression,
    expression_mistakes,
    refuse_nothing,
    selection_doubts,
)
from fairtrial.study.runner.run_attempt import StudyWork
from fairtrial.study.runner.settings import RunSettings
from fairtrial.study.validation import concerns_plan, study_mistakes


@dataclass(frozen=True, slots=True)
class Prepared:
    """A study that can be run: checked, bound, planned."""

    study: Study
    plan: RunPlan
    bindings: Bindings
    executor: Executor
    slots: int


@dataclass(frozen=True, slots=True)
class DryRunReport:
    """What a study would run, and what keeps it from running."""

    errors: list[str]
    planned_runs: int


def dry_run_validate(
    study: Study,
    *,
    conditions: Sequence[Condition] | None = None,
    agent_bindings: Mapping[str, Any] | None = None,
    problem_registry: Mapping[str, Any] | None = None,
    condition_runner: Callable[..., Any] | None = None,
    parallelism: int | None = None,
    executor: str | Executor | None = None,
) -> DryRunReport:
    """Every error that would keep the study from running, and how many runs it would have."""
    settings = RunSettings(
        conditions=conditions,
        agent_bindings=agent_bindings or {},
        problem_registry=problem_registry or {},
        condition_runner=condition_runner,
        parallelism=parallelism,
        executor=executor,
    )
    mistakes: list[Mistake] = []
    plan, _, _, _ = _look_over(settings.apply(study), settings, mistakes)
    return DryRunReport([str(mistake) for mistake in mistakes], plan.runnable if plan else 0)


def prepare(study: Study, settings: RunSettings) -> Prepared:
    """Everything that a run needs; raises one `StudyError` with all that is wrong."""
    study = settings.apply(study)
    mistakes: list[Mistake] = []
    plan, bindings, executor, slots = _look_over(study, settings, mistakes)
    if mistakes or plan is None or bindings is None or executor is None:
        raise StudyError(mistakes)
    for doubt in selection_doubts(plan, settings.only) if settings.only is not None else ():
        settings.tell(str(doubt))
    return Prepared(study, plan, bindings, executor, slots)


def _look_over(
    study: Study, settings: RunSettings, mistakes: list[Mistake]
) -> tuple[RunPlan | None, Bindings | None, Executor | None, int]:
    """As much as can be had; what is wrong, wherever it is, goes to `mistakes`."""
    plan, bindings = _plan_and_bind(study, settings, mistakes)
    executor, slots = choose_executor(study, settings, mistakes)
    if bindings is not None and not getattr(executor, "is_forking", True):
        try:
            check_reachable(StudyWork(bindings, outcomes=study.outcomes))
        except StudyError as error:
            mistakes.extend(error.mistakes)
    return plan, bindings, executor, slots


def _plan_and_bind(
    study: Study, settings: RunSettings, mistakes: list[Mistake]
) -> tuple[RunPlan | None, Bindings | None]:
    wrong = study_mistakes(study, with_plan=False)
    mistakes.extend(wrong)
    if settings.only is not None:
        mistakes.extend(expression_mistakes(study, settings.only))
    if settings.limit is not None and settings.limit < 1:
        mistakes.append(Mistake(("limit",), f"must be 1 or more, got {settings.limit}"))
    if settings.retry not in RETRIED:
        expected = " or ".join(map(repr, RETRIED))
        mistakes.append(Mistake(("retry",), f"expected {expected}, got {settings.retry!r}"))
    if any(map(concerns_plan, wrong)):
        return None, None
    try:
        plan = RunPlan(study, _conditions(study, settings))
        too_much = _plan_mistakes(study, plan)
        mistakes.extend(too_much)
        if not too_much:
            refuse_collisions(study, plan.conditions)
        if settings.only is not None and not mistakes:
            check_expression(plan, settings.only)
            refuse_nothing(plan, settings.only)
    except StudyError as error:
        mistakes.extend(error.mistakes)
        return None, None
    return plan, _bind(study, plan, settings, mistakes)


def _conditions(study: Study, settings: RunSettings) -> list[Condition]:
    if settings.conditions is None:
        return build_design(study)
    given = list(settings.conditions)
    if not all(isinstance(each, Condition) for each in given):
        raise StudyError(
            Mistake(("conditions",), "must be a list of Condition, as build_design gives it")
        )
    return given


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


def _plan_mistakes(study: Study, plan: RunPlan) -> list[Mistake]:
    most = study.run_budget.max_runs
    if not len(plan):
        return [Mistake(("factors",), "no condition is left to run")]
    if most is not None and plan.runnable > most:
        return [
            Mistake(
                ("run_budget", "max_runs"),
                f"the plan has {spell_count(len(plan))} runs, max_runs allows {most:,}",
                "raise max_runs, ask for fewer replicates or conditions, or let "
                "max_runs_policy: balanced leave runs out evenly",
            )
        ]
    if len(plan) > MOST_RUNS:
        return [
            Mistake(
                ("run_budget", "replicates"),
                f"the plan has {spell_count(len(plan))} runs; a study can tell {MOST_RUNS:,} "
                "apart by their ids",
                "ask for fewer replicates or conditions",
            )
        ]
    return []


RETRIED = ("broken", "failed")


def choose_executor(
    study: Study, settings: RunSettings, mistakes: list[Mistake]
) -> tuple[Executor | None, int]:
    """Where runs happen, and how many at once."""
    slots = settings.parallelism
    if slots is None:
        slots = study.run_budget.parallelism
    elif slots < 1:
        mistakes.append(Mistake(("parallelism",), f"must be 1 or more, got {slots}"))
    chosen = settings.executor
    if chosen is None:
        # Only a worker process can be stopped when its time is up.
        is_alone = slots == 1 and study.run_budget.timeout_s is None
        chosen = "serial" if is_alone else "processes"
    elif study.run_budget.timeout_s is not None and getattr(chosen, "name", chosen) == "serial":
        chosen, slots = "processes", 1
    if not isinstance(chosen, str):
        return chosen, slots
    try:
        kind = plugins.load("executors", chosen)
    except StudyError as error:
        mistakes.extend(replace(mistake, path=("executor",)) for mistake in error.mistakes)
        return None, 1
    executor: Executor = build(kind, {}, ("executor",), mistakes)
    return executor, 1 if chosen == "serial" else slots
