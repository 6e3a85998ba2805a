"""Select the runs of a pilot by an expression: `--only EXPR`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.design.expression_warnings import find_comparison_warnings
from fairtrial.study.design.expressions import Expression
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.design.runs import get_agents, get_problems
from fairtrial.study.model.study import Study

RUN_FACTS = ("agent_id", "problem_id", "replicate", "condition_id", "run_id")
"""The names that an expression may use besides factors and blocks."""


def find_expression_mistakes(study: Study, only: str) -> Iterator[Mistake]:
    """Yield what is wrong with an expression, as far as the study alone shows it."""
    own_names = {factor.name for factor in study.factors} | {block.name for block in study.blocks}
    try:
        names = Expression(only).names
    except StudyError as error:
        yield from (mistake.under(("only",)) for mistake in error.mistakes)
        return
    known = [*sorted(own_names), *RUN_FACTS]
    for name in sorted(names.difference(known)):
        yield Mistake(("only",), f"there is no '{name}'", did_you_mean(name, known))


def check_expression(plan: RunPlan, only: str) -> None:
    """Try an expression on a run of every condition; `StudyError` if it can't be evaluated."""
    expression = Expression(only)
    for plan_index in plan.first_indexes():
        try:
            _holds(expression, plan, plan_index)
        except StudyError as error:
            raise StudyError([mistake.under(("only",)) for mistake in error.mistakes]) from error


def selection_warnings(plan: RunPlan, only: str) -> list[Mistake]:
    """Return a warning for each comparison with a value that never occurs."""
    study = plan.study
    admissible = [condition for condition in plan.conditions if condition.admissible]
    factors = {factor.name for factor in study.factors}
    ids = {
        "agent_id": {name for item in admissible for name in get_agents(study, item)},
        "problem_id": {name for item in admissible for name in get_problems(study, item)},
    }
    levels = {name: sorted(filter(None, ids[name])) for name in ids if name not in factors}
    return list(find_comparison_warnings(study, ("only",), only, levels))


def refuse_empty_selection(plan: RunPlan, only: str) -> None:
    """Raise `StudyError` if no run of the plan, done or not, matches the expression."""
    expression = Expression(only)
    plan_indexes = (
        plan_index for plan_index in range(len(plan)) if not plan.is_skipped(plan_index)
    )
    if any(_holds(expression, plan, plan_index) for plan_index in plan_indexes):
        return
    warnings = selection_warnings(plan, only)
    message = f"no run of the plan meets `{only}`"
    hint = "; ".join(f"{item.message}; {item.hint}".removesuffix("; ") for item in warnings)
    raise StudyError(Mistake(("only",), message, hint))


def matcher(plan: RunPlan, order: array[int], only: str | None) -> Callable[[int], bool]:
    """Return a function that says whether the run at an execution index is selected."""
    if only is None:
        return lambda index: True
    expression = Expression(only)
    return lambda index: _holds(expression, plan, order[index])


def _holds(expression: Expression, plan: RunPlan, plan_index: int) -> bool:
    condition, spec = plan.condition_at(plan_index), plan.spec(plan_index)
    facts = {
        "agent_id": spec.agent_spec_ref,
        "problem_id": spec.problem_id,
        "replicate": spec.replicate,
        "condition_id": spec.condition_id,
        "run_id": spec.run_id,
    }
    factors = {**facts, **condition.factor_assignments}
    return expression.holds(factors, condition.block_assignments)
