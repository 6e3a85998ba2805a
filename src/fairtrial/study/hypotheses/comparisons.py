"""Which tests a hypothesis asks of a plan, and how many runs the plan gives to each side."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fairtrial.core import did_you_mean
from fairtrial.study.design.agent_options import spell_agents
from fairtrial.study.design.runs import replicates_of
from fairtrial.study.hypotheses.groups import (
    Cell,
    Variable,
    count_cells,
    limiting_agents,
    why_apart,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import (
    Contrast,
    Hypothesis,
    HypothesisDirection,
    HypothesisKind,
)
from fairtrial.study.model.study import Study
from fairtrial.study.stats.power import (
    Test,
    anova_power,
    interaction_power,
    slope_power,
    t_test_power,
)

T_TEST = "Welch/two-sample t"
ANOVA = "one-way ANOVA"
INTERACTION = "interaction"
SLOPE = "regression slope"
EQUIVALENCE = "equivalence (TOST)"

Shape = Literal["levels", "slope", "interaction"]
PowerAt = Callable[[float, float, int], float | None]
"""The power as a function of d, alpha and the replicates per condition."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One test that a hypothesis asks for.

    variables: what is compared
    test: the test that is assumed
    groups: the planned runs of each level, or of each cell
    between: what the effect is a difference between, in words
    side: whether the test is one-sided or two-sided, where it has sides
    power_at: its power; None with a `reason`
    reason: why nothing can be computed
    shape: what is compared: levels, a slope, or an interaction
    levels: the levels of each variable, those of a contrast in its order
    agents: those whose runs alone count, as what is compared is their option; empty if all do
    """

    variables: tuple[str, ...]
    test: str = ""
    groups: Mapping[str, int] = field(default_factory=dict)
    between: str = ""
    side: str = ""
    power_at: PowerAt | None = None
    reason: str = ""
    shape: Shape = "levels"
    levels: tuple[tuple[str, ...], ...] = ()
    agents: tuple[str, ...] = ()

    def of_agents(self, agents: tuple[str, ...]) -> Comparison:
        """The same, said to be of the runs of these agents alone; as it is if there are none."""
        within = f" in runs of {spell_agents(agents)}" if agents and self.between else ""
        return replace(self, agents=agents, between=self.between + within)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A hypothesis and the plan that is to test it."""

    study: Study
    conditions: Sequence[Condition]
    hypothesis: Hypothesis

    @property
    def test(self) -> Test:
        """Which question is asked of the difference."""
        hypothesis = self.hypothesis
        if (
            hypothesis.kind is HypothesisKind.EQUIVALENCE
            or hypothesis.direction is HypothesisDirection.EQUIVALENT
        ):
            return "equivalence"
        is_open = hypothesis.direction is HypothesisDirection.DIFFERENT
        return "two-sided" if is_open else "one-sided"

    @property
    def side(self) -> str:
        return "each of two one-sided tests" if self.test == "equivalence" else self.test

    def test_name(self, otherwise: str) -> str:
        return EQUIVALENCE if self.test == "equivalence" else otherwise

    def planned(self, groups: Mapping[str, int]) -> dict[str, int]:
        """Runs in all replicates from those in one."""
        return {name: runs * replicates_of(self.study) for name, runs in groups.items()}


def comparisons_of(
    study: Study, conditions: Sequence[Condition], hypothesis: Hypothesis
) -> Iterator[Comparison]:
    """A comparison for each independent variable; for a moderation, for each pair of variables."""
    names = hypothesis.independent_vars
    moderators = tuple(moderator.name for moderator in hypothesis.moderators)
    plan = _Plan(study, conditions, hypothesis)
    if hypothesis.kind is HypothesisKind.MEDIATION:
        yield Comparison(names, reason="mediation has no closed form; not computed")
    elif not names:
        yield Comparison(names, reason="the hypothesis names no independent variable")
    elif unknown := _unknown(study, (*names, *moderators)):
        yield Comparison(names, reason=unknown)
    elif moderators:
        for name, moderator in itertools.product(names, moderators):
            yield _interaction(plan, name, moderator)
    elif hypothesis.kind is not HypothesisKind.MODERATION:
        yield from _main_effects(plan)
    elif len(names) < 2:
        yield Comparison(names, INTERACTION, reason="the hypothesis names no moderator")
    else:
        for name, moderator in itertools.combinations(names, 2):
            yield _interaction(plan, name, moderator)


def _unknown(study: Study, names: Sequence[str]) -> str:
    known = [factor.name for factor in study.factors] + [block.name for block in study.blocks]
    for name in names:
        if not Variable(study, name).source:
            hint = did_you_mean(name, [*known, "agent", "problem"])
            return f"'{name}' is no factor, block, agent or problem of the study; {hint}"
    return ""


def _main_effects(plan: _Plan) -> Iterator[Comparison]:
    contrast = plan.hypothesis.contrast
    names = plan.hypothesis.independent_vars
    variables = [Variable(plan.study, name) for name in names]
    counted = [
        {level: runs for (level,), runs in cells.items()}
        for cells in (count_cells(plan.study, plan.conditions, [each]) for each in variables)
    ]
    ends = [contrast_ends(plan.hypothesis, variable) for variable in variables]
    if contrast is not None and not any(ends):
        yield Comparison(names, plan.test_name(T_TEST), reason=_no_contrast(contrast, names))
        return
    for variable, counts, chosen in zip(variables, counted, ends, strict=True):
        if chosen:
            counts = {level: counts.get(level, 0) for level in chosen}
        if variable.is_sampled(tuple(counts)):
            found = _slope(plan, variable, counts)
        else:
            found = _levels(plan, variable.name, counts)
        yield found.of_agents(limiting_agents(plan.study, plan.conditions, [variable]))


def contrast_ends(hypothesis: Hypothesis, variable: Variable) -> list[str]:
    """The two levels that the hypothesis' contrast means, if this variable has them."""
    if hypothesis.contrast is None:
        return []
    ends = (hypothesis.contrast.left, hypothesis.contrast.right)
    found = [level for level in map(variable.find_level, ends) if level is not None]
    return found if len(found) == 2 else []


def _no_contrast(contrast: Contrast, names: Sequence[str]) -> str:
    asked = f"'{contrast.left}' and '{contrast.right}'"
    return f"{' and '.join(names)}: no levels {asked}, which the contrast compares"


def _levels(plan: _Plan, name: str, counts: Mapping[str, int]) -> Comparison:
    groups = plan.planned(counts)
    sizes = list(counts.values())
    count = len(sizes)
    test = plan.test_name(T_TEST if count == 2 else ANOVA)
    if count < 2:
        reason = f"'{name}' has fewer than two levels in the plan"
        return Comparison((name,), test, groups, reason=reason, levels=(tuple(counts),))
    between = f"between {' and '.join(repr(level) for level in counts)}"
    if count > 2:
        between = f"between the outermost of {count} means, the others half-way"
    if count > 2 and plan.test == "equivalence":
        between = f"between any two of {count} means (all pairs at once: a lower bound)"
    side = "" if test == ANOVA else plan.side

    def power_at(d: float, alpha: float, replicates: int) -> float | None:
        runs = [size * replicates for size in sizes]
        if count == 2:
            return t_test_power(d, *runs, alpha=alpha, test=plan.test)
        if plan.test == "equivalence":
            return _all_equivalent(d, runs, alpha)
        return anova_power(d, runs, alpha=alpha)

    return Comparison((name,), test, groups, between, side, power_at, levels=(tuple(counts),))


def _all_equivalent(d: float, sizes: Sequence[int], alpha: float) -> float | None:
    """A lower bound of the power to show that every two of several groups are equivalent."""
    missed = 0.0
    pairs = Counter(itertools.combinations(sorted(sizes), 2))
    for (n1, n2), count in pairs.items():
        power = t_test_power(d, n1, n2, alpha=alpha, test="equivalence")
        if power is None:
            return None
        missed += count * (1 - power)
    return max(0.0, 1 - missed)


def _slope(plan: _Plan, variable: Variable, counts: Mapping[str, int]) -> Comparison:
    runs_at: Counter[float] = Counter()
    for level, runs in counts.items():
        runs_at[float(variable.values[level])] += runs
    ends = [*runs_at, *(float(variable.values[level]) for level in variable.declared)]
    low, high = min(ends), max(ends)
    between = f"between {variable.name} = {low:g} and {high:g}, on a straight line"
    groups = plan.planned({f"{len(runs_at)} values in {low:g}..{high:g}": sum(counts.values())})

    def power_at(d: float, alpha: float, replicates: int) -> float | None:
        runs = {x: count * replicates for x, count in runs_at.items()}
        return slope_power(d, runs, span=high - low, alpha=alpha, test=plan.test)

    test = plan.test_name(SLOPE)
    return Comparison(
        (variable.name,), test, groups, between, plan.side, power_at, "", "slope", (tuple(counts),)
    )


def _interaction(plan: _Plan, name: str, moderator: str) -> Comparison:
    variables = [Variable(plan.study, name), Variable(plan.study, moderator)]
    counts = count_cells(plan.study, plan.conditions, variables)
    rows, columns = _levels_met(plan, variables, counts)
    test = plan.test_name(INTERACTION)
    reason = _why_no_interaction(plan, variables, (rows, columns))
    if reason:
        return Comparison((name, moderator), test, reason=reason)
    table = [[counts.get((row, column), 0) for column in columns] for row in rows]

    def power_at(d: float, alpha: float, replicates: int) -> float | None:
        cells = [[runs * replicates for runs in row] for row in table]
        return interaction_power(d, cells, alpha=alpha, test=plan.test)

    groups = {
        f"{name}={row}, {moderator}={column}": counts.get((row, column), 0)
        for row, column in itertools.product(rows, columns)
    }
    between = f"between the effects of {name} at two levels of {moderator}"
    side = plan.side
    if max(len(rows), len(columns)) > 2:
        between += f" ({len(rows)} × {len(columns)}, where runs are fewest)"
        side = ""
    found = Comparison(
        (name, moderator),
        test,
        plan.planned(groups),
        between,
        side,
        power_at,
        shape="interaction",
        levels=(tuple(rows), tuple(columns)),
    )
    return found.of_agents(limiting_agents(plan.study, plan.conditions, variables))


def _levels_met(
    plan: _Plan, variables: Sequence[Variable], counts: Mapping[Cell, int]
) -> list[list[str]]:
    """The levels that an interaction is about: those that the hypothesis asks for, else all."""
    levels = []
    for position, variable in enumerate(variables):
        met = {cell[position] for cell in counts}
        levels.append([level for level in variable.values if level in met])
    for position, variable in enumerate(variables):
        if ends := contrast_ends(plan.hypothesis, variable):
            levels[position] = ends
            break
    for moderator in plan.hypothesis.moderators:
        if moderator.name == variables[1].name and moderator.levels:
            # A level that isn't there stays in the list: its cells have no runs, and it is named.
            levels[1] = [variables[1].find_level(text) or text for text in moderator.levels]
    return levels


def _why_no_interaction(
    plan: _Plan, variables: Sequence[Variable], levels: Sequence[Sequence[str]]
) -> str:
    if apart := why_apart(variables):
        return apart
    for variable, chosen in zip(variables, levels, strict=True):
        if len(set(chosen)) < 2:
            return f"'{variable.name}' has fewer than two levels in the plan"
        if all(level in variable.values for level in chosen) and variable.is_sampled(chosen):
            return f"'{variable.name}' is sampled from a range; its interactions are not computed"
    if plan.hypothesis.contrast and not any(contrast_ends(plan.hypothesis, v) for v in variables):
        return _no_contrast(plan.hypothesis.contrast, [variable.name for variable in variables])
    if plan.test == "equivalence" and any(len(chosen) > 2 for chosen in levels):
        return "the equivalence of effects at more than 2 × 2 levels is not computed"
    return ""
