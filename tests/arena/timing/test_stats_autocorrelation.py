"""Autocorrelated sessions: false claims, the widening of intervals, and what is noticed."""

import math

import numpy as np
import pytest
from clock_kit import make_replicates
from simulated_clock import draw_autocorrelated, judge

from fairtrial.arena.timing.stats.autocorrelation import (
    ALLOWANCE,
    FEW_SESSIONS,
    is_suspicious,
    serial_correlation,
    serial_correlations,
    session_look,
    widening,
)
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim, interim_look
from fairtrial.arena.timing.summary import summarize

RUNS = 4_000


def draw(rho, runs=RUNS, spread=0.015):
    return draw_autocorrelated(rho, runs, seed=5, spread=spread)


def slack(share):
    return 3 * math.sqrt(share * (1 - share) / RUNS)


@pytest.mark.parametrize("spread", [0.015, 0.05])
@pytest.mark.parametrize(
    ("rho", "most"), [(0.0, 0.05), (0.2, 0.05), (0.4, 0.05), (0.6, 0.06), (0.8, 0.15)]
)
def test_false_claims_are_few_however_much_sessions_resemble_each_other(rho, most, spread):
    found = judge(draw(rho, spread=spread), 1.0, alpha=0.05, min_effect=0.02)
    assert found.false <= most + (slack(most) if rho >= 0.6 else 0)


def test_sessions_that_are_taken_as_independent_claim_too_much():
    values = draw(0.6, runs=400)
    claims = []
    for row in values:
        looks = (interim_look(row[:at], alpha=0.05, min_effect=0.02) for at in LOOKS)
        claims.append(next((look.claim for look in looks if look.is_decided), Claim.INCONCLUSIVE))
    assert np.mean([claim in (Claim.FASTER, Claim.SLOWER) for claim in claims]) > 0.15


@pytest.mark.parametrize(("ratio", "sessions"), [(1.03, 11.5), (1.05, 8), (1.1, 6.2)])
def test_independent_sessions_lose_no_power_and_some_time(ratio, sessions):
    found = judge(draw(0.0), ratio, alpha=0.05, min_effect=0.02)
    assert found.faster >= 0.995
    assert found.mean_sessions <= sessions


@pytest.mark.parametrize(
    ("ratio", "budget", "power"), [(1.1, 6, 0.95), (1.05, 6, 0.6), (1.03, 6, 0.2), (1.03, 10, 0.67)]
)
def test_few_independent_sessions_find_large_gains_and_some_small_ones(ratio, budget, power):
    found = judge(draw(0.0)[:, :budget], ratio, alpha=0.05, min_effect=0.02)
    assert found.faster >= power


def test_equal_code_of_independent_sessions_is_soon_equivalent():
    found = judge(draw(0.0), 1.0, alpha=0.05, min_effect=0.02)
    assert found.equivalent >= 0.97
    assert found.mean_sessions <= 21


def test_the_estimate_is_unbiased_for_independent_sessions_however_few():
    for count in (6, 10, 46):
        values = draw(0.0)[:, :count]
        estimates = serial_correlations(values)
        assert np.mean(estimates) == pytest.approx(0.0, abs=0.02)
        assert np.std(estimates) == pytest.approx(math.sqrt((count - 2) / (count**2 - 1)), rel=0.05)


def test_intervals_are_wider_the_more_sessions_resemble_each_other():
    steady = np.linspace(-0.02, 0.02, 46)[None, :]
    alternating = np.tile([0.01, -0.01], 23)[None, :]
    assert widening(alternating[:, :10]) == pytest.approx([1.0])
    largest = (ALLOWANCE + FEW_SESSIONS / 46) * math.sqrt(46)
    assert 0.95 * largest < widening(steady) < largest
    means = [float(np.mean(widening(draw(rho, runs=500)))) for rho in (0.0, 0.4, 0.8)]
    assert means == sorted(means)
    unknown = [float(widening(np.full((1, at), 0.1))[0]) for at in LOOKS]
    assert unknown == pytest.approx([ALLOWANCE + FEW_SESSIONS / at for at in LOOKS])
    mixed = draw(0.0, runs=500)
    look, plain = (
        rule(mixed[0], alpha=0.05, min_effect=0.02) for rule in (session_look, interim_look)
    )
    factor = float(widening(mixed[:1])[0])
    assert (look.high - look.low) == pytest.approx(factor * (plain.high - plain.low))
    assert look.mean == plain.mean


def test_equal_sessions_and_too_few_sessions_say_nothing_about_autocorrelation():
    assert serial_correlation([0.1] * 10) == 0.0
    assert serial_correlation([0.1, 0.2]) is None
    assert not is_suspicious(0.5, 6)
    assert is_suspicious(0.5, 24)


def test_a_drifting_machine_is_noticed_and_nothing_is_claimed():
    logs = [-0.03 + 0.03 * math.sin(at / 4) for at in range(16)]
    found = summarize(make_replicates(logs), alpha=0.05, min_effect=0.02)
    assert interim_look(logs, alpha=0.05, min_effect=0.02).claim == Claim.FASTER
    assert found.verdict == "inconclusive"
    (note,) = found.timings[0].notes
    assert note.startswith("successive sessions resemble each other (autocorrelation 0.9")
    assert found.timings[0].serial_correlation > 0.9
