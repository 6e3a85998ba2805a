"""Tests of claims about exactly the problems of the study: within problems, which are fixed.

Each function returns a test result and the notes to be added to those of its finding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.hypotheses.problem_units import RANK_TESTS, RATE_TESTS
from fairtrial.study.report.comparison_results import (
    FollowUpComparison,
    TestResult,
    describe_difference,
    find_margin,
    outcome_sd,
)
from fairtrial.study.report.follow_up_tests import describe_strata, equivalence_margin
from fairtrial.study.report.problem_cells import (
    ProblemCells,
    average_cells,
    describe_unit,
    problem_codes,
    problem_notes,
)
from fairtrial.study.report.problem_tests import TWO_LEVEL_TESTS, is_yes_no
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.finding import LARGEST_P, Finding, UntestableError, pooled_sd
from fairtrial.study.stats.multiplicity import adjust_p
from fairtrial.study.stats.stratified import (
    average_strata,
    stratified_anova,
    stratified_exact_test,
    stratified_t_test,
)
from fairtrial.study.stats.stratified_ranks import stratified_rank_test

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

STRATIFIED_TESTS = (
    DEFAULT_TEST,
    "welch_t",
    "anova",
    "welch_anova",
    "equivalence",
    "fisher_exact",
    "barnard_exact",
    "chi_square",
    "mann_whitney",
    "kruskal_wallis",
)
"""Named tests of independent runs, which are made within problems here."""
GroupTest = Callable[[int, int], Finding]
"""A test of two groups, given by number."""


def run_within_problems(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Compare levels within problems.

    Raises `UntestableError` if no problem has runs at all levels, or nothing varies within them.
    """
    request, count = sample.request, len(sample.names)
    if name in RATE_TESTS and not is_yes_no(sample):
        raise UntestableError(f"{name} compares rates, and the values are not all 0 or 1")
    if name in TWO_LEVEL_TESTS and count > 2:
        raise UntestableError(f"{name} compares two levels; there are {count}")
    cells = average_cells(sample)
    strata = _collect_strata(sample, cells)
    margin = find_margin(request, pooled_sd(sample.values))
    uses_rates = name in RATE_TESTS or (name == DEFAULT_TEST and is_yes_no(sample))
    means = [average_strata(group, is_binary=uses_rates) for group in strata]
    sd, size = outcome_sd(request) or pooled_sd(sample.values), equivalence_margin(request, margin)

    by_rank = name in RANK_TESTS and not request.is_equivalence

    def test(first: int, second: int) -> Finding:
        if uses_rates and not request.is_equivalence:
            return stratified_exact_test(strata[first], strata[second], request.alternative, sd)
        finding = stratified_t_test(means[first], means[second], request.alternative, size, sd)
        if not by_rank:
            return finding
        # Ranks have no size in units: it is that of the difference of means.
        ranks = stratified_rank_test((strata[first], strata[second]), request.alternative)
        return replace(
            ranks,
            estimate=finding.estimate,
            estimate_of=finding.estimate_of,
            interval=finding.interval,
            bounds=finding.bounds,
        )

    unit = f"{describe_unit(cells, cells.complete)}, compared within problems"
    notes = problem_notes(0, int((~cells.complete).sum()))
    if count == 2:
        title, details = describe_strata(sample)
        difference = describe_difference(sample)
        return TestResult(test(0, 1), unit, difference, margin, title, details), notes
    title, details = _compare_pairs(sample, test, [sum(map(len, group)) for group in strata])
    if request.is_equivalence:
        p_values = [detail.p for detail in details if detail.p is not None]
        method = "two one-sided tests (TOST) of all pairs of levels, within problems"
        finding = Finding(method, max(p_values), LARGEST_P, max(p_values))
    else:
        finding = stratified_rank_test(strata) if by_rank else stratified_anova(means)
    return TestResult(finding, unit, "", margin, title, details, is_omnibus=True), notes


def has_replicates(sample: ComparisonSample) -> bool:
    """Return whether each level has several runs of some problem."""
    counts = average_cells(sample).counts
    return bool((counts.max(axis=0) > 1).all())


def _collect_strata(sample: ComparisonSample, cells: ProblemCells) -> list[list[Values]]:
    """Return the values of each group in each problem that has runs in all groups.

    Raises `UntestableError` if there is no such problem.
    """
    if not cells.complete.any():
        raise UntestableError(
            "no problem has runs at all compared levels: a difference between levels can't be told "
            "from one between problems"
        )
    _, problem = problem_codes(sample)
    chosen = [code for code, is_complete in enumerate(cells.complete) if is_complete]
    return [
        [sample.y[(problem == code) & (sample.group == group)] for code in chosen]
        for group in range(len(sample.names))
    ]


def _compare_pairs(
    sample: ComparisonSample, test: GroupTest, sizes: Sequence[int]
) -> tuple[str, tuple[FollowUpComparison, ...]]:
    """Compare two levels at a time: with the baseline for a directional claim, else all pairs."""
    request, names = sample.request, sample.names
    last = len(names) - 1
    is_directed = request.alternative != "two-sided"
    pairs = list(itertools.combinations(range(last + 1), 2))
    pairs = [pair for pair in pairs if pair[1] == last] if is_directed else pairs
    findings = [test(first, second) for first, second in pairs]
    comparisons = [
        FollowUpComparison(
            f"{names[first]} − {names[second]}",
            (sizes[first], sizes[second]),
            finding.estimate,
            finding.interval,
            finding.bounds,
            finding.p,
            finding.p_opposite,
            finding.estimate_of,
        )
        for (first, second), finding in zip(pairs, findings, strict=True)
    ]
    title = f"Levels against {names[last]}" if is_directed else "Pairs of levels"
    # Equivalence of all pairs requires every single test to succeed: no adjustment is needed.
    if request.is_equivalence:
        return f"{title}, within problems", tuple(comparisons)
    adjusted = adjust_p([finding.p for finding in findings], "holm")
    opposite = [finding.p_opposite for finding in findings if finding.p_opposite is not None]
    opposite_adjusted = iter(adjust_p(opposite, "holm"))
    return f"{title}, within problems (p adjusted by Holm)", tuple(
        replace(
            comparison,
            p=p,
            p_opposite=None if comparison.p_opposite is None else next(opposite_adjusted),
        )
        for comparison, p in zip(comparisons, adjusted, strict=True)
    )
