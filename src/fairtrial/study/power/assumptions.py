"""The assumptions behind a power, in words."""

from __future__ import annotations

from collections.abc import Mapping

from fairtrial.study.hypotheses.planned_comparison import (
    ANOVA,
    EQUIVALENCE,
    EVERY_LEVEL,
    INTERACTION,
    SLOPE,
    T_TEST,
    PlannedComparison,
)
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.hypotheses.problem_units import RANK_TESTS
from fairtrial.study.power.power_models import BETWEEN_PROBLEMS, PowerModel, PowerQuestion
from fairtrial.study.power.proportions import FISHER
from fairtrial.study.power.variances import PLAUSIBLE_SHARE, describe_within
from fairtrial.study.stats.by_problem import MIN_PROBLEMS
from fairtrial.study.stats.power import LEAST_RUNS

MEANS_TESTS = (
    *(DEFAULT_TEST, "welch_t", "anova", "classic_anova", "welch_anova", "factorial_anova"),
    "regression",
)
EQUIVALENT_TESTS = {
    T_TEST: MEANS_TESTS,
    ANOVA: MEANS_TESTS,
    EVERY_LEVEL: MEANS_TESTS,
    SLOPE: (DEFAULT_TEST, "regression", "correlation"),
    INTERACTION: (DEFAULT_TEST, "factorial_anova", "regression"),
    EQUIVALENCE: (DEFAULT_TEST, "equivalence", "welch_t", "regression"),
    FISHER: ("fisher_exact",),
}
"""For each test of runs: the test names of plans with (nearly) the same power."""
OTHER_BY_PROBLEM = (*RANK_TESTS, "correlation", "spearman")
"""These have another power than the tests by problem that are computed."""


def describe_assumptions(
    comparison: PlannedComparison,
    effect: str,
    level: str,
    independence: str,
    model: PowerModel,
    question: PowerQuestion,
    test_name: str,
) -> str:
    """Return the assumptions behind the power of a comparison.

    effect: the minimum effect in words
    level: the significance level and the side of the test
    independence: what is assumed about the dependence of runs
    test_name: the name of the plan's test
    """
    parts = [_describe_difference(comparison, effect), level]
    if model.problems:
        parts.append(_describe_slope(model, question))
        parts.append(_describe_within(model, question))
    text = f"{'; '.join([*parts, independence])}."
    if model.problems:
        is_other = test_name in OTHER_BY_PROBLEM
    else:
        is_other = test_name not in EQUIVALENT_TESTS.get(comparison.test, ())
    return text + (f" The plan's test is {test_name}, whose power is another." if is_other else "")


def _describe_difference(comparison: PlannedComparison, effect: str) -> str:
    if comparison.test == EQUIVALENCE:
        return f"Assumes no true difference {comparison.between}, and a margin of ±{effect}"
    return f"Assumes a difference of {effect} {comparison.between}"


def _describe_slope(model: PowerModel, question: PowerQuestion) -> str:
    assert model.slope_sd is not None
    size = f"{question.scale * model.slope_sd:.3g} {question.unit}"
    if question.variances.slope_sd is not None:
        return f"the effect varies between problems with an sd of {size}"
    return (
        "as no slope_sd is stated, the effect is taken to vary between problems by "
        f"{PLAUSIBLE_SHARE:.0%} of its size (an sd of {size})"
    )


def _describe_within(model: PowerModel, question: PowerQuestion) -> str:
    if model.icc is not None:
        return (
            f"as no icc is stated, {model.icc:.0%} of the variance is taken to lie between problems"
        )
    if model.test == BETWEEN_PROBLEMS:
        return f"{question.variances.icc:.0%} of the variance lies between problems"
    return describe_within(question.variances)


def explain_no_power(groups: Mapping[str, int], model: PowerModel) -> str:
    """Return why a planned comparison has no power: too few runs, or too few problems."""
    name, runs = min(groups.items(), key=lambda group: group[1])
    if runs < LEAST_RUNS:
        count = {0: "no runs", 1: "one run"}.get(runs, f"{runs} runs")
        return f"{name} has {count} in the plan; a test needs {LEAST_RUNS} or more in every group"
    if model.test == BETWEEN_PROBLEMS:
        return (
            f"the groups have different problems ({model.problems} in all); a comparison of "
            f"problems needs {LEAST_RUNS} or more in every group"
        )
    have = "one problem has" if model.problems == 1 else f"{model.problems} problems have"
    return (
        f"{have} runs in all groups; a claim about problems in general needs {MIN_PROBLEMS} or "
        "more (`generalize: these_problems_only` in the plan makes it one about exactly these)"
    )
