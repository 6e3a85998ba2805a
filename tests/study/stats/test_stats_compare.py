"""Tests of two and of several groups: against statsmodels, R's figures, and simulation."""

import gc
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.meta_analysis import effectsize_smd
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.oneway import anova_oneway
from statsmodels.stats.proportion import confint_proportions_2indep
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from fairtrial.core import StudyError
from fairtrial.study.stats.anova import friedman, kruskal, one_way, repeated_measures, welch_anova
from fairtrial.study.stats.finding import Finding, UntestableError, pooled_sd
from fairtrial.study.stats.multiplicity import adjust_p
from fairtrial.study.stats.proportions import (
    barnard,
    chi_square,
    equivalent_proportions,
    fisher,
    mcnemar,
)
from fairtrial.study.stats.test_names import WORDS, find_test, known_tests, missing_data_policy
from fairtrial.study.stats.two_groups import equivalent, mann_whitney, paired_t, welch, wilcoxon

RNG = np.random.default_rng(5)
A, B = RNG.normal(0.6, 1.0, 30), RNG.normal(0.0, 2.0, 22)
# Student's sleep data, as in R's `sleep`: hours gained with two drugs by the same ten people.
SLEEP_1 = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SLEEP_2 = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])


def floats(*values):
    return np.array(values, dtype=float)


def numbers_in(finding):
    for name in Finding.__slots__:
        value = getattr(finding, name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, float):
                yield each


# -- two groups --


def test_welch_gives_the_known_figures_of_the_sleep_data():
    found = welch(SLEEP_1, SLEEP_2)  # R: t.test(extra ~ group, data = sleep)
    assert found.statistic == pytest.approx(-1.8608, abs=1e-4)
    assert found.df[0] == pytest.approx(17.776, abs=1e-3)
    assert found.p == pytest.approx(0.07939, abs=1e-5)
    assert found.interval == pytest.approx((-3.3654832, 0.2054832), abs=1e-6)


def test_paired_t_and_wilcoxon_give_the_known_figures_of_the_sleep_data():
    found = paired_t(SLEEP_1, SLEEP_2)  # R: t.test(..., paired = TRUE)
    assert found.statistic == pytest.approx(-4.0621, abs=1e-4)
    assert found.p == pytest.approx(0.002833, abs=1e-6)
    assert found.interval == pytest.approx((-2.4598858, -0.7001142), abs=1e-6)
    ranks = wilcoxon(SLEEP_1, SLEEP_2)
    assert ranks.p == pytest.approx(2 / 2**9)  # of ten pairs nine differ, all the same way
    assert ranks.effect_size == -1.0


@pytest.mark.parametrize(("ours", "theirs"), [("greater", "larger"), ("less", "smaller")])
def test_one_sided_welch_agrees_with_statsmodels_and_keeps_a_two_sided_interval(ours, theirs):
    means = CompareMeans(DescrStatsW(A), DescrStatsW(B))
    t, p, df = means.ttest_ind(alternative=theirs, usevar="unequal")
    found = welch(A, B, ours)
    assert (found.statistic, found.p, found.df[0]) == pytest.approx((t, p, df))
    assert found.p_opposite == pytest.approx(1 - p)
    assert found.interval == pytest.approx(means.tconfint_diff(usevar="unequal"))


def test_two_one_sided_tests_agree_with_statsmodels():
    means = CompareMeans(DescrStatsW(A), DescrStatsW(B))
    p, *_ = means.ttost_ind(-1.5, 1.5, usevar="unequal")
    assert equivalent(welch, A, B, 1.5).p == pytest.approx(p)
    assert equivalent(mann_whitney, A, B, 3.0).p < 0.05 < equivalent(mann_whitney, A, B, 0.1).p


def test_cohens_d_is_that_of_statsmodels_before_its_correction_for_small_samples():
    g, _ = effectsize_smd(A.mean(), A.std(ddof=1), len(A), B.mean(), B.std(ddof=1), len(B))
    correction = 1 - 3 / (4 * (len(A) + len(B)) - 9)
    assert welch(A, B).effect_size * correction == pytest.approx(g)
    assert pooled_sd((A, B)) == pytest.approx((A.mean() - B.mean()) / welch(A, B).effect_size)


def test_mann_whitney_tells_which_group_tends_to_be_larger():
    found = mann_whitney(A, B, "greater")
    assert found.p == scipy_stats.mannwhitneyu(A, B, alternative="greater").pvalue
    larger = np.mean(A[:, None] > B) + np.mean(A[:, None] == B) / 2
    assert found.effect_size == pytest.approx(2 * larger - 1)
    low, high = found.effect_interval
    assert -1 <= low < found.effect_size < high <= 1
    assert found.estimate == np.median(A) - np.median(B)
    assert found.interval[0] < found.estimate < found.interval[1]
    assert found.bounds == welch(A, B).interval
    assert mann_whitney(A, B).interval == mann_whitney(A, B).interval  # seeded


@pytest.mark.parametrize("test", [welch, paired_t, mann_whitney, wilcoxon])
def test_of_many_tests_of_nothing_about_one_in_twenty_finds_something(test):
    rng = np.random.default_rng(11)
    trials = 120
    found = sum(test(*rng.normal(size=(2, 12))).p < 0.05 for _ in range(trials))
    low, high = scipy_stats.binom.interval(0.9999, trials, 0.05)
    assert low <= found <= high


@pytest.mark.parametrize("test", [welch, paired_t, mann_whitney])
def test_about_19_in_20_intervals_hold_the_true_difference(test):
    rng = np.random.default_rng(12)
    trials, truth = 100, 0.7
    hits = 0
    for _ in range(trials):
        low, high = test(rng.normal(truth, 1.0, 25), rng.normal(0.0, 1.0, 25)).interval
        hits += low <= truth <= high
    low, high = scipy_stats.binom.interval(0.9999, trials, 0.95)
    assert low <= hits <= high


# -- degenerate numbers --

BAD = {
    "empty": (floats(), floats(1, 2)),
    "one": (floats(1), floats(1, 2)),
    "constant": (floats(3, 3, 3), floats(3, 3, 3)),
    "apart": (floats(1, 1, 1), floats(2, 2, 2)),
    "rounding": (floats(0.3, 0.1 + 0.2), floats(0.3, 0.3)),
}


@pytest.mark.parametrize("test", [welch, paired_t])
@pytest.mark.parametrize("case", BAD)
def test_numbers_that_say_nothing_are_refused_in_words(test, case):
    left, right = BAD[case]
    width = min(len(left), len(right))
    pair = (left, right) if test is welch else (left[:width], right[:width])
    with pytest.raises(UntestableError, match=r"a value|every value|don't vary|pair"):
        test(*pair, "greater")


def test_ranks_can_tell_constant_groups_apart():
    assert mann_whitney(np.zeros(8), np.ones(8)).p < 0.001
    with pytest.raises(UntestableError, match="every value is 3"):
        mann_whitney(*BAD["constant"])
    with pytest.raises(UntestableError, match="of every pair are the same"):
        wilcoxon(*BAD["constant"])


FINITE = st.floats(-1e300, 1e300) | st.integers(-3, 3).map(float)
GROUP = st.lists(FINITE, min_size=2, max_size=8).map(np.array)


@settings(max_examples=40)
@given(GROUP, GROUP, st.sampled_from(["two-sided", "greater", "less"]))
def test_no_numbers_make_a_test_print_nan_or_warn(left, right, way):
    width = min(len(left), len(right))
    for test in (welch, mann_whitney, paired_t, wilcoxon):
        pair = (left, right) if test in (welch, mann_whitney) else (left[:width], right[:width])
        try:
            found = test(*pair, way)
        except UntestableError:
            continue
        assert 0 <= found.p <= 1
        assert not any(map(math.isnan, numbers_in(found)))


@settings(max_examples=40)
@given(st.lists(GROUP, min_size=3, max_size=4))
def test_no_numbers_make_a_test_of_several_groups_print_nan_or_warn(groups):
    width = min(map(len, groups))
    table = np.column_stack([group[:width] for group in groups])
    for test, data in ((one_way, groups), (kruskal, groups), (friedman, table)):
        try:
            found = test(data)
        except UntestableError:
            continue
        assert 0 <= found.p <= 1
        assert not any(map(math.isnan, numbers_in(found)))


# -- several groups --

GROUPS = [RNG.normal(shift, scale, 15) for shift, scale in ((0, 1), (0.5, 4), (1, 1))]


def test_analyses_of_variance_agree_with_statsmodels():
    plain = anova_oneway(GROUPS, use_var="equal")
    found = one_way(GROUPS)
    assert (found.statistic, found.p) == pytest.approx((plain.statistic, plain.pvalue))
    assert found.df == (2, 42)
    total = np.concatenate(GROUPS)
    between = sum(len(g) * (g.mean() - total.mean()) ** 2 for g in GROUPS)
    assert found.effect_size == pytest.approx(between / np.sum((total - total.mean()) ** 2))
    assert "welch_anova" in found.notes[0]  # the standard deviations are far apart
    uneven = anova_oneway(GROUPS, use_var="unequal")
    assert welch_anova(GROUPS).p == pytest.approx(uneven.pvalue)


def test_repeated_measures_of_two_columns_are_a_paired_t_test():
    table = np.column_stack((SLEEP_1, SLEEP_2))
    found = repeated_measures(table)
    assert found.p == pytest.approx(paired_t(SLEEP_1, SLEEP_2).p)
    assert found.statistic == pytest.approx(paired_t(SLEEP_1, SLEEP_2).statistic ** 2)


def test_friedman_and_kruskal_are_scipys():
    table = np.column_stack(GROUPS)
    assert friedman(table).p == scipy_stats.friedmanchisquare(*GROUPS).pvalue
    assert kruskal(GROUPS).p == scipy_stats.kruskal(*GROUPS).pvalue
    assert 0 <= friedman(table).effect_size <= 1


# -- yes or no --

YES = np.array([1.0] * 17 + [0.0] * 3), np.array([1.0] * 9 + [0.0] * 13)


def test_fisher_and_barnard_agree_on_the_side_and_have_newcombes_interval():
    for test in (fisher, barnard):
        found = test(*YES, "greater")
        assert found.p < 0.01
        assert test(*YES, "less").p > 0.9
        assert found.p_opposite == test(*YES, "less").p
        assert found.estimate == pytest.approx(17 / 20 - 9 / 22)
        wanted = confint_proportions_2indep(17, 20, 9, 22, method="newcomb")
        assert found.interval == pytest.approx(wanted)


def test_fisher_stands_where_one_group_is_all_yes():
    found = fisher(np.ones(10), np.zeros(10))
    assert found.p == pytest.approx(2 / math.comb(20, 10))
    assert all(map(math.isfinite, numbers_in(found)))


def test_mcnemar_agrees_with_statsmodels():
    left, right = floats(*[1] * 9, *[0] * 3, *[1] * 5), floats(*[0] * 9, *[1] * 3, *[1] * 5)
    found = mcnemar(left, right)
    assert found.p == pytest.approx(their_mcnemar([[5, 9], [3, 0]], exact=True).pvalue)


def test_chi_square_of_two_groups_is_the_square_of_z():
    found = chi_square([*YES])
    pooled = 26 / 42
    z = (17 / 20 - 9 / 22) / math.sqrt(pooled * (1 - pooled) * (1 / 20 + 1 / 22))
    assert found.statistic == pytest.approx(z**2)


def test_proportions_can_be_shown_to_be_equivalent():
    many = np.array([1.0] * 400 + [0.0] * 400)
    assert equivalent_proportions(many, many, 0.1).p < 0.001
    assert equivalent_proportions(many[395:405], many[395:405], 0.1).p > 0.2


def test_fisher_rejects_nothing_true_too_often():
    rng = np.random.default_rng(3)
    trials = 80
    tables = ((rng.random((2, 20)) < 0.5).astype(float) for _ in range(trials))
    wrong = sum(fisher(*table).p < 0.05 for table in tables)
    assert wrong <= scipy_stats.binom.ppf(0.9999, trials, 0.05)


# -- several tests at once --


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_adjusted_p_values_are_those_of_statsmodels(p_values):
    for ours, theirs in (("holm", "holm"), ("bh", "fdr_bh"), ("bonferroni", "bonferroni")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gc, "collect", lambda: 0)  # it does so every time, which takes long
            wanted = multipletests(p_values, method=theirs)[1]
        assert adjust_p(p_values, ours) == pytest.approx(list(wanted))
    assert adjust_p(p_values, "none") == p_values


def test_policies_have_other_names_and_unknown_ones_are_refused():
    assert adjust_p([0.01, 0.02], "Benjamini-Hochberg") == adjust_p([0.01, 0.02], "bh")
    assert adjust_p([], "holm") == []
    with pytest.raises(StudyError, match=r"bonferoni.*did you mean 'bonferroni'"):
        adjust_p([0.01], "bonferoni")


# -- words --


def test_every_word_and_alias_means_one_test():
    words = [word for entry in WORDS for word in (entry.name, *entry.aliases)]
    assert len(words) == len(set(words))
    assert set(known_tests()) <= set(words)
    assert find_test("Welch t-test").name == "welch_t"
    assert find_test("TOST").name == "equivalence"
    assert find_test("astrology") is None


def test_missing_data_policies_have_other_names():
    assert missing_data_policy("listwise") == "drop"
    assert missing_data_policy("raise") == "fail"
    assert missing_data_policy("guess") is None
