"""The early look after three sessions, which drops candidates that are clearly slower."""

import math
from dataclasses import dataclass, replace

import anyio
import numpy as np
import pytest
from clock_kit import SimTimer, changes_of
from simulated_clock import NOISES, draw_statistics, stop

from fairtrial.arena import Verdict
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.arena.timing.decision import DecisionRules, measure
from fairtrial.arena.timing.early_timer import EarlyTimer
from fairtrial.arena.timing.stats.autocorrelation import EARLY_LOOK, session_look

RULES = DecisionRules(alpha=0.05, min_effect=0.02, budget_s=100.0)
RUNS = 2_000


@dataclass
class EarlySimTimer(SimTimer, EarlyTimer):
    """A simulated timer that looks at its sessions one by one."""

    async def run_until(self, changes, label, first, count, budget_s, is_enough):
        batch = SessionBatch()
        for number in range(first, first + count):
            one = await self.run(changes, label, number, 1, budget_s)
            batch.replicates += one.replicates
            batch.seconds += one.seconds
            if is_enough(batch.replicates):
                break
        return batch


def time_one(speed, spread=0.005, rules=RULES):
    async def work():
        timer = EarlySimTimer({"a": speed}, spread)
        return await measure(timer, "a", changes_of("a"), rules)

    return anyio.run(work)


def test_a_candidate_that_takes_twice_as_long_is_dropped_after_three_sessions():
    found = time_one(0.5)
    assert (found.verdict, len(found.sessions)) == (Verdict.SLOWER, EARLY_LOOK)
    assert found.estimate.high < 1 / 1.25
    assert found.estimate.low < 0.5 < found.estimate.high
    assert found.notes == ()
    assert not found.adopt


@pytest.mark.parametrize("spread", [0.005, 0.00001])
@pytest.mark.parametrize("speed", [2.0, 20.0, 1.0, 0.9])
def test_gains_and_small_losses_take_six_sessions_at_least(speed, spread):
    assert len(time_one(speed, spread).sessions) >= 6


def test_simulations_decide_early_what_timing_decides_early():
    drawn = draw_statistics(NOISES["all"], 40, seed=8)[:, :EARLY_LOOK] + math.log(1.6)
    looks = [session_look(list(row), alpha=0.05, min_effect=0.02) for row in drawn]
    simulated = stop(drawn, alpha=0.05, min_effect=0.02)
    assert [look.is_decided for look in looks] == list(np.isfinite(simulated.low))
    assert 0 < np.sum(np.isfinite(simulated.low)) < 40
    decided = [look.low for look in looks if look.is_decided]
    assert decided == pytest.approx(simulated.low[np.isfinite(simulated.low)])


def test_a_noisy_loss_is_not_decided_early():
    assert len(time_one(0.5, spread=0.3).sessions) >= 6


def test_a_gate_that_allows_the_loss_or_not_is_decided_early_only_if_the_interval_says_which():
    found = time_one(0.5, rules=replace(RULES, max_regression=1.0))  # the limit is the true loss
    assert len(found.sessions) > EARLY_LOOK
    assert len(time_one(0.5, rules=replace(RULES, max_regression=0.2)).sessions) == EARLY_LOOK


def test_three_sessions_that_are_faster_claim_nothing():
    look = session_look([-3.0, -3.001, -3.002], alpha=0.05, min_effect=0.02)
    assert math.isinf(look.low)
    assert not look.is_decided


@pytest.mark.parametrize("noise", NOISES.values(), ids=lambda noise: noise.name)
def test_equal_code_is_never_dropped_early_and_a_dropped_candidate_has_an_interval_that_holds(
    noise,
):
    statistics = draw_statistics(noise, RUNS, seed=5)
    equal = stop(statistics, alpha=0.05, min_effect=0.02)
    assert not np.any(equal.sessions == EARLY_LOOK)
    truth = math.log(2)
    slower = stop(statistics + truth, alpha=0.05, min_effect=0.02)
    is_early = slower.sessions == EARLY_LOOK
    assert np.mean(is_early) > 0.2
    missed = is_early & ((slower.low > truth) | (slower.high < truth))
    assert np.mean(missed) <= 0.01
