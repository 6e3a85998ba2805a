"""What a study claims and how the claim will be tested: hypotheses, outcomes, analysis plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fairtrial.core import Mistake, Place, Record, blank


class HypothesisKind(StrEnum):
    """What sort of claim a hypothesis makes."""

    EFFECT = "effect"
    MODERATION = "moderation"
    MEDIATION = "mediation"
    EQUIVALENCE = "equivalence"
    ROBUSTNESS = "robustness"
    EXPLORATORY = "exploratory"


class HypothesisDirection(StrEnum):
    """Which way the difference is expected to go."""

    GREATER = "greater"
    LESS = "less"
    DIFFERENT = "different"
    EQUIVALENT = "equivalent"


# Words that the analysis knows. Others are kept, since readers of the tables may know more.
SOURCE_TABLES = ("runs", "evaluations", "events", "conditions")
AGGREGATIONS = ("mean", "median", "sum", "min", "max", "first", "last", "count")
COMPARISON_POLICIES = ("none", "holm", "bonferroni", "bh")


@dataclass(frozen=True, slots=True)
class Contrast(Record):
    """Two levels to compare.

    label: a name for the comparison
    left: the level whose mean comes first
    right: the level that is subtracted from it
    operation: how the two are compared
    """

    label: str = "contrast"
    left: str = ""
    right: str = ""
    operation: str = "difference"

    def _mistakes(self) -> Iterator[Mistake]:
        return blank(left=self.left, right=self.right)


@dataclass(frozen=True, slots=True)
class Moderator(Record):
    """A factor or block that is thought to change an effect.

    name: the factor or block
    levels: the levels that matter; none means all
    """

    name: str
    levels: tuple[str, ...] = ()

    @classmethod
    def _short_form(cls, value: Any) -> Mapping[str, Any] | None:
        return {"name": value} if isinstance(value, str) else None

    def _mistakes(self) -> Iterator[Mistake]:
        return blank(name=self.name)


@dataclass(frozen=True, slots=True)
class Mediator(Record):
    """A measured quantity through which an effect is thought to work.

    name: the quantity
    description: what it stands for
    """

    name: str
    description: str = ""

    @classmethod
    def _short_form(cls, value: Any) -> Mapping[str, Any] | None:
        return {"name": value} if isinstance(value, str) else None

    def _mistakes(self) -> Iterator[Mistake]:
        return blank(name=self.name)


@dataclass(frozen=True, slots=True)
class Hypothesis(Record):
    """One claim that the study tests.

    hypothesis_id: a name that plans and reports refer to
    label: a short title
    statement: the claim, in a sentence
    kind: what sort of claim it is
    independent_vars: the factors that are thought to matter
    dependent_vars: the outcomes that they are thought to change
    moderators: factors or blocks that are thought to change the effect
    mediators: quantities through which the effect is thought to work
    contrast: the two levels to compare, where there are more
    direction: which way the difference is expected to go
    minimum_effect_of_interest: the smallest difference worth finding; in standard deviations
        (Cohen's d), or in the outcome's own units if the outcome states its `sd`
    notes: anything else
    """

    hypothesis_id: str
    label: str
    statement: str
    kind: HypothesisKind = HypothesisKind.EFFECT
    independent_vars: tuple[str, ...] = ()
    dependent_vars: tuple[str, ...] = ()
    moderators: tuple[Moderator, ...] = ()
    mediators: tuple[Mediator, ...] = ()
    contrast: Contrast | None = None
    direction: HypothesisDirection = HypothesisDirection.DIFFERENT
    minimum_effect_of_interest: float | None = None
    notes: str = ""

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        # Checked against the plans by Study._older_form; the plan is what counts.
        return {key: value for key, value in data.items() if key != "linked_analysis_plan_id"}

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(
            hypothesis_id=self.hypothesis_id, label=self.label, statement=self.statement
        )
        effect = self.minimum_effect_of_interest
        if effect is not None and effect <= 0:
            yield Mistake(
                ("minimum_effect_of_interest",),
                f"must be above 0, got {effect:g}",
                "`direction` says which way it goes",
            )


@dataclass(frozen=True, slots=True)
class OutcomeSpec(Record):
    """Something the study measures, and in which table it stands.

    name: what hypotheses and plans call it
    source_table: the table that holds it: runs, evaluations, events or conditions
    column: its column there (the metric's name for evaluations); by default its own name
    aggregation: how several values of one run become one
    derivation: how it is computed, where it isn't read as it stands
    primary: whether the study is decided by it
    expected_type: the type of its values
    missing_data_policy: what happens to runs without it
    description: what it means
    sd: its standard deviation, where known; minimum effects are then in its own units
    """

    name: str
    source_table: str = "runs"
    column: str = ""
    aggregation: str = "mean"
    derivation: str | None = None
    primary: bool = False
    expected_type: str = "float"
    missing_data_policy: str = "drop"
    description: str = ""
    sd: float | None = None

    def _derive(self) -> None:
        if not self.column:
            self._set("column", self.name)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(name=self.name, source_table=self.source_table)
        if self.sd is not None and self.sd <= 0:
            yield Mistake(("sd",), f"must be above 0, got {self.sd:g}")


@dataclass(frozen=True, slots=True)
class AnalysisPlan(Record):
    """How hypotheses will be tested, said before the data are seen.

    analysis_plan_id: a name for the plan
    hypothesis_ids: the hypotheses it tests
    tests: the tests, in order: difference_in_means, mann_whitney, anova, mixed_effects, ...
    outcomes: the outcomes it looks at; none means those of the hypotheses
    covariates: columns that are adjusted for
    random_effects: columns whose levels are a sample from many
    filters: which rows count
    multiple_comparison_policy: how error is held over several tests: none, holm, bh, bonferroni
    plots: the plots that the report shows; not used yet
    export_tables: the tables that the report writes; not used yet
    notes: anything else
    """

    analysis_plan_id: str
    hypothesis_ids: tuple[str, ...]
    tests: tuple[str, ...]
    outcomes: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    random_effects: tuple[str, ...] = ()
    filters: Mapping[str, Any] = field(default_factory=dict)
    multiple_comparison_policy: str = "none"
    plots: tuple[str, ...] = ()
    export_tables: tuple[str, ...] = ()
    notes: str = ""

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(analysis_plan_id=self.analysis_plan_id)
        if not self.hypothesis_ids:
            yield Mistake(("hypothesis_ids",), "must name at least one hypothesis")
        if not self.tests:
            yield Mistake(("tests",), "must name at least one test", "e.g. difference_in_means")
