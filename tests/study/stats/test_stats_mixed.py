"""Mixed models with comparisons between the levels of a random effect, or almost no noise."""

import numpy as np
import pytest
from scipy import stats

from fairtrial.study.stats.linear import code_levels
from fairtrial.study.stats.mixed import mixed_model

pytest.importorskip("statsmodels")


def simulate_runs(levels, runs, *, level_sd, noise, seed=1):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(levels), runs)
    effects = level_sd * rng.normal(size=levels)
    return groups, effects[groups] + noise * rng.normal(size=len(groups))


@pytest.mark.parametrize("seed", range(3))
def test_a_comparison_of_two_arms_between_levels_equals_a_t_test_of_level_means(seed):
    groups, y = simulate_runs(6, 4, level_sd=2.0, noise=0.5, seed=seed)
    arm = groups % 2
    finding = mixed_model(y, [code_levels(arm, 2)], arm, [groups])
    means = np.array([y[groups == level].mean() for level in range(6)])
    plain = stats.ttest_ind(means[::2], means[1::2])
    assert finding.df == (4,)
    assert finding.p == pytest.approx(plain.pvalue, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_comparison_of_three_arms_between_levels_equals_an_anova_of_level_means(seed):
    groups, y = simulate_runs(9, 4, level_sd=2.0, noise=0.5, seed=seed)
    arm = groups % 3
    finding = mixed_model(y, [code_levels(arm, 3)], arm, [groups])
    means = np.array([y[groups == level].mean() for level in range(9)])
    assert finding.df == (2, 6)
    assert finding.p == pytest.approx(
        stats.f_oneway(*(means[i::3] for i in range(3))).pvalue, rel=0.01
    )


@pytest.mark.parametrize("noise", [0.3, 0.03, 3e-3, 1e-4, 1e-6, 0.0])
def test_with_almost_no_noise_the_test_equals_a_paired_t_test_of_means(noise):
    levels, runs = 8, 5
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(levels), 2 * runs)
    arm = np.tile(np.repeat([0, 1], runs), levels)
    y = 3 * rng.normal(size=levels)[groups] + 0.6 * rng.normal(size=(levels, 2))[groups, arm]
    y = y + noise * rng.normal(size=len(y))
    means = y.reshape(levels, 2, runs).mean(axis=2)
    finding = mixed_model(y, [code_levels(arm, 2)], arm, [groups])
    assert finding.p == pytest.approx(stats.ttest_rel(*means.T).pvalue, rel=0.01)


def test_problems_with_few_runs_add_fewer_degrees_of_freedom():
    rng, fits = np.random.default_rng(7), []
    for replicates in ([2, 40] * 5, [20] * 10):
        problem = np.repeat(np.arange(10), np.array(replicates) * 2)
        arm = np.concatenate([np.tile([0, 1], count) for count in replicates])
        values = rng.normal(0, 0.35, (10, 2))[problem, arm] + rng.normal(0, 1, len(problem))
        fits.append(mixed_model(values, [(arm == 1)[:, None] * 1.0], arm, [problem]))
    unequal, equal = fits
    assert equal.df == (pytest.approx(9),)
    # Five problems have nearly all the weight if effects hardly vary, ten if they vary much.
    assert 4 < unequal.df[0] < 8
