"""The tests that a hypothesis requests under an analysis plan.

Groups, contrasts and directions come from `fairtrial.study.hypotheses`, so that the report tests
the comparisons whose power `fairtrial plan` computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.stats.finding import Alternative

MEDIATION = (
    "mediation takes a causal model that fairtrial doesn't fit; test each path as a hypothesis of "
    "its own, or analyze the tables elsewhere"
)


@dataclass(frozen=True, slots=True)
class TestRequest:
    """One comparison of a hypothesis on one outcome, to be tested under one plan.

    table: the runs
    plan: the analysis plan; None if no plan names the hypothesis
    hypothesis: the hypothesis
    outcome: the outcome to test
    comparison: the variables and levels to compare
    reason: why it can't be tested; empty if it can
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
        """Whether the hypothesis claims equivalence."""
        return self.hypothesis.is_equivalence

    @property
    def alternative(self) -> Alternative:
        """The alternative hypothesis; two-sided for a claim of equivalence."""
        if self.is_equivalence:
            return "two-sided"
        if self.hypothesis.direction is HypothesisDirection.GREATER:
            return "greater"
        return "less" if self.hypothesis.direction is HypothesisDirection.LESS else "two-sided"

    def levels(self, position: int) -> tuple[str, ...]:
        """Return the levels of a variable with the reference level last.

        This is the right level of a contrast; else the baseline; else the first level.

        position: index of the variable in the comparison
        """
        names = self.comparison.variables[: position + 1]
        variables = [self.table.variable(name)[0] for name in names]
        levels = self.comparison.levels[position]
        return put_baseline_last(self.study, self.hypothesis, variables, levels)


def request_tests(
    table: RunTable, plan: AnalysisPlan | None, hypothesis: Hypothesis
) -> Iterator[TestRequest]:
    """Yield all tests that a hypothesis requests under a plan, outcome by outcome."""
    study = table.study
    outcomes = {outcome.name: outcome for outcome in study.outcomes}
    plan_outcomes = plan.outcomes if plan else ()
    comparisons = [
        _narrow(table, plan, hypothesis, comparison)
        for comparison in plan_comparisons(study, table.conditions, hypothesis)
    ]
    for name in select_outcomes(study, hypothesis, plan):
        plan_reason = ""
        if plan_outcomes and name not in plan_outcomes and plan is not None:
            plan_reason = f"plan '{plan.analysis_plan_id}' doesn't look at '{name}'"
        for comparison in comparisons:
            reason = plan_reason or _find_reason(hypothesis, comparison)
            outcome = outcomes.get(name, OutcomeSpec(name))
            rows = table.over_replicates(outcome)
            if rows is not table:
                outcome = replace(outcome, expected_type="float")  # shares of passed runs
            yield TestRequest(rows, plan, hypothesis, outcome, comparison, reason)


def _narrow(
    table: RunTable,
    plan: AnalysisPlan | None,
    hypothesis: Hypothesis,
    comparison: PlannedComparison,
) -> PlannedComparison:
    names = comparison.variables if comparison.levels else ()
    variables = {name: table.variable(name)[0] for name in names}
    return apply_filters(variables, plan, hypothesis, comparison)


def _find_reason(hypothesis: Hypothesis, comparison: PlannedComparison) -> str:
    """Return why a comparison can't be tested; empty if it can."""
    if hypothesis.kind is HypothesisKind.MEDIATION:
        return MEDIATION
    return comparison.reason or explain_unsupported_operation(hypothesis.contrast)
