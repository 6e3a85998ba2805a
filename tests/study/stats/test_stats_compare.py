"""Two-sample and omnibus tests, compared with statsmodels, published results and simulation."""

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
from fairtrial.study.stats.anova import (
    classic_anova,
    friedman_test,
    kruskal_wallis,
    repeated_measures_anova,
    welch_anova,
)
from fairtrial.study.stats.finding import Finding, UntestableError, pooled_sd
from fairtrial.study.stats.multiplicity import adjust_p
from fairtrial.study.stats.named_tests import (
    NAMED_TESTS,
    find_test,
    known_tests,
    missing_data_policy,
)
from fairtrial.study.stats.proportions import (
    barnard_exact,
    chi_square,
    fisher_exact,
    mcnemar_exact,
    tost_proportions,
)
from fairtrial.study.stats.small_samples import mean_difference_test
from fairtrial.study.stats.two_groups import (
    mann_whitney_u,
    paired_t_test,
    tost,
    welch_t_test,
    wilcoxon_signed_rank,
)

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
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, float):
                yield item


# -- two groups --


def test_welch_gives_the_known_figures_of_the_sleep_data():
    finding = welch_t_test(SLEEP_1, SLEEP_2)  # R: t.test(extra ~ group, data = sleep)
    assert finding.statistic == pytest.approx(-1.8608, abs=1e-4)
    assert finding.df[0] == pytest.approx(17.776, abs=1e-3)
    assert finding.p == pytest.approx(0.07939, abs=1e-5)
    assert finding.interval == pytest.approx((-3.3654832, 0.2054832), abs=1e-6)


def test_paired_t_and_wilcoxon_give_the_known_figures_of_the_sleep_data():
    finding = paired_t_test(SLEEP_1, SLEEP_2)  # R: t.test(..., paired = TRUE)
    assert finding.statistic == pytest.approx(-4.0621, abs=1e-4)
    assert finding.p == pytest.approx(0.002833, abs=1e-6)
    assert finding.interval == pytest.approx((-2.4598858, -0.7001142), abs=1e-6)
    ranks = wilcoxon_signed_rank(SLEEP_1, SLEEP_2)
    assert ranks.p == pytest.approx(2 / 2**9)  # of ten pairs nine differ, all the same way
    assert ranks.effect_size == -1.0


@pytest.mark.parametrize(("ours", "theirs"), [("greater", "larger"), ("less", "smaller")])
def test_one_sided_welch_agrees_with_statsmodels_and_keeps_a_two_sided_interval(ours, theirs):
    means = CompareMeans(DescrStatsW(A), DescrStatsW(B))
    t, p, df = means.ttest_ind(alternative=theirs, usevar="unequal")
    finding = welch_t_test(A, B, ours)
    assert (finding.statistic, finding.p, finding.df[0]) == pytest.approx((t, p, df))
    assert finding.p_opposite == pytest.approx(1 - p)
    assert finding.interval == pytest.approx(means.tconfint_diff(usevar="unequal"))


def test_two_one_sided_tests_agree_with_statsmodels():
    means = CompareMeans(DescrStatsW(A), DescrStatsW(B))
    p, *_ = means.ttost_ind(-1.5, 1.5, usevar="unequal")
    assert tost(welch_t_test, A, B, 1.5).p == pytest.approx(p)
    assert tost(mann_whitney_u, A, B, 3.0).p < 0.05 < tost(mann_whitney_u, A, B, 0.1).p


def test_cohens_d_is_that_of_statsmodels_before_its_correction_for_small_samples():
    g, _ = effectsize_smd(A.mean(), A.std(ddof=1), len(A), B.mean(), B.std(ddof=1), len(B))
    correction = 1 - 3 / (4 * (len(A) + len(B)) - 9)
    assert welch_t_test(A, B).effect_size * correction == pytest.approx(g)
    assert pooled_sd((A, B)) == pytest.approx(
        (A.mean() - B.mean()) / welch_t_test(A, B).effect_size
    )


def test_mann_whitney_tells_which_group_tends_to_be_larger():
    finding = mann_whitney_u(A, B, "greater")
    assert finding.p == scipy_stats.mannwhitneyu(A, B, alternative="greater").pvalue
    larger = np.mean(A[:, None] > B) + np.mean(A[:, None] == B) / 2
    assert finding.effect_size == pytest.approx(2 * larger - 1)
    low, high = finding.effect_interval
    assert -1 <= low < finding.effect_size < high <= 1
    assert finding.estimate == np.median(A) - np.median(B)
    assert finding.interval[0] < finding.estimate < finding.interval[1]
    assert finding.bounds == welch_t_test(A, B).interval
    assert mann_whitney_u(A, B).interval == mann_whitney_u(A, B).interval  # seeded


@pytest.mark.parametrize(
    "test", [welch_t_test, paired_t_test, mann_whitney_u, wilcoxon_signed_rank]
)
def test_without_a_difference_about_one_in_twenty_tests_rejects(test):
    rng = np.random.default_rng(11)
    trials = 120
    rejections = sum(test(*rng.normal(size=(2, 12))).p < 0.05 for _ in range(trials))
    low, high = scipy_stats.binom.interval(0.9999, trials, 0.05)
    assert low <= rejections <= high


@pytest.mark.parametrize("test", [welch_t_test, paired_t_test, mann_whitney_u])
def test_about_19_in_20_intervals_cover_the_true_difference(test):
    rng = np.random.default_rng(12)
    trials, truth = 100, 0.7
    hits = 0
    for _ in range(trials):
        low, high = test(rng.normal(truth, 1.0, 25), rng.normal(0.0, 1.0, 25)).interval
        hits += low <= truth <= high
    low, high = scipy_stats.binom.interval(0.9999, trials, 0.95)
    assert low <= hits <= high


# -- degenerate data --

BAD = {
    "empty": (floats(), floats(1, 2)),
    "one": (floats(1), floats(1, 2)),
    "constant": (floats(3, 3, 3), floats(3, 3, 3)),
    "apart": (floats(1, 1, 1), floats(2, 2, 2)),
    "rounding": (floats(0.3, 0.1 + 0.2), floats(0.3, 0.3)),
}


@pytest.mark.parametrize("test", [welch_t_test, paired_t_test])
@pytest.mark.parametrize("case", BAD)
def test_data_that_cannot_be_tested_are_refused_with_a_message(test, case):
    left, right = BAD[case]
    width = min(len(left), len(right))
    pair = (left, right) if test is welch_t_test else (left[:width], right[:width])
    with pytest.raises(UntestableError, match=r"a value|every value|don't vary|pair"):
        test(*pair, "greater")


def test_rank_tests_can_compare_constant_groups():
    assert mann_whitney_u(np.zeros(8), np.ones(8)).p < 0.001
    with pytest.raises(UntestableError, match="every value is 3"):
        mann_whitney_u(*BAD["constant"])
    with pytest.raises(UntestableError, match="of every pair are the same"):
        wilcoxon_signed_rank(*BAD["constant"])


FINITE = st.floats(-1e300, 1e300) | st.integers(-3, 3).map(float)
GROUP = st.lists(FINITE, min_size=2, max_size=8).map(np.array)


@settings(max_examples=40)
@given(GROUP, GROUP, st.sampled_from(["two-sided", "greater", "less"]))
def test_two_sample_tests_never_return_nan_or_warn(left, right, alternative):
    width = min(len(left), len(right))
    for test in (welch_t_test, mann_whitney_u, paired_t_test, wilcoxon_signed_rank):
        pair = (
            (left, right)
            if test in (welch_t_test, mann_whitney_u)
            else (left[:width], right[:width])
        )
        try:
            finding = test(*pair, alternative)
        except UntestableError:
            continue
        assert 0 <= finding.p <= 1
        assert not any(map(math.isnan, numbers_in(finding)))


@settings(max_examples=40)
@given(st.lists(GROUP, min_size=3, max_size=4))
def test_omnibus_tests_never_return_nan_or_warn(groups):
    width = min(map(len, groups))
    table = np.column_stack([group[:width] for group in groups])
    for test, data in (
        (classic_anova, groups),
        (welch_anova, groups),
        (kruskal_wallis, groups),
        (friedman_test, table),
    ):
        try:
            finding = test(data)
        except UntestableError:
            continue
        assert 0 <= finding.p <= 1
        assert not any(map(math.isnan, numbers_in(finding)))


# -- omnibus tests --

GROUPS = [RNG.normal(shift, scale, 15) for shift, scale in ((0, 1), (0.5, 4), (1, 1))]


def test_analyses_of_variance_agree_with_statsmodels():
    plain = anova_oneway(GROUPS, use_var="equal")
    finding = classic_anova(GROUPS)
    assert (finding.statistic, finding.p) == pytest.approx((plain.statistic, plain.pvalue))
    assert finding.df == (2, 42)
    total = np.concatenate(GROUPS)
    between = sum(len(g) * (g.mean() - total.mean()) ** 2 for g in GROUPS)
    assert finding.effect_size == pytest.approx(between / np.sum((total - total.mean()) ** 2))
    assert "welch_anova" in finding.notes[0]  # the standard deviations are far apart
    unequal = anova_oneway(GROUPS, use_var="unequal")
    assert welch_anova(GROUPS).statistic == pytest.approx(unequal.statistic)
    assert welch_anova(GROUPS).p == pytest.approx(unequal.pvalue)
    assert welch_anova(GROUPS[:2]).p == pytest.approx(welch_t_test(*GROUPS[:2]).p)


def test_repeated_measures_anova_of_two_columns_equals_a_paired_t_test():
    table = np.column_stack((SLEEP_1, SLEEP_2))
    finding = repeated_measures_anova(table)
    assert finding.p == pytest.approx(paired_t_test(SLEEP_1, SLEEP_2).p)
    assert finding.statistic == pytest.approx(paired_t_test(SLEEP_1, SLEEP_2).statistic ** 2)


def test_friedman_and_kruskal_wallis_agree_with_scipy():
    table = np.column_stack(GROUPS)
    assert friedman_test(table).p == scipy_stats.friedmanchisquare(*GROUPS).pvalue
    assert kruskal_wallis(GROUPS).p == scipy_stats.kruskal(*GROUPS).pvalue
    assert 0 <= friedman_test(table).effect_size <= 1


# -- proportions --

YES = np.array([1.0] * 17 + [0.0] * 3), np.array([1.0] * 9 + [0.0] * 13)


def test_fisher_and_barnard_agree_on_the_direction_and_have_newcombes_interval():
    for test in (fisher_exact, barnard_exact):
        finding = test(*YES, "greater")
        assert finding.p < 0.01
        assert test(*YES, "less").p > 0.9
        assert finding.p_opposite == test(*YES, "less").p
        assert finding.estimate == pytest.approx(17 / 20 - 9 / 22)
        wanted = confint_proportions_2indep(17, 20, 9, 22, method="newcomb")
        assert finding.interval == pytest.approx(wanted)


def test_fishers_test_works_where_all_values_of_a_group_are_one():
    finding = fisher_exact(np.ones(10), np.zeros(10))
    assert finding.p == pytest.approx(2 / math.comb(20, 10))
    assert all(map(math.isfinite, numbers_in(finding)))


def test_mcnemar_agrees_with_statsmodels():
    left, right = floats(*[1] * 9, *[0] * 3, *[1] * 5), floats(*[0] * 9, *[1] * 3, *[1] * 5)
    finding = mcnemar_exact(left, right)
    assert finding.p == pytest.approx(their_mcnemar([[5, 9], [3, 0]], exact=True).pvalue)


def test_chi_square_of_two_groups_is_the_square_of_z():
    finding = chi_square([*YES])
    pooled = 26 / 42
    z = (17 / 20 - 9 / 22) / math.sqrt(pooled * (1 - pooled) * (1 / 20 + 1 / 22))
    assert finding.statistic == pytest.approx(z**2)


def test_proportions_can_be_shown_to_be_equivalent():
    many = np.array([1.0] * 400 + [0.0] * 400)
    assert tost_proportions(many, many, 0.1).p < 0.001
    assert tost_proportions(many[395:405], many[395:405], 0.1).p > 0.2


def test_fishers_test_keeps_its_level():
    rng = np.random.default_rng(3)
    trials = 80
    tables = ((rng.random((2, 20)) < 0.5).astype(float) for _ in range(trials))
    wrong = sum(fisher_exact(*table).p < 0.05 for table in tables)
    assert wrong <= scipy_stats.binom.ppf(0.9999, trials, 0.05)


# -- multiple comparisons --


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_adjusted_p_values_are_those_of_statsmodels(p_values):
    for ours, theirs in (("holm", "holm"), ("bh", "fdr_bh"), ("bonferroni", "bonferroni")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gc, "collect", lambda: 0)  # statsmodels calls it each time: too slow
            wanted = multipletests(p_values, method=theirs)[1]
        assert adjust_p(p_values, ours) == pytest.approx(list(wanted))
    assert adjust_p(p_values, "none") == p_values


def test_policies_have_aliases_and_unknown_ones_are_refused():
    assert adjust_p([0.01, 0.02], "Benjamini-Hochberg") == adjust_p([0.01, 0.02], "bh")
    assert adjust_p([], "holm") == []
    with pytest.raises(StudyError, match=r"bonferoni.*did you mean 'bonferroni'"):
        adjust_p([0.01], "bonferoni")


# -- test names --


def test_every_name_and_alias_belongs_to_one_test():
    names = [name for test in NAMED_TESTS for name in (test.name, *test.aliases)]
    assert len(names) == len(set(names))
    assert set(known_tests()) <= set(names)
    assert find_test("Welch t-test").name == "welch_t"
    assert find_test("TOST").name == "equivalence"
    assert find_test("astrology") is None


def test_missing_data_policies_have_aliases():
    assert missing_data_policy("listwise") == "drop"
    assert missing_data_policy("raise") == "fail"
    assert missing_data_policy("guess") is None


# -- small groups --


def test_a_permutation_test_joins_welchs_where_a_group_is_small_and_never_lowers_p():
    left, right = RNG.lognormal(0, 1, 6), RNG.lognormal(0, 1, 30)
    for alternative in ("two-sided", "greater", "less"):
        finding = mean_difference_test(left, right, alternative)
        assert finding.p >= welch_t_test(left, right, alternative).p
        assert "permutation" in finding.method
    assert mean_difference_test(left, right) == mean_difference_test(left, right)
    assert mean_difference_test(right, right + 1).method == "Welch's t test"


def test_a_skewed_group_against_a_symmetric_one_holds_its_level():
    rng = np.random.default_rng(20)
    skewed = rng.lognormal(0, 1, (1_500, 20)) - math.exp(0.5)
    pairs = list(zip(skewed, rng.normal(0, 1, (1_500, 20)), strict=True))
    assert np.mean([welch_t_test(*pair).p < 0.05 for pair in pairs]) > 0.075
    findings = [mean_difference_test(*pair) for pair in pairs]
    assert np.mean([finding.p < 0.05 for finding in findings]) < 0.062
    assert np.mean([low <= 0 <= high for low, high in (f.interval for f in findings)]) > 0.938


def test_groups_that_are_skewed_alike_are_tested_by_welch_alone():
    skewed = RNG.lognormal(0, 1, 30)
    assert mean_difference_test(skewed, skewed + 1).method == "Welch's t test"
    finding = mean_difference_test(skewed, RNG.normal(0, 1, 30))
    assert finding.method == "Welch's t test corrected for skewness"
    assert "more skewed than the other" in finding.notes[0]


def test_a_group_of_two_values_leaves_one_degree_of_freedom():
    finding = mean_difference_test(np.array([1.0, 2.0]), RNG.normal(0, 1, 20))
    assert finding.df == (1,)
    assert "only 2 values" in finding.notes[0]
    assert welch_t_test(A, B).df == mean_difference_test(A, B).df


def test_too_few_values_get_no_interval_of_medians_or_proportions():
    two = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert mann_whitney_u(*two).interval is None
    yes = np.array([1.0, 1.0]), np.array([0.0, 0.0])
    assert fisher_exact(*yes).interval is None


def test_intervals_at_other_levels_are_those_of_the_same_test():
    finding = welch_t_test(A, B)
    theirs = scipy_stats.ttest_ind(A, B, equal_var=False).confidence_interval(0.99)
    assert finding.interval_at(0.99) == pytest.approx(tuple(theirs))
    wanted = confint_proportions_2indep(17, 20, 9, 22, method="newcomb", alpha=0.01)
    assert fisher_exact(*YES).bounds_at(0.99) == pytest.approx(wanted)
    ranks = mann_whitney_u(A, B)
    assert ranks.bounds_at(0.99) == pytest.approx(tuple(theirs))


def test_equivalence_of_skewed_means_takes_many_values():
    skewed = np.array([0.1] * 29 + [3.0])
    with pytest.raises(UntestableError, match="too skewed"):
        tost(welch_t_test, skewed, skewed + 0.01, 5.0)
