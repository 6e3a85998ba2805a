"""Tests with problems as units: their numbers, and how often they are wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from fairtrial.study.stats.by_problem import (
    contrast_columns,
    problem_anova,
    problem_rank_test,
    problem_t_test,
    sign_flip_test,
)
from fairtrial.study.stats.finding import UntestableError
from fairtrial.study.stats.stratified import (
    average_strata,
    stratified_anova,
    stratified_exact_test,
    stratified_t_test,
)
from fairtrial.study.stats.stratified_ranks import stratified_rank_test

EIGHT = np.array([0.3, -0.1, 0.5, 0.2, 0.4, 0.1, 0.6, -0.2])


def test_the_t_test_is_that_of_one_sample():
    finding, expected = problem_t_test(EIGHT), stats.ttest_1samp(EIGHT, 0)
    assert finding.p == pytest.approx(expected.pvalue)
    assert finding.interval == pytest.approx(tuple(expected.confidence_interval()))
    assert finding.df == (7,)
    less = problem_t_test(EIGHT, "less")
    assert less.p == pytest.approx(1 - finding.p / 2)
    assert less.p_opposite == pytest.approx(finding.p / 2)


def test_sign_flips_are_counted_exactly():
    signs = (np.arange(256)[:, None] >> np.arange(8) & 1) * 2 - 1
    means = (signs * EIGHT).mean(axis=1)
    expected = (np.abs(means) >= abs(EIGHT.mean()) - 1e-12).mean()
    finding = sign_flip_test(EIGHT)
    assert finding.p == pytest.approx(expected)
    assert sign_flip_test(EIGHT, "greater").p == pytest.approx(expected / 2)


def test_the_interval_of_sign_flips_has_what_the_test_does_not_reject():
    low, high = sign_flip_test(EIGHT).interval
    for center, is_rejected in ((low - 0.01, True), (low + 0.01, False), (high + 0.01, True)):
        assert (sign_flip_test(EIGHT - center).p < 0.05) is is_rejected


def test_many_problems_get_random_sign_flips_that_are_the_same_each_time():
    many = np.random.default_rng(3).normal(0.3, 1, 40)
    finding = sign_flip_test(many)
    assert finding == sign_flip_test(many)
    assert finding.p == pytest.approx(problem_t_test(many).p, abs=0.02)
    assert finding.interval == pytest.approx(problem_t_test(many).interval, abs=0.05)


def test_too_few_problems_are_not_significant_by_sign_flips():
    finding = sign_flip_test(np.full(5, 0.5))
    assert finding.p == 2 / 32
    assert finding.interval is None


def test_sign_flips_show_equivalence_within_a_margin():
    assert sign_flip_test(np.zeros(8), margin=0.2).p == pytest.approx(1 / 256)
    assert sign_flip_test(EIGHT, margin=0.2).p > 0.5


@pytest.mark.parametrize("test", [problem_t_test, sign_flip_test])
def test_two_problems_are_no_sample(test):
    with pytest.raises(UntestableError, match="problems, not replicates, are what is missing"):
        test(np.array([1.0, 2.0]))


def test_differences_that_are_all_the_same_are_not_tested():
    with pytest.raises(UntestableError, match="the difference is 2 in every problem"):
        problem_t_test(np.full(6, 2.0))
    with pytest.raises(UntestableError, match="same mean in every problem"):
        sign_flip_test(np.zeros(6))


def test_ranks_of_problems_are_signed_ranks():
    left = np.arange(8.0) + EIGHT
    expected = stats.wilcoxon(EIGHT).pvalue
    assert problem_rank_test(left, np.arange(8.0)).p == pytest.approx(expected)


def test_an_analysis_of_two_levels_is_the_t_test():
    table = np.column_stack([EIGHT, np.zeros(8)])
    finding = problem_anova(table @ contrast_columns(2), "anova")
    assert finding.p == pytest.approx(problem_t_test(EIGHT).p)


def test_the_correction_keeps_the_size_where_levels_vary_differently():
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(1000):
        table = rng.normal(0, 1, (8, 1)) + rng.normal(0, (0.1, 0.1, 0.1, 2.0), (8, 4))
        wrong += problem_anova(table @ contrast_columns(4), "anova").p < 0.05
    assert wrong <= 65


def test_one_stratum_gives_the_tests_of_two_groups():
    rng = np.random.default_rng(5)
    left, right = rng.normal(0.5, 1, 12), rng.normal(0, 2, 9)
    expected = stats.ttest_ind(left, right, equal_var=False)
    finding = stratified_t_test(average_strata([left]), average_strata([right]))
    assert finding.p == pytest.approx(expected.pvalue)
    several = stratified_anova([average_strata([left]), average_strata([right])])
    assert several.p == pytest.approx(expected.pvalue)
    yes, no = np.array([1, 1, 1, 1, 0.0]), np.array([1, 0, 0, 0, 0, 0.0])
    fisher = stats.fisher_exact([[4, 1], [1, 5]])
    assert stratified_exact_test([yes], [no]).p == pytest.approx(fisher.pvalue)


def test_strata_that_are_far_apart_do_not_hide_a_difference():
    rng = np.random.default_rng(6)
    left = [100.0 * i + 1 + rng.normal(0, 0.5, 5) for i in range(4)]
    right = [100.0 * i + rng.normal(0, 0.5, 5) for i in range(4)]
    finding = stratified_t_test(average_strata(left), average_strata(right))
    assert finding.estimate == pytest.approx(1, abs=0.5)
    assert finding.p < 0.001


def test_ranks_in_one_stratum_are_those_of_mann_whitney_and_kruskal():
    rng = np.random.default_rng(8)
    groups = [rng.normal(shift, 1, 30) for shift in (0.0, 0.4, 0.8)]
    two = stats.mannwhitneyu(*groups[:2], method="asymptotic", use_continuity=False)
    assert stratified_rank_test([[groups[0]], [groups[1]]]).p == pytest.approx(two.pvalue)
    expected = stats.kruskal(*groups).pvalue
    assert stratified_rank_test([[group] for group in groups]).p == pytest.approx(expected)


def test_ranks_within_small_strata_keep_their_size():
    rng = np.random.default_rng(9)
    wrong = 0
    for _ in range(80):
        left, right = ([rng.normal(10 * i, 1, 2) for i in range(5)] for _ in range(2))
        wrong += stratified_rank_test([left, right]).p < 0.05
    assert wrong <= 11


def test_a_t_test_of_skewed_differences_holds_its_level_with_twelve_problems():
    rng = np.random.default_rng(12)
    rows = rng.exponential(1.0, (3_000, 12)) - 1.0
    findings = [problem_t_test(row) for row in rows]
    plain = stats.ttest_1samp(rows, 0.0, axis=1).pvalue
    assert (plain < 0.05).mean() > 0.08
    assert np.mean([finding.p < 0.05 for finding in findings]) < 0.065
    assert np.mean([low <= 0 <= high for low, high in (f.interval for f in findings)]) > 0.935


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
def test_the_correction_for_skewness_only_makes_a_test_more_cautious(side):
    row = np.random.default_rng(1).exponential(1.0, 20) - 0.5
    plain = stats.ttest_1samp(row, 0.0, alternative=side)
    finding = problem_t_test(row, side)
    low, high = plain.confidence_interval() if side == "two-sided" else (-np.inf, np.inf)
    assert finding.p >= plain.pvalue
    assert "corrected for skewness" in finding.method
    if side == "two-sided":
        assert finding.interval[0] <= low < high < finding.interval[1]


def test_the_interval_ends_where_the_skewness_corrected_test_is_at_its_level():
    row = np.random.default_rng(2).exponential(1.0, 15) + 0.1
    low, high = problem_t_test(row).interval
    assert problem_t_test(row - low, "greater").p == pytest.approx(0.025)
    assert problem_t_test(row - high, "less").p == pytest.approx(0.025)


def test_symmetric_differences_are_tested_by_t_alone():
    row = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 2.5])
    assert problem_t_test(row).p == pytest.approx(stats.ttest_1samp(row, 0.0).pvalue)
    assert problem_t_test(row).method == "t test of the differences of 8 problems"


def test_a_clear_effect_in_all_problems_is_shown_though_one_of_them_gains_less():
    gains = np.array([1, 1.1, 0.9, 0.95, 1.05, 1.1, 1.0, 0.3])
    finding = problem_t_test(gains)
    assert "corrected for skewness" in finding.method
    # Of left-skewed (exponential) differences with mean 0, t is as large in 0.04% of samples.
    assert finding.statistic > 9.9
    assert 0.0004 < finding.p < 0.01
    assert finding.interval[0] > 0.3


@pytest.mark.parametrize("side", ["two-sided", "greater"])
def test_a_larger_effect_has_a_smaller_p_however_skewed(side):
    skewed = np.array([0.3, 0.2, 0.1, 0.4, 0.2, 0.3, 0.1, -1.6])
    p_values = [problem_t_test(skewed + shift, side).p for shift in np.arange(0.1, 8, 0.3)]
    assert p_values == sorted(p_values, reverse=True)
    assert p_values[-1] < 0.001


def test_the_correction_for_skewness_costs_large_normal_effects_little_power():
    rng = np.random.default_rng(8)
    for problems in (5, 8):
        contrasts = rng.normal(6 / math.sqrt(problems), 1, (1_000, problems))
        shown = np.mean([problem_t_test(row).p < 0.05 for row in contrasts])
        assert shown > 0.92  # of 8: .91 with the cubic alone, .98 now, 1 without


def test_sign_flips_allow_for_skewed_contrasts():
    skewed = np.array([-0.1, -0.12, -0.08, -0.11, -0.09, -0.1, -0.12, -0.07, 0.3, -0.1])
    finding = sign_flip_test(skewed, "less")
    assert finding.method.endswith("corrected for skewness")
    assert finding.p >= problem_t_test(skewed, "less").p
    assert finding.interval[0] <= problem_t_test(skewed, "less").interval[0]
    assert any("skewed" in note for note in finding.notes)
    symmetric = np.array([-0.3, -0.1, 0.1, 0.3, 0.05, -0.05])
    assert "skewness" not in sign_flip_test(symmetric).method
