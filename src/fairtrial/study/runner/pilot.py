"""Which runs a pilot is about: `--only EXPR`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

from fairtrial.core import Mistake, StudyError
from fairtrial.study.design.constraints import Expression
from fairtrial.study.design.expression_warnings import comparison_doubts
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.design.runs import agents_of, problems_of
from fairtrial.study.model.study import Study

RUN_FACTS = ("agent_id", "problem_id", "replicate", "condition_id", "run_id")
"""What an expression may ask for beside factors and blocks."""


def expression_mistakes(study: Study, only: str) -> Iterator[Mistake]:
    """What is wrong with an expression, as far as the study alone can tell."""
    known = {factor.name for factor in study.factors} | {block.name for block in study.blocks}
    try:
        names = Expression(only).names
    except StudyError as error:
        yield from (mistake.under(("only",)) for mistake in error.mistakes)
        return
    shown = ", ".join([*sorted(known), *RUN_FACTS])
    for name in sorted(names - known - set(RUN_FACTS)):
        yield Mistake(("only",), f"there is no '{name}'", f"known: {shown}")


def check_expression(plan: RunPlan, only: str) -> None:
    """Try an expression on a run of every condition: it may compare what can't be compared."""
    expression = Expression(only)
    for place in plan.first_places():
        try:
            _holds(expression, plan, place)
        except StudyError as error:
            raise StudyError([mistake.under(("only",)) for mistake in error.mistakes]) from error


def selection_doubts(plan: RunPlan, only: str) -> list[Mistake]:
    """A remark for each comparison with what a factor, or a run's agent or problem, never is."""
    study = plan.study
    admissible = [each for each in plan.conditions if each.admissible]
    factors = {factor.name for factor in study.factors}
    others = {
        "agent_id": {name for each in admissible for name in agents_of(study, each)},
        "problem_id": {name for each in admissible for name in problems_of(study, each)},
    }
    known = {name: sorted(filter(None, met)) for name, met in others.items() if name not in factors}
    return list(comparison_doubts(study, ("only",), only, known))


def refuse_nothing(plan: RunPlan, only: str) -> None:
    """Refuse an expression that no run of the plan meets, done or not."""
    expression = Expression(only)
    places = (place for place in range(len(plan)) if not plan.is_skipped(place))
    if any(_holds(expression, plan, place) for place in places):
        return
    doubts = [*selection_doubts(plan, only)]
    message = f"no run of the plan meets `{only}`"
    hint = "; ".join(f"{each.message}; {each.hint}".removesuffix("; ") for each in doubts)
    raise StudyError(Mistake(("only",), message, hint))


def matcher(plan: RunPlan, order: array[int], only: str | None) -> Callable[[int], bool]:
    """Whether a turn is one of those that are asked for."""
    if only is None:
        return lambda turn: True
    expression = Expression(only)
    return lambda turn: _holds(expression, plan, order[turn])


def _holds(expression: Expression, plan: RunPlan, place: int) -> bool:
    condition, spec = plan.condition_at(place), plan.spec(place)
    facts = {
        "agent_id": spec.agent_spec_ref,
        "problem_id": spec.problem_id,
        "replicate": spec.replicate,
        "condition_id": spec.condition_id,
        "run_id": spec.run_id,
    }
    factors = {**facts, **condition.factor_assignments}
    return expression.holds(factors, condition.block_assignments)
