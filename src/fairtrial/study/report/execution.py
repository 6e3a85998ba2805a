"""Execution of requested tests: from the name of a test to its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.hypotheses.outcome_types import BINARY_TYPES
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.model.study import Study
from fairtrial.study.report.comparison_results import (
    FollowUpComparison,
    TestResult,
    describe_difference,
    find_margin,
)
from fairtrial.study.report.follow_up_tests import (
    check_averaged_replicates,
    compare_pairs,
    describe_strata,
    judge_every_level,
    two_group_test,
)
from fairtrial.study.report.model_execution import (
    CORRELATIONS,
    MODELS,
    run_correlation,
    run_interaction_test,
    run_model_test,
    run_slope_test,
)
from fairtrial.study.report.pairing import (
    MatchedSets,
    find_caveats,
    match_runs,
    replicate_is_subject,
)
from fairtrial.study.report.problem_cells import (
    count_repeats_once,
    generalizes,
    has_several_problems,
)
from fairtrial.study.report.problem_effects import find_problem_effects
from fairtrial.study.report.problem_execution import (
    run_by_problem,
    run_in_these_problems,
    run_slope_over_problems,
)
from fairtrial.study.report.problem_models import varies_within_problems
from fairtrial.study.report.run_table import REPLICATE
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.anova import (
    classic_anova,
    friedman_test,
    kruskal_wallis,
    repeated_measures_anova,
    welch_anova,
)
from fairtrial.study.stats.finding import (
    LARGEST_P,
    Finding,
    UntestableError,
    check_group_sizes,
    pooled_sd,
)
from fairtrial.study.stats.proportions import (
    barnard_exact,
    chi_square,
    fisher_exact,
    is_binary,
    mcnemar_exact,
)
from fairtrial.study.stats.small_samples import mean_difference_test
from fairtrial.study.stats.two_groups import (
    TwoSampleTest,
    mann_whitney_u,
    paired_t_test,
    welch_t_test,
    wilcoxon_signed_rank,
)

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

TWO_GROUPS: dict[str, TwoSampleTest] = {
    "welch_t": mean_difference_test,
    "mann_whitney": mann_whitney_u,
    "fisher_exact": fisher_exact,
    "barnard_exact": barnard_exact,
    "equivalence": mean_difference_test,
}
PAIRED: dict[str, TwoSampleTest] = {
    "paired_t": paired_t_test,
    "wilcoxon": wilcoxon_signed_rank,
    "mcnemar": mcnemar_exact,
}
SEVERAL_GROUPS: dict[str, tuple[Callable[[Sequence[Values]], Finding], TwoSampleTest]] = {
    "welch_t": (welch_anova, mean_difference_test),
    "equivalence": (welch_anova, mean_difference_test),
    "anova": (welch_anova, mean_difference_test),
    "classic_anova": (classic_anova, welch_t_test),
    "welch_anova": (welch_anova, mean_difference_test),
    "mann_whitney": (kruskal_wallis, mann_whitney_u),
    "kruskal_wallis": (kruskal_wallis, mann_whitney_u),
    "fisher_exact": (chi_square, fisher_exact),
    "chi_square": (chi_square, fisher_exact),
}
"""For more than two levels: the omnibus test, and the test of pairs of levels."""
SEVERAL_PAIRED: dict[str, tuple[Callable[[Values], Finding], TwoSampleTest]] = {
    "paired_t": (repeated_measures_anova, paired_t_test),
    "wilcoxon": (friedman_test, wilcoxon_signed_rank),
}


def run_test(sample: ComparisonSample, name: str) -> TestResult:
    """Apply a test to a sample.

    The unit is the problem if there are several and the plan generalizes to problems; else tests
    are made within problems, or with runs as units if there is one problem.

    name: canonical name of the test (`fairtrial.study.stats.named_tests`)

    Raises `UntestableError` if the sample doesn't allow this test.
    """
    request = sample.request
    if name == "equivalence" and not request.is_equivalence:
        raise UntestableError("the hypothesis claims a difference, not `direction: equivalent`")
    if request.is_equivalence and request.hypothesis.minimum_effect_of_interest is None:
        raise UntestableError("equivalence needs a minimum_effect_of_interest to lie within")
    repeats = ""
    if name != "mixed_effects":  # which looks for repeats itself
        sample, repeats = count_repeats_once(sample)
    if _has_mixed_slope(sample, name):
        result, notes = run_slope_over_problems(sample)
        result = _finish(result, notes)
    elif name == "mixed_effects" or not has_several_problems(sample):
        result = _finish(*_run_by_runs(sample, name))
    elif generalizes(sample):
        result = _finish(*run_by_problem(sample, name, _run_by_runs))
    else:
        result = _finish(*run_in_these_problems(sample, name, _run_by_runs))
    result = judge_every_level(request, result)
    notes = (*result.notes, *([repeats] if repeats else []))
    return replace(result, notes=notes, by_problem=find_problem_effects(sample))


def _has_mixed_slope(sample: ComparisonSample, name: str) -> bool:
    """Return whether a mixed model would take the slopes of problems in general as equal."""
    if name != "mixed_effects" or sample.request.comparison.shape != "slope":
        return False
    return has_several_problems(sample) and generalizes(sample) and varies_within_problems(sample)


def _run_by_runs(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Apply a test with runs as units."""
    shape = sample.request.comparison.shape
    if shape == "slope":
        return run_slope_test(sample, name)
    check_group_sizes(sample.values, sample.names)
    if shape == "interaction":
        return run_interaction_test(sample, name)
    if name == DEFAULT_TEST:
        name = _choose_test(sample)
    if name in CORRELATIONS:
        return run_correlation(sample, name)
    if name in MODELS:
        return run_model_test(sample, name)
    if name in PAIRED:
        return _run_paired_test(sample, name)
    return _run_group_test(sample, name)


def _finish(result: TestResult, notes: Sequence[str]) -> TestResult:
    """Add the notes of the finding and of the test to a result."""
    return replace(result, notes=(*result.finding.notes, *notes))


def _choose_test(sample: ComparisonSample) -> str:
    """Return the test that `difference_in_means` stands for with these levels and values."""
    is_declared_binary = sample.request.outcome.expected_type.strip().lower() in BINARY_TYPES
    # Means of the runs of a problem are rates between 0 and 1.
    are_runs = bool(set(sample.y.tolist()) <= {0.0, 1.0})
    if are_runs and (is_declared_binary or is_binary(sample.y)):
        return "fisher_exact"
    if len(sample.names) == 2:
        return "welch_t"
    return "welch_anova"


def _run_group_test(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Compare independent groups."""
    margin = find_margin(sample.request, pooled_sd(sample.values))
    notes = (*find_caveats(sample, is_paired=False), *check_averaged_replicates(sample))
    omnibus, pair = SEVERAL_GROUPS.get(name, (None, TWO_GROUPS.get(name, welch_t_test)))
    compare = two_group_test(sample.request, pair, margin)
    if len(sample.names) > 2:
        if omnibus is None:
            raise UntestableError(f"{name} compares two levels; there are {len(sample.names)}")
        title, details = compare_pairs(sample, compare, sample.values)
        if sample.request.is_equivalence:
            finding = _combine_equivalence(details, len(sample.names))
        else:
            finding = omnibus(sample.values)
        return TestResult(finding, "run", "", margin, title, details, is_omnibus=True), notes
    finding = compare(*sample.values)
    if name not in TWO_GROUPS and omnibus is not None and not sample.request.is_equivalence:
        finding = _with_estimate(omnibus(sample.values), finding)
    title, details = describe_strata(sample)
    difference = describe_difference(sample)
    return TestResult(finding, "run", difference, margin, title, details), notes


def _with_estimate(omnibus: Finding, two_groups: Finding) -> Finding:
    """Return the omnibus test of two groups with the estimate of the two-sample test."""
    return replace(
        omnibus,
        estimate=two_groups.estimate,
        estimate_of=two_groups.estimate_of,
        interval=two_groups.interval,
        bounds=two_groups.bounds,
        rank_direction=two_groups.rank_direction,
    )


def _combine_equivalence(details: Sequence[FollowUpComparison], count: int) -> Finding:
    """Return the test that all pairs of levels are equivalent: its p is the largest one."""
    p_values = [detail.p for detail in details if detail.p is not None]
    if len(p_values) < len(details):
        raise UntestableError("some pairs of levels can't be compared")
    return Finding(
        method=f"two one-sided tests (TOST) of all pairs of {count} levels",
        p=max(p_values),
        statistic_name=LARGEST_P,
        statistic=max(p_values),
    )


def _run_paired_test(sample: ComparisonSample, name: str) -> tuple[TestResult, Sequence[str]]:
    """Compare matched sets of runs."""
    sets = match_runs(sample)
    if not sets.shared:
        raise UntestableError("runs of the levels have nothing in common to pair them by")
    margin = find_margin(sample.request, pooled_sd(sample.values))
    notes = (
        *_matching_notes(sets, sample.request.study),
        *find_caveats(sample, is_paired=True),
        *check_averaged_replicates(sample),
    )
    kind = "pair" if len(sample.names) == 2 else "set"
    unit = f"{kind} of runs that share {sets.text} ({len(sets.table):,} of them)"
    compare = two_group_test(sample.request, PAIRED[name], margin)
    columns = list(sets.table.T)
    if len(columns) == 2:
        title, details = describe_strata(sample)
        difference = describe_difference(sample)
        return TestResult(compare(*columns), unit, difference, margin, title, details), notes
    if name not in SEVERAL_PAIRED:
        raise UntestableError(f"{name} compares two levels; there are {len(sample.names)}")
    title, details = compare_pairs(sample, compare, columns, is_paired=True)
    if sample.request.is_equivalence:
        finding = _combine_equivalence(details, len(columns))
    else:
        finding = SEVERAL_PAIRED[name][0](sets.table)
    return TestResult(finding, unit, "", margin, title, details, is_omnibus=True), notes


def _matching_notes(sets: MatchedSets, study: Study) -> list[str]:
    notes = []
    shared = [name for name in sets.shared if name != REPLICATE]
    if REPLICATE in sets.shared and not replicate_is_subject(study):
        notes.append(
            f"sets of one {', '.join(shared)} count as independent: if the effect differs between "
            "them, p is too small for others in general"
            if shared
            else "only the replicate number links these runs, which is no reason to pair them"
        )
    if sets.incomplete:
        notes.append(f"{sets.incomplete:,} combinations of {sets.text} lack a level: left out")
    if sets.averaged:
        notes.append("runs of one level that share all this were averaged")
    return notes
