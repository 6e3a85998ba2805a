"""The confidence sequence: bounds that hold at every session at once."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import integrate, stats as scipy_stats

from fairtrial.arena.timing.stats.sequential import LOOKS, nominal_level
from fairtrial.core.sequential import LEAST_SPREAD
from fairtrial.core.sequential.confidence_sequence import (
    confidence_sequence,
    half_width,
    running_intervals,
)

SLACK = 3


def ever_missed(paths, alpha, mixture, truth=0.0):
    low, high = running_intervals(paths, alpha, mixture)
    return np.mean(np.any((low > truth) | (high < truth), axis=1))


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("mixture", [0.3, 1.0, 3.0])
def test_it_hardly_ever_misses_at_any_session(alpha, mixture):
    runs = 4_000
    paths = np.random.default_rng(3).normal(5.0, 2.0, size=(runs, 300))
    missed = ever_missed(paths, alpha, mixture, truth=5.0)
    assert missed <= alpha + SLACK * math.sqrt(alpha * (1 - alpha) / runs)
    assert missed > alpha / 5  # or it would be needlessly wide


def test_an_ordinary_interval_does_miss_at_some_session():
    # The test above can fail: this is what peeking does.
    paths = np.random.default_rng(3).normal(size=(2_000, 100))
    p = [scipy_stats.ttest_1samp(paths[:, :n], 0.0, axis=1).pvalue for n in range(6, 101)]
    assert np.mean(np.min(p, axis=0) < 0.05) > 0.2


def test_the_bounds_are_where_the_bayes_factor_reaches_one_over_alpha():
    # By integrating t's distribution over the mixture instead of by the formula.
    values = np.random.default_rng(8).normal(0.4, 1.0, size=12)
    alpha, mixture, n = 0.05, 0.8, 12
    for bound in confidence_sequence(values, alpha, mixture):
        t = (values.mean() - bound) / (values.std(ddof=1) / math.sqrt(n))

        def density(delta, t=t):
            under = scipy_stats.nct.pdf(t, n - 1, delta * math.sqrt(n))
            return under * scipy_stats.norm.pdf(delta, 0, mixture)

        mixed, _ = integrate.quad(density, -8, 8, limit=200)
        assert mixed / scipy_stats.t.pdf(t, n - 1) == pytest.approx(1 / alpha, rel=1e-4)


def test_it_is_wider_than_the_test_with_six_looks_but_not_by_much():
    for sessions in LOOKS[1:]:
        quantile = scipy_stats.t.isf(nominal_level(0.05) / 2, sessions - 1)
        repeated = quantile / math.sqrt(sessions)
        assert repeated < half_width(sessions, 0.05) < 1.3 * repeated


def test_the_default_is_tight_between_ten_and_fifty_sessions():
    for alpha in (0.05, 0.01):
        for sessions in range(10, 51):
            best = min(half_width(sessions, alpha, m) for m in np.geomspace(0.1, 5, 100))
            assert half_width(sessions, alpha) <= 1.05 * best


def test_it_narrows_for_ever():
    widths = [half_width(sessions, 0.05) for sessions in (7, 10, 100, 10_000, 1_000_000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.01
    assert half_width(50, 0.01) > half_width(50, 0.05)


def test_too_few_sessions_say_nothing():
    for values in ([], [0.3], [0.3, 0.4]):
        assert confidence_sequence(values, 0.05) == (-math.inf, math.inf)
    low, high = confidence_sequence([0.3, 0.4], 0.9, 3.0)
    assert low < 0.35 < high < math.inf


def test_no_spread_is_not_taken_at_its_word():
    low, high = confidence_sequence([-0.05] * 20, 0.05)
    assert (low + high) / 2 == pytest.approx(-0.05)
    assert high - low == pytest.approx(2 * LEAST_SPREAD * half_width(20, 0.05))


def test_many_at_once_are_the_same_as_one_by_one():
    paths = np.random.default_rng(4).normal(-0.03, 0.015, size=(5, 30))
    low, high = running_intervals(paths, 0.05)
    for row in range(5):
        for sessions in range(1, 31):
            expected = confidence_sequence(paths[row, :sessions], 0.05)
            found = (low[row, sessions - 1], high[row, sessions - 1])
            assert found == pytest.approx(expected, rel=1e-9)


@given(
    st.lists(st.floats(-0.2, 0.2), min_size=8, max_size=40),
    st.floats(-1, 1),
    st.sampled_from([-1.0, 1.0]),
)
@settings(max_examples=100, deadline=None)
def test_it_moves_and_mirrors_with_the_numbers(values, by, sign):
    low, high = confidence_sequence(values, 0.05)
    ends = confidence_sequence([sign * value + by for value in values], 0.05)
    expected = sorted((sign * low + by, sign * high + by))
    assert ends == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize(
    ("values", "alpha", "mixture", "message"),
    [
        ([0.0, 1.0], 0.0, 1.0, "alpha must be between 0 and 1"),
        ([0.0, 1.0], 1.0, 1.0, "alpha must be between 0 and 1"),
        ([0.0, 1.0], 0.05, 0.0, "mixture must be above 0"),
        ([0.0, 1.0], 0.05, math.inf, "mixture must be above 0"),
        ([0.0, math.nan], 0.05, 1.0, "finite numbers"),
    ],
)
def test_bad_input_is_refused(values, alpha, mixture, message):
    with pytest.raises(ValueError, match=message):
        confidence_sequence(values, alpha, mixture)
