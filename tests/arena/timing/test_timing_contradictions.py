"""Totals, slowest samples and start-up beside the median: what keeps a gain from being adopted."""

import json
import math
import random
from dataclasses import replace

import anyio
import msgspec
import pytest
from clock_kit import changes_of, make_replicates

from fairtrial.arena import (
    Benchmark,
    Check,
    CodeProblem,
    Judgement,
    Pair,
    Sample,
    Session,
    Verdict,
    describe_measurement,
)
from fairtrial.arena.checks.encoded_values import TAG
from fairtrial.arena.model.timings import SlowInput
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.arena.timing.decision import DecisionRules, measure, race
from fairtrial.arena.timing.slow_inputs import describe_input, find_slow_inputs
from fairtrial.arena.timing.summary import summarize
from fairtrial.arena.timing_phase import timing_rules
from fairtrial.core import StudyError, dump_record

RULES = {"alpha": 0.05, "min_effect": 0.02}
ROUNDS = 10
CHECK = (Check(command=("true",)),)


def draw_session(rng, number, *, gain=1.2, share=0.0, times=20.0, noise=0.005, spikes=0.0, **more):
    """A session with inputs of its own, some of which take the candidate `times` as long.

    noise: standard deviation of each sample and of each process
    spikes: the share of samples of both arms that take half as long again on average
    """
    samples = []
    own = {arm: rng.gauss(0, noise) for arm in ("base", "candidate")}
    for turn in range(ROUNDS):
        factor = times if rng.random() < share else 1 / gain
        for place, arm in enumerate(own):
            seconds = 2e-3 * math.exp(own[arm] + rng.gauss(0, noise))
            seconds *= factor if arm == "candidate" else 1.0
            if rng.random() < spikes:
                seconds *= 1 + rng.expovariate(2.0)
            samples.append(Sample(turn, place, arm, 1, seconds, seconds))
    inputs = [json.dumps({"args": [[0] * at], "kwargs": {}}).encode() for at in range(ROUNDS + 1)]
    slow = find_slow_inputs(samples, inputs, number)
    return Session("b", number, tuple(samples), 0.1, slow_inputs=slow, **more)


def draw_replicates(count=16, seed=1, **noise):
    rng = random.Random(f"{seed}/{sorted(noise)}")
    return [(draw_session(rng, number, **noise),) for number in range(count)]


class RoundTimer:
    """A `Timer` of candidates with input by input times."""

    def __init__(self, seed=1, **candidates):
        self.seed, self.candidates, self.log = seed, candidates, []

    async def run(self, changes, label, first, count, budget_s):
        noise = self.candidates[changes.digest]
        self.log.append((changes.digest, label, count))
        return SessionBatch(
            [
                (draw_session(random.Random(f"{self.seed}/{label}/{number}"), number, **noise),)
                for number in range(first, first + count)
            ]
        )


def time_one(seed=1, budget_s=100.0, **noise):
    rules = DecisionRules(alpha=0.05, min_effect=0.02, budget_s=budget_s)
    timer = RoundTimer(seed, a=noise)
    return anyio.run(lambda: measure(timer, "a", changes_of("a"), rules))


RARELY_SLOW = {"gain": 1.2, "share": 0.04, "times": 20.0}


def test_a_candidate_that_is_rarely_slow_is_not_adopted_although_its_median_is_faster():
    found = summarize(draw_replicates(**RARELY_SLOW), **RULES)
    (timing,) = found.timings
    assert found.verdict == Verdict.FASTER
    assert found.estimate.ratio == pytest.approx(1.2, rel=0.02)
    assert timing.total.ratio < 1
    assert timing.tail.ratio < 0.5
    assert not found.adopt
    assert any("its slowest tenth of samples is slower than the base's" in v for v in found.vetoes)
    assert "b: by the median it is 1.2" in found.vetoes[0]
    assert "in total" in found.vetoes[0]


def test_the_inputs_on_which_it_is_slower_are_named():
    found = summarize(draw_replicates(**RARELY_SLOW), **RULES)
    worst = found.timings[0].slow_inputs[0]
    assert worst.growth == pytest.approx(20, rel=0.1)
    assert worst.what == f"list of {worst.first}"
    assert len(found.timings[0].slow_inputs) <= 5
    told = f"slower on input {worst.first} of session {worst.session} (list of {worst.first}):"
    assert told in found.vetoes[0]
    assert "times as long" in found.vetoes[0]


def test_most_rarely_slow_candidates_are_refused_and_sessions_go_on_until_that_is_clear():
    found = [time_one(seed, **RARELY_SLOW) for seed in range(8)]
    assert sum(result.adopt for result in found) <= 2  # those without a slow input in 60 rounds
    for result in found:
        if not result.adopt:
            assert result.verdict == Verdict.FASTER
            assert result.vetoes
            assert result.estimate.sessions > 6


def test_one_that_is_slower_on_average_by_little_is_refused_too():
    found = [time_one(seed, gain=1.2, share=0.1, times=3.0) for seed in range(5)]
    assert sum(result.adopt for result in found) <= 1


def test_honest_candidates_on_a_machine_with_heavy_tails_are_adopted():
    found = [time_one(seed, gain=1.1, noise=0.01, spikes=0.1) for seed in range(20)]
    assert sum(result.adopt for result in found) >= 19
    assert sum(result.estimate.sessions for result in found) / 20 < 16


def test_a_gain_that_total_time_leaves_open_is_no_reason_to_leave_the_race():
    timer = RoundTimer(3, a={"gain": 1.1, "noise": 0.01, "spikes": 0.2}, b={"gain": 0.8})
    rules = DecisionRules(alpha=0.05, min_effect=0.02, budget_s=100.0)
    entries = {name: changes_of(name) for name in timer.candidates}
    found = anyio.run(lambda: race(timer, entries, rules))
    assert found["a"].is_confirmed
    assert found["a"].verdict == Verdict.FASTER


def test_a_rarely_slow_candidate_does_not_win_a_race():
    timer = RoundTimer(2, quick={**RARELY_SLOW, "share": 0.08}, steady={"gain": 1.1})
    rules = DecisionRules(alpha=0.05, min_effect=0.02, budget_s=100.0)
    entries = {name: changes_of(name) for name in timer.candidates}
    found = anyio.run(lambda: race(timer, entries, rules))
    assert not found["quick"].adopt
    assert found["quick"].vetoes
    assert found["steady"].adopt


def test_the_ratio_of_totals_stands_beside_the_median_in_text_and_json():
    found = summarize(draw_replicates(**RARELY_SLOW), **RULES)
    text = " ".join(describe_measurement(found).remarks)
    assert " by the median, 0." in text
    assert " in total [" in text
    assert " in the slowest tenth" in text
    assert describe_measurement(found).recommendation == "don't adopt"
    judgement = Judgement("a", "d", found.verdict, measurement=found)
    (timing,) = json.loads(json.dumps(judgement.as_dict()))["timings"]
    assert timing["total"]["ratio"] == found.timings[0].total.ratio
    assert timing["tail"]["confidence"] == 0.9
    assert timing["slow_inputs"][0]["what"].startswith("list of ")
    assert timing["serial_correlation"] == found.timings[0].serial_correlation


def test_fewer_than_twenty_rounds_have_no_tail():
    replicates = make_replicates([-0.4 + 0.001 * at for at in range(6)], rounds=2)
    assert summarize(replicates, **RULES).timings[0].tail is None
    assert summarize(replicates, **RULES).timings[0].total.ratio == pytest.approx(1.49, rel=0.01)


@pytest.mark.parametrize(
    ("args", "kwargs", "what"),
    [
        ([[1, 2, 3], 7], {}, "list of 3, 7"),
        (["x" * 500], {"key": None}, "text of 500 characters, key=None"),
        ([{"a": 1}, {"~": "set", "items": [1, 2]}], {}, None),
        ([], {}, "no arguments"),
        ([1, 2, 3, 4, 5], {}, "1, 2, 3, 4, ..."),
        ([{TAG: "bytes", "value": "QUJD" * 40}], {}, "bytes of 120"),
    ],
)
def test_inputs_are_described_by_type_and_size(args, kwargs, what):
    described = describe_input({"args": args, "kwargs": kwargs})
    assert described == what or (what is None and described.startswith("dict of 1"))
    assert describe_input({}) == "an input that can't be read"


def test_a_sample_that_other_programs_disturbed_is_no_slow_input():
    walls = [Sample(0, 0, "base", 1, 1e-3, 1e-3), Sample(0, 1, "candidate", 1, 9e-3, 1e-3)]
    inputs = [b'{"args":[1],"kwargs":{}}'] * 2
    assert find_slow_inputs(walls, inputs, 0) == ()
    busy = [walls[0], replace(walls[1], cpu_s=9e-3)]
    (slow,) = find_slow_inputs(busy, inputs, 3)
    assert slow == SlowInput(3, 1, 1, pytest.approx(9.0), "1")


def test_the_inputs_of_a_sample_of_several_calls_are_described_together():
    samples = [Sample(0, 0, "base", 4, 1e-3, 1e-3), Sample(0, 1, "candidate", 4, 9e-3, 9e-3)]
    sizes = [9, 7, 7, 8, 7]
    inputs = [json.dumps({"args": [[0] * size], "kwargs": {}}).encode() for size in sizes]
    (slow,) = find_slow_inputs(samples, inputs, 0)
    assert (slow.first, slow.calls) == (1, 4)
    assert slow.what == "1 × list of 8, 3 × list of 7"


# -- start-up --


def start_up(candidate_s, limits=None, gain=1.2):
    replicates = draw_replicates(gain=gain, startup_s=Pair(0.2, candidate_s))
    return summarize(replicates, **RULES, startup_limits=limits or {})


def test_the_veto_of_a_slow_start_says_after_how_many_calls_it_pays():
    found = start_up(1.0)
    (veto,) = found.vetoes
    saved_s = found.timings[0].base_s * (1 - 1 / found.timings[0].estimate.ratio)
    assert found.timings[0].pays_after == math.ceil(0.8 / saved_s)
    assert found.timings[0].startup_extra_s == pytest.approx(0.8)
    assert "it takes 5.00 times as long as the base to start and get going (0.8 s more)" in veto
    assert "it pays after 2,500 calls" in veto
    assert "max_startup_ratio (1.2)" in veto


def test_a_compiled_candidate_is_adopted_if_its_start_is_allowed():
    found = start_up(1.0, {"b": 10.0})
    assert (found.vetoes, found.adopt) == ((), True)
    assert found.timings[0].startup == pytest.approx(5.0)
    assert "it pays after" in " ".join(describe_measurement(found).remarks)
    assert start_up(1.0, {"other": 10.0}).vetoes
    assert start_up(2.4, {"b": 10.0}).vetoes


def test_a_slow_start_of_slower_code_never_pays():
    found = start_up(1.0, gain=0.8)
    assert found.timings[0].pays_after is None
    assert "it never pays" in found.vetoes[0]


def test_the_limit_of_a_benchmark_reaches_the_decision():
    bench = (
        Benchmark("b", "m:f", "i.py:g", max_startup_ratio=6.0),
        Benchmark("c", "m:f", "i.py:g"),
    )
    assert timing_rules(CodeProblem("p", check=CHECK, bench=bench)).startup_limits == {
        "b": 6.0,
        "c": 1.2,
    }


@pytest.mark.parametrize("limit", [0.9, 0.0, -1.0, math.nan])
def test_a_limit_below_one_is_a_mistake(limit):
    with pytest.raises(StudyError, match="max_startup_ratio"):
        Benchmark("b", "m:f", "i.py:g", max_startup_ratio=limit)


def test_a_limit_changes_the_fingerprint_of_a_problem_only_if_it_is_set():
    bench = Benchmark("b", "m:f", "i.py:g")
    plain, changed = (
        CodeProblem("p", check=CHECK, bench=(each,))
        for each in (bench, replace(bench, max_startup_ratio=2.0))
    )
    assert "max_startup_ratio" not in plain.identity()["bench"][0]
    assert changed.identity()["bench"][0]["max_startup_ratio"] == 2.0
    assert dump_record(plain)["bench"][0]["max_startup_ratio"] == 1.2


def test_stored_timings_without_the_new_figures_still_load():
    found = summarize(make_replicates([-0.4] * 6), **RULES)
    judgement = Judgement("a", "d", found.verdict, measurement=replace(found, sessions=()))
    stored = msgspec.to_builtins(judgement)
    assert msgspec.convert(stored, Judgement) == judgement
    later = ["total", "tail", "slow_inputs", "startup_extra_s", "pays_after", "serial_correlation"]
    for name in later:
        del stored["measurement"]["timings"][0][name]
    (timing,) = msgspec.convert(stored, Judgement).measurement.timings
    assert (timing.total, timing.tail, timing.slow_inputs) == (None, None, ())
    assert timing.estimate == found.timings[0].estimate
