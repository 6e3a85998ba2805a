"""The power of a study's hypotheses, before anything is run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.core import dump
from fairtrial.study.design.runs import PROBLEM_FACTORS, problems_of, replicates_of
from fairtrial.study.hypotheses.comparisons import (
    ANOVA,
    EQUIVALENCE,
    INTERACTION,
    SLOPE,
    T_TEST,
    Comparison,
    PowerAt,
    comparisons_of,
)
from fairtrial.study.hypotheses.groups import Cell, Variable, count_cells
from fairtrial.study.hypotheses.planned_tests import GENERIC, deciding_word
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import Hypothesis
from fairtrial.study.model.study import Study
from fairtrial.study.power.proportions import EVEN_SD, FISHER, assumed_rates, fisher_power
from fairtrial.study.stats.power import LEAST_RUNS, smallest_n

ALPHA = 0.05
FEW_PROBLEMS = 10
"""With fewer problems than this people are told that a result may not carry over to others."""
STANDS_FOR = {
    T_TEST: (GENERIC, "welch_t", "anova", "welch_anova", "factorial_anova", "regression"),
    ANOVA: (GENERIC, "welch_t", "anova", "welch_anova", "factorial_anova", "regression"),
    SLOPE: (GENERIC, "regression", "correlation"),
    INTERACTION: (GENERIC, "factorial_anova", "regression"),
    EQUIVALENCE: (GENERIC, "equivalence", "welch_t", "regression"),
    FISHER: ("fisher_exact",),
}
"""The tests of plans, by what is computed, that have (nearly) this power."""


@dataclass(frozen=True, slots=True)
class HypothesisPower:
    """How likely one test of a hypothesis is to find its minimum effect of interest.

    hypothesis_id, outcome: what is tested, and on which outcome
    variables: the factors (or block, agent, problem) that are compared
    test: the test that is assumed
    groups: the planned runs of each level, or of each cell
    effect_d: the minimum effect, in standard deviations
    alpha: the level of the test, after its share in several tests
    power: the probability that the test finds the effect; None with a `reason`
    assumption: what the figure rests on, in a sentence for people
    needed_replicates: the replicates per condition (those of the budget times those of the design)
        that give a power of 0.8, all else the same
    reason: why there is no power
    """

    hypothesis_id: str
    outcome: str
    variables: tuple[str, ...]
    test: str
    groups: Mapping[str, int]
    effect_d: float
    alpha: float
    power: float | None
    assumption: str
    needed_replicates: int | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        data: dict[str, Any] = dump(self)
        return data


def hypothesis_power(study: Study, conditions: Sequence[Condition]) -> list[HypothesisPower]:
    """The power of each hypothesis that states a minimum effect, for each of its outcomes.

    Groups are the runs that the plan gives to each level. A hypothesis about several variables
    gets an entry for each of them, or, for a moderation, for each pair.
    """
    stated = [each for each in study.hypotheses if each.minimum_effect_of_interest is not None]
    if not stated:
        return []
    problems = _count_problems(study, conditions)
    tests = _count_tests(study, conditions)
    found = []
    for hypothesis in stated:
        outcomes = hypothesis.dependent_vars or study.primary_outcomes or ("",)
        for comparison in comparisons_of(study, conditions, hypothesis):
            caution = _caution(study, conditions, comparison, problems)
            found += [
                _judge(study, hypothesis, name, comparison, caution, tests) for name in outcomes
            ]
    return found


def _count_tests(study: Study, conditions: Sequence[Condition]) -> dict[str, int]:
    """How many tests each plan makes of its hypotheses: one for each outcome and comparison."""
    claims = {claim.hypothesis_id: claim for claim in study.hypotheses}
    compared = {
        name: sum(not each.reason for each in comparisons_of(study, conditions, claim))
        for name, claim in claims.items()
        if study.analysis_plans
    }
    counts = {}
    for plan in study.analysis_plans:
        total = 0
        for name in {*plan.hypothesis_ids} & claims.keys():
            asked = claims[name].dependent_vars or plan.outcomes or study.primary_outcomes or ("",)
            looked_at = [each for each in asked if not plan.outcomes or each in plan.outcomes]
            total += len(looked_at) * compared[name]
        counts[plan.analysis_plan_id] = total
    return counts


def _judge(
    study: Study,
    hypothesis: Hypothesis,
    outcome: str,
    comparison: Comparison,
    caution: str,
    tests: Mapping[str, int],
) -> HypothesisPower:
    effect, effect_text = _effect(study, hypothesis, outcome)
    alpha, alpha_text = _alpha(study, hypothesis, tests)
    word = _planned_word(study, hypothesis, outcome, comparison)
    if word == "fisher_exact" and comparison.test == T_TEST and comparison.power_at is not None:
        comparison, effect_text = _of_rates(study, hypothesis, outcome, comparison)
    power, needed, reason, assumption = None, None, comparison.reason, ""
    power_at = comparison.power_at
    if power_at is not None:
        power = power_at(effect, alpha, replicates_of(study))
        needed = smallest_n(lambda replicates: power_at(effect, alpha, replicates))
        reason = _too_small(comparison.groups) if power is None else ""
        side = f", {comparison.side}" if comparison.side else ""
        assumption = f"{_difference(comparison, effect_text)}; {alpha_text}{side}; {caution}."
        if word not in STANDS_FOR.get(comparison.test, ()):
            assumption += f" The plan's test is {word}, whose power is another."
    return HypothesisPower(
        hypothesis_id=hypothesis.hypothesis_id,
        outcome=outcome,
        variables=comparison.variables,
        test=comparison.test,
        groups=comparison.groups,
        effect_d=effect,
        alpha=alpha,
        power=power,
        assumption=assumption,
        needed_replicates=needed,
        reason=reason,
    )


def _effect(study: Study, hypothesis: Hypothesis, outcome: str) -> tuple[float, str]:
    """The minimum effect in standard deviations, and how it was read."""
    effect = hypothesis.minimum_effect_of_interest
    assert effect is not None
    for spec in study.outcomes:
        if spec.name == outcome and spec.sd is not None:
            # The quotient of two numbers may be none: 1e300 in units of 1e-300.
            d = min(max(effect / spec.sd, sys.float_info.min), sys.float_info.max)
            return d, f"{effect:g} in {outcome} (d = {d:.3g}, as its sd is {spec.sd:g})"
    return effect, f"d = {effect:g} (standardised, as no sd is stated)"


def _planned_word(
    study: Study, hypothesis: Hypothesis, outcome: str, comparison: Comparison
) -> str:
    """The test that decides the hypothesis, by the first plan that tests it on this outcome."""
    plans = (
        plan
        for plan in study.analysis_plans
        if hypothesis.hypothesis_id in plan.hypothesis_ids
        and (not plan.outcomes or outcome in plan.outcomes)
    )
    return deciding_word(study, next(plans, None), outcome, comparison)


def _of_rates(
    study: Study, hypothesis: Hypothesis, outcome: str, comparison: Comparison
) -> tuple[Comparison, str]:
    """The same comparison as one of two rates of yes, and the effect in words."""
    effect = hypothesis.minimum_effect_of_interest
    assert effect is not None
    sd = next((each.sd for each in study.outcomes if each.name == outcome and each.sd), None)
    difference = effect * EVEN_SD if sd is None else effect
    rates = assumed_rates(difference, sd or EVEN_SD)
    if rates is None:
        reason = f"a difference of {difference:g} between rates of yes is more than there can be"
        return replace(comparison, test=FISHER, power_at=None, reason=reason), ""
    if sd is None:
        half = f"about one half, where the sd is {EVEN_SD:g}; the report takes that of the runs"
        why = f"d = {effect:g} {half}"
    else:
        why = f"as its sd is {sd:g}"
    return (
        replace(comparison, test=FISHER, power_at=_fisher_at(study, comparison, rates)),
        f"{difference:g} in {outcome} ({rates[0]:.0%} against {rates[1]:.0%} yes, {why})",
    )


def _fisher_at(study: Study, comparison: Comparison, rates: tuple[float, float]) -> PowerAt:
    first, second = (runs // replicates_of(study) for runs in comparison.groups.values())
    one_sided = comparison.side == "one-sided"

    def power_at(_: float, alpha: float, replicates: int) -> float | None:
        runs = (first * replicates, second * replicates)
        return fisher_power(rates, *runs, alpha=alpha, one_sided=one_sided)

    return power_at


def _alpha(study: Study, hypothesis: Hypothesis, tests: Mapping[str, int]) -> tuple[float, str]:
    """The level of the hypothesis' test: the smallest that any of its plans leaves it."""
    alpha, text = ALPHA, f"alpha {ALPHA:g}"
    for plan in study.analysis_plans:
        policy = plan.multiple_comparison_policy.strip().lower()
        if hypothesis.hypothesis_id not in plan.hypothesis_ids or policy in ("", "none"):
            continue
        claims = len(set(plan.hypothesis_ids))
        tested = max(claims, tests[plan.analysis_plan_id])
        what = "hypotheses" if tested == claims else "tests"
        if ALPHA / tested < alpha:
            alpha = ALPHA / tested
            bound = "Bonferroni bound" if policy in ("holm", "bonferroni") else "worst case"
            text = f"alpha {alpha:.3g} ({ALPHA:g} over {tested} {what}, {bound} for {policy})"
    return alpha, text


def _difference(comparison: Comparison, effect: str) -> str:
    if comparison.test == EQUIVALENCE:
        return f"Assumes no true difference {comparison.between}, and a margin of ±{effect}"
    return f"Assumes a difference of {effect} {comparison.between}"


def _count_problems(study: Study, conditions: Sequence[Condition]) -> int:
    admissible = (condition for condition in conditions if condition.admissible)
    return len({name for each in admissible for name in problems_of(study, each) if name})


def _caution(
    study: Study, conditions: Sequence[Condition], comparison: Comparison, problems: int
) -> str:
    """What it means for this plan that runs are taken as independent."""
    text = "runs are taken as independent given the level"
    circumstances = [block.name for block in study.blocks if len(block.levels) > 1]
    circumstances += ["problem_id"] if problems > 1 else []
    asked = {*comparison.variables, *(name.removeprefix("block_") for name in comparison.variables)}
    if circumstances and comparison.power_at and not asked & {*circumstances, *PROBLEM_FACTORS}:
        apart = [c for c in circumstances if not _meet_alike(study, conditions, comparison, c)]
        if apart:
            one, other = " × ".join(comparison.variables), " and ".join(apart)
            text += f"; but {one} and {other} don't meet evenly: a difference may be due to {other}"
        else:
            text += ", which is cautious: comparisons within a block or a problem are sharper"
    if 0 < problems < FEW_PROBLEMS:
        which = "the one problem" if problems == 1 else f"the {problems} problems"
        text += f"; replicates speak for {which} of the plan, not for others"
    return text


def _meet_alike(
    study: Study, conditions: Sequence[Condition], comparison: Comparison, circumstance: str
) -> bool:
    """Whether each group has the same share of its runs under each level of a circumstance."""
    names = (*comparison.variables, circumstance)
    cells = count_cells(study, conditions, [Variable(study, name) for name in names])
    shares: dict[Cell, dict[str, int]] = {}
    for (*group, level), runs in cells.items():
        shares.setdefault(tuple(group), {})[level] = runs
    # The levels of a contrast are groups by their names; others count where it asks for none.
    named = [share for group, share in shares.items() if group[0] in comparison.groups]
    compared = named or list(shares.values())
    first = compared[0] if compared else {}
    return all(
        share.keys() == first.keys()
        and all(
            share[level] * sum(first.values()) == first[level] * sum(share.values())
            for level in first
        )
        for share in compared
    )


def _too_small(groups: Mapping[str, int]) -> str:
    name, runs = min(groups.items(), key=lambda group: group[1])
    count = {0: "no runs", 1: "one run"}.get(runs, f"{runs} runs")
    return f"{name} has {count} in the plan; a test needs {LEAST_RUNS} or more in every group"
