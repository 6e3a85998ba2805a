"""Power as a function of replicates and problems, for the test that will be made of a comparison.

Where a study has several problems and its claims are about problems in general, the test is by
problem: each problem gives one contrast. Otherwise runs are the unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from fairtrial.study.hypotheses.planned_comparison import (
    ANOVA,
    EQUIVALENCE,
    EVERY_LEVEL,
    INTERACTION,
    SLOPE,
    T_TEST,
    PlannedComparison,
)
from fairtrial.study.power.problem_layout import ProblemLayout
from fairtrial.study.power.variances import PLAUSIBLE_ICC, PLAUSIBLE_SHARE, Variances
from fairtrial.study.stats.every_level_power import every_level_problem_power
from fairtrial.study.stats.power import TestKind
from fairtrial.study.stats.problem_power import problem_power, sign_flip_power
from fairtrial.study.stats.welch_power import welch_power

BY_PROBLEM = {
    T_TEST: "t test by problem",
    ANOVA: "analysis of variance by problem",
    EVERY_LEVEL: "every level against the baseline, by problem",
    INTERACTION: "interaction by problem",
    SLOPE: "slope by problem",
    EQUIVALENCE: "equivalence (TOST) by problem",
}
SIGN_FLIP = "sign-flip test by problem"
BETWEEN_PROBLEMS = "Welch's t between problems"

PowerAt = Callable[[int, int], float | None]
"""The power for a number of replicates per condition and a number of problems."""


@dataclass(frozen=True, slots=True)
class PowerModel:
    """The power of a comparison as a function, and what it assumes.

    test: the test
    power_at: the power with the assumed variances
    problems: the number of problems in the comparison; 0 if runs are the unit
    slope_sd: the assumed standard deviation of the effect between problems, in standard deviations
        of the outcome; None if runs are the unit
    constant_power_at: the power if the effect is the same in every problem; None if that is what
        is assumed anyway
    icc: the assumed share of variance between problems, if it is not the stated one
    """

    test: str
    power_at: PowerAt
    problems: int = 0
    slope_sd: float | None = None
    constant_power_at: PowerAt | None = None
    icc: float | None = None


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """What the power of a comparison is asked for.

    effect: the minimum effect in standard deviations of the outcome
    alpha: the significance level
    side: the alternative
    variances: the variances of the outcome
    rates: the two rates that are compared, if the outcome is binary and has two levels; the unit
        of the effect is then their standard deviation `rate_sd`
    rate_sd: standard deviation of the binary outcome
    scale, unit: what one standard deviation is in the units that effects are stated in
    is_corrected: whether the t test by problem has a correction for skewness
    """

    effect: float
    alpha: float
    side: TestKind
    variances: Variances
    rates: tuple[float, float] | None = None
    rate_sd: float = 1.0
    scale: float = 1.0
    unit: str = "standard deviations"
    is_corrected: bool = True


def model_runs(comparison: PlannedComparison, question: PowerQuestion) -> PowerModel | None:
    """Return the power of a comparison whose unit is the run; None if it has none."""
    run_power = comparison.power_at
    if run_power is None:
        return None

    def power_at(replicates: int, problems: int) -> float | None:
        return run_power(question.effect, question.alpha, replicates)

    return PowerModel(comparison.test, power_at)


def model_problems(
    comparison: PlannedComparison, layout: ProblemLayout, question: PowerQuestion
) -> PowerModel:
    """Return the power of a comparison whose unit is the problem."""
    if layout.nested:
        return _model_nested(layout, question)
    stated = question.variances.slope_sd
    slope_sd = PLAUSIBLE_SHARE * question.effect if stated is None else stated
    varying = _make_power(comparison, layout, question, slope_sd)
    constant = _make_power(comparison, layout, question, 0.0) if slope_sd else None
    test = BY_PROBLEM[comparison.test] if question.rates is None else SIGN_FLIP
    return PowerModel(test, varying, layout.problems, slope_sd, constant)


def _make_power(
    comparison: PlannedComparison, layout: ProblemLayout, question: PowerQuestion, slope_sd: float
) -> PowerAt:
    error = _run_variance(layout, question)
    by_means = partial(problem_power, is_corrected=question.is_corrected)
    compute = by_means if question.rates is None else sign_flip_power
    is_all_pairs = question.side == "equivalence" and layout.contrasts > 1
    contrasts = 1 if is_all_pairs else layout.contrasts

    def power_at(replicates: int, problems: int) -> float | None:
        variance = slope_sd**2 + error / replicates
        effect, alpha, side = question.effect, question.alpha, question.side
        if comparison.test == EVERY_LEVEL:
            return every_level_problem_power(
                effect,
                variance,
                problems,
                contrasts,
                alpha=alpha,
                is_corrected=question.is_corrected,
            )
        if contrasts > 1:
            return problem_power(effect, variance, problems, alpha=alpha, df1=contrasts)
        power = compute(effect, variance, problems, alpha=alpha, test=side)
        if power is None or not is_all_pairs:
            return power
        return max(0.0, 1 - layout.pairs * (1 - power))

    return power_at


def _run_variance(layout: ProblemLayout, question: PowerQuestion) -> float:
    """Return the variance of a problem's contrast by its runs alone, with one replicate."""
    within = question.variances.within
    if question.rates is None or len(layout.parts) != 2:
        return within * layout.error
    variances = [rate * (1 - rate) / question.rate_sd**2 for rate in question.rates]
    orders = (layout.parts, layout.parts[::-1])
    # Which group has which rate isn't known: the less favorable case.
    return within * max(
        sum(v * part for v, part in zip(variances, parts, strict=True)) for parts in orders
    )


def _model_nested(layout: ProblemLayout, question: PowerQuestion) -> PowerModel:
    """Return the power of a comparison of two groups with different problems."""
    variances = question.variances
    icc = PLAUSIBLE_ICC if variances.icc is None else variances.icc
    effect, sizes = question.effect, layout.nested
    slope_sd = PLAUSIBLE_SHARE * effect if variances.slope_sd is None else variances.slope_sd

    def power_at(replicates: int, problems: int) -> float | None:
        variance = icc + slope_sd**2 / 2 + (1 - icc) / (layout.runs * replicates)
        counts = [max(1, round(size * problems / layout.total)) for size in sizes]
        d = effect / math.sqrt(variance)
        return welch_power(d, counts[0], counts[1], alpha=question.alpha, test=question.side)

    model = PowerModel(BETWEEN_PROBLEMS, power_at, layout.total, slope_sd)
    return replace(model, icc=icc) if variances.icc is None else model
