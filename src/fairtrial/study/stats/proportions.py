"""Tests of outcomes that are yes or no, given as ones and zeros.

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
    check_groups,
    finite,
    has_statsmodels,
    need_statsmodels,
    pooled_sd,
    quiet,
)

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

MOST_FOR_BARNARD = 400
"""Barnard's test of more runs than this takes minutes."""
ODDS = "odds ratio"
NO_INTERVAL = "the interval of a difference of proportions needs `fairtrial[stats]`"


def is_binary(values: Values) -> bool:
    """Whether all numbers are 0 or 1, and both occur."""
    import numpy as np

    return set(np.unique(values).tolist()) == {0.0, 1.0}


def fisher(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Fisher's exact test of two proportions."""
    from scipy import stats

    return _exact(
        "Fisher's exact test",
        ODDS,
        lambda table, way: stats.fisher_exact(table, alternative=way),
        left,
        right,
        alternative,
    )


def barnard(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """Barnard's exact test of two proportions: sharper than Fisher's, and slower."""
    from scipy import stats

    if len(left) + len(right) > MOST_FOR_BARNARD:
        raise UntestableError(
            f"Barnard's test of more than {MOST_FOR_BARNARD} runs takes too long; use fisher_exact"
        )

    def test(table: list[list[int]], way: str) -> Any:
        # scipy has groups in columns, and asks whether the first has the smaller share.
        turned = [[table[0][0], table[1][0]], [table[0][1], table[1][1]]]
        return stats.barnard_exact(turned, alternative=way)

    return _exact("Barnard's exact test", "Wald", test, left, right, alternative)


def _exact(
    method: str,
    statistic_name: str,
    test: Callable[[list[list[int]], str], Any],
    left: Values,
    right: Values,
    alternative: Alternative,
) -> Finding:
    from scipy import stats

    check_groups((left, right))
    _check_binary((left, right))
    table = [_yes_and_no(left), _yes_and_no(right)]
    with quiet():
        interval = _newcombe(table)
        found = test(table, alternative)
        opposite = {"greater": "less", "less": "greater"}.get(alternative)
        odds = stats.contingency.odds_ratio(table)
        notes = [] if has_statsmodels() else [NO_INTERVAL]
        if statistic_name == ODDS and finite(found.statistic) is None:
            notes.append("the odds ratio is infinite: in one group all runs, or none, are a yes")
        return Finding(
            method=method,
            p=found.pvalue,
            statistic_name=statistic_name,
            # With an empty cell the odds ratio is infinite; the test stands all the same.
            statistic=finite(found.statistic),
            estimate=float(left.mean() - right.mean()),
            estimate_of="difference of proportions",
            interval=interval,
            bounds=interval,
            effect_name=ODDS,
            effect_size=odds.statistic,
            effect_interval=odds.confidence_interval(CONFIDENCE),
            p_opposite=test(table, opposite).pvalue if opposite else None,
            notes=tuple(notes),
        )


def mcnemar(left: Values, right: Values, alternative: Alternative = "two-sided") -> Finding:
    """McNemar's exact test: of the pairs that differ, how many differ one way."""
    from scipy import stats

    if len(left) < 2:
        raise UntestableError("there are fewer than two complete pairs")
    _check_binary((left, right))
    wins, losses = int(((left - right) > 0).sum()), int(((left - right) < 0).sum())
    if wins + losses == 0:
        raise UntestableError("the two values of every pair are the same")
    with quiet():
        found = stats.binomtest(wins, wins + losses, alternative=alternative)
        opposite = {"greater": "less", "less": "greater"}.get(alternative)
        other = stats.binomtest(wins, wins + losses, alternative=opposite) if opposite else None
        share = stats.binomtest(wins, wins + losses)
        return Finding(
            method="McNemar's exact test",
            p=found.pvalue,
            statistic_name="pairs for the first of those that differ",
            statistic=wins,
            df=(),
            estimate=float(left.mean() - right.mean()),
            estimate_of="difference of proportions",
            effect_name="share of differing pairs for the first",
            effect_size=share.statistic,
            effect_interval=share.proportion_ci(CONFIDENCE),
            p_opposite=other.pvalue if other else None,
        )


def chi_square(groups: Sequence[Values]) -> Finding:
    """Pearson's chi-squared test: whether several proportions differ."""
    from scipy import stats

    check_groups(groups)
    _check_binary(groups)
    table = [_yes_and_no(group) for group in groups]
    with quiet():
        found = stats.chi2_contingency(table, correction=False)
        few = float(found.expected_freq.min())
        cramer = stats.contingency.association(table, method="cramer")
        return Finding(
            method="chi-squared test",
            p=found.pvalue,
            statistic_name="χ²",
            statistic=found.statistic,
            df=(found.dof,),
            effect_name="Cramér's V",
            effect_size=cramer,
            notes=(f"an expected count is {few:.2g}: too few for a good p",) if few < 5 else (),
        )


def equivalent_proportions(left: Values, right: Values, margin: float) -> Finding:
    """Two one-sided score tests that two proportions differ by less than `margin`."""
    check_groups((left, right))
    _check_binary((left, right))
    need_statsmodels()
    from statsmodels.stats.proportion import tost_proportions_2indep

    table = [_yes_and_no(left), _yes_and_no(right)]
    with quiet():
        interval = _newcombe(table)
        found = tost_proportions_2indep(
            table[0][0], len(left), table[1][0], len(right), -margin, margin, method="score"
        )
        return Finding(
            method="two one-sided score tests (TOST) of proportions",
            p=found.pvalue,
            statistic_name="z",
            statistic=found.statistic,
            estimate=float(left.mean() - right.mean()),
            estimate_of="difference of proportions",
            interval=interval,
            bounds=interval,
            effect_name="Cohen's d",
            effect_size=_standardise(left, right),
        )


def _standardise(left: Values, right: Values) -> float | None:
    sd = pooled_sd((left, right))
    return float(left.mean() - right.mean()) / sd if sd else None


def _check_binary(groups: Sequence[Values]) -> None:
    import numpy as np

    values = np.concatenate(list(groups))
    if not set(np.unique(values).tolist()) <= {0.0, 1.0}:
        raise UntestableError("the values are not all 0 or 1")
    if not is_binary(values):
        raise UntestableError(f"every value is {values[0]:g}")


def _yes_and_no(values: Values) -> list[int]:
    yes = int(values.sum())
    return [yes, len(values) - yes]


def _newcombe(table: list[list[int]]) -> Interval | None:
    if not has_statsmodels():
        return None
    from statsmodels.stats.proportion import confint_proportions_2indep

    (yes, no), (other_yes, other_no) = table
    low, high = confint_proportions_2indep(
        yes, yes + no, other_yes, other_yes + other_no, method="newcomb", alpha=1 - CONFIDENCE
    )
    return (float(low), float(high))
