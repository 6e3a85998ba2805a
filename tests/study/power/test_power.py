"""Power functions, compared with published tables and simulations, and their invariants."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate, stats

from fairtrial.core import StudyError
from fairtrial.study.stats.power import (
    anova_power,
    contrast_power,
    interaction_power,
    slope_power,
    smallest_n,
)

SIMULATIONS = 4_000
effects = st.floats(0.05, 3.0)
sizes = st.integers(2, 200)


def t_test_power(d, n1, n2, **options):
    """The power of a comparison of two groups."""
    return contrast_power(d, (1.0, -1.0), (n1, n2), **options)


def equivalence_power(margin, n1, n2):
    """The power to show that two equal means differ by less than a margin."""
    return t_test_power(margin, n1, n2, test="equivalence")


# Published figures


@pytest.mark.parametrize(
    ("d", "n", "test", "power"),
    [
        (0.5, 64, "two-sided", 0.801),
        (0.8, 26, "two-sided", 0.807),
        (0.2, 393, "two-sided", 0.800),
        (0.5, 50, "one-sided", 0.80),
        (0.8, 20, "one-sided", 0.80),
    ],
)
def test_t_test_agrees_with_cohen(d, n, test, power):
    """Cohen (1988), table 2.4.1."""
    result = t_test_power(d, n, n, test=test)
    assert result == pytest.approx(power, abs=0.0006 if test == "two-sided" else 0.006)


@pytest.mark.parametrize(
    ("k", "f", "n", "power"),
    [(3, 0.25, 52, 0.80), (4, 0.25, 45, 0.80), (3, 0.40, 21, 0.80), (5, 0.10, 240, 0.80)],
)
def test_anova_agrees_with_cohen(k, f, n, power):
    """Cohen (1988), table 8.4.4 and its neighbors; means half-way make d = f·sqrt(2k)."""
    assert anova_power(f * math.sqrt(2 * k), [n] * k) == pytest.approx(power, abs=0.006)


def _equivalence_by_integration(margin, n_1, n_2, alpha=0.05):
    """Two one-sided t tests, from their definition: given the pooled sd, both reject if the mean
    difference lies in an interval; the sd's own distribution is integrated over."""
    df, se = n_1 + n_2 - 2, math.sqrt(1 / n_1 + 1 / n_2)
    critical = stats.t.isf(alpha, df)

    def both_reject(sd):
        room = margin - critical * sd * se
        if room <= 0:
            return 0.0
        normal = stats.norm.cdf(room / se) - stats.norm.cdf(-room / se)
        return normal * stats.chi.pdf(sd * math.sqrt(df), df) * math.sqrt(df)

    return integrate.quad(both_reject, 0, margin / (critical * se), epsabs=1e-10)[0]


@pytest.mark.parametrize("groups", [(10, 10), (14, 14), (19, 20), (5, 40)])
@pytest.mark.parametrize("margin", [1.59, 1.28, 0.8])
def test_equivalence_agrees_with_its_definition(margin, groups):
    expected = _equivalence_by_integration(margin, *groups)
    assert equivalence_power(margin, *groups) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(("d", "n"), [(0.5, 69), (0.4, 108), (0.3, 191)])
def test_equivalence_needs_hardly_more_runs_than_the_normal_approximation(d, n):
    """The n that Lakens (2017) plans with: 2 (z.95 + z.90)² / d², for a power of 0.8."""
    assert n == math.ceil(2 * (stats.norm.isf(0.05) + stats.norm.isf(0.10)) ** 2 / d**2)
    assert smallest_n(lambda runs: equivalence_power(d, runs, runs)) - n in (0, 1)


# Simulated data


def _agrees(power, rejected):
    """Whether a simulated share lies within three standard errors of a power."""
    share = float(np.mean(rejected))
    return abs(share - power) < 3 * math.sqrt(power * (1 - power) / len(rejected))


def _groups(means, sizes, seed):
    rng = np.random.default_rng(seed)
    return [
        mean + rng.standard_normal((SIMULATIONS, size))
        for mean, size in zip(means, sizes, strict=True)
    ]


def _pooled(groups):
    """Degrees of freedom and pooled variance of each simulated data set."""
    df = sum(group.shape[1] - 1 for group in groups)
    within = sum(((group - group.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for group in groups)
    return df, within / df


@pytest.mark.parametrize("test", ["two-sided", "one-sided"])
def test_t_test_agrees_with_simulation(test):
    groups = _groups([0.7, 0.0], [14, 25], seed=1)
    alternative = "greater" if test == "one-sided" else test
    p = stats.ttest_ind(*groups, axis=1, alternative=alternative).pvalue
    assert _agrees(t_test_power(0.7, 14, 25, test=test), p < 0.05)


def test_welch_test_has_about_the_power_of_the_t_test():
    groups = _groups([0.7, 0.0], [20, 25], seed=2)
    p = stats.ttest_ind(*groups, axis=1, equal_var=False).pvalue
    assert _agrees(t_test_power(0.7, 20, 25), p < 0.05)


def test_anova_agrees_with_simulation():
    # The two smallest groups hold the outermost means.
    groups = _groups([-0.5, 0.0, 0.5, 0.0], [10, 20, 12, 16], seed=3)
    p = stats.f_oneway(*groups, axis=1).pvalue
    assert _agrees(anova_power(1.0, [10, 20, 12, 16]), p < 0.05)


def test_contrast_agrees_with_simulation():
    weights, runs = np.array([1.0, 0.0, -0.5, -0.5]), [9, 12, 8, 15]
    groups = _groups([0.9, 4.0, 0.0, 0.0], runs, seed=4)
    df, variance = _pooled(groups)
    estimate = sum(w * group.mean(axis=1) for w, group in zip(weights, groups, strict=True))
    t = estimate / np.sqrt(variance * sum(weights**2 / runs))
    rejected = np.abs(t) > stats.t.isf(0.025, df)
    assert _agrees(contrast_power(0.9, weights, runs), rejected)


def test_interaction_agrees_with_simulation():
    """3 × 3 cells, the difference of differences in the first two rows and columns alone."""
    means = np.array([[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]])
    groups = _groups(means.ravel(), [10] * 9, seed=5)
    df, variance = _pooled(groups)
    cell = np.stack([group.mean(axis=1) for group in groups], axis=1).reshape(-1, 3, 3)
    effect = cell - cell.mean(axis=1, keepdims=True) - cell.mean(axis=2, keepdims=True)
    effect += cell.mean(axis=(1, 2), keepdims=True)
    f = 10 * (effect**2).sum(axis=(1, 2)) / 4 / variance
    power = interaction_power(2.0, [[10] * 3] * 3)
    assert 0.5 < power < 0.8
    assert _agrees(power, f > stats.f.isf(0.05, 4, df))


@pytest.mark.parametrize(("margin", "n1", "n2"), [(1.0, 16, 24), (1.2, 5, 4)])
def test_equivalence_agrees_with_simulation(margin, n1, n2):
    one, two = _groups([0.0, 0.0], [n1, n2], seed=6)
    df, variance = _pooled([one, two])
    error = np.sqrt(variance * (1 / n1 + 1 / n2))
    difference = one.mean(axis=1) - two.mean(axis=1)
    shown = np.abs(difference) < margin - stats.t.isf(0.05, df) * error
    power = equivalence_power(margin, n1, n2)
    assert 0.02 < power < 0.9
    assert _agrees(power, shown)


@pytest.mark.parametrize("test", ["two-sided", "one-sided", "equivalence"])
def test_slope_agrees_with_simulation(test):
    runs_at = {0.0: 3, 0.1: 4, 0.45: 5, 0.8: 4, 0.9: 6}
    x = np.repeat(list(runs_at), list(runs_at.values()))
    rise = 0.0 if test == "equivalence" else 1.5
    y = rise * x + np.random.default_rng(7).standard_normal((SIMULATIONS, len(x)))
    centered = x - x.mean()
    slope = y @ centered / (centered @ centered)
    residual = y - y.mean(axis=1, keepdims=True) - slope[:, None] * centered
    error = np.sqrt((residual**2).sum(axis=1) / (len(x) - 2) / (centered @ centered))
    rejected = {
        "two-sided": np.abs(slope) > stats.t.isf(0.025, len(x) - 2) * error,
        "one-sided": slope > stats.t.isf(0.05, len(x) - 2) * error,
        "equivalence": np.abs(slope) < 1.5 - stats.t.isf(0.05, len(x) - 2) * error,
    }[test]
    assert _agrees(slope_power(1.5, runs_at, span=1.0, test=test), rejected)


# What always holds


@given(effects, sizes, sizes)
def test_power_grows_with_the_effect_and_with_runs(d, n1, n2):
    for test in ("two-sided", "one-sided", "equivalence"):
        power = t_test_power(d, n1, n2, test=test)
        assert 0 <= power <= 1
        assert t_test_power(d * 1.2, n1, n2, test=test) >= power - 1e-9
        # Where an equivalence test shows next to nothing, a few runs more may show even less.
        if test != "equivalence" or power > 0.1:
            assert t_test_power(d, n1 + 1, n2 + 1, test=test) >= power - 1e-9
        assert t_test_power(d, n1, n2, alpha=0.01, test=test) <= power + 1e-9


@given(effects, sizes, sizes)
def test_one_sided_test_finds_more_than_two_sided(d, n1, n2):
    assert t_test_power(d, n1, n2, test="one-sided") >= t_test_power(d, n1, n2) - 0.025


@given(effects, sizes, sizes)
def test_anova_of_two_groups_is_the_t_test(d, n1, n2):
    expected = t_test_power(d, n1, n2)
    # Half-way between two means there is nobody, so unequal groups are no matter.
    assert anova_power(d, [n1, n2]) == pytest.approx(expected, abs=1e-7)


@given(st.floats(0.2, 1.5), st.lists(st.integers(2, 60), min_size=3, max_size=6))
def test_anova_puts_the_outermost_means_where_they_are_hardest_to_find(d, groups):
    df1, df2 = len(groups) - 1, sum(groups) - len(groups)
    critical = stats.f.isf(0.05, df1, df2)
    n = np.array(groups, dtype=float)
    for low, high in itertools.combinations(range(len(groups)), 2):
        means = np.zeros(len(groups))
        means[low], means[high] = -d / 2, d / 2
        noncentrality = float(np.sum(n * (means - np.average(means, weights=n)) ** 2))
        power = stats.ncf.sf(critical, df1, df2, noncentrality)
        assert power >= anova_power(d, groups) - 1e-9


@given(
    st.lists(st.lists(st.integers(2, 30), min_size=3, max_size=3), min_size=2, max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_no_interaction_of_that_size_is_harder_to_find(cells, seed):
    """Any cell means whose largest difference of differences is 1 give at least this power."""
    n = np.array(cells, dtype=float)
    rows, columns = n.shape
    means = np.random.default_rng(seed).standard_normal(n.shape)
    largest = max(
        abs(means[a, c] - means[a, d] - means[b, c] + means[b, d])
        for a, b in itertools.combinations(range(rows), 2)
        for c, d in itertools.combinations(range(columns), 2)
    )
    means /= largest
    additive = np.array(
        [
            [float(i == a) for a in range(rows)] + [float(j == b) for b in range(columns)]
            for i in range(rows)
            for j in range(columns)
        ]
    )
    root = np.sqrt(n.ravel())
    fit = np.linalg.lstsq(additive * root[:, None], means.ravel() * root, rcond=None)[0]
    noncentrality = float(np.sum((means.ravel() * root - additive * root[:, None] @ fit) ** 2))
    df1, df2 = (rows - 1) * (columns - 1), int(n.sum()) - n.size
    power = stats.ncf.sf(stats.f.isf(0.05, df1, df2), df1, df2, noncentrality)
    assert power >= interaction_power(1.0, cells) - 1e-9


def test_two_by_two_interaction_is_one_contrast():
    assert interaction_power(0.8, [[8, 9], [10, 11]]) == contrast_power(
        0.8, (1, -1, -1, 1), (8, 9, 10, 11)
    )
    one_sided = interaction_power(0.8, [[8, 9], [10, 11]], test="one-sided")
    assert one_sided > interaction_power(0.8, [[8, 9], [10, 11]])


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1.0, 1e200])
def test_slope_is_the_same_in_any_unit(unit):
    expected = slope_power(0.9, {0.0: 5, 1.0: 7, 3.0: 4})
    assert slope_power(0.9, {0.0: 5, unit: 7, 3 * unit: 4}) == pytest.approx(expected)


def test_slope_over_two_points_is_the_t_test():
    assert slope_power(0.9, {0.0: 12, 5.0: 17}) == pytest.approx(t_test_power(0.9, 12, 17))


def test_groups_outside_a_contrast_sharpen_it():
    alone = contrast_power(0.9, (1, -1), (6, 6))
    assert contrast_power(0.9, (1, -1, 0), (6, 6, 40)) > alone


@given(st.floats(0.1, 2.0), st.floats(0.5, 0.95))
def test_smallest_n_reaches_the_target_and_one_less_does_not(d, target):
    def power_at(n):
        return t_test_power(d, n, n)

    n = smallest_n(power_at, target)
    assert power_at(n) >= target
    before = power_at(n - 1)
    assert before is None or before < target


def test_smallest_n_gives_up():
    assert smallest_n(lambda n: t_test_power(1e-6, n, n), limit=4096) is None
    assert smallest_n(lambda n: None) is None


# Edges


@pytest.mark.parametrize(
    "power",
    [
        t_test_power(0.5, 1, 20),
        t_test_power(0.5, 0, 0, test="equivalence"),
        anova_power(0.5, [5, 5, 1]),
        anova_power(0.5, [5]),
        contrast_power(0.5, (1, -1, 0), (5, 5, 1)),
        interaction_power(0.5, [[3, 3], [3, 0]]),
        interaction_power(0.5, [[3, 3]]),
        interaction_power(0.5, [[3, 3, 3], [3, 3, 3]], test="equivalence"),
        equivalence_power(0.5, 1, 5),
        slope_power(0.5, {0.0: 1, 1.0: 1}),
        slope_power(0.5, {0.0: 10}),
    ],
)
def test_too_few_runs_have_no_power(power):
    assert power is None


@pytest.mark.parametrize("n", [2, 3, 1_000, 10**9])
@pytest.mark.parametrize("d", [0.0, 1e-9, 0.5, 5.0, 1e6, 1e300])
@pytest.mark.parametrize("alpha", [1e-7, 0.05, 0.9])
def test_extremes_give_a_probability_and_no_warning(n, d, alpha):
    for power in (
        t_test_power(d, n, n, alpha=alpha),
        t_test_power(d, n, n, alpha=alpha, test="one-sided"),
        t_test_power(d, n, n, alpha=alpha, test="equivalence"),
        anova_power(d, [n, n, n], alpha=alpha),
        interaction_power(d, [[n] * 3] * 2, alpha=alpha),
    ):
        assert type(power) is float
        assert 0.0 <= power <= 1.0
        assert power > 0.99999 or d < 1e6


def test_without_an_effect_power_is_the_level():
    assert t_test_power(0.0, 9, 9, alpha=0.05) == pytest.approx(0.05)
    assert t_test_power(0.0, 9, 9, alpha=0.05, test="one-sided") == pytest.approx(0.05)
    assert anova_power(0.0, [9, 9, 9]) == pytest.approx(0.05)


def test_all_mistakes_are_reported_together():
    with pytest.raises(StudyError) as caught:
        t_test_power(math.nan, 5, 5, alpha=1.5)
    assert [mistake.path for mistake in caught.value.mistakes] == [("d",), ("alpha",)]
