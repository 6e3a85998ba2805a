"""What is asked of the results: each hypothesis as the plan of the study read it.

Groups, contrasts and sides come from `fairtrial.prospect`, so that the report tests what
`fairtrial plan` computed the power of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fairtrial.model.claims import (
    AnalysisPlan,
    Contrast,
    Hypothesis,
    HypothesisDirection,
    HypothesisKind,
    OutcomeSpec,
)
from fairtrial.model.factors import is_scalar, scalar_text
from fairtrial.model.study import Study
from fairtrial.prospect.comparisons import Comparison, comparisons_of, contrast_ends
from fairtrial.prospect.groups import Variable
from fairtrial.report.values import RunTable
from fairtrial.stats.finding import Alternative

OPERATIONS = ("difference", "difference_in_means", "mean_difference", "")
"""What a contrast's `operation` may be: all of them mean left minus right."""
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
    comparison: Comparison
    reason: str = ""

    @property
    def study(self) -> Study:
        return self.table.study

    @property
    def is_equivalence(self) -> bool:
        """Whether the claim is that there is no difference that matters."""
        return (
            self.hypothesis.kind is HypothesisKind.EQUIVALENCE
            or self.hypothesis.direction is HypothesisDirection.EQUIVALENT
        )

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
        levels = self.comparison.levels[position]
        names = self.comparison.variables[: position + 1]
        *before, variable = (self.table.variable(name)[0] for name in names)
        # A contrast is of one variable: a moderator may have levels of the same names.
        is_taken = any(contrast_ends(self.hypothesis, each) for each in before)
        if contrast_ends(self.hypothesis, variable) and not is_taken:
            return levels
        baseline = _baseline(self.study, variable, levels)
        return (*(level for level in levels if level != baseline), baseline)


def _baseline(study: Study, variable: Variable, levels: tuple[str, ...]) -> str:
    for factor in study.factors:
        if factor.name == variable.name:
            for level in factor.levels:
                if level.metadata.get("is_baseline") and level.name in levels:
                    return level.name
    return levels[0]


def ask(table: RunTable, plan: AnalysisPlan | None, hypothesis: Hypothesis) -> Iterator[Question]:
    """All questions that a hypothesis asks under a plan: outcome by outcome."""
    study = table.study
    known = {outcome.name: outcome for outcome in study.outcomes}
    looked_at = plan.outcomes if plan else ()
    names = hypothesis.dependent_vars or looked_at or study.primary_outcomes or ("primary_outcome",)
    comparisons = [
        _narrow(table, plan, hypothesis, each)
        for each in comparisons_of(study, table.conditions, hypothesis)
    ]
    for name in names:
        reason = ""
        if looked_at and name not in looked_at and plan is not None:
            reason = f"plan '{plan.analysis_plan_id}' doesn't look at '{name}'"
        for comparison in comparisons:
            why = reason or _why_not(hypothesis, comparison)
            outcome = known.get(name, OutcomeSpec(name))
            yield Question(table, plan, hypothesis, outcome, comparison, why)


def _narrow(
    table: RunTable, plan: AnalysisPlan | None, hypothesis: Hypothesis, comparison: Comparison
) -> Comparison:
    """Without the levels that the plan's filters leave out, if two or more are left."""
    levels = list(comparison.levels)
    for position, chosen in enumerate(levels):
        name = comparison.variables[position]
        variable, _ = table.variable(name)
        if plan is None or name not in plan.filters or contrast_ends(hypothesis, variable):
            continue
        wanted = plan.filters[name]
        listed = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        kept = {variable.find_level(scalar_text(each)) for each in listed if is_scalar(each)}
        left = tuple(level for level in chosen if level in kept)
        levels[position] = left if len(left) > 1 else chosen
    return replace(comparison, levels=tuple(levels))


def _why_not(hypothesis: Hypothesis, comparison: Comparison) -> str:
    if hypothesis.kind is HypothesisKind.MEDIATION:
        return MEDIATION
    return comparison.reason or _why_no_operation(hypothesis.contrast)


def _why_no_operation(contrast: Contrast | None) -> str:
    if contrast is None or contrast.operation.strip().lower() in OPERATIONS:
        return ""
    return f"the contrast's operation '{contrast.operation}' is not tested; 'difference' is"
