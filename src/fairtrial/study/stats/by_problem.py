"""Tests whose unit is the problem: each problem gives one contrast, or one mean at each level.

The variation between problems is the error of these tests, so that a result holds for problems
like those that were tested. Replicates make each contrast more precise; they add no problem.

References::

    Box (1954), Ann. Math. Stat. 25, 484-498; Greenhouse and Geisser (1959), Psychometrika 24,
        95-112: analysis of variance without sphericity
    Hartigan (1969), J. Am. Stat. Assoc. 64, 1303-1317: means of subsets give exact intervals
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.stats.finding import (
    CONFIDENCE,
    Alternative,
    Finding,
    Interval,
    UntestableError,
    sample_sd,
)
from fairtrial.study.stats.linear import coefficient_test
from fairtrial.study.stats.skewness import ADDED, correct_for_skewness, find_skewness
from fairtrial.study.stats.two_groups import wilcoxon_signed_rank

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

MIN_PROBLEMS = 3
"""With fewer problems nothing can be said about the variation between them."""
EXACT_PROBLEMS = 14
"""Up to this many problems, all sign flips are counted; beyond it, random ones."""
DRAWS = 20_000
_OPPOSITE: dict[str, Alternative] = {"greater": "less", "less": "greater"}


def check_problem_count(count: int) -> None:
    """Raise `UntestableError` if there are too few problems to generalize from."""
    if count < MIN_PROBLEMS:
        have = {0: "no problem has", 1: "one problem has"}.get(count, f"{count} problems have")
        raise UntestableError(
            f"{have} runs at all compared levels, and a claim about problems in general needs "
            f"{MIN_PROBLEMS} or more: problems, not replicates, are what is missing; `generalize: "
            "these_problems_only` in the plan tests a claim about exactly these"
        )


def problem_t_test(
    contrasts: Values, alternative: Alternative = "two-sided", margin: float = 0.0, sd: float = 0.0
) -> Finding:
    """Test by Student's t that the mean of the problems' contrasts is 0; allows for skewness.

    Args:
        contrasts: the contrast of each problem, such as a difference of means.
        alternative: the alternative hypothesis about the mean.
        margin: if above 0, test instead that the mean lies within ±margin (TOST).
        sd: standard deviation of runs, the unit of the effect size; 0 if unknown.

    Raises:
        UntestableError: for too few problems, or contrasts that are all equal.
    """
    check_problem_count(len(contrasts))
    spread = sample_sd(contrasts)
    if spread == 0:
        raise UntestableError(
            f"the difference is {contrasts[0]:.3g} in every problem: the values don't vary within "
            "the groups, and there is nothing to judge it by"
        )
    estimate, error = float(contrasts.mean()), spread / math.sqrt(len(contrasts))
    df = len(contrasts) - 1
    method = f"t test of the differences of {len(contrasts)} problems"
    finding = coefficient_test(estimate, error, df, method, alternative, margin)
    finding = correct_for_skewness(finding, contrasts, alternative, margin)
    return replace(
        finding,
        estimate_of="difference of means, averaged over problems",
        effect_name="Cohen's d",
        effect_size=estimate / sd if sd else None,
    )


def sign_flip_test(
    contrasts: Values, alternative: Alternative = "two-sided", margin: float = 0.0, sd: float = 0.0
) -> Finding:
    """Test by permutation of signs that the problems' contrasts are symmetric around 0.

    It needs no normal distribution, and is exact up to 14 problems. The interval inverts the test;
    there is none if the problems are too few for any result to be significant. Skewed contrasts
    are not symmetric around their mean: for these the t test that allows for skewness has to agree.

    Args:
        contrasts: the contrast of each problem, such as a difference of rates.
        alternative: the alternative hypothesis about the mean.
        margin: if above 0, test instead that the mean lies within ±margin (TOST).
        sd: standard deviation of runs, the unit of the effect size; 0 if unknown.

    Raises:
        UntestableError: for too few problems, or contrasts that are all 0.
    """
    import numpy as np

    check_problem_count(len(contrasts))
    if not margin and float(np.max(np.abs(contrasts))) == 0:
        raise UntestableError("the levels have the same mean in every problem")
    means = _subset_means(contrasts)
    # Flipping the signs of a subset gives a larger mean just if the subset's mean is not above 0.
    tails: dict[str, float] = {
        "greater": _share(means, below=0.0),
        "less": _share(-means, below=0.0),
    }
    tails["two-sided"] = min(1.0, 2 * min(tails.values()))
    method = f"sign-flip permutation test of the differences of {len(contrasts)} problems"
    p, opposite = tails[alternative], tails.get(_OPPOSITE.get(alternative, ""))
    if margin:
        p = max(_share(means, below=-margin), _share(-means, below=-margin))
        method, opposite = f"two one-sided tests (TOST), {method}", None
    estimate, interval = float(contrasts.mean()), _subset_interval(means)
    finding = Finding(
        method=method,
        p=p,
        statistic_name="mean",
        statistic=estimate,
        estimate=estimate,
        estimate_of="difference of means, averaged over problems",
        interval=interval,
        bounds=interval,
        effect_name="Cohen's d",
        effect_size=estimate / sd if sd else None,
        p_opposite=opposite,
    )
    if not find_skewness(contrasts):
        return finding
    return _take_cautious(finding, problem_t_test(contrasts, alternative, margin, sd))


def _take_cautious(permutation: Finding, corrected: Finding) -> Finding:
    """Return a permutation test with the larger p and the wider interval of it and a t test."""
    opposites = [finding.p_opposite for finding in (permutation, corrected)]
    interval = permutation.interval
    if interval is not None and corrected.interval is not None:
        low, high = corrected.interval
        interval = (min(interval[0], low), max(interval[1], high))
    return replace(
        permutation,
        method=f"{permutation.method} {ADDED}",
        p=max(permutation.p, corrected.p),
        p_opposite=None if None in opposites else max(p for p in opposites if p is not None),
        interval=interval,
        bounds=interval,
        notes=corrected.notes,
    )


def _subset_means(contrasts: Values) -> Values:
    """Return the means of all nonempty subsets, or of random ones; sorted.

    The generator has a fixed seed, so that the same values give the same result.
    """
    import numpy as np

    count = len(contrasts)
    if count <= EXACT_PROBLEMS:
        numbers = np.arange(1, 2**count)
        members = (numbers[:, None] >> np.arange(count)) & 1
    else:
        members = np.random.default_rng(0).integers(0, 2, (DRAWS, count))
        members = members[members.any(axis=1)]
    means: Values = np.sort(members @ contrasts / members.sum(axis=1))
    # 0.1 + 0.2 - 0.3 counts as 0.
    means[np.abs(means) <= 1e-12 * float(np.max(np.abs(contrasts), initial=0.0))] = 0.0
    return means


def _share(means: Values, below: float) -> float:
    """Return the share of means that are not above a value, the empty subset among them."""
    return float((means <= below).sum() + 1) / (len(means) + 1)


def _subset_interval(means: Values) -> Interval | None:
    """Return the 95% confidence interval; None if there are too few subsets."""
    excluded = math.floor((1 - CONFIDENCE) / 2 * (len(means) + 1))
    if excluded < 1:
        return None
    return (float(means[excluded - 1]), float(means[-excluded]))


def problem_rank_test(
    left: Values, right: Values, alternative: Alternative = "two-sided"
) -> Finding:
    """Wilcoxon's signed-rank test of the differences of the problems' means.

    Args:
        left: mean of each problem at the first level.
        right: mean of each problem at the second level.
        alternative: the alternative hypothesis about left minus right.

    Raises:
        UntestableError: for too few problems, or differences that are all 0.
    """
    check_problem_count(len(left))
    finding = wilcoxon_signed_rank(left, right, alternative)
    method = f"{finding.method} of the differences of {len(left)} problems"
    return replace(finding, method=method, estimate_of="median of the problems' differences")


def contrast_columns(levels: int) -> Values:
    """Return orthonormal contrasts of levels, as columns."""
    import numpy as np

    columns = np.zeros((levels, levels - 1))
    for index in range(1, levels):
        columns[:index, index - 1] = 1.0
        columns[index, index - 1] = -float(index)
        columns[:, index - 1] /= math.sqrt(index * (index + 1))
    return columns


def problem_anova(scores: Values, method: str) -> Finding:
    """Test that all contrasts have mean 0, by an analysis of variance for repeated measures.

    Degrees of freedom are reduced by Greenhouse and Geisser's estimate, so that contrasts need not
    vary alike.

    Args:
        scores: a row for each problem, a column for each of several orthonormal contrasts.
        method: name of the method for the finding.

    Raises:
        UntestableError: for too few problems, or contrasts that don't vary between them.
    """
    import numpy as np
    from scipy import stats

    count, width = scores.shape
    check_problem_count(count)
    means = scores.mean(axis=0)
    covariance = np.atleast_2d(np.cov(scores, rowvar=False))
    total = float(np.trace(covariance))
    if total <= 1e-24 * float(np.max(np.abs(scores), initial=0.0)) ** 2:
        raise UntestableError("the differences don't vary from problem to problem")
    epsilon = total**2 / (width * float(np.sum(covariance**2)))
    epsilon = min(1.0, max(epsilon, 1 / width))
    explained = count * float(np.sum(means**2))
    statistic = explained / total
    df = (width * epsilon, width * epsilon * (count - 1))
    return Finding(
        method=f"{method}, Greenhouse-Geisser",
        p=float(stats.f.sf(statistic, *df)),
        statistic_name="F",
        statistic=statistic,
        df=df,
        effect_name="partial η²",
        effect_size=explained / (explained + total * (count - 1)),
    )
