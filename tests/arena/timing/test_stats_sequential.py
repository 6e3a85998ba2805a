"""The group-sequential test: its table, its claims, and what it does at the edges."""

import importlib.util
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats as scipy_stats

from fairtrial.arena import Sample
from fairtrial.arena.timing.stats.boundaries import LEVELS
from fairtrial.arena.timing.stats.sequential import (
    LOOKS,
    Claim,
    SessionLook,
    adopt,
    interim_look,
    next_look,
    nominal_level,
)
from fairtrial.arena.timing.stats.session_ratio import (
    mean_ratio,
    seconds_per_call,
    session_cpu_ratio,
    session_ratio,
    session_statistic,
)
from fairtrial.core.sequential import LEAST_SPREAD, alpha_share

ROOT = Path(__file__).parents[3]
OPPOSITE = {Claim.FASTER: Claim.SLOWER, Claim.SLOWER: Claim.FASTER}


def ask(values, alpha=0.05, min_effect=0.02):
    return interim_look(values, alpha=alpha, min_effect=min_effect)


def around(mean, sd, sessions):
    """Statistics with exactly this mean and standard deviation."""
    values = np.random.default_rng(sessions).normal(size=sessions)
    return mean + sd * (values - values.mean()) / values.std(ddof=1)


def least_p(paths):
    """The smallest p-value of all looks, path by path."""
    looks = (scipy_stats.ttest_1samp(paths[:, :at], 0.0, axis=1).pvalue for at in LOOKS)
    return np.min(list(looks), axis=0)


# -- the table of constants --


def test_all_looks_together_miss_as_often_as_alpha_says():
    p = least_p(np.random.default_rng(11).normal(size=(60_000, LOOKS[-1])))
    for alpha in (0.2, 0.05, 0.03, 0.01, 0.001):  # 0.03 is between two of the table
        missed = np.mean(p < nominal_level(alpha))  # 0 lies outside of an interval
        slack = 3 * math.sqrt(alpha * (1 - alpha) / len(p))
        assert alpha * 0.98 - slack <= missed <= alpha + slack


def test_the_table_falls_with_alpha_and_lies_between_bonferroni_and_alpha():
    alphas, levels = zip(*LEVELS, strict=True)
    assert list(alphas) == sorted(set(alphas), reverse=True)
    assert list(levels) == sorted(set(levels), reverse=True)
    assert all(alpha / len(LOOKS) <= level < alpha for alpha, level in LEVELS)
    # The fewer misses there are, the less often two looks miss together.
    shares = [level / alpha for alpha, level in LEVELS]
    assert shares == sorted(shares, reverse=True)


def test_levels_rise_with_alpha_within_beside_and_beyond_the_table():
    alphas = np.geomspace(1e-12, 0.999, 2_000)
    levels = [nominal_level(float(alpha)) for alpha in alphas]
    assert all(low < high for low, high in itertools.pairwise(levels))
    assert all(
        alpha / len(LOOKS) * 0.999999 <= level < alpha
        for alpha, level in zip(alphas, levels, strict=True)
    )
    for alpha, level in LEVELS:
        assert nominal_level(alpha) == pytest.approx(level, rel=1e-12)
    assert nominal_level(1e-10) == 1e-10 / len(LOOKS)


def test_the_table_can_be_made_anew():
    path = ROOT / "benchmarks" / "boundaries.py"
    spec = importlib.util.spec_from_file_location("boundaries_maker", path)
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    maker.PATHS = 6_000
    rng = np.random.default_rng(maker.SEED)
    paths = [maker.Paths(index, rng) for index in range(len(LOOKS))]
    for alpha in (0.2, 0.05, 0.01, 1e-4, 1e-8):
        mean, error = maker.chance_per_level(nominal_level(alpha), paths)
        chance = mean * nominal_level(alpha)
        assert chance == pytest.approx(alpha, rel=0.004 + 4 * error / mean)
    assert tuple(maker.ALPHAS) == tuple(alpha for alpha, _ in LEVELS)


# -- looks --


def test_the_interval_is_an_ordinary_t_interval_at_the_looks_level():
    for sessions in LOOKS:
        values = around(-0.01, 0.015, sessions)
        found = ask(values)
        confidence = 1 - nominal_level(0.05)
        expected = scipy_stats.ttest_1samp(values, 0.0).confidence_interval(confidence)
        assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-9)
        assert found.mean == pytest.approx(-0.01)
        assert found.sessions == sessions


def test_under_six_sessions_nothing_is_said():
    for sessions in range(6):
        found = ask([-0.7 + 0.001 * n for n in range(sessions)])
        assert found.claim == Claim.INCONCLUSIVE
        assert not found.is_decided
        assert (found.low, found.high) == (-math.inf, math.inf)
        assert (found.speedup_low, found.speedup_high) == (0.0, math.inf)
        assert not adopt(found, 0.02)
    assert ask([-0.7 + 0.001 * n for n in range(6)]).claim == Claim.FASTER


def test_between_looks_the_next_looks_level_counts():
    # a budget that ends there. The level is the same; t has its own freedom.
    values = around(-0.01, 0.015, 8)
    found = ask(values)
    quantile = scipy_stats.t.isf(nominal_level(0.05) / 2, 7)
    assert found.high == pytest.approx(-0.01 + quantile * 0.015 / math.sqrt(8))


def test_beyond_the_last_look_there_is_no_constant():
    assert ask(around(0, 0.01, 46)).sessions == 46
    with pytest.raises(ValueError, match=r"47 sessions.*after 46.*confidence_sequence"):
        ask(around(0, 0.01, 47))


@pytest.mark.parametrize(
    ("sessions", "following"), [(0, 6), (5, 6), (6, 10), (7, 10), (45, 46), (46, None), (60, None)]
)
def test_the_next_look(sessions, following):
    assert next_look(sessions) == following


# -- claims --


@pytest.mark.parametrize(
    ("mean", "sd", "claim"),
    [
        (-0.05, 0.01, Claim.FASTER),
        (0.05, 0.01, Claim.SLOWER),
        (0.0, 0.01, Claim.EQUIVALENT),
        (0.0, 0.05, Claim.INCONCLUSIVE),
        (-0.01, 0.001, Claim.EQUIVALENT),  # certainly faster, certainly by less than is of interest
        (0.01, 0.001, Claim.EQUIVALENT),
    ],
)
def test_claims(mean, sd, claim):
    assert ask(around(mean, sd, 16)).claim == claim


def test_inside_means_inside_on_the_scale_of_ratios():
    sd, sessions = 0.002, 16
    width = scipy_stats.t.isf(nominal_level(0.05) / 2, 15) * sd / 4
    edge = math.log(1.02) - width
    assert ask(around(-edge + 1e-9, sd, sessions)).claim == Claim.EQUIVALENT
    assert ask(around(-edge - 1e-9, sd, sessions)).claim == Claim.FASTER
    assert ask(around(edge - 1e-9, sd, sessions)).claim == Claim.EQUIVALENT
    assert ask(around(edge + 1e-9, sd, sessions)).claim == Claim.SLOWER


def test_without_a_minimum_effect_nothing_is_equivalent():
    assert ask(around(0.0, 1e-6, 46), min_effect=0.0).claim == Claim.INCONCLUSIVE


def test_speedups_are_the_inverse_of_ratios_of_times():
    found = SessionLook(10, math.log(0.5), math.log(0.4), math.log(0.8), Claim.FASTER)
    assert found.speedup == pytest.approx(2.0)
    assert (found.speedup_low, found.speedup_high) == pytest.approx((1.25, 2.5))
    assert SessionLook(6, 0.0, -1e4, 1e4, Claim.INCONCLUSIVE).speedup_high == math.inf


def test_adopting_needs_certainty_and_the_minimum_effect():
    def found(mean, half):
        return SessionLook(16, -mean, -mean - half, -mean + half, Claim.FASTER)

    assert adopt(found(math.log(1.03), 0.01), 0.02)
    assert adopt(found(math.log(1.02), 0.01), 0.02)
    assert not adopt(found(math.log(1.019), 0.01), 0.02)  # certain, but too small
    assert not adopt(found(math.log(1.03), 0.03), 0.02)  # large, but not certain
    assert not adopt(found(-math.log(1.03), 0.01), 0.02)  # slower


# -- no spread --


def test_sessions_that_agree_to_the_last_digit_are_no_infinite_evidence():
    same = ask([-0.05] * 6)
    assert same.claim == Claim.FASTER
    assert same.high - same.low > LEAST_SPREAD
    assert ask([0.0] * 6).claim == Claim.EQUIVALENT
    # A difference below what sessions can agree on is none, however often it comes.
    assert ask([-1e-6] * 46, min_effect=0.0).claim == Claim.INCONCLUSIVE
    almost = ask([-0.05, -0.05, -0.05, -0.05, -0.05, -0.05 + 1e-15])
    assert (almost.low, almost.high) == pytest.approx((same.low, same.high))


@pytest.mark.parametrize(
    ("values", "alpha", "min_effect", "message"),
    [
        ([0.0] * 6, 0.0, 0.02, "alpha must be between 0 and 1"),
        ([0.0] * 6, 1.0, 0.02, "alpha must be between 0 and 1"),
        ([0.0] * 6, math.nan, 0.02, "alpha must be between 0 and 1"),
        ([0.0] * 6, 0.05, -0.1, "min_effect must be 0 or more"),
        ([0.0] * 6, 0.05, math.nan, "min_effect must be 0 or more"),
        ([0.0] * 5 + [math.nan], 0.05, 0.02, "finite numbers"),
        ([0.0] * 2 + [math.inf], 0.05, 0.02, "finite numbers"),
        ([[0.0]] * 6, 0.05, 0.02, "one for each session"),
    ],
)
def test_bad_input_is_refused(values, alpha, min_effect, message):
    with pytest.raises(ValueError, match=message):
        interim_look(values, alpha=alpha, min_effect=min_effect)


# -- symmetries --

STATISTICS = st.lists(st.floats(-0.2, 0.2), min_size=6, max_size=46)


@given(STATISTICS)
@settings(max_examples=150, deadline=None)
def test_swapping_base_and_candidate_mirrors_the_claim(values):
    one, other = ask(values), ask([-value for value in values])
    assert other.claim == OPPOSITE.get(one.claim, one.claim)
    assert (other.low, other.mean, other.high) == pytest.approx((-one.high, -one.mean, -one.low))


@given(STATISTICS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_of_sessions_says_nothing(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    one, other = ask(values), ask(shuffled)
    assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-12)


@given(STATISTICS, st.floats(-0.1, 0.1))
@settings(max_examples=150, deadline=None)
def test_a_speedup_moves_the_interval_and_nothing_else(values, by):
    one, other = ask(values), ask([value + by for value in values])
    assert (other.low - by, other.high - by) == pytest.approx((one.low, one.high), abs=1e-9)


@given(STATISTICS, st.floats(1e-6, 0.5), st.floats(1e-6, 0.5))
@settings(max_examples=150, deadline=None)
def test_a_smaller_alpha_means_a_wider_interval(values, one, other):
    narrow, wide = ask(values, alpha=max(one, other)), ask(values, alpha=min(one, other))
    assert wide.low <= narrow.low <= narrow.mean <= narrow.high <= wide.high


@given(st.integers(6, 22))
@settings(max_examples=17, deadline=None)
def test_sessions_that_say_the_same_again_make_it_narrower(sessions):
    values = list(around(-0.01, 0.015, sessions))
    one, twice = ask(values), ask(values * 2)
    assert one.low < twice.low < twice.high < one.high


# -- sessions --


def test_the_statistic_is_the_median_of_the_rounds_log_ratios():
    base, candidate = [1.0, 2.0, 4.0], [0.5, 1.9, 40.0]
    assert session_statistic(base, candidate) == pytest.approx(math.log(0.95))
    assert session_statistic([1.0, 1.0], [2.0, 8.0]) == pytest.approx(math.log(4.0))
    assert session_statistic(candidate, base) == pytest.approx(-math.log(0.95))


@pytest.mark.parametrize(
    ("base", "candidate", "message"),
    [
        ([], [], "at least one of each"),
        ([1.0], [1.0, 2.0], "got 1 and 2"),
        ([0.0], [1.0], "more than 0 seconds, got 0"),
        ([1.0], [-1.0], "more than 0 seconds, got -1"),
        ([1.0], [math.nan], "more than 0 seconds, got nan"),
        ([math.inf], [1.0], "more than 0 seconds, got inf"),
    ],
)
def test_times_that_are_none_are_refused(base, candidate, message):
    with pytest.raises(ValueError, match=message):
        session_statistic(base, candidate)


def test_rounds_that_count_are_kept_and_whole():
    samples = [
        Sample(0, 0, "base", 10, 9.0, 9.0, is_kept=False),
        Sample(0, 1, "candidate", 10, 9.0, 9.0, is_kept=False),
        Sample(1, 0, "candidate", 10, 2.0, 1.0),
        Sample(1, 1, "base", 10, 4.0, 3.0),
        Sample(2, 0, "base", 10, 5.0, None),
        Sample(2, 1, "candidate", 10, 6.0, 2.0),
        Sample(3, 0, "base", 10, 7.0, 1.0),  # cut short
    ]
    assert session_ratio(samples) == pytest.approx((math.log(2 / 4) + math.log(6 / 5)) / 2)
    assert session_cpu_ratio(samples) is None  # unknown for a sample of it
    assert session_ratio(samples[:2]) is None
    assert seconds_per_call(samples, "base") == pytest.approx(0.5)


def test_what_asking_takes_is_taken_off_both():
    # A candidate that is ten times as fast; asking and replying take as long as its calls.
    samples = [Sample(-1, 0, "base", 0, 0.2, 0.1, is_kept=False)]
    samples += [Sample(1, 0, "base", 10, 2.2, 2.1), Sample(1, 1, "candidate", 10, 0.4, 0.3)]
    assert session_ratio(samples) == pytest.approx(math.log(1 / 10))
    assert session_cpu_ratio(samples) == pytest.approx(math.log(1 / 10))
    assert seconds_per_call(samples, "candidate") == pytest.approx(0.02)


def test_a_sample_is_never_shorter_than_nothing():
    samples = [Sample(-1, 0, "base", 0, 0.5, None, is_kept=False)]
    samples += [Sample(1, 0, "base", 1, 2.5, None), Sample(1, 1, "candidate", 1, 0.4, None)]
    assert session_ratio(samples) == pytest.approx(math.log(0.02 * 0.4 / 2.0))


def test_several_benchmarks_give_the_geometric_mean_of_their_speedups():
    assert math.exp(-mean_ratio([math.log(0.5), math.log(0.125)])) == pytest.approx(4.0)


# -- sharing alpha --


def test_a_family_shares_alpha():
    assert alpha_share(0.05, 1) == 0.05
    assert alpha_share(0.05, 16) * 16 == pytest.approx(0.05)


def test_sharing_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="count must be 1 or more; got 0"):
        alpha_share(0.05, 0)
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        alpha_share(1.5, 3)
