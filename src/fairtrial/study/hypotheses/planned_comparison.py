"""The record of one planned comparison, and the hypothesis and plan that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fairtrial.study.design.agent_options import format_agents
from fairtrial.study.design.runs import count_replicates
from fairtrial.study.hypotheses.groups import Variable
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import Contrast, Hypothesis, HypothesisDirection
from fairtrial.study.model.study import Study
from fairtrial.study.stats.power import TestKind

T_TEST = "Welch/two-sample t"
ANOVA = "one-way ANOVA"
EVERY_LEVEL = "every level against the baseline"
INTERACTION = "interaction"
SLOPE = "regression slope"
EQUIVALENCE = "equivalence (TOST)"

Shape = Literal["levels", "slope", "interaction"]
PowerFunction = Callable[[float, float, int], float | None]
"""The power for an effect size d, a significance level alpha and replicates per condition."""


@dataclass(frozen=True, slots=True)
class PlannedComparison:
    """One comparison that a hypothesis asks for.

    variables: the variables that are compared
    test: the test that is assumed
    groups: the planned number of runs of each level, or of each cell
    between: the groups that the effect is a difference between, in words
    side: whether the test is one-sided or two-sided, if it has sides
    power_at: its power as a function; None if there is a `reason`
    reason: why the power can't be computed
    shape: what is compared: levels, a slope, or an interaction
    levels: the levels of each variable; those of a contrast in its order
    agents: the agents whose runs are compared, if the variable is an option of theirs; empty if the
        runs of all agents are
    """

    variables: tuple[str, ...]
    test: str = ""
    groups: Mapping[str, int] = field(default_factory=dict)
    between: str = ""
    side: str = ""
    power_at: PowerFunction | None = None
    reason: str = ""
    shape: Shape = "levels"
    levels: tuple[tuple[str, ...], ...] = ()
    agents: tuple[str, ...] = ()

    def limit_to_agents(self, agents: tuple[str, ...]) -> PlannedComparison:
        """Return the comparison, described as one of these agents' runs; unchanged for none."""
        within = f" in runs of {format_agents(agents)}" if agents and self.between else ""
        return replace(self, agents=agents, between=self.between + within)


@dataclass(frozen=True, slots=True)
class HypothesisPlan:
    """A hypothesis, with the study and the conditions that are to test it."""

    study: Study
    conditions: Sequence[Condition]
    hypothesis: Hypothesis

    @property
    def test(self) -> TestKind:
        """Whether the test is one-sided, two-sided or one of equivalence."""
        if self.hypothesis.is_equivalence:
            return "equivalence"
        is_undirected = self.hypothesis.direction is HypothesisDirection.DIFFERENT
        return "two-sided" if is_undirected else "one-sided"

    @property
    def side(self) -> str:
        """The sides of the test, in words."""
        return "each of two one-sided tests" if self.test == "equivalence" else self.test

    def name_test(self, difference_test: str) -> str:
        """Return the name of the test; `difference_test` unless it is one of equivalence."""
        return EQUIVALENCE if self.test == "equivalence" else difference_test

    def count_all_replicates(self, groups: Mapping[str, int]) -> dict[str, int]:
        """Return the runs of groups over all replicates, given those of one replicate."""
        return {name: runs * count_replicates(self.study) for name, runs in groups.items()}


def find_contrast_levels(hypothesis: Hypothesis, variable: Variable) -> list[str]:
    """Return the two levels of the hypothesis' contrast; empty if the variable lacks one."""
    if hypothesis.contrast is None:
        return []
    sides = (hypothesis.contrast.left, hypothesis.contrast.right)
    levels = [level for level in map(variable.find_level, sides) if level is not None]
    return levels if len(levels) == 2 else []


def explain_missing_levels(contrast: Contrast, names: Sequence[str]) -> str:
    """Return that these variables don't have the levels of a contrast."""
    levels = f"'{contrast.left}' and '{contrast.right}'"
    return f"{' and '.join(names)}: no levels {levels}, which the contrast compares"


def find_baseline(study: Study, name: str, levels: Sequence[str]) -> str | None:
    """Return the level that the study marks as a factor's baseline, if it is among these."""
    for factor in study.factors:
        if factor.name == name:
            for level in factor.levels:
                if level.metadata.get("is_baseline") and level.name in levels:
                    return level.name
    return None
