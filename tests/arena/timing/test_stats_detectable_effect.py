"""Detectable effects against exact power and against simulated runs of the test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from fairtrial.arena.timing.stats.autocorrelation import (
    ALLOWANCE,
    FEW_SESSIONS,
    session_look,
)
from fairtrial.arena.timing.stats.detectable_effect import (
    Rate,
    false_positive_rate,
    seconds_needed,
    sessions_needed,
    spread,
    visible_effect,
    visible_within,
)
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim, nominal_level

ALPHA = 0.05
SPREAD = 0.015

alphas = st.sampled_from([0.01, 0.05, 0.2])
spreads = st.floats(0.001, 0.3)
powers = st.sampled_from([0.5, 0.8, 0.95])
counts = st.integers(LOOKS[0], LOOKS[-1])


def see(spread: float, sessions: int, alpha: float = ALPHA, power: float = 0.8) -> float:
    effect = visible_effect(spread, sessions, alpha, power)
    assert effect is not None
    return effect


def test_spread_is_the_standard_deviation_of_sessions() -> None:
    assert spread([0.01, -0.01, 0.02, -0.02]) == pytest.approx(math.sqrt(0.001 / 3))
    drawn = np.random.default_rng(0).normal(0.4, SPREAD, 4000)
    assert spread(drawn.tolist()) == pytest.approx(SPREAD, rel=0.05)


@pytest.mark.parametrize("values", [[], [0.01], [0.01, math.nan], [0.01, math.inf]])
def test_no_spread_of_less_than_two_numbers(values: list[float]) -> None:
    with pytest.raises(ValueError, match="two session statistics or more"):
        spread(values)


@pytest.mark.parametrize("alpha", [0.01, 0.05])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_one_look_has_less_power_than_a_t_test_and_more_than_the_widest(
    alpha: float, power: float
) -> None:
    # With six sessions there is a single look. Allowing for autocorrelation multiplies the t
    # interval by 1 to 1.9 sqrt(6), so its power lies between those of noncentral t.
    shift = math.log1p(see(SPREAD, 6, alpha, power)) / SPREAD * math.sqrt(6)
    critical = stats.t.isf(nominal_level(alpha) / 2, 5)
    assert stats.nct.sf(critical, 5, shift) >= power
    widest = (ALLOWANCE + FEW_SESSIONS / 6) * math.sqrt(6)
    assert stats.nct.sf(widest * critical, 5, shift) <= power + 0.012


@pytest.mark.parametrize(("sessions", "power"), [(10, 0.8), (20, 0.8), (46, 0.8), (24, 0.95)])
def test_the_test_itself_sees_what_is_said_to_be_visible(sessions: int, power: float) -> None:
    # what effect can be seen in which time. Other noise than the one it was made of.
    effect = see(SPREAD, sessions, ALPHA, power)
    rng, runs = np.random.default_rng(3), 800
    ends = [*(at for at in LOOKS if at < sessions), sessions]
    seen = 0
    for _ in range(runs):
        tape = rng.normal(-math.log1p(effect), SPREAD, sessions)
        looks = (session_look(tape[:at], alpha=ALPHA, min_effect=0.0) for at in ends)
        seen += next((look.claim for look in looks if look.is_decided), None) == Claim.FASTER
    error = math.sqrt(power * (1 - power) / runs)
    assert abs(seen / runs - power) <= 3 * error + 0.005


def test_looks_before_the_last_help() -> None:
    shift = math.log1p(see(SPREAD, 46)) / SPREAD * math.sqrt(46)
    critical = stats.t.isf(nominal_level(ALPHA) / 2, 45)
    at_the_last_look = float(stats.nct.sf(critical, 45, shift))
    assert at_the_last_look > 0.8  # of the t test; the widened one needs a larger effect
    assert see(SPREAD, 46) < see(SPREAD, 34)


def test_the_figures_of_a_machine_like_the_one_this_was_made_for() -> None:
    # Figures to reach: a true 3 % in 95 %, a true 5 % in 99 % of runs, within 46 sessions.
    assert see(SPREAD, 46, ALPHA, 0.95) < 0.03
    assert see(SPREAD, 46, ALPHA, 0.99) < 0.05
    assert sessions_needed(0.02, SPREAD, ALPHA) == 19
    assert sessions_needed(0.001, SPREAD, ALPHA) is None


def test_fewer_sessions_than_the_first_look_see_nothing() -> None:
    assert visible_effect(SPREAD, 5, ALPHA) is None
    assert visible_effect(SPREAD, 0, ALPHA) is None


def test_more_sessions_than_the_last_look_see_no_more() -> None:
    assert visible_effect(SPREAD, 1000, ALPHA) == visible_effect(SPREAD, 46, ALPHA)


def test_a_machine_without_noise_still_has_the_least_spread() -> None:
    assert see(0.0, 6) == see(1e-9, 6) == see(1e-4, 6) > 0


def test_seconds_are_sessions_times_their_length() -> None:
    sessions = sessions_needed(0.02, SPREAD, ALPHA)
    assert sessions is not None
    assert seconds_needed(0.02, SPREAD, 0.25, ALPHA) == sessions * 0.25
    assert seconds_needed(0.001, SPREAD, 0.25, ALPHA) is None


def test_what_is_visible_within_some_seconds() -> None:
    assert visible_within(SPREAD, 0.5, 5.0, ALPHA) == visible_effect(SPREAD, 10, ALPHA)
    assert visible_within(SPREAD, 0.5, 5.4, ALPHA) == visible_effect(SPREAD, 10, ALPHA)
    assert visible_within(SPREAD, 0.1, 1.2, ALPHA) == visible_effect(SPREAD, 12, ALPHA)
    assert visible_within(SPREAD, 0.1, math.inf, ALPHA) == visible_effect(SPREAD, 46, ALPHA)
    assert visible_within(SPREAD, 1.0, 5.0, ALPHA) is None
    assert visible_within(SPREAD, 1.0, 0.0, ALPHA) is None


def test_six_sessions_of_a_tenth_fit_into_their_sum() -> None:
    assert 0.7 / 0.1 < 7  # what floats make of it
    assert visible_within(SPREAD, 0.1, 0.7, ALPHA) == visible_effect(SPREAD, 7, ALPHA)


@settings(max_examples=40, deadline=None)
@given(spreads, counts, alphas, powers)
def test_more_sessions_less_noise_more_alpha_less_power_all_help(
    noise: float, sessions: int, alpha: float, power: float
) -> None:
    effect = see(noise, sessions, alpha, power)
    assert effect > 0
    assert see(noise, sessions + 1, alpha, power) <= effect
    assert see(noise / 2, sessions, alpha, power) < effect
    assert see(noise, sessions, alpha * 1.5, power) < effect
    assert see(noise, sessions, alpha, power * 0.9) < effect


@settings(max_examples=20, deadline=None)
@given(spreads, counts, alphas, powers)
@pytest.mark.slow
def test_sessions_needed_is_the_fewest_that_see_the_effect(
    noise: float, sessions: int, alpha: float, power: float
) -> None:
    effect = see(noise, sessions, alpha, power)
    needed = sessions_needed(effect, noise, alpha, power)
    assert needed is not None
    assert needed <= sessions
    assert see(noise, needed, alpha, power) <= effect
    assert needed == LOOKS[0] or see(noise, needed - 1, alpha, power) > effect


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 6, 0.05, 0.8), "spread must be 0 or more"),
        ((math.nan, 6, 0.05, 0.8), "spread must be 0 or more"),
        ((0.1, 6, 0.0, 0.8), "alpha must be between"),
        ((0.1, 6, 0.05, 1.0), "power must be between"),
    ],
)
def test_numbers_that_make_no_question(
    arguments: tuple[float, int, float, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        visible_effect(*arguments)


def test_effects_and_times_have_to_be_above_nothing() -> None:
    with pytest.raises(ValueError, match="effect must be above 0"):
        sessions_needed(0.0, SPREAD, ALPHA)
    with pytest.raises(ValueError, match="more than 0 seconds"):
        seconds_needed(0.02, SPREAD, 0.0, ALPHA)
    with pytest.raises(ValueError, match="more than 0 seconds"):
        visible_within(SPREAD, -1.0, 5.0, ALPHA)


# False positives


def test_claims_of_a_difference_either_way_are_false_positives() -> None:
    claims = [Claim.FASTER, Claim.SLOWER, Claim.SLOWER, *[Claim.EQUIVALENT] * 90]
    rate = false_positive_rate([*claims, *[Claim.INCONCLUSIVE] * 7])
    assert (rate.count, rate.total, rate.share) == (3, 100, 0.03)


@pytest.mark.parametrize(("count", "total"), [(0, 100), (3, 100), (50, 100), (100, 100), (1, 1)])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_the_interval_is_clopper_and_pearsons(count: int, total: int, confidence: float) -> None:
    claims = [Claim.FASTER] * count + [Claim.EQUIVALENT] * (total - count)
    rate = false_positive_rate(claims, confidence)
    interval = stats.binomtest(count, total).proportion_ci(confidence)
    assert (rate.low, rate.high) == pytest.approx(tuple(interval), abs=1e-9)


def test_nothing_is_known_of_no_comparison() -> None:
    assert false_positive_rate([]) == Rate(0, 0, 0.0, 1.0)
    assert false_positive_rate([]).share == 0
