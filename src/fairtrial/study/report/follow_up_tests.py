"""Follow-up comparisons within a test: pairs of levels, simple effects, strata, averaged runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from fairtrial.study.model.hypotheses import HypothesisKind
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.comparison_results import (
    FollowUpComparison,
    Margin,
    TestResult,
    name_cells,
)
from fairtrial.study.report.decision_intervals import match_zero
from fairtrial.study.report.pairing import match_runs, nuisance_factors
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.finding import LARGEST_P, Finding, Interval, UntestableError
from fairtrial.study.stats.multiplicity import adjust_p
from fairtrial.study.stats.proportions import (
    barnard_exact,
    fisher_exact,
    mcnemar_exact,
    tost_proportions,
)
from fairtrial.study.stats.two_groups import TwoSampleTest, paired_t_test, tost, welch_t_test

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

Group = TypeVar("Group", "Values", "Codes")
"""The values of a group, or the indices of its runs."""
Compare = Callable[["Values", "Values"], Finding]
"""A test of two groups."""
TitledComparisons = tuple[str, tuple[FollowUpComparison, ...]]
"""Comparisons with their heading."""
NO_MARGIN = "the values don't vary: a margin in standard deviations has no size"
MIN_SETS = 3
ADJUSTED = "p adjusted by Holm, intervals by Bonferroni"
MEDIAN = "median"
STRATA_TITLE = "The difference elsewhere (described, not tested)"


def two_group_test(request: TestRequest, test: TwoSampleTest, margin: Margin | None) -> Compare:
    """Return a two-sample test with the requested alternative, or its test of equivalence.

    Raises `UntestableError` if equivalence can't be tested this way.
    """
    if not request.is_equivalence:
        return lambda left, right: test(left, right, request.alternative)
    size = equivalence_margin(request, margin)
    if test is mcnemar_exact:
        raise UntestableError("mcnemar doesn't test equivalence; paired_t does")
    if test in (fisher_exact, barnard_exact):
        return lambda left, right: tost_proportions(left, right, size)
    return lambda left, right: tost(test, left, right, size)


def equivalence_margin(request: TestRequest, margin: Margin | None) -> float:
    """Return the margin of an equivalence test; 0 for other tests.

    Raises `UntestableError` if an equivalence test has no margin.
    """
    if not request.is_equivalence:
        return 0.0
    if margin is None:
        raise UntestableError(NO_MARGIN)
    return margin.size


def compare_pairs(
    sample: ComparisonSample,
    compare: Callable[[Group, Group], Finding],
    columns: Sequence[Group],
    *,
    is_paired: bool = False,
) -> TitledComparisons:
    """Compare two levels at a time: with the baseline for a directional claim, else all pairs.

    compare: the test of two of the columns
    columns: what `compare` takes of each level: its values, in matched rows if `is_paired`
    """
    request, names = sample.request, sample.names
    last = len(names) - 1
    if request.alternative == "two-sided":
        pairs = list(itertools.combinations(range(last + 1), 2))
        title = "Pairs of levels"
    else:
        pairs = [(index, last) for index in range(last)]
        title = f"Levels against {names[last]}"
    # Equivalence of all pairs requires every single test to succeed: no adjustment is needed.
    family = 1 if request.is_equivalence else len(pairs)
    comparisons = [
        _compare(f"{names[a]} − {names[b]}", compare, columns[a], columns[b], family, is_paired)
        for a, b in pairs
    ]
    if request.is_equivalence:
        return title, tuple(comparisons)
    return f"{title} ({ADJUSTED})", _adjust_by_holm(comparisons)


def judge_every_level(request: TestRequest, result: TestResult) -> TestResult:
    """Return a result whose p value is that of a directional claim about more than two levels.

    Such a claim says that every level is on one side of the baseline: its p value is the largest
    of their comparisons, and that of the opposite the smallest. That some levels differ is a note.
    """
    alternative, omnibus = request.alternative, result.finding
    is_claim = alternative != "two-sided" and not request.is_equivalence
    if not (result.is_omnibus and is_claim and request.comparison.shape == "levels"):
        return result
    p = max((1.0 if detail.p is None else detail.p for detail in result.details), default=1.0)
    opposite = [detail.p_opposite for detail in result.details if detail.p_opposite is not None]
    baseline = request.levels(0)[-1]
    finding = Finding(
        method=f"tests of every level against {baseline}, of which the least clear one decides",
        p=p,
        statistic_name=LARGEST_P,
        statistic=p,
        p_opposite=min(opposite, default=1.0),
    )
    note = f"that some levels differ: {omnibus.method}, p = {omnibus.p:.2g}"
    return replace(result, finding=finding, notes=(*result.notes, note))


def _compare(
    label: str,
    compare: Callable[[Group, Group], Finding],
    left: Group,
    right: Group,
    family: int,
    is_paired: bool = False,
) -> FollowUpComparison:
    """Compare two groups; the interval is simultaneous over `family` comparisons."""
    sizes = (len(left),) if is_paired else (len(left), len(right))
    try:
        finding = compare(left, right)
    except UntestableError:
        has_both = bool(len(left) and len(right))
        difference = float(left.mean() - right.mean()) if has_both else None
        return FollowUpComparison(label, sizes, difference)
    return FollowUpComparison(
        label,
        sizes,
        finding.estimate,
        finding.interval_at(1 - ALPHA / family),
        finding.bounds,
        finding.p,
        finding.p_opposite,
        finding.estimate_of,
        finding.interval_df,
    )


def _adjust_by_holm(comparisons: Sequence[FollowUpComparison]) -> tuple[FollowUpComparison, ...]:
    p_values = _holm([comparison.p for comparison in comparisons])
    opposite = _holm([comparison.p_opposite for comparison in comparisons])
    return tuple(
        replace(comparison, p=p, p_opposite=p_opposite, interval=_match_test(comparison, p))
        for comparison, p, p_opposite in zip(comparisons, p_values, opposite, strict=True)
    )


def _match_test(comparison: FollowUpComparison, p: float | None) -> Interval | None:
    """Return the interval of a two-sided comparison of means, agreeing with its test about zero."""
    is_two_sided = comparison.p_opposite is None
    if p is None or not is_two_sided or MEDIAN in comparison.estimate_of:
        return comparison.interval
    sign = 1 if (comparison.estimate or 0.0) > 0 else -1
    return match_zero(comparison.interval, sign if p < ALPHA else 0)


def _holm(p_values: Sequence[float | None]) -> list[float | None]:
    adjusted = iter(adjust_p([p for p in p_values if p is not None], "holm"))
    return [None if p is None else next(adjusted) for p in p_values]


def simple_effects(sample: ComparisonSample) -> TitledComparisons:
    """Compare two levels at each level of a moderator."""
    rows, columns = name_cells(sample.request)
    if len(rows) != 2:
        return "", ()
    comparisons = [
        _compare(
            f"{rows[0]} − {rows[1]} at {column}",
            welch_t_test,
            sample.group_values(index),
            sample.group_values(len(columns) + index),
            len(columns),
        )
        for index, column in enumerate(columns)
    ]
    title = f"Simple effects (Welch's t, two-sided, {ADJUSTED})"
    return title, _adjust_by_holm(comparisons)


def describe_strata(sample: ComparisonSample) -> TitledComparisons:
    """For a claim of robustness, describe the difference at each level of each nuisance factor."""
    if sample.request.hypothesis.kind is not HypothesisKind.ROBUSTNESS:
        return "", ()
    comparisons = []
    for name, codes in nuisance_factors(sample).items():
        variable, all_codes = sample.request.table.variable(name)
        lowest = int(all_codes[sample.rows].min())
        for index, level in enumerate(variable.values):
            inside = codes == index - lowest
            left, right = (sample.y[inside & (sample.group == group)] for group in (0, 1))
            if len(left) and len(right):
                difference = float(left.mean() - right.mean())
                sizes = (len(left), len(right))
                comparisons.append(FollowUpComparison(f"{name} = {level}", sizes, difference))
    return STRATA_TITLE, tuple(comparisons)


def check_averaged_replicates(sample: ComparisonSample) -> list[str]:
    """Return a note with the paired t test of two groups after averaging replicates.

    It shows whether problems and blocks agree on the difference. Empty where there is nothing to
    average, or too few sets.
    """
    if len(sample.names) != 2 or sample.request.is_equivalence:
        return []
    sets = match_runs(sample, by_replicate=False)
    if not sets.shared or len(sets.table) < MIN_SETS or not sets.averaged:
        return []
    try:
        finding = paired_t_test(sets.table[:, 0], sets.table[:, 1], sample.request.alternative)
    except UntestableError:
        return []
    if finding.estimate is None or finding.interval is None:
        return []
    low, high = finding.interval
    return [
        f"check with replicates averaged, {len(sets.table)} pairs by {sets.text}: "
        f"{finding.estimate:+.3g} [{low:.3g}, {high:.3g}], paired t test, p = {finding.p:.2g}"
    ]
