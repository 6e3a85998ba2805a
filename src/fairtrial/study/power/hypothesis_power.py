"""The statistical power of a study's hypotheses, computed before any run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.runs import count_replicates
from fairtrial.study.hypotheses.comparisons import plan_comparisons
from fairtrial.study.hypotheses.planned_comparison import (
    ANOVA,
    EQUIVALENCE,
    INTERACTION,
    SLOPE,
    T_TEST,
    PlannedComparison,
    PowerFunction,
)
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST, choose_test
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import Hypothesis
from fairtrial.study.model.study import Study
from fairtrial.study.power.independence import count_problems, describe_independence
from fairtrial.study.power.proportions import EVEN_SD, FISHER, assumed_rates, fisher_power
from fairtrial.study.stats.multiplicity import policy_name
from fairtrial.study.stats.power import LEAST_RUNS, smallest_n

ALPHA = 0.05
EQUIVALENT_TESTS = {
    T_TEST: (
        DEFAULT_TEST,
        "welch_t",
        "anova",
        "classic_anova",
        "welch_anova",
        "factorial_anova",
        "regression",
    ),
    ANOVA: (
        DEFAULT_TEST,
        "welch_t",
        "anova",
        "classic_anova",
        "welch_anova",
        "factorial_anova",
        "regression",
    ),
    SLOPE: (DEFAULT_TEST, "regression", "correlation"),
    INTERACTION: (DEFAULT_TEST, "factorial_anova", "regression"),
    EQUIVALENCE: (DEFAULT_TEST, "equivalence", "welch_t", "regression"),
    FISHER: ("fisher_exact",),
}
"""For each test whose power is computed: the test names of plans with (nearly) the same power."""


@dataclass(frozen=True, slots=True)
class HypothesisPower:
    """The power of one test of a hypothesis to detect its minimum effect of interest.

    hypothesis_id: the hypothesis
    outcome: the outcome that is tested
    variables: the factors (or block, agent, problem) that are compared
    test: the test that is assumed
    groups: the planned number of runs of each level, or of each cell
    effect_d: the minimum effect, in standard deviations
    alpha: the significance level of the test, after correction for several tests
    power: the probability that the test detects the effect; None if there is a `reason`
    assumption: the assumptions behind the power, in a sentence
    needed_replicates: the replicates per condition (those of the budget times those of the design)
        for a power of 0.8, everything else unchanged
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
        """Return the fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def hypothesis_power(study: Study, conditions: Sequence[Condition]) -> list[HypothesisPower]:
    """Return the power of each hypothesis that states a minimum effect, for each of its outcomes.

    Group sizes are the runs that the plan has at each level. A hypothesis about several variables
    has an entry for each of them or, for a moderation, for each pair.
    """
    hypotheses = [h for h in study.hypotheses if h.minimum_effect_of_interest is not None]
    if not hypotheses:
        return []
    problems = count_problems(study, conditions)
    test_counts = _count_tests(study, conditions)
    powers = []
    for hypothesis in hypotheses:
        outcomes = hypothesis.dependent_vars or study.primary_outcomes or ("",)
        for comparison in plan_comparisons(study, conditions, hypothesis):
            independence = describe_independence(study, conditions, comparison, problems)
            powers += [
                _compute_power(study, hypothesis, outcome, comparison, independence, test_counts)
                for outcome in outcomes
            ]
    return powers


def _count_tests(study: Study, conditions: Sequence[Condition]) -> dict[str, int]:
    """Return the number of tests in each plan's family: one for each outcome and comparison."""
    hypotheses = {hypothesis.hypothesis_id: hypothesis for hypothesis in study.hypotheses}
    comparison_counts = {
        name: sum(
            not comparison.reason for comparison in plan_comparisons(study, conditions, hypothesis)
        )
        for name, hypothesis in hypotheses.items()
        if study.analysis_plans
    }
    counts = {}
    for plan in study.analysis_plans:
        total = 0
        for name in {*plan.hypothesis_ids} & hypotheses.keys():
            dependent_vars = hypotheses[name].dependent_vars
            outcomes = dependent_vars or plan.outcomes or study.primary_outcomes or ("",)
            tested = [o for o in outcomes if not plan.outcomes or o in plan.outcomes]
            total += len(tested) * comparison_counts[name]
        counts[plan.analysis_plan_id] = total
    # Plans with the same policy are one family.
    policies = {
        plan.analysis_plan_id: policy_name(plan.multiple_comparison_policy)
        for plan in study.analysis_plans
    }
    return {
        name: sum(counts[other] for other in counts if policies[other] == policies[name])
        for name in counts
    }


def _compute_power(
    study: Study,
    hypothesis: Hypothesis,
    outcome: str,
    comparison: PlannedComparison,
    independence: str,
    test_counts: Mapping[str, int],
) -> HypothesisPower:
    effect, effect_text = _standardize_effect(study, hypothesis, outcome)
    alpha, alpha_text = _correct_alpha(study, hypothesis, test_counts)
    test_name = _find_planned_test(study, hypothesis, outcome, comparison)
    is_fisher = test_name == "fisher_exact" and comparison.test == T_TEST
    if is_fisher and comparison.power_at is not None:
        comparison, effect_text = _compare_rates(study, hypothesis, outcome, comparison)
    power, needed, reason, assumption = None, None, comparison.reason, ""
    power_at = comparison.power_at
    if power_at is not None:
        power = power_at(effect, alpha, count_replicates(study))
        needed = smallest_n(lambda replicates: power_at(effect, alpha, replicates))
        reason = _explain_small_group(comparison.groups) if power is None else ""
        side = f", {comparison.side}" if comparison.side else ""
        difference = _describe_difference(comparison, effect_text)
        assumption = f"{difference}; {alpha_text}{side}; {independence}."
        if test_name not in EQUIVALENT_TESTS.get(comparison.test, ()):
            assumption += f" The plan's test is {test_name}, whose power is another."
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


def _standardize_effect(study: Study, hypothesis: Hypothesis, outcome: str) -> tuple[float, str]:
    """Return the minimum effect in standard deviations, and how it was computed."""
    effect = hypothesis.minimum_effect_of_interest
    assert effect is not None
    for spec in study.outcomes:
        if spec.name == outcome and spec.sd is not None:
            # The quotient of two floats may overflow or vanish: 1e300 in units of 1e-300.
            d = min(max(effect / spec.sd, sys.float_info.min), sys.float_info.max)
            return d, f"{effect:g} in {outcome} (d = {d:.3g}, as its sd is {spec.sd:g})"
    return effect, f"d = {effect:g} (standardized, as no sd is stated)"


def _find_planned_test(
    study: Study, hypothesis: Hypothesis, outcome: str, comparison: PlannedComparison
) -> str:
    """Return the name of the test that decides, by the first plan for hypothesis and outcome."""
    plans = (
        plan
        for plan in study.analysis_plans
        if hypothesis.hypothesis_id in plan.hypothesis_ids
        and (not plan.outcomes or outcome in plan.outcomes)
    )
    return choose_test(study, next(plans, None), outcome, comparison)


def _compare_rates(
    study: Study, hypothesis: Hypothesis, outcome: str, comparison: PlannedComparison
) -> tuple[PlannedComparison, str]:
    """Return the comparison as one of two rates of a binary outcome, and the effect in words."""
    effect = hypothesis.minimum_effect_of_interest
    assert effect is not None
    sd = next((spec.sd for spec in study.outcomes if spec.name == outcome and spec.sd), None)
    difference = effect * EVEN_SD if sd is None else effect
    rates = assumed_rates(difference, sd or EVEN_SD)
    if rates is None:
        reason = f"a difference of {difference:g} between rates of yes is more than there can be"
        return replace(comparison, test=FISHER, power_at=None, reason=reason), ""
    if sd is None:
        half = f"about one half, where the sd is {EVEN_SD:g}; the report takes that of the runs"
        explanation = f"d = {effect:g} {half}"
    else:
        explanation = f"as its sd is {sd:g}"
    return (
        replace(comparison, test=FISHER, power_at=_make_fisher_power(study, comparison, rates)),
        f"{difference:g} in {outcome} ({rates[0]:.0%} against {rates[1]:.0%} yes, {explanation})",
    )


def _make_fisher_power(
    study: Study, comparison: PlannedComparison, rates: tuple[float, float]
) -> PowerFunction:
    first, second = (runs // count_replicates(study) for runs in comparison.groups.values())
    one_sided = comparison.side == "one-sided"

    def power_at(_: float, alpha: float, replicates: int) -> float | None:
        runs = (first * replicates, second * replicates)
        return fisher_power(rates, *runs, alpha=alpha, one_sided=one_sided)

    return power_at


def _correct_alpha(
    study: Study, hypothesis: Hypothesis, test_counts: Mapping[str, int]
) -> tuple[float, str]:
    """Return the significance level of the hypothesis' tests, and how it was computed.

    It is the smallest level that the correction for several tests gives in any of its plans.
    """
    alpha, text = ALPHA, f"alpha {ALPHA:g}"
    for plan in study.analysis_plans:
        policy = plan.multiple_comparison_policy.strip().lower()
        if hypothesis.hypothesis_id not in plan.hypothesis_ids or policy in ("", "none"):
            continue
        hypothesis_count = len(set(plan.hypothesis_ids))
        test_count = max(hypothesis_count, test_counts[plan.analysis_plan_id])
        noun = "hypotheses" if test_count == hypothesis_count else "tests"
        if ALPHA / test_count < alpha:
            alpha = ALPHA / test_count
            bound = "Bonferroni bound" if policy in ("holm", "bonferroni") else "worst case"
            text = f"alpha {alpha:.3g} ({ALPHA:g} over {test_count} {noun}, {bound} for {policy})"
    return alpha, text


def _describe_difference(comparison: PlannedComparison, effect: str) -> str:
    if comparison.test == EQUIVALENCE:
        return f"Assumes no true difference {comparison.between}, and a margin of ±{effect}"
    return f"Assumes a difference of {effect} {comparison.between}"


def _explain_small_group(groups: Mapping[str, int]) -> str:
    name, runs = min(groups.items(), key=lambda group: group[1])
    count = {0: "no runs", 1: "one run"}.get(runs, f"{runs} runs")
    return f"{name} has {count} in the plan; a test needs {LEAST_RUNS} or more in every group"
