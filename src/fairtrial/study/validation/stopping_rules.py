"""Rules for studies that may stop early: one rule for all plans, batches that can be made."""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.core import Mistake
from fairtrial.study.design.look_schedule import find_stopping
from fairtrial.study.design.runs import DEFAULT_PROBLEM, PROBLEM_FACTORS, count_replicates
from fairtrial.study.model.hypotheses import AnalysisPlan, HypothesisKind
from fairtrial.study.model.study import Study

UNDECIDABLE = (HypothesisKind.EXPLORATORY, HypothesisKind.MEDIATION)


def find_stopping_mistakes(study: Study) -> Iterator[Mistake]:
    """Yield a mistake for each rule of early stopping that the study can't follow."""
    stopping = find_stopping(study)
    if stopping is None:
        return
    first = next(plan for plan in study.analysis_plans if plan.stopping)
    for index, plan in enumerate(study.analysis_plans):
        path = ("analysis_plans", index, "stopping")
        if plan.stopping != stopping:
            yield Mistake(
                path,
                f"differs from that of plan '{first.analysis_plan_id}'",
                "the looks are at the whole study: state the same stopping in all plans",
            )
        elif not _has_decidable_claim(study, plan):
            yield Mistake(
                path,
                "no claim of the plan can be decided early: all are exploratory or mediations",
                "leave stopping out, or make a claim confirmatory",
            )
    if study.run_budget.max_runs is not None and study.run_budget.is_balanced:
        yield Mistake(
            ("run_budget", "max_runs"),
            "a balanced max_runs would make the batches of planned looks incomplete",
            "leave max_runs out, or ask for fewer replicates or problems",
        )
    yield from _find_size_mistakes(study)


def _has_decidable_claim(study: Study, plan: AnalysisPlan) -> bool:
    kinds = {hypothesis.hypothesis_id: hypothesis.kind for hypothesis in study.hypotheses}
    known = [kinds[name] for name in plan.hypothesis_ids if name in kinds]
    return not known or any(kind not in UNDECIDABLE for kind in known)


def _find_size_mistakes(study: Study) -> Iterator[Mistake]:
    stopping = find_stopping(study)
    assert stopping is not None
    problems = _count_problems(study)
    index = next(i for i, plan in enumerate(study.analysis_plans) if plan.stopping)
    path = ("analysis_plans", index, "stopping")
    if stopping.min_problems is not None and stopping.min_problems > problems:
        yield Mistake(
            (*path, "min_problems"),
            f"must be at most the number of problems, {problems}; got {stopping.min_problems}",
        )
    elif stopping.looks > 1 and problems * count_replicates(study) < 2:
        yield Mistake(
            (*path, "looks"),
            "one problem with one replicate allows only one look",
            "add problems or replicates, or leave stopping out",
        )


def _count_problems(study: Study) -> int:
    for factor in study.factors:
        if factor.name in PROBLEM_FACTORS:
            return max(1, len(factor.levels))
    return len(study.problem_ids or tuple(study.problems) or (DEFAULT_PROBLEM,))
