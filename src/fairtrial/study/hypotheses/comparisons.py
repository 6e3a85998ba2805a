"""Which comparisons a hypothesis asks for, and how many runs the plan has in each group."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fairtrial.core import did_you_mean
from fairtrial.study.hypotheses.groups import Variable, count_cells, find_limiting_agents
from fairtrial.study.hypotheses.interactions import plan_interaction
from fairtrial.study.hypotheses.planned_comparison import (
    ANOVA,
    EVERY_LEVEL,
    INTERACTION,
    SLOPE,
    T_TEST,
    HypothesisPlan,
    PlannedComparison,
    explain_missing_levels,
    find_baseline,
    find_contrast_levels,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import Hypothesis, HypothesisKind
from fairtrial.study.model.study import Study
from fairtrial.study.stats.every_level_power import every_level_power
from fairtrial.study.stats.power import anova_power, slope_power
from fairtrial.study.stats.welch_power import welch_power


def plan_comparisons(
    study: Study, conditions: Sequence[Condition], hypothesis: Hypothesis
) -> Iterator[PlannedComparison]:
    """Yield the comparisons of a hypothesis.

    There is one for each independent variable or, for a moderation, for each pair of a variable
    and a moderator. A hypothesis that can't be tested gives one comparison with a `reason`.
    """
    names = hypothesis.independent_vars
    moderators = tuple(moderator.name for moderator in hypothesis.moderators)
    plan = HypothesisPlan(study, conditions, hypothesis)
    if hypothesis.kind is HypothesisKind.MEDIATION:
        yield PlannedComparison(names, reason="mediation has no closed form; not computed")
    elif not names:
        yield PlannedComparison(names, reason="the hypothesis names no independent variable")
    elif unknown := _explain_unknown(study, (*names, *moderators)):
        yield PlannedComparison(names, reason=unknown)
    elif moderators:
        for name, moderator in itertools.product(names, moderators):
            yield plan_interaction(plan, name, moderator)
    elif hypothesis.kind is not HypothesisKind.MODERATION:
        yield from _plan_main_effects(plan)
    elif len(names) < 2:
        yield PlannedComparison(names, INTERACTION, reason="the hypothesis names no moderator")
    else:
        for name, moderator in itertools.combinations(names, 2):
            yield plan_interaction(plan, name, moderator)


def _explain_unknown(study: Study, names: Sequence[str]) -> str:
    """Return which of the names is no variable of the study; empty if all are."""
    known = [factor.name for factor in study.factors] + [block.name for block in study.blocks]
    for name in names:
        if not Variable(study, name).source:
            hint = did_you_mean(name, [*known, "agent", "problem"])
            return f"'{name}' is no factor, block, agent or problem of the study; {hint}"
    return ""


def _plan_main_effects(plan: HypothesisPlan) -> Iterator[PlannedComparison]:
    """Yield a comparison of the levels, or of the slope, of each independent variable."""
    contrast = plan.hypothesis.contrast
    names = plan.hypothesis.independent_vars
    variables = [Variable(plan.study, name) for name in names]
    run_counts = [_count_levels(plan, variable) for variable in variables]
    contrasts = [find_contrast_levels(plan.hypothesis, variable) for variable in variables]
    if contrast is not None and not any(contrasts):
        reason = explain_missing_levels(contrast, names)
        yield PlannedComparison(names, plan.name_test(T_TEST), reason=reason)
        return
    for variable, counts, contrast_levels in zip(variables, run_counts, contrasts, strict=True):
        if contrast_levels:
            counts = {level: counts.get(level, 0) for level in contrast_levels}
        if variable.is_sampled(tuple(counts)):
            comparison = _plan_slope(plan, variable, counts)
        else:
            comparison = _plan_levels(plan, variable.name, counts)
        agents = find_limiting_agents(plan.study, plan.conditions, [variable])
        yield comparison.limit_to_agents(agents)


def _count_levels(plan: HypothesisPlan, variable: Variable) -> dict[str, int]:
    """Return the runs of one replicate by the variable's level."""
    cells = count_cells(plan.study, plan.conditions, [variable])
    return {level: runs for (level,), runs in cells.items()}


def _plan_levels(plan: HypothesisPlan, name: str, counts: Mapping[str, int]) -> PlannedComparison:
    """Return the comparison of a variable's levels; `counts` are the runs of one replicate."""
    groups = plan.count_all_replicates(counts)
    sizes = list(counts.values())
    count = len(sizes)
    is_directed = count > 2 and plan.test == "one-sided"
    test = plan.name_test(T_TEST if count == 2 else EVERY_LEVEL if is_directed else ANOVA)
    if count < 2:
        reason = f"'{name}' has fewer than two levels in the plan"
        return PlannedComparison((name,), test, groups, reason=reason, levels=(tuple(counts),))
    between = f"between {' and '.join(repr(level) for level in counts)}"
    if count > 2:
        between = f"between the outermost of {count} means, the others half-way"
    if count > 2 and plan.test == "equivalence":
        between = f"between any two of {count} means (all pairs at once: a lower bound)"
    if is_directed:
        baseline = find_baseline(plan.study, name, tuple(counts)) or next(iter(counts))
        sizes = [*(size for level, size in counts.items() if level != baseline), counts[baseline]]
        between = f"between each of {count - 1} levels and '{baseline}'"
    side = "" if test == ANOVA else plan.side

    def power_at(d: float, alpha: float, replicates: int) -> float | None:
        runs = [size * replicates for size in sizes]
        if count == 2:
            return welch_power(d, *runs, alpha=alpha, test=plan.test)
        if plan.test == "equivalence":
            return _bound_equivalence_power(d, runs, alpha)
        return (every_level_power if is_directed else anova_power)(d, runs, alpha=alpha)

    return PlannedComparison(
        (name,), test, groups, between, side, power_at, levels=(tuple(counts),)
    )


def _bound_equivalence_power(d: float, sizes: Sequence[int], alpha: float) -> float | None:
    """Return a lower bound of the power to show that all pairs of groups are equivalent."""
    miss_probability = 0.0
    pairs = Counter(itertools.combinations(sorted(sizes), 2))
    for (n1, n2), count in pairs.items():
        power = welch_power(d, n1, n2, alpha=alpha, test="equivalence")
        if power is None:
            return None
        miss_probability += count * (1 - power)
    return max(0.0, 1 - miss_probability)


def _plan_slope(
    plan: HypothesisPlan, variable: Variable, counts: Mapping[str, int]
) -> PlannedComparison:
    """Return the comparison of a numeric variable's slope; `counts` are those of one replicate."""
    runs_at: Counter[float] = Counter()
    for level, runs in counts.items():
        runs_at[float(variable.values[level])] += runs
    values = [*runs_at, *(float(variable.values[level]) for level in variable.declared)]
    low, high = min(values), max(values)
    between = f"between {variable.name} = {low:g} and {high:g}, on a straight line"
    groups = plan.count_all_replicates(
        {f"{len(runs_at)} values in {low:g}..{high:g}": sum(counts.values())}
    )

    def power_at(d: float, alpha: float, replicates: int) -> float | None:
        runs = {x: count * replicates for x, count in runs_at.items()}
        return slope_power(d, runs, span=high - low, alpha=alpha, test=plan.test)

    test = plan.name_test(SLOPE)
    return PlannedComparison(
        (variable.name,), test, groups, between, plan.side, power_at, "", "slope", (tuple(counts),)
    )
