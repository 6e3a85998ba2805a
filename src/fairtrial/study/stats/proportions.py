"""Tests of proportions: binary outcomes given as ones and zeros.

References::

    Fisher (1935), J. R. Stat. Soc. 98, 39-82
    Barnard (1945), Nature 156, 177
    McNemar (1947), Psychometrika 12, 153-157
    Newcombe (1998), Stat. Med. 17, 873-890: the interval of a difference of proportions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fairtrial.study.stats.finding import (
    CONFIDENCE,
    Alternative,
    Finding,
    Interval,
    UntestableError,
    check_group_sizes,
    finite,
    pooled_sd,
    require_statsmodels,
    suppress_warnings,
)

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

MIN_INTERVAL_RUNS = 4
"""Smaller groups get no interval."""
MAX_BARNARD_RUNS = 400
"""Barnard's test of more runs takes minutes."""
ODDS = "odds ratio"


def is_binary(values: Values) -> bool:
    """Return whether all values are 0 or 1, and both occur."""
    import numpy as np

    return set(np.unique(values).tolist()) == {0.0, 1.0}


def fisher_exact(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Fisher's exact test of two proportions.

    Args:
        left: ones and zeros of the first group.
        right: ones and zeros of the second group.
        alternative: the alternative hypothesis about left minus right.

    Raises:
        UntestableError: if a group has fewer than two values, or values are not 0 or 1, or all are
            equal.
    """
    from scipy import stats

    return _exact_test(
        "Fisher's exact test",
        ODDS,
        lambda table, side: stats.fisher_exact(table, alternative=side),
        left,
        right,
        alternative,
    )


def barnard_exact(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Barnard's exact test of two proportions: more powerful than Fisher's, and slower.

    Takes the same arguments as `fisher_exact`; raises `UntestableError` for large groups, too.
    """
    from scipy import stats

    if len(left) + len(right) > MAX_BARNARD_RUNS:
        raise UntestableError(
            f"Barnard's test of more than {MAX_BARNARD_RUNS} runs takes too long; use fisher_exact"
        )

    def test(table: list[list[int]], side: str) -> Any:
        # scipy expects the groups in columns.
        transposed = [[table[0][0], table[1][0]], [table[0][1], table[1][1]]]
        return stats.barnard_exact(transposed, alternative=side)

    return _exact_test("Barnard's exact test", "Wald", test, left, right, alternative)


def _exact_test(
    method: str,
    statistic_name: str,
    test: Callable[[list[list[int]], str], Any],
    left: Values,
    right: Values,
    alternative: Alternative,
) -> Finding:
    from scipy import stats

    check_group_sizes((left, right))
    _check_binary((left, right))
    table = [_count_outcomes(left), _count_outcomes(right)]
    with suppress_warnings():
        interval = _newcombe_interval(table, CONFIDENCE)
        result = test(table, alternative)
        opposite = {"greater": "less", "less": "greater"}.get(alternative)
        odds = stats.contingency.odds_ratio(table)
        notes = []
        if statistic_name == ODDS and finite(result.statistic) is None:
            notes.append("the odds ratio is infinite: in one group all runs, or none, are a yes")
        return Finding(
            method=method,
            p=result.pvalue,
            statistic_name=statistic_name,
            # An empty cell makes the odds ratio infinite, but the test remains valid.
            statistic=finite(result.statistic),
            estimate=float(left.mean() - right.mean()),
            estimate_of="difference of proportions",
            interval=interval,
            bounds=interval,
            interval_by=lambda confidence: _newcombe_interval(table, confidence),
            bounds_by=lambda confidence: _newcombe_interval(table, confidence),
            effect_name=ODDS,
            effect_size=odds.statistic,
            effect_interval=odds.confidence_interval(CONFIDENCE),
            p_opposite=test(table, opposite).pvalue if opposite else None,
            notes=tuple(notes),
        )


def mcnemar_exact(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """McNemar's exact test of paired proportions.

    Args:
        left: 0 or 1, first value of each pair.
        right: 0 or 1, second value of each pair.
        alternative: the alternative hypothesis about left minus right.

    Raises:
        UntestableError: if there are fewer than two pairs, no pair differs, or values are not 0
            or 1.
    """
    from scipy import stats

    if len(left) < 2:
        raise UntestableError("there are fewer than two complete pairs")
    _check_binary((left, right))
    wins, losses = int(((left - right) > 0).sum()), int(((left - right) < 0).sum())
    if wins + losses == 0:
        raise UntestableError("the two values of every pair are the same")
    with suppress_warnings():
        result = stats.binomtest(wins, wins + losses, alternative=alternative)
        opposite = {"greater": "less", "less": "greater"}.get(alternative)
        reverse = stats.binomtest(wins, wins + losses, alternative=opposite) if opposite else None
        share = stats.binomtest(wins, wins + losses)
        return Finding(
            method="McNemar's exact test",
            p=result.pvalue,
            statistic_name="pairs for the first of those that differ",
            statistic=wins,
            df=(),
            estimate=float(left.mean() - right.mean()),
            estimate_of="difference of proportions",
            effect_name="share of differing pairs for the first",
            effect_size=share.statistic,
            effect_interval=share.proportion_ci(CONFIDENCE),
            p_opposite=reverse.pvalue if reverse else None,
        )


def chi_square(groups: Sequence[Values]) -> Finding:
    """Pearson's chi-squared test of several proportions, without continuity correction.

    Args:
        groups: ones and zeros of each group.

    Raises:
        UntestableError: if a group has fewer than two values, or values are not 0 or 1, or all are
            equal.
    """
    from scipy import stats

    check_group_sizes(groups)
    _check_binary(groups)
    table = [_count_outcomes(group) for group in groups]
    with suppress_warnings():
        result = stats.chi2_contingency(table, correction=False)
        least = float(result.expected_freq.min())
        cramer = stats.contingency.association(table, method="cramer")
        note = f"an expected count is {least:.2g}: p is inaccurate below 5"
        return Finding(
            method="chi-squared test",
            p=result.pvalue,
            statistic_name="χ²",
            statistic=result.statistic,
            df=(result.dof,),
            effect_name="Cramér's V",
            effect_size=cramer,
            notes=(note,) if least < 5 else (),
        )


def tost_proportions(left: Values, right: Values, margin: float) -> Finding:
    """Two one-sided score tests (TOST) that two proportions differ by less than `margin`.

    Raises:
        UntestableError: if the values are not testable (see `fisher_exact`), or statsmodels is not
            installed.
    """
    check_group_sizes((left, right))
    _check_binary((left, right))
    require_statsmodels()
    from statsmodels.stats.proportion import tost_proportions_2indep

    table = [_count_outcomes(left), _count_outcomes(right)]
    with suppress_warnings():
        interval = _newcombe_interval(table, CONFIDENCE)
        result = tost_proportions_2indep(
            table[0][0], len(left), table[1][0], len(right), -margin, margin, method="score"
        )
        return Finding(
            method="two one-sided score tests (TOST) of proportions",
            p=result.pvalue,
            statistic_name="z",
            statistic=result.statistic,
            estimate=float(left.mean() - right.mean()),
            estimate_of="difference of proportions",
            interval=interval,
            bounds=interval,
            interval_by=lambda confidence: _newcombe_interval(table, confidence),
            bounds_by=lambda confidence: _newcombe_interval(table, confidence),
            effect_name="Cohen's d",
            effect_size=_cohens_d(left, right),
        )


def _cohens_d(left: Values, right: Values) -> float | None:
    sd = pooled_sd((left, right))
    return float(left.mean() - right.mean()) / sd if sd else None


def _check_binary(groups: Sequence[Values]) -> None:
    """Raise `UntestableError` unless all values are 0 or 1 and both occur."""
    import numpy as np

    values = np.concatenate(list(groups))
    if not set(np.unique(values).tolist()) <= {0.0, 1.0}:
        raise UntestableError("the values are not all 0 or 1")
    if not is_binary(values):
        raise UntestableError(f"every value is {values[0]:g}")


def _count_outcomes(values: Values) -> list[int]:
    """Return the number of ones and of zeros."""
    ones = int(values.sum())
    return [ones, len(values) - ones]


def _newcombe_interval(table: list[list[int]], confidence: float) -> Interval | None:
    """Return Newcombe's interval of the difference of two proportions; None for tiny groups.

    It combines the Wilson intervals of the two proportions.
    """
    from scipy import stats

    runs = [sum(row) for row in table]
    if min(runs) < MIN_INTERVAL_RUNS:
        return None
    (low1, high1), (low2, high2) = (
        stats.binomtest(row[0], sum(row)).proportion_ci(confidence, method="wilson")
        for row in table
    )
    first, second = (row[0] / sum(row) for row in table)
    difference = first - second
    return (
        float(difference - ((first - low1) ** 2 + (high2 - second) ** 2) ** 0.5),
        float(difference + ((high1 - first) ** 2 + (second - low2) ** 2) ** 0.5),
    )
