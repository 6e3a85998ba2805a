"""Mixed models where comparisons are between the levels of a random effect, or hardly noisy."""

import numpy as np
import pytest
from scipy import stats

from fairtrial.study.stats.linear import code_levels
from fairtrial.study.stats.mixed import mixed_model

pytest.importorskip("statsmodels")


def made(levels, runs, *, spread, noise, seed=1):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(levels), runs)
    return groups, spread * rng.normal(size=levels)[groups] + noise * rng.normal(size=len(groups))


@pytest.mark.parametrize("seed", range(3))
def test_a_comparison_between_levels_is_one_of_the_levels_means(seed):
    groups, y = made(6, 4, spread=2.0, noise=0.5, seed=seed)
    arm = groups % 2
    found = mixed_model(y, [code_levels(arm, 2)], arm, [groups])
    means = np.array([y[groups == level].mean() for level in range(6)])
    plain = stats.ttest_ind(means[::2], means[1::2])
    assert found.df == (4,)
    assert found.p == pytest.approx(plain.pvalue, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_so_is_one_of_three_arms(seed):
    groups, y = made(9, 4, spread=2.0, noise=0.5, seed=seed)
    arm = groups % 3
    found = mixed_model(y, [code_levels(arm, 3)], arm, [groups])
    means = np.array([y[groups == level].mean() for level in range(9)])
    assert found.df == (2, 6)
    assert found.p == pytest.approx(
        stats.f_oneway(*(means[i::3] for i in range(3))).pvalue, rel=0.01
    )


@pytest.mark.parametrize("noise", [0.3, 0.03, 3e-3, 1e-4, 1e-6, 0.0])
def test_runs_that_hardly_differ_leave_the_pairs_of_their_means(noise):
    levels, runs = 8, 5
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(levels), 2 * runs)
    arm = np.tile(np.repeat([0, 1], runs), levels)
    y = 3 * rng.normal(size=levels)[groups] + 0.6 * rng.normal(size=(levels, 2))[groups, arm]
    y = y + noise * rng.normal(size=len(y))
    means = y.reshape(levels, 2, runs).mean(axis=2)
    found = mixed_model(y, [code_levels(arm, 2)], arm, [groups])
    assert found.p == pytest.approx(stats.ttest_rel(*means.T).pvalue, rel=0.01)
