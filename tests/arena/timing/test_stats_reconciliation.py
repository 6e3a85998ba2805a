"""Claimed savings against whole processes, by seeded simulations: both errors stay rare."""

import math
import random
from dataclasses import replace

import pytest

from fairtrial.arena import TotalVerdict
from fairtrial.arena.timing.stats.reconciliation import (
    LOOKS,
    ProcessBlock,
    ProcessTotals,
    SavingClaim,
    reconcile,
)

CALLS, CALL_S, STARTED_S = 100, 1e-3, 0.08
COMPARISONS = 300


def make_block(
    rng, speed, *, hidden_s=0.0, reading=0.5, noise=0.03, load=1.0, burn_s=0.0, counts_cpu=True
):
    """Four processes of a base whose call takes 1 ms, and of a candidate.

    hidden_s: what a call of the candidate does outside of its samples
    reading: how long reading and writing take, in calls of the base
    noise: the relative spread of each process's time
    load: how many times as long as alone everything takes, on average
    burn_s: CPU time that the candidate wastes at the end of short processes
    """

    def run(calls, call_s, extra_s=0.0, burnt_s=0.0):
        factor = math.exp(rng.gauss(0, noise))
        waited = load * math.exp(rng.gauss(0, noise * math.sqrt(load)))
        inner_s = factor * calls * call_s
        outer_s = inner_s + factor * calls * (reading * CALL_S + extra_s)
        started_s = STARTED_S * math.exp(rng.gauss(0, 0.1))
        return ProcessTotals(
            calls,
            outer_s * waited,
            inner_s * waited,
            outer_s + started_s + burnt_s if counts_cpu else None,
            inner_s if counts_cpu else None,
        )

    base = run(CALLS, CALL_S), run(2 * CALLS, CALL_S)
    call_s = CALL_S / speed
    other = run(CALLS, call_s, hidden_s, burn_s), run(2 * CALLS, call_s, hidden_s)
    return ProcessBlock(base, other)


def decide(claim, seed, **options):
    """What is decided, look by look, as whole processes are run."""
    rng = random.Random(seed)
    blocks = []
    for count in range(1, LOOKS[-1] + 1):
        blocks.append(make_block(rng, **options))
        is_last = count == LOOKS[-1]
        if count in LOOKS:
            state = reconcile(blocks, claim, is_last=is_last)
            if is_last or state.verdict != TotalVerdict.UNCLEAR:
                return state.verdict, count
    raise AssertionError


def rates(claim, **options):
    found = [decide(claim, seed, **options) for seed in range(COMPARISONS)]
    verdicts = [verdict for verdict, _ in found]
    mean = sum(count for _, count in found) / len(found)
    return {verdict: verdicts.count(verdict) / len(found) for verdict in TotalVerdict}, mean


@pytest.mark.parametrize(
    ("speed", "options"),
    [
        (2.0, {}),
        (1.3, {}),
        (30.0, {"reading": 10.0}),
        (2.0, {"noise": 0.1, "load": 3.0}),
        (2.0, {"counts_cpu": False}),
        (1.05, {}),
    ],
)
def test_honest_candidates_are_hardly_ever_contradicted(speed, options):
    claim = SavingClaim(speed, 1 + 0.9 * (speed - 1), speed)
    shares, _ = rates(claim, speed=speed, **options)
    assert shares[TotalVerdict.CONTRADICTED] <= 0.01


@pytest.mark.parametrize(("speed", "most"), [(2.0, 3.2), (10.0, 3.1), (1.3, 8.0)])
def test_large_honest_claims_are_confirmed_after_few_blocks(speed, most):
    shares, blocks = rates(SavingClaim(speed, speed, speed), speed=speed, noise=0.02)
    assert shares[TotalVerdict.CONFIRMED] > 0.98
    assert blocks < most


@pytest.mark.parametrize(
    ("claimed", "options"),
    [
        (79.0, {"speed": 79.0, "hidden_s": CALL_S}),  # all work outside of samples
        (1.6, {"speed": 1.0}),  # the base was slowed down in sessions
        (26.0, {"speed": 26.0, "hidden_s": CALL_S, "reading": 10.0, "noise": 0.01}),
        (2.0, {"speed": 2.0, "hidden_s": 0.6 * CALL_S, "counts_cpu": False}),
    ],
)
def test_savings_that_are_only_moved_are_never_confirmed(claimed, options):
    shares, _ = rates(SavingClaim(claimed, claimed, claimed), **options)
    assert shares[TotalVerdict.CONFIRMED] <= 0.01
    assert shares[TotalVerdict.CONTRADICTED] > 0.9


def test_short_processes_that_are_lengthened_don_t_hide_work():
    burn_s = CALLS * CALL_S  # so that CPU time doesn't grow with the number of calls
    claim = SavingClaim(50.0, 50.0, 50.0)
    options = {"speed": 50.0, "hidden_s": CALL_S, "burn_s": burn_s}
    assert rates(claim, **options)[0][TotalVerdict.CONFIRMED] == 0


def test_a_claim_that_is_uncertain_is_contradicted_only_by_its_lower_bound():
    rng = random.Random(4)
    blocks = [make_block(rng, 1.2, noise=0.005) for _ in range(8)]
    sure = SavingClaim(2.0, 1.9, None)
    assert reconcile(blocks, sure, is_last=True).verdict == TotalVerdict.CONTRADICTED
    unsure = replace(sure, low=1.15)
    assert reconcile(blocks, unsure, is_last=True).verdict != TotalVerdict.CONTRADICTED


def test_cpu_time_decides_on_a_busy_machine_and_only_where_it_tells_the_same_story():
    rng = random.Random(2)
    blocks = [make_block(rng, 2.0, noise=0.02) for _ in range(6)]
    noisy = [
        replace(
            block,
            base=tuple(replace(run, wall_s=run.wall_s * rng.uniform(1, 9)) for run in block.base),
        )
        for block in blocks
    ]
    state = reconcile(noisy, SavingClaim(2.0, 1.9, 2.0), is_last=True)
    assert (state.verdict, state.shown.clock) == (TotalVerdict.CONFIRMED, "cpu")
    waits = reconcile(noisy, SavingClaim(2.0, 1.9, 1.1), is_last=True)
    assert waits.shown.clock == "wall"


def test_too_few_blocks_decide_nothing():
    block = make_block(random.Random(1), 2.0)
    state = reconcile([block], SavingClaim(2.0, 2.0, 2.0), is_last=True)
    assert state.verdict == TotalVerdict.UNCLEAR
    assert (state.shown.low, state.shown.high) == (-math.inf, math.inf)
