"""Records of a study's hypotheses, outcomes and analysis plans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from fairtrial.core import FieldPath, Mistake, Record, fields


class HypothesisKind(StrEnum):
    """The kind of a hypothesis."""

    EFFECT = "effect"
    MODERATION = "moderation"
    MEDIATION = "mediation"
    EQUIVALENCE = "equivalence"
    ROBUSTNESS = "robustness"
    EXPLORATORY = "exploratory"


class HypothesisDirection(StrEnum):
    """The expected direction of a difference."""

    GREATER = "greater"
    LESS = "less"
    DIFFERENT = "different"
    EQUIVALENT = "equivalent"


# Values that fairtrial's analysis supports. Others are accepted with a warning, since other tools
# that read the tables may support them.
SOURCE_TABLES = ("runs", "evaluations", "events", "conditions")
AGGREGATIONS = ("mean", "median", "sum", "min", "max", "first", "last", "count")
OVER_REPLICATES = r"mean|(pass@|pass\^|worst@)[1-9]\d{0,5}"
COMPARISON_POLICIES = ("none", "holm", "bonferroni", "bh")


@dataclass(frozen=True, slots=True)
class Contrast(Record):
    """Two levels to compare: left minus right.

    label: a name for the comparison
    left: the level whose mean comes first
    right: the level whose mean is subtracted
    operation: how the two are compared; only `difference` is tested
    """

    label: str = "contrast"
    left: str = ""
    right: str = ""
    operation: str = "difference"

    def _mistakes(self) -> Iterator[Mistake]:
        return self._blank_mistakes("left", "right")


@dataclass(frozen=True, slots=True)
class Moderator(Record):
    """A factor or block that may change the size of an effect.

    name: the factor or block
    levels: the levels to consider; empty for all
    """

    name: str
    levels: tuple[str, ...] = ()

    _short_field: ClassVar[str] = "name"

    def _mistakes(self) -> Iterator[Mistake]:
        return self._blank_mistakes("name")


@dataclass(frozen=True, slots=True)
class Mediator(Record):
    """A measured quantity that may explain an effect.

    name: the quantity
    description: what it measures
    """

    name: str
    description: str = ""

    _short_field: ClassVar[str] = "name"

    def _mistakes(self) -> Iterator[Mistake]:
        return self._blank_mistakes("name")


@dataclass(frozen=True, slots=True)
class Hypothesis(Record):
    """A claim that the study tests.

    hypothesis_id: a name that plans and reports refer to
    label: a short title
    statement: the claim, in one sentence
    kind: the kind of claim
    independent_vars: the factors, blocks, `agent_id` or `problem_id` that are compared
    dependent_vars: the outcomes that the comparison is about; empty for the primary outcomes
    moderators: factors or blocks that may change the size of the effect
    mediators: measured quantities that may explain the effect
    contrast: the two levels to compare, if a variable has more than two
    direction: the expected direction of the difference
    minimum_effect_of_interest: the smallest difference worth detecting; in standard deviations
        (Cohen's d), or in the outcome's own units if the outcome states its `sd`
    notes: any further text
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
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        # `Study._older_form` checks this key against the plans, which take precedence.
        return {key: value for key, value in data.items() if key != "linked_analysis_plan_id"}

    @property
    def is_equivalence(self) -> bool:
        """Whether it claims that there is no difference that matters."""
        return (
            self.kind is HypothesisKind.EQUIVALENCE
            or self.direction is HypothesisDirection.EQUIVALENT
        )

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("hypothesis_id", "label", "statement")
        effect = self.minimum_effect_of_interest
        if effect is not None and effect <= 0:
            yield Mistake(
                ("minimum_effect_of_interest",),
                f"must be above 0, got {effect:g}",
                "`direction` states its sign",
            )


@dataclass(frozen=True, slots=True)
class OutcomeSpec(Record):
    """A measured outcome, and where its values are found.

    name: the outcome's name, used by hypotheses and plans
    source_table: the table that has it: runs, evaluations, events or conditions
    column: its column in that table (the metric's name for evaluations); by default its own name
    aggregation: how several values of one run are combined into one
    derivation: a formula for other tools; fairtrial doesn't compute it
    primary: whether it is a primary outcome
    expected_type: the type of its values
    missing_data_policy: how runs without a value are treated
    description: what it measures
    sd: its standard deviation, if known; minimum effects are then in its own units
    icc: the share of its variance that lies between problems, if known; used for power
    slope_sd: the standard deviation of the effect between problems, in the units of the minimum
        effect, if known; used for power
    over_replicates: makes one value of the replicates of a problem, which is then the unit of
        tests: `pass@3` (at least one of 3 runs passes), `pass^3` (all of 3 pass), `worst@3`
        (the lowest of 3), or `mean`; without it each run has its own value
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
    icc: float | None = None
    slope_sd: float | None = None
    over_replicates: str = field(default="", metadata=fields.ONLY_IF_SET)

    def _derive(self) -> None:
        if not self.column:
            self._set("column", self.name)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("name", "source_table")
        if self.sd is not None and self.sd <= 0:
            yield Mistake(("sd",), f"must be above 0, got {self.sd:g}")
        if self.icc is not None and not 0 <= self.icc < 1:
            yield Mistake(("icc",), f"must be 0 or more and below 1, got {self.icc:g}")
        if self.slope_sd is not None and self.slope_sd < 0:
            yield Mistake(("slope_sd",), f"must be 0 or more, got {self.slope_sd:g}")
        if self.over_replicates and not re.fullmatch(OVER_REPLICATES, self.over_replicates):
            message = f"expected mean, pass@3, pass^3 or worst@3, got '{self.over_replicates}'"
            yield Mistake(("over_replicates",), message, "the number is that of the runs taken")

    @property
    def needed_replicates(self) -> int:
        """How many replicates `over_replicates` takes together."""
        return int(re.sub(r"\D", "", self.over_replicates) or 1)


@dataclass(frozen=True, slots=True)
class Stopping(Record):
    """When a study may stop early: planned interim looks that test the claims of a plan.

    looks: the number of planned looks, the last one at the end
    spending: how the significance level is spent over the looks: obrien_fleming or pocock; or
        anytime, for confidence sequences that allow a look at any time
    futility: whether a claim also stops when it can hardly be shown any more
    min_problems: the fewest problems that a look must have seen
    """

    looks: int = 5
    spending: Literal["obrien_fleming", "pocock", "anytime"] = "obrien_fleming"
    futility: bool = True
    min_problems: int | None = None

    def _mistakes(self) -> Iterator[Mistake]:
        for name, least in (("looks", 1), ("min_problems", 2)):
            value = getattr(self, name)
            if value is not None and value < least:
                yield Mistake((name,), f"must be {least} or more, got {value}")


@dataclass(frozen=True, slots=True)
class AnalysisPlan(Record):
    """How hypotheses will be tested, stated before the data are collected.

    analysis_plan_id: a name for the plan
    hypothesis_ids: the hypotheses it tests
    tests: the tests, of which the first decides: difference_in_means, mann_whitney, anova,
        mixed_effects, ...
    outcomes: the outcomes it tests; empty for those of the hypotheses
    covariates: columns to adjust for
    random_effects: columns with random effects: their levels are a sample from many
    filters: the values, by column, of the rows that are analyzed
    multiple_comparison_policy: the correction for several claims: holm, bonferroni, bh or none;
        plans with the same policy are corrected together
    plots: names of plots for other tools that read the study; fairtrial doesn't use them
    export_tables: names of tables for other tools that read the study; fairtrial doesn't use them
    notes: any further text
    generalize: whether the claims are about problems like those of the study (`problems`, so that
        effects vary between problems), or about exactly these (`these_problems_only`)
    stopping: when the study may stop early; by default only at its end
    """

    analysis_plan_id: str
    hypothesis_ids: tuple[str, ...]
    tests: tuple[str, ...]
    outcomes: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    random_effects: tuple[str, ...] = ()
    filters: Mapping[str, Any] = field(default_factory=dict)
    multiple_comparison_policy: str = "holm"
    plots: tuple[str, ...] = ()
    export_tables: tuple[str, ...] = ()
    notes: str = ""
    generalize: Literal["problems", "these_problems_only"] = "problems"
    stopping: Stopping | None = None

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("analysis_plan_id")
        if not self.hypothesis_ids:
            yield Mistake(("hypothesis_ids",), "must name at least one hypothesis")
        if not self.tests:
            yield Mistake(("tests",), "must name at least one test", "e.g. difference_in_means")
