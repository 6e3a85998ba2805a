"""What is asked of the results: each hypothesis as the plan of the study read it.

Groups, contrasts and sides come from `fairtrial.study.power`, so that the report tests what
`fairtrial plan` computed the power of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairtrial.study.hypotheses.comparisons import plan_comparisons
from fairtrial.study.hypotheses.planned_comparison import PlannedComparison
from fairtrial.study.hypotheses.planned_tests import (
    apply_filters,
    put_baseline_last,
    select_outcomes,
)
from fairtrial.study.hypotheses.wording import explain_unsupported_operation
from fairtrial.study.model.hypotheses import (
    AnalysisPlan,
    Hypothesis,
    HypothesisDirection,
    HypothesisKind,
    OutcomeSpec,
)
from fairtrial.study.model.study import Study
from fairtrial.study.report.values import RunTable
from fairtrial.study.stats.finding import Alternative

MEDIATION = (
    "mediation takes a causal model that fairtrial doesn't fit; test each path as a hypothesis of "
    "its own, or analyse the tables elsewhere"
)


@dataclass(frozen=True, slots=True)
class Question:
    """One comparison of a hypothesis, on one outcome, under one plan.

    plan: the analysis plan; None if no plan names the hypothesis
    reason: why it can't be asked at all
    """

    table: RunTable
    plan: AnalysisPlan | None
    hypothesis: Hypothesis
    outcome: OutcomeSpec
    comparison: PlannedComparison
    reason: str = ""

    @property
    def study(self) -> Study:
        return self.table.study

    @property
    def is_equivalence(self) -> bool:
        """Whether the claim is that there is no difference that matters."""
        return self.hypothesis.is_equivalence

    @property
    def alternative(self) -> Alternative:
        """Which difference the claim is about."""
        if self.is_equivalence:
            return "two-sided"
        if self.hypothesis.direction is HypothesisDirection.GREATER:
            return "greater"
        return "less" if self.hypothesis.direction is HypothesisDirection.LESS else "two-sided"

    def levels(self, position: int) -> tuple[str, ...]:
        """The levels of a variable, the one that others are compared with last.

        That is the right one of a contrast; else the one marked as baseline; else the first.
        """
        names = self.comparison.variables[: position + 1]
        variables = [self.table.variable(name)[0] for name in names]
        levels = self.comparison.levels[position]
        return put_baseline_last(self.study, self.hypothesis, variables, levels)


def ask(table: RunTable, plan: AnalysisPlan | None, hypothesis: Hypothesis) -> Iterator[Question]:
    """All questions that a hypothesis asks under a plan: outcome by outcome."""
    study = table.study
    known = {outcome.name: outcome for outcome in study.outcomes}
    looked_at = plan.outcomes if plan else ()
    comparisons = [
        _narrow(table, plan, hypothesis, each)
        for each in plan_comparisons(study, table.conditions, hypothesis)
    ]
    for name in select_outcomes(study, hypothesis, plan):
        reason = ""
        if looked_at and name not in looked_at and plan is not None:
            reason = f"plan '{plan.analysis_plan_id}' doesn't look at '{name}'"
        for comparison in comparisons:
            why = reason or _why_not(hypothesis, comparison)
            outcome = known.get(name, OutcomeSpec(name))
            yield Question(table, plan, hypothesis, outcome, comparison, why)


def _narrow(
    table: RunTable,
    plan: AnalysisPlan | None,
    hypothesis: Hypothesis,
    comparison: PlannedComparison,
) -> PlannedComparison:
    names = comparison.variables if comparison.levels else ()
    variables = {name: table.variable(name)[0] for name in names}
    return apply_filters(variables, plan, hypothesis, comparison)


def _why_not(hypothesis: Hypothesis, comparison: PlannedComparison) -> str:
    if hypothesis.kind is HypothesisKind.MEDIATION:
        return MEDIATION
    return comparison.reason or explain_unsupported_operation(hypothesis.contrast)
