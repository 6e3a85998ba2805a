"""The statistical power of a study's hypotheses, computed before any run."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.runs import count_replicates
from fairtrial.study.hypotheses.comparisons import plan_comparisons
from fairtrial.study.hypotheses.planned_comparison import (
    T_TEST,
    HypothesisPlan,
    PlannedComparison,
    PowerFunction,
)
from fairtrial.study.hypotheses.planned_tests import choose_test
from fairtrial.study.hypotheses.problem_units import RATE_TESTS
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis
from fairtrial.study.model.study import Study
from fairtrial.study.power.assumptions import describe_assumptions, explain_no_power
from fairtrial.study.power.independence import count_problems, describe_independence
from fairtrial.study.power.power_models import (
    PowerModel,
    PowerQuestion,
    model_problems,
    model_runs,
)
from fairtrial.study.power.problem_layout import lay_out_problems
from fairtrial.study.power.proportions import EVEN_SD, FISHER, assumed_rates, fisher_power
from fairtrial.study.power.variances import get_variances
from fairtrial.study.stats.multiplicity import policy_name
from fairtrial.study.stats.power import smallest_n

ALPHA = 0.05
MOST_PROBLEMS = 2**14
"""No more problems than this are said to be needed."""


@dataclass(frozen=True, slots=True)
class HypothesisPower:
    """The power of one test of a hypothesis to detect its minimum effect of interest.

    hypothesis_id: the hypothesis
    outcome: the outcome that is tested
    variables: the factors (or block, agent, problem) that are compared
    test: the test whose power it is
    groups: the planned number of runs of each level, or of each cell
    effect_d: the minimum effect, in standard deviations
    alpha: the significance level of the test, after correction for several tests
    power: the probability that the test detects the effect; None if there is a `reason`
    assumption: the assumptions behind the power, in a sentence
    needed_replicates: the replicates per condition (those of the budget times those of the design)
        for a power of 0.8, everything else unchanged; None if no number of them is enough
    reason: why there is no power
    problems: the number of problems, if the test is by problem; 0 if its unit is the run
    needed_problems: the problems for a power of 0.8, everything else unchanged; None if the unit is
        the run
    slope_sd_d: the assumed standard deviation of the effect between problems, in standard
        deviations of the outcome; None if the unit is the run
    constant_power: the power if the effect is the same in every problem; None if the unit is the
        run, or that is what `power` assumes
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
    problems: int = 0
    needed_problems: int | None = None
    slope_sd_d: float | None = None
    constant_power: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


@dataclass(frozen=True, slots=True)
class PowerAnalysis:
    """The power of one planned test as a function and as a record.

    record: the power of the plan
    model: the power as a function of replicates and problems; None if it can't be computed
    """

    record: HypothesisPower
    model: PowerModel | None


def hypothesis_power(study: Study, conditions: Sequence[Condition]) -> list[HypothesisPower]:
    """Return the power of each hypothesis that states a minimum effect, for each of its outcomes.

    It is that of the test that will be made: by problem if the study has several and its plan
    generalizes to others. Group sizes are the runs that the plan has at each level. A hypothesis
    about several variables has an entry for each of them or, for a moderation, for each pair.
    """
    return [analysis.record for analysis in analyze_power(study, conditions)]


def analyze_power(study: Study, conditions: Sequence[Condition]) -> Iterator[PowerAnalysis]:
    """Yield the power of each hypothesis that states a minimum effect, as a function."""
    hypotheses = [h for h in study.hypotheses if h.minimum_effect_of_interest is not None]
    if not hypotheses:
        return
    problems = count_problems(study, conditions)
    test_counts = _count_tests(study, conditions)
    for hypothesis in hypotheses:
        outcomes = hypothesis.dependent_vars or study.primary_outcomes or ("",)
        plan = HypothesisPlan(study, conditions, hypothesis)
        for comparison in plan_comparisons(study, conditions, hypothesis):
            for outcome in outcomes:
                yield _analyze(plan, outcome, comparison, problems, test_counts)


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


def _analyze(
    hypothesis_plan: HypothesisPlan,
    outcome: str,
    comparison: PlannedComparison,
    problems: int,
    test_counts: Mapping[str, int],
) -> PowerAnalysis:
    study, hypothesis = hypothesis_plan.study, hypothesis_plan.hypothesis
    effect, effect_text = _standardize_effect(study, hypothesis, outcome)
    alpha, alpha_text = _correct_alpha(study, hypothesis, test_counts)
    plan = _find_plan(study, hypothesis, outcome)
    test_name = choose_test(study, plan, outcome, comparison)
    is_by_problem = plan is None or plan.generalize == "problems"
    layout = None
    if is_by_problem and comparison.power_at is not None:
        layout = lay_out_problems(study, hypothesis_plan.conditions, comparison)
    question = PowerQuestion(
        effect,
        alpha,
        hypothesis_plan.test,
        get_variances(study, outcome),
        is_corrected=test_name != "mixed_effects",
    )
    if (sd := _get_sd(study, outcome)) is not None:
        question = replace(question, scale=sd, unit=f"in {outcome}")
    if plan is not None and not is_by_problem and problems > 1:
        # Tests of a claim about exactly these problems are made within them.
        question = replace(question, effect=effect / math.sqrt(question.variances.within))
    compares_rates = test_name in RATE_TESTS if layout else test_name == RATE_TESTS[0]
    if compares_rates and comparison.test == T_TEST and comparison.power_at is not None:
        comparison, question, effect_text = _compare_rates(
            study, hypothesis, outcome, comparison, question
        )
    model = None
    if comparison.power_at is not None:
        model = (
            model_runs(comparison, question)
            if layout is None
            else model_problems(comparison, layout, question)
        )
    record = HypothesisPower(
        hypothesis_id=hypothesis.hypothesis_id,
        outcome=outcome,
        variables=comparison.variables,
        test=comparison.test if model is None else model.test,
        groups=comparison.groups,
        effect_d=effect,
        alpha=alpha,
        power=None,
        assumption="",
        reason=comparison.reason,
    )
    if model is None:
        return PowerAnalysis(record, None)
    independence = describe_independence(
        study, hypothesis_plan.conditions, comparison, problems, model, plan
    )
    sides = f", {comparison.side}" if comparison.side else ""
    assumption = describe_assumptions(
        comparison, effect_text, f"{alpha_text}{sides}", independence, model, question, test_name
    )
    return PowerAnalysis(_fill_in(replace(record, assumption=assumption), study, model), model)


def _fill_in(record: HypothesisPower, study: Study, model: PowerModel) -> HypothesisPower:
    """Add the power of the plan, and what is needed for more, to a record."""
    replicates, problems = count_replicates(study), model.problems
    power = model.power_at(replicates, problems)
    constant = model.constant_power_at
    needed_problems = None
    if problems:
        needed_problems = smallest_n(
            lambda count: model.power_at(replicates, count), limit=MOST_PROBLEMS
        )
    return replace(
        record,
        power=power,
        assumption="" if power is None else record.assumption,
        reason=explain_no_power(record.groups, model) if power is None else "",
        needed_replicates=smallest_n(lambda count: model.power_at(count, problems)),
        problems=problems,
        needed_problems=needed_problems,
        slope_sd_d=model.slope_sd,
        constant_power=None if constant is None else constant(replicates, problems),
    )


def _standardize_effect(study: Study, hypothesis: Hypothesis, outcome: str) -> tuple[float, str]:
    """Return the minimum effect in standard deviations, and how it was computed."""
    effect = hypothesis.minimum_effect_of_interest
    assert effect is not None
    sd = _get_sd(study, outcome)
    if sd is None:
        return effect, f"d = {effect:g} (standardized, as no sd is stated)"
    # The quotient of two floats may overflow or vanish: 1e300 in units of 1e-300.
    d = min(max(effect / sd, sys.float_info.min), sys.float_info.max)
    return d, f"{effect:g} in {outcome} (d = {d:.3g}, as its sd is {sd:g})"


def _get_sd(study: Study, outcome: str) -> float | None:
    """Return the standard deviation that a study states for an outcome."""
    return next((spec.sd for spec in study.outcomes if spec.name == outcome), None)


def _find_plan(study: Study, hypothesis: Hypothesis, outcome: str) -> AnalysisPlan | None:
    """Return the first plan that tests a hypothesis on an outcome."""
    plans = (
        plan
        for plan in study.analysis_plans
        if hypothesis.hypothesis_id in plan.hypothesis_ids
        and (not plan.outcomes or outcome in plan.outcomes)
    )
    return next(plans, None)


def _compare_rates(
    study: Study,
    hypothesis: Hypothesis,
    outcome: str,
    comparison: PlannedComparison,
    question: PowerQuestion,
) -> tuple[PlannedComparison, PowerQuestion, str]:
    """Return the comparison as one of two rates of a binary outcome, and the effect in words."""
    effect = hypothesis.minimum_effect_of_interest
    assert effect is not None
    sd = _get_sd(study, outcome)
    difference = effect * EVEN_SD if sd is None else effect
    rates = assumed_rates(difference, sd or EVEN_SD)
    if rates is None:
        reason = f"a difference of {difference:g} between rates of yes is more than there can be"
        return replace(comparison, test=FISHER, power_at=None, reason=reason), question, ""
    if sd is None:
        half = f"about one half, where the sd is {EVEN_SD:g}; the report takes that of the runs"
        explanation = f"d = {effect:g} {half}"
    else:
        explanation = f"as its sd is {sd:g}"
    return (
        replace(comparison, test=FISHER, power_at=_make_fisher_power(study, comparison, rates)),
        replace(question, rates=rates, rate_sd=sd or EVEN_SD),
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
