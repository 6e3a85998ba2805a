"""The simulation study, small: false positives, power, coverage and sessions on simulated clocks.

`benchmarks/statistics.py` is the same in full. Bounds are the figures of spec bench, with three
standard errors for having fewer runs.
"""

import importlib.util
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulated_clock import (
    CLAIMS,
    NOISES,
    ROUNDS,
    Noise,
    draw_blocks,
    draw_sessions,
    draw_statistics,
    judge,
    simulate,
    stop,
)

from fairtrial.arena.timing.stats.autocorrelation import session_look
from fairtrial.arena.timing.stats.sequential import LOOKS, adopt, next_look
from fairtrial.arena.timing.stats.session_ratio import session_statistic

RUNS = 1_500
SEED = 2_024
MIN_EFFECT = 0.02
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def slack(share):
    return 3 * math.sqrt(share * (1 - share) / RUNS)


@pytest.fixture(scope="module", params=list(NOISES))
def clock(request):
    """Session statistics of equal code on one sort of machine."""
    return draw_statistics(NOISES[request.param], RUNS, SEED)


# -- the figures of the spec --


@pytest.mark.parametrize(("alpha", "most"), [(0.05, 0.055), (0.01, 0.012)])
def test_equal_code_is_hardly_ever_called_faster_or_slower(clock, alpha, most):
    for min_effect in (MIN_EFFECT, 0.0):  # with 0 nothing but a claim of difference ends it
        found = judge(clock, 1.0, alpha=alpha, min_effect=min_effect)
        assert found.false == pytest.approx(found.faster + found.slower)
        assert found.false <= most + slack(most)
        assert found.coverage >= 1 - alpha - slack(alpha)


def test_equal_code_is_recognised_as_equivalent(clock):
    found = judge(clock, 1.0, alpha=0.05, min_effect=MIN_EFFECT)
    assert 0.012 <= found.spread <= 0.017
    assert found.equivalent >= 0.97
    assert found.mean_sessions <= 24


@pytest.mark.parametrize(
    ("ratio", "power", "sessions"), [(1.03, 0.95, 13), (1.05, 0.99, 8.5), (1.1, 0.99, 6.5)]
)
def test_faster_and_slower_code_is_found_soon(clock, ratio, power, sessions):
    faster = judge(clock, ratio, alpha=0.05, min_effect=MIN_EFFECT)
    slower = judge(clock, 1 / ratio, alpha=0.05, min_effect=MIN_EFFECT)
    assert min(faster.faster, slower.slower) >= power
    assert max(faster.mean_sessions, slower.mean_sessions) <= sessions
    assert min(faster.coverage, slower.coverage) >= 0.95 - slack(0.95)
    assert max(faster.false, slower.false) <= 0.001
    assert faster.adopt >= power - 0.02
    assert slower.adopt == 0.0


def test_an_effect_as_small_as_the_minimum_is_found_and_half_the_time_adopted(clock):
    found = judge(clock, 1.02, alpha=0.05, min_effect=MIN_EFFECT)
    assert found.faster >= 0.95
    assert 0.4 <= found.adopt <= 0.65
    assert found.falsely_equivalent <= 0.025 + slack(0.025)


@pytest.mark.parametrize("budget", [8, 13, 29])
def test_a_budget_that_ends_between_looks_costs_no_error(clock, budget):
    found = judge(clock[:, :budget], 1.0, alpha=0.05, min_effect=0.0)
    assert found.false <= 0.05 + slack(0.05)
    assert found.coverage >= 0.95 - slack(0.95)
    assert found.mean_sessions <= budget


def test_too_small_a_budget_says_nothing():
    found = simulate(NOISES["process"], 1.5, 20, SEED, sessions=5)
    assert (found.inconclusive, found.coverage, found.adopt) == (1.0, 1.0, 0.0)
    assert found.mean_sessions == 5


def test_a_machine_too_noisy_for_the_question_gets_no_answer():
    loud = Noise("loud", jitter=0.02, process=0.06)
    found = simulate(loud, 1.0, 400, SEED)
    assert found.inconclusive > 0.8
    assert found.false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


# -- the simulation and the real thing --


@pytest.mark.parametrize("most", [46, 20, 7])
@pytest.mark.parametrize("min_effect", [0.0, 0.02])
def test_the_rule_for_many_is_the_rule_for_one(most, min_effect):
    noise = NOISES["all"]
    statistics = draw_statistics(noise, 60, SEED, most) - np.linspace(-0.05, 0.05, 60)[:, None]
    ends = stop(statistics, alpha=0.05, min_effect=min_effect)
    for row, values in enumerate(statistics):
        sessions = 0
        while True:
            sessions = min(next_look(sessions) or most, most)
            found = session_look(list(values[:sessions]), alpha=0.05, min_effect=min_effect)
            if found.is_decided or sessions == most:
                break
        assert ends.sessions[row] == found.sessions
        assert CLAIMS[ends.claims[row]] == found.claim
        assert (ends.mean[row], ends.low[row], ends.high[row]) == (
            found.mean,
            found.low,
            found.high,
        )


def test_adopting_many_is_adopting_one():
    statistics = draw_statistics(NOISES["process"], 80, SEED, 6)
    found = judge(statistics, 1.1, alpha=0.05, min_effect=MIN_EFFECT)
    looks = [session_look(v - math.log(1.1), alpha=0.05, min_effect=MIN_EFFECT) for v in statistics]
    assert found.adopt == np.mean([adopt(look, MIN_EFFECT) for look in looks])
    assert 0 < found.adopt < 1


def test_statistics_are_those_of_the_samples():
    noise = NOISES["all"]
    base, candidate = draw_sessions(noise, np.random.default_rng(SEED), 3, LOOKS[-1])
    statistics = draw_statistics(noise, 3, SEED)
    assert base.shape == candidate.shape == (3, LOOKS[-1], ROUNDS)
    for run in range(3):
        for session in range(LOOKS[-1]):
            one = np.exp(base[run, session, 1:])
            # A faster candidate moves all its samples, and the statistic by as much.
            other = np.exp(candidate[run, session, 1:]) / 1.03
            found = session_statistic(list(one), list(other))
            assert found == pytest.approx(statistics[run, session] - math.log(1.03), abs=1e-12)


def test_the_same_seed_gives_the_same_outcome():
    one, again, other = (simulate(NOISES["all"], 1.03, 50, seed) for seed in (1, 1, 2))
    assert one == again != other


def test_runs_that_are_no_multiple_of_a_batch_are_all_there():
    assert draw_statistics(NOISES["iid"], 251, SEED, 6).shape == (251, 6)


# -- what the structure of a session is good for --


def quiet(**noise):
    return Noise("quiet", jitter=0.0, process=0.0, **{"warmup": 0.0, **noise})


def spread_of(base, candidate, rounds):
    return float(np.std(np.median((candidate - base)[:, :, rounds], axis=2)))


def test_taking_turns_in_both_orders_cancels_the_effect_of_the_second_position():
    base, candidate = draw_sessions(quiet(second=0.05), np.random.default_rng(SEED), 50, 6)
    rounds = candidate - base
    assert np.allclose(np.abs(rounds), 0.05)  # each round is wrong
    assert np.allclose(np.median(rounds[:, :, 1:], axis=2), 0.0)  # the session isn't
    assert set(np.unique(np.sign(rounds[:, :, 0]))) == {-1.0, 1.0}  # either may begin


def test_neighboring_samples_share_slow_noise():
    noise = quiet(wave=0.05, load=0.02)
    rng = np.random.default_rng(SEED)
    assert spread_of(*draw_sessions(noise, rng, 200, 6), slice(1, None)) < 0.006
    blocks = draw_blocks(noise, rng, 200, 66)
    assert np.std(np.median(blocks[1], axis=1) - np.median(blocks[0], axis=1)) > 0.05


def test_the_first_round_is_better_discarded():
    noise = quiet(warmup=0.2)
    base, candidate = draw_sessions(noise, np.random.default_rng(SEED), 100, 6)
    first, rest = (np.std((candidate - base)[:, :, item]) for item in (0, slice(1, None)))
    assert first > 5 * rest


def test_more_rounds_do_not_remove_what_differs_between_processes():
    noise = NOISES["process"]
    rng = np.random.default_rng(SEED)
    short, long = (
        spread_of(*draw_sessions(noise, rng, 150, 6, rounds), slice(1, None)) for rounds in (11, 81)
    )
    floor = math.sqrt(2) * noise.process
    assert floor * 0.9 < long < short
    assert draw_statistics(replace(noise, process=0.0), 150, SEED, 6).std() < floor / 2


# -- what doesn't work, on the same clocks --


@pytest.fixture(scope="module")
def study():
    path = BENCHMARKS / "simulated_clocks.py"
    spec = importlib.util.spec_from_file_location("simulated_clocks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_other_methods_claim_differences_that_are_not_there(study):
    rng = np.random.default_rng(SEED)

    def false(rule, noise, draw, size):
        base, candidate = study.in_parts(draw, NOISES[noise], rng, 400, size)
        return np.mean(rule(base, candidate, 1.0) != 0)

    assert false(study.welch, "process", draw_blocks, study.BLOCK) > 0.5
    assert false(study.welch, "iid", draw_blocks, study.BLOCK) < 0.1  # the rule itself is right
    assert false(study.medians_apart, "load", draw_blocks, study.BLOCK) > 0.25
    assert false(study.minima_apart, "drift", draw_blocks, study.BLOCK) > 0.15
    assert false(study.pooled, "process", draw_sessions, 24) > 0.15
    assert false(study.peeking, "process", draw_sessions, 46) > 0.1
    assert false(study.sequential, "process", draw_sessions, 46) < 0.055


def test_scripts_beside_the_study_still_find_the_standard_librarys_statistics(tmp_path):
    (tmp_path / "statistics.py").write_text((BENCHMARKS / "statistics.py").read_text("utf-8"))
    script = tmp_path / "script.py"
    script.write_text("import statistics; print(statistics.median([1, 2, 9]))")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("2", "")
