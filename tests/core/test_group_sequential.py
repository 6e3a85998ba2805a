"""Bounds of planned looks: published values, and the error that all looks together make."""

import math

import numpy as np
import pytest
from scipy import special, stats

from fairtrial.core.sequential import (
    conditional_power,
    nominal_levels,
    small_sample_levels,
    spent_levels,
)

FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)


@pytest.mark.parametrize(
    ("spending", "bounds"),
    [  # two-sided alpha 0.05; Lan and DeMets' program, as in Jennison and Turnbull, ch. 7
        ("obrien_fleming", (4.8769, 3.3569, 2.6803, 2.2898, 2.0310)),
        ("pocock", (2.4380, 2.4268, 2.4101, 2.3966, 2.3859)),
    ],
)
def test_bounds_are_those_of_the_literature(spending, bounds):
    levels = nominal_levels(FIFTHS, 0.025, spending)
    assert [stats.norm.isf(level) for level in levels] == pytest.approx(bounds, abs=1e-3)


def test_one_look_is_an_ordinary_test():
    for spending in ("obrien_fleming", "pocock"):
        assert nominal_levels((1.0,), 0.05, spending) == pytest.approx((0.05,))
        assert small_sample_levels((0.05,), (8,), 0.05) == (0.05,)


def test_looks_spend_alpha_and_no_more():
    for spending in ("obrien_fleming", "pocock"):
        assert sum(spent_levels(FIFTHS, 0.05, spending)) == pytest.approx(0.05)
        for level, spent in zip(
            nominal_levels(FIFTHS, 0.05, spending),
            spent_levels(FIFTHS, 0.05, spending),
            strict=True,
        ):
            assert level >= spent


@pytest.mark.parametrize("looks", [1, 5, 20])
@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_z_tests_at_all_looks_together_keep_alpha(looks, spending):
    fractions = tuple((look + 1) / looks for look in range(looks))
    bounds = -special.ndtri(np.array(nominal_levels(fractions, 0.025, spending)))
    steps = np.random.default_rng(3).standard_normal((40_000, looks)) / math.sqrt(looks)
    z = np.cumsum(steps, axis=1) / np.sqrt(fractions)
    error = np.mean(np.any(np.abs(z) > bounds, axis=1))
    assert error == pytest.approx(0.05, abs=0.0035)  # three standard errors


@pytest.mark.parametrize("counts", [(4, 6, 8, 10, 12), tuple(range(5, 25))])
@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_t_tests_of_few_problems_keep_alpha(counts, spending):
    fractions = tuple(count / counts[-1] for count in counts)
    plain = nominal_levels(fractions, 0.025, spending)
    levels = small_sample_levels(plain, counts, 0.025)
    values = np.random.default_rng(5).standard_normal((40_000, counts[-1]))
    sums, squares = np.cumsum(values, axis=1), np.cumsum(values**2, axis=1)
    errors = {}
    for name, used in (("plain", plain), ("corrected", levels)):
        rejected = np.zeros(len(values), dtype=bool)
        for count, level in zip(counts, used, strict=True):
            mean = sums[:, count - 1] / count
            variance = (squares[:, count - 1] - count * mean**2) / (count - 1)
            t = mean / np.sqrt(variance / count)
            rejected |= np.abs(t) > -special.stdtrit(count - 1, level)
        errors[name] = rejected.mean()
    assert errors["plain"] > 0.051  # the reason for the correction
    assert 0.043 < errors["corrected"] < 0.0515


def test_replicates_of_the_same_few_problems_keep_alpha():
    counts, problems = (2, 4, 6, 8, 10), 4
    plain = nominal_levels(FIFTHS, 0.025, "pocock")
    levels = small_sample_levels(plain, counts, 0.025, problems)
    values = np.random.default_rng(6).standard_normal((40_000, problems, 10))
    rejected = np.zeros(len(values), dtype=bool)
    for count, level in zip(counts, levels, strict=True):
        means = values[:, :, :count].mean(axis=2)
        t = means.mean(axis=1) / means.std(axis=1, ddof=1) * math.sqrt(problems)
        rejected |= np.abs(t) > -special.stdtrit(problems - 1, level)
    assert 0.043 < rejected.mean() < 0.0515


def test_conditional_power_is_the_share_of_studies_that_end_beyond_the_bound():
    rest = np.random.default_rng(8).normal(1.5 * 0.6, math.sqrt(0.6), 200_000)
    final = 1.2 * math.sqrt(0.4) + rest
    expected = np.mean(final > -special.ndtri(0.02))
    assert conditional_power(1.2, 0.4, 0.02, 1.5) == pytest.approx(expected, abs=0.005)
    assert conditional_power(2.5, 1.0, 0.02, 0.0) == 1.0
    assert conditional_power(1.5, 1.0, 0.02, 0.0) == 0.0


@pytest.mark.parametrize(
    ("fractions", "alpha", "message"),
    [
        ((0.5, 1.0), 0.7, "one-sided alpha"),
        ((0.5, 0.5), 0.05, "must increase"),
        ((), 0.05, "must increase"),
        ((0.5, 1.5), 0.05, "end at 1"),
    ],
)
def test_impossible_looks_are_refused(fractions, alpha, message):
    with pytest.raises(ValueError, match=message):
        nominal_levels(fractions, alpha, "pocock")
