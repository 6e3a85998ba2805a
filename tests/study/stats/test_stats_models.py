"""Linear and mixed models, compared with statsmodels' formulas and simulation."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from fairtrial.study.stats.finding import NEEDS_STATSMODELS, UntestableError, require_statsmodels
from fairtrial.study.stats.linear import (
    code_levels,
    correlation,
    fit_ols,
    fit_slope,
    interaction_columns,
    wald_test,
)
from fairtrial.study.stats.mixed import mixed_model
from fairtrial.study.stats.proportions import fisher_exact, tost_proportions
from fairtrial.study.stats.two_groups import mann_whitney_u, paired_t_test, welch_t_test

RNG = np.random.default_rng(8)
N = 60
ONE, TWO = RNG.integers(0, 2, N), RNG.integers(0, 3, N)
X = RNG.uniform(0, 5, N)
Y = 0.8 * (ONE == 0) + 0.3 * TWO + 0.2 * X + (ONE == 0) * (TWO == 1) + RNG.normal(0, 1, N)
FRAME = pd.DataFrame({"y": Y, "one": ONE, "two": TWO, "x": X})


def test_a_slope_has_hc3_errors_over_the_span():
    expected = ols("y ~ x", FRAME).fit(cov_type="HC3", use_t=True)
    line = fit_slope(X, Y, span=5.0)
    assert line.finding.estimate == pytest.approx(5 * expected.params["x"])
    assert line.finding.statistic == pytest.approx(expected.tvalues["x"])
    assert line.finding.df[0] < N - 2  # those of Bell and McCaffrey
    assert line.residual_sd == pytest.approx(np.sqrt(expected.mse_resid))
    one_sided = fit_slope(X, Y, 5.0, "greater").finding
    assert min(one_sided.p, one_sided.p_opposite) == pytest.approx(line.finding.p / 2)


def test_a_flat_line_is_equivalent_to_zero_within_a_wide_margin():
    flat = RNG.normal(0, 0.1, N)
    assert fit_slope(X, flat, 5.0, margin=0.5).finding.p < 0.001
    assert fit_slope(X, flat, 5.0, margin=0.001).finding.p > 0.3


def test_correlations_agree_with_scipy_and_can_be_one_sided():
    assert correlation(X, Y).p == scipy_stats.pearsonr(X, Y).pvalue
    assert correlation(X, Y, "less").p == scipy_stats.pearsonr(X, Y, alternative="less").pvalue
    assert correlation(X, Y, by_rank=True).p == scipy_stats.spearmanr(X, Y).pvalue
    low, high = correlation(X, Y).effect_interval
    assert low < correlation(X, Y).effect_size < high


def test_a_regression_has_statsmodels_hc3_errors():
    expected = ols("y ~ C(one) + C(two, Sum) + x", FRAME).fit(cov_type="HC3", use_t=True)
    terms = [code_levels(ONE, 2), code_levels(TWO, 3), X[:, None]]
    finding = wald_test(fit_ols(Y, terms, robust=True), "regression")
    assert finding.estimate == pytest.approx(-expected.params["C(one)[T.1]"])
    assert finding.statistic == pytest.approx(-expected.tvalues["C(one)[T.1]"])
    assert finding.df[0] < N - 5  # those of Bell and McCaffrey
    half = scipy_stats.t.ppf(0.975, finding.df[0]) * expected.bse["C(one)[T.1]"]
    low, high = finding.estimate - half, finding.estimate + half
    assert finding.interval == pytest.approx((low, high))


def test_factorial_analysis_is_statsmodels_type_three():
    table = anova_lm(ols("y ~ C(one, Sum) * C(two, Sum)", FRAME).fit(), typ=3)
    one, two = code_levels(ONE, 2), code_levels(TWO, 3)
    crossed = interaction_columns(one, two)
    interaction = wald_test(fit_ols(Y, [crossed, one, two], robust=False), "F")
    row = table.loc["C(one, Sum):C(two, Sum)"]
    assert (interaction.statistic, interaction.p) == pytest.approx((row["F"], row["PR(>F)"]))
    main = wald_test(fit_ols(Y, [two, one, crossed], robust=False), "F")
    row = table.loc["C(two, Sum)"]
    assert (main.statistic, main.p) == pytest.approx((row["F"], row["PR(>F)"]))


def test_the_coefficient_of_two_by_two_levels_is_the_difference_of_differences():
    rows, columns = np.repeat([0, 0, 1, 1], 5), np.tile(np.repeat([0, 1], 5), 2)
    y = RNG.normal(size=20)
    one, two = code_levels(rows, 2), code_levels(columns, 2)
    finding = wald_test(fit_ols(y, [interaction_columns(one, two), one, two], robust=False), "t")
    means = [[y[(rows == r) & (columns == c)].mean() for c in (0, 1)] for r in (0, 1)]
    assert finding.estimate == pytest.approx(
        (means[0][0] - means[1][0]) - (means[0][1] - means[1][1])
    )


def test_models_that_cannot_be_fitted_are_refused():
    same = code_levels(ONE, 2)
    with pytest.raises(UntestableError, match="can't be told apart"):
        fit_ols(Y, [same, same], robust=False)
    with pytest.raises(UntestableError, match="too few"):
        fit_ols(Y[:3], [RNG.normal(size=(3, 2))], robust=False)
    with pytest.raises(UntestableError, match="don't vary"):
        fit_ols(np.ones(N), [same], robust=False)
    alone = np.zeros(N)
    alone[0] = 1.0
    with pytest.raises(UntestableError, match="a single run"):
        fit_ols(Y, [same, alone[:, None]], robust=True)


# -- mixed models --


def crossed_runs(rng, problems, replicates, *, effect=0.0, level_sd=0.0, scale=1.0):
    """Simulate runs of two levels on every problem; the effect varies between problems."""
    problem = np.repeat(np.arange(problems), 2 * replicates)
    level = np.tile(np.repeat([0, 1], replicates), problems)
    y = rng.normal(size=problems)[problem] + effect * (level == 0)
    y = y + level_sd * rng.normal(size=(problems, 2))[problem, level]
    return scale * (y + rng.normal(size=len(problem))), level, problem


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_in_balanced_designs_the_mixed_model_is_the_paired_t_test_of_problem_means(scale):
    rng = np.random.default_rng(4)
    y, level, problem = crossed_runs(rng, 9, 4, effect=0.5, level_sd=1.0, scale=scale)
    finding = mixed_model(y, [code_levels(level, 2)], level, [problem])
    means = np.array([[y[(problem == p) & (level == k)].mean() for k in (0, 1)] for p in range(9)])
    wanted = paired_t_test(means[:, 0], means[:, 1])
    assert finding.estimate == pytest.approx(wanted.estimate)
    assert finding.p == pytest.approx(wanted.p, rel=0.01)
    assert finding.interval == pytest.approx(wanted.interval, rel=0.01)


def test_an_effect_that_differs_by_problem_fools_welch_and_not_the_mixed_model():
    rng = np.random.default_rng(6)
    trials = 20
    fooled = {"welch": 0, "mixed": 0}
    for _ in range(trials):
        y, level, problem = crossed_runs(rng, 6, 12, level_sd=1.0)
        fooled["welch"] += welch_t_test(y[level == 0], y[level == 1]).p < 0.05
        finding = mixed_model(y, [code_levels(level, 2)], level, [problem])
        fooled["mixed"] += finding.p < 0.05
    assert fooled["mixed"] <= scipy_stats.binom.ppf(0.9999, trials, 0.05)
    assert fooled["welch"] > fooled["mixed"]


def test_a_mixed_model_can_have_a_random_effect_of_zero_variance():
    rng = np.random.default_rng(7)
    _, level, problem = crossed_runs(rng, 8, 5)
    y = 1.0 * (level == 0) + rng.normal(size=len(level))
    finding = mixed_model(y, [code_levels(level, 2)], level, [problem], "greater")
    assert finding.p < 0.01
    assert finding.estimate == pytest.approx(1.0, abs=0.5)


def test_crossed_random_effects_and_several_levels():
    rng = np.random.default_rng(9)
    grid = np.array([(p, a, k) for p in range(6) for a in range(4) for k in range(3)])
    problem, agent, level = grid.T
    y = rng.normal(size=6)[problem] + rng.normal(size=4)[agent] + level + rng.normal(size=72) / 3
    finding = mixed_model(y, [code_levels(level, 3)], level, [problem, agent])
    assert finding.p < 0.001
    assert finding.df == (2, 2 * 3)


def test_mixed_models_refuse_random_effects_of_two_levels_and_constant_values():
    level = np.tile([0, 1], 10)
    with pytest.raises(UntestableError, match="2 levels is no sample"):
        mixed_model(RNG.normal(size=20), [code_levels(level, 2)], level, [level])
    with pytest.raises(UntestableError, match="every value is 1"):
        mixed_model(np.ones(20), [code_levels(level, 2)], level, [np.arange(20) // 4])


# -- without statsmodels --


def test_without_statsmodels_the_rest_works_and_what_needs_it_says_so(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(UntestableError, match="pip install") as refusal:
        require_statsmodels()
    assert str(refusal.value) == NEEDS_STATSMODELS
    left, right = Y[ONE == 0], Y[ONE == 1]
    assert welch_t_test(left, right).interval is not None
    assert mann_whitney_u(left, right).effect_interval is None
    ones = (left > 0).astype(float), (right > 1).astype(float)
    assert fisher_exact(*ones).interval is not None
    assert fit_ols(Y, [code_levels(ONE, 2)], robust=False).residual_variance > 0
    for refused in (
        lambda: mixed_model(Y, [code_levels(ONE, 2)], ONE, [TWO]),
        lambda: tost_proportions(*ones, 0.1),
    ):
        with pytest.raises(UntestableError, match="pip install"):
            refused()
