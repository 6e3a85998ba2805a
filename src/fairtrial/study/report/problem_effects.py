"""The effect in each problem: estimates and intervals from the runs of that problem alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairtrial.study.report.comparison_results import ProblemEffect
from fairtrial.study.report.model_tests import level_range, numeric_levels
from fairtrial.study.report.problem_cells import has_several_problems, problem_codes
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.finding import CONFIDENCE, Interval, UntestableError, sample_sd
from fairtrial.study.stats.linear import fit_slope

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

SIGNS = {2: (1.0, -1.0), 4: (1.0, -1.0, -1.0, 1.0)}
"""The contrast of two levels, and of the four cells of an interaction."""


def find_problem_effects(sample: ComparisonSample) -> tuple[ProblemEffect, ...]:
    """Return the effect in each problem that has runs at all compared levels.

    Empty for one problem, for more than two levels, and if problems are compared.
    """
    import numpy as np

    if not has_several_problems(sample):
        return ()
    names, problem = problem_codes(sample)
    is_slope = sample.request.comparison.shape == "slope"
    x = numeric_levels(sample) if is_slope else None
    effects = []
    for code, name in enumerate(names):
        runs = np.flatnonzero(problem == code)
        if x is not None:
            effect = _slope_effect(sample, x[runs], runs, name)
        elif len(sample.names) in SIGNS:
            groups = [sample.y[runs[sample.group[runs] == g]] for g in range(len(sample.names))]
            effect = _contrast_effect(groups, name)
        else:
            effect = None
        if effect is not None:
            effects.append(effect)
    return tuple(effects)


def _contrast_effect(groups: list[Values], name: str) -> ProblemEffect | None:
    sizes = tuple(len(group) for group in groups)
    if not min(sizes):
        return None
    signs = SIGNS[len(groups)]
    pairs = zip(signs, groups, strict=True)
    estimate = math.fsum(sign * float(group.mean()) for sign, group in pairs)
    return ProblemEffect(name, sizes, estimate, _welch_interval(estimate, groups))


def _welch_interval(estimate: float, groups: list[Values]) -> Interval | None:
    """Return the 95% interval of a contrast of means; None without replicates that differ."""
    from scipy import stats

    if min(len(group) for group in groups) < 2:
        return None
    variances = [sample_sd(group) ** 2 / len(group) for group in groups]
    total = math.fsum(variances)
    if total == 0:
        return None
    pairs = zip(variances, groups, strict=True)
    df = total**2 / math.fsum(variance**2 / (len(group) - 1) for variance, group in pairs)
    low, high = stats.t.interval(CONFIDENCE, df, estimate, math.sqrt(total))
    return (float(low), float(high))


def _slope_effect(
    sample: ComparisonSample, x: Values, runs: Codes, name: str
) -> ProblemEffect | None:
    low, high = level_range(sample)
    try:
        finding = fit_slope(x, sample.y[runs], high - low).finding
    except UntestableError:
        return None
    return ProblemEffect(name, (len(runs),), finding.estimate or 0.0, finding.interval)
