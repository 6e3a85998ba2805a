"""Calls per sample and rounds per session, with a simulated clock."""

import math
import random
import re
from dataclasses import replace
from types import SimpleNamespace

import anyio
import pytest
from clock_kit import SimWorker, make_inputs
from hypothesis import given, strategies as st

from fairtrial.arena import Benchmark
from fairtrial.arena.timing.calibration import (
    FEWEST_ROUNDS,
    MEDIAN_COST,
    MOST_BYTES,
    MOST_CALLS,
    MOST_PREPARING,
    MOST_ROUNDS,
    SAMPLE_S,
    SESSION_SPREAD,
    SESSIONS,
    TRIED_S,
    USUAL_ROUNDS,
    Pace,
    SampleChoice,
    Turn,
    calibrate,
    choose_rounds,
    choose_schedule,
    explain_misfit,
    find_pace,
    find_sample,
    spell_above,
)
from fairtrial.arena.timing.function_benchmark import _base_error
from fairtrial.arena.timing.session import ArmError
from fairtrial.arena.timing.worker_channel import ChannelError, ChannelTimeoutError
from fairtrial.core import MisfitError
from fairtrial.sandbox import Captured, Completed, Ending


def measure_pace(padding=0, **worker):
    """The pace of a simulated base, and how many calls of it were asked for at once at most."""
    sim = SimWorker(**worker)
    made = []

    def more(count):
        made.append(count)
        return [b" " * padding + line for line in make_inputs(count, sum(made))]

    pace = calibrate({"base": sim}, job=b"job", first=make_inputs(1), more=more)
    return pace, sim, made


def pace_of(call_s=1e-3, **more):
    given = {"turn_s": 1e-5, "empty_s": 3e-5, "load_s": 0.02, "input_bytes": 100.0}
    return Pace(call_s=call_s, outcome={}, start_s=0.08, **{**given, **more})


@pytest.mark.parametrize("call_s", [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.3, 5.0])
def test_the_base_s_pace_is_found_whatever_a_call_takes(call_s):
    pace, sim, made = measure_pace(call_s=call_s, cold=1)
    assert pace.call_s == pytest.approx(call_s, rel=1e-6)
    assert pace.empty_s == pytest.approx(sim.reply_s)
    assert pace.load_s == 0.25
    assert pace.outcome["result"] == 0  # of the first input
    assert pace.lasted_s >= 0.25 + call_s
    assert sum(made) >= 1
    # No more calls than it takes to know how long one takes, and which samples are best.
    assert sim.largest * call_s <= max(2 * max(TRIED_S), 2 * call_s)
    assert sim.largest <= MOST_CALLS


def test_noise_changes_little():
    pace, _, _ = measure_pace(call_s=1e-5, spread=0.1)
    assert pace.call_s == pytest.approx(1e-5, rel=0.5)


@pytest.mark.parametrize("late_s", [1e-3, 0.03, 2.0])
def test_other_programs_during_empty_turns_make_no_call_seem_infinitely_fast(late_s):
    class Waiting(SimWorker):
        """Gets the core late where it has nothing to do, and at once where it has."""

        def _do(self, letter, payload):
            wall_s, cpu_s, answer = super()._do(letter, payload)
            waits = letter == b"G" and not self._cases
            return wall_s + waits * late_s, cpu_s, answer

    sim = Waiting(call_s=4e-4)
    pace = calibrate({"base": sim}, job=b"job", first=make_inputs(1), more=make_inputs)
    assert pace.call_s == pytest.approx(4e-4, rel=0.6)
    assert choose_schedule(pace, b"", 600.0).calls <= 10


def test_what_is_around_a_call_is_its_own_figure():
    pace, _, _ = measure_pace(call_s=1e-4, decode_s=2e-3, encode_s=1e-3)
    assert pace.turn_s == pytest.approx(3e-3, rel=0.05)


def test_a_call_that_takes_no_time_ends_at_the_most_calls():
    pace, sim, _ = measure_pace(call_s=1e-12, decode_s=1e-9, encode_s=1e-9)
    assert sim.largest == MOST_CALLS
    assert pace.call_s > 0


def test_slow_decoding_ends_it_early():
    _, sim, _ = measure_pace(call_s=1e-7, decode_s=0.1)
    assert sim.largest < 100


def test_large_inputs_are_not_asked_for_by_the_thousand():
    _, sim, made = measure_pace(call_s=1e-7, decode_s=1e-9, padding=2**20)
    assert max(made) * 2**20 <= MOST_BYTES
    assert sim.largest == MOST_BYTES // (2**20 + 23)


def test_the_size_of_an_input_is_the_mean():
    pace, _, _ = measure_pace(padding=1000)
    assert pace.input_bytes == pytest.approx(1023, abs=3)


@pytest.mark.parametrize(
    "error", [ChannelError("it ended before it was done"), ChannelTimeoutError("late")]
)
@pytest.mark.parametrize("at", [(b"L", 0), (b"I", 0), (b"G", 0), (b"C", 3)])
def test_a_base_that_dies_or_hangs_is_reported_as_such(error, at):
    with pytest.raises(ArmError, match=str(error)) as stop:
        measure_pace(errors={at: error})
    assert (stop.value.arm, stop.value.error) == ("base", error)


def test_a_base_that_can_not_be_loaded_is_reported_with_its_traceback():
    told = b'{"failed": {}, "traceback": "Traceback\\n  File\\nNameError: x\\n"}'
    with pytest.raises(ArmError, match=re.escape("Traceback | File | NameError: x")):
        measure_pace(answers={b"L": told})


# -- the schedule --


@pytest.mark.parametrize(
    ("call_s", "calls"), [(1e-8, MOST_CALLS), (1e-6, 250), (1e-5, 25), (1e-4, 2), (0.1, 1)]
)
def test_a_sample_takes_a_quarter_of_a_millisecond_or_a_call(call_s, calls):
    schedule = choose_schedule(pace_of(call_s, turn_s=call_s, input_bytes=10), b"job", 60.0)
    assert schedule.calls == pytest.approx(calls, rel=1e-3)
    assert (schedule.job, schedule.discarded) == (b"job", 1)


@pytest.mark.parametrize(
    ("call_s", "budget_s", "rounds"),
    [(5.0, 20.0, None), (5.0, 170.0, None), (5.0, 190.0, 3), (5.0, 1e4, 11), (0.1, 20.0, 11)],
)
def test_slow_calls_have_as_few_rounds_as_the_budget_holds(call_s, budget_s, rounds):
    schedule = choose_schedule(pace_of(call_s), b"", budget_s)
    assert (schedule and schedule.rounds) == rounds
    assert (schedule is None) == (pace_of(call_s).least_s() > budget_s)


def test_where_decoding_is_slow_a_sample_has_fewer_calls():
    slow = choose_schedule(pace_of(1e-6, turn_s=1e-3), b"", 60.0)
    assert slow.calls == int(MOST_PREPARING * SAMPLE_S / 1e-3)
    assert choose_schedule(pace_of(1e-6, turn_s=1.0), b"", 600.0).calls == 1


def test_where_inputs_are_large_a_sample_has_fewer_calls():
    schedule = choose_schedule(pace_of(1e-6, input_bytes=1e5), b"", 60.0)
    assert 1 < schedule.calls < 25
    assert schedule.calls * schedule.rounds * 1e5 <= MOST_BYTES


def test_where_starting_is_dear_a_session_has_more_rounds():
    rounds = [
        choose_schedule(pace_of(1e-3, load_s=load_s), b"", 600.0).rounds
        for load_s in (0.02, 0.3, 1.0, 5.0, 30.0)
    ]
    assert rounds == sorted(rounds)
    assert USUAL_ROUNDS < rounds[0] < rounds[1] < rounds[-1] <= MOST_ROUNDS


@pytest.mark.parametrize(("noise", "more"), [(0.002, False), (0.1, True)])
def test_a_noisy_machine_gets_more_rounds(noise, more):
    usual = choose_schedule(pace_of(1e-4, sample=choice(0.05)), b"", 600.0)
    other = choose_schedule(pace_of(1e-4, sample=choice(noise)), b"", 600.0)
    assert (other.rounds > usual.rounds) == more
    assert usual.calls == other.calls == 4


@given(st.floats(0.003, 0.3), st.floats(0.05, 2.0), st.floats(-4, 0).map(lambda power: 10**power))
def test_no_other_number_of_rounds_is_better(noise, start_s, round_s):
    chosen = choose_rounds(pace_of(sample=choice(noise)), start_s, round_s)

    def cost(rounds):
        variance = SESSION_SPREAD**2 + MEDIAN_COST * noise**2 / rounds
        return variance * (start_s + rounds * round_s)

    for other in (chosen - 1, chosen + 2):
        if USUAL_ROUNDS <= other <= MOST_ROUNDS:
            assert cost(chosen) <= cost(other) * (1 + 1e-3)


# -- the length of a sample --


def choice(noise, seconds=4e-4):
    return SampleChoice(seconds, noise, 1e-3)


def turns_with(noise, wall_s, seed=1):
    """Turns of one length, whose successive ones differ by about `noise`."""
    rng = random.Random(seed)
    walls = [wall_s * math.exp(rng.gauss(0, noise / math.sqrt(2))) for _ in range(24)]
    return [Turn(wall, 1e-5, wall + 1e-4) for wall in walls]


def test_the_shorter_sample_is_chosen_where_longer_ones_are_as_noisy():
    tried = {calls: turns_with(0.05, calls * 1e-4, calls) for calls in (1, 4, 16)}
    found = find_sample(tried, 1e-4)
    assert found.seconds == pytest.approx(1e-4)
    assert found.noise == pytest.approx(0.05, rel=0.6)


def test_the_longer_sample_is_chosen_where_it_is_much_less_noisy():
    noises = {1: 0.2, 4: 0.02, 16: 0.02}
    tried = {calls: turns_with(noise, calls * 1e-4) for calls, noise in noises.items()}
    assert find_sample(tried, 1e-4).seconds == pytest.approx(4e-4)


def test_a_few_interrupted_samples_are_not_noise():
    quiet = turns_with(0.01, 1e-4)
    hit = [replace(turn, wall_s=9e-3) if at in (5, 17) else turn for at, turn in enumerate(quiet)]
    assert find_sample({1: hit}, 1e-4).noise < 0.03


def test_a_call_too_slow_to_be_tried_has_a_sample_of_its_own():
    pace, _, _ = measure_pace(call_s=0.3)
    assert pace.sample is None
    assert choose_schedule(pace, b"", 600.0).calls == 1


def test_the_base_s_own_noise_decides_how_long_samples_are():
    pace, _, _ = measure_pace(call_s=1e-5, spread=0.05)
    assert pace.sample.noise == pytest.approx(0.07, rel=0.6)
    assert pace.sample.seconds == pytest.approx(1e-4, rel=0.3)


def test_a_reply_may_take_a_hundred_times_as_long_as_the_base_s():
    assert choose_schedule(pace_of(1e-3), b"", 60.0).timeout_s == 10.0
    schedule = choose_schedule(pace_of(1.0), b"", 1e4)
    assert schedule.timeout_s == pytest.approx(100 * (1.0 + 1e-5 + 0.02))


logarithmic = st.floats(-9, 1.5).map(lambda power: 10**power)
PACES = st.builds(
    Pace,
    call_s=logarithmic,
    turn_s=st.floats(-8, 0).map(lambda power: 10**power),
    empty_s=st.floats(-6, -3).map(lambda power: 10**power),
    load_s=st.floats(-3, 1.5).map(lambda power: 10**power),
    input_bytes=st.floats(1.3, 8).map(lambda power: 10**power),
    outcome=st.just({}),
    start_s=st.floats(-2, 1).map(lambda power: 10**power),
)


@given(PACES, st.floats(0, 4).map(lambda power: 10**power))
def test_whatever_the_pace_a_budget_holds_the_sessions_of_the_first_look(pace, budget_s):
    schedule = choose_schedule(pace, b"", budget_s)
    if schedule is None:
        assert pace.least_s() > budget_s * (1 - 1e-9)
        return
    assert SESSIONS * pace.session_s(schedule) <= budget_s * (1 + 1e-9)
    assert 1 <= schedule.calls <= MOST_CALLS
    assert FEWEST_ROUNDS <= schedule.rounds <= MOST_ROUNDS
    assert schedule.calls == 1 or (
        schedule.calls * schedule.rounds * pace.input_bytes <= MOST_BYTES
    )
    assert schedule.calls == 1 or schedule.calls * pace.call_s <= SAMPLE_S + pace.call_s / 2
    assert schedule.timeout_s >= 10.0
    assert schedule.timeout_s >= 100 * schedule.calls * pace.call_s
    assert schedule.discarded < schedule.rounds


@given(PACES, st.floats(0, 3).map(lambda power: 10**power), st.floats(1, 10))
def test_a_larger_budget_never_refuses_what_a_smaller_holds(pace, budget_s, factor):
    if choose_schedule(pace, b"", budget_s) is not None:
        larger = choose_schedule(pace, b"", budget_s * factor)
        assert larger is not None
        assert larger.rounds >= choose_schedule(pace, b"", budget_s).rounds


def test_samples_get_shorter_before_a_budget_is_refused():
    pace = pace_of(1e-4, turn_s=0.001, empty_s=1e-3, load_s=0.01)
    assert choose_schedule(pace, b"", 60.0).calls == 2
    short = choose_schedule(pace, b"", pace.least_s() * 1.01)
    assert (short.calls, short.rounds) == (1, FEWEST_ROUNDS)


def test_the_least_budget_is_one_that_is_enough():
    for call_s in (0.5, 1.0, 7.0):
        pace = pace_of(call_s)
        least_s = pace.least_s()
        assert math.isfinite(least_s)
        assert choose_schedule(pace, b"", least_s * 0.99) is None
        assert choose_schedule(pace, b"", least_s * 1.01) is not None


# -- what doesn't fit --


def find_among(paces, budget_s):
    """What is found where the base's pace is measured as these say; and how many were needed."""
    left = list(paces)

    async def measure():
        return left.pop(0)

    return anyio.run(find_pace, measure, budget_s), len(paces) - len(left)


def test_a_noisy_moment_is_measured_again():
    quiet, noisy = pace_of(1e-3), pace_of(13e-3, load_s=0.5)
    assert quiet.least_s() < 6 < noisy.least_s()
    assert find_among([quiet, noisy], 6.0) == (quiet, 1)
    assert find_among([noisy, quiet, noisy], 6.0) == (quiet, 2)
    assert find_among([noisy, noisy, quiet], 6.0) == (quiet, 3)
    assert find_among([noisy, noisy, noisy, quiet], 6.0) == (noisy, 3)
    slow = pace_of(10.0)
    assert find_among([slow, quiet], 6.0) == (slow, 1), "no noise makes it that slow"


def test_a_misfit_says_what_takes_the_time_and_what_helps():
    message, hint = explain_misfit(pace_of(0.36e-3, load_s=0.52), 7.0)
    assert "starting two workers takes 1.2 s and 6 calls 0.0028 s" in message
    assert "need 7.2 s, and budget_s is 7" in message
    assert hint.startswith("budget_s: 15, or a machine with less to do")
    assert "smaller inputs don't help" in hint
    message, hint = explain_misfit(pace_of(1.0), 20.0)
    assert "starting two workers takes 0.2 s and 6 calls 6 s" in message
    assert hint == "smaller inputs, or budget_s: 75"


@given(st.floats(0.01, 1e5), st.floats(1e-9, 10.0))
def test_a_number_above_a_bound_is_seen_to_be(bound, more):
    assert float(spell_above(bound + more, bound)) > bound or bound + more == bound
    assert spell_above(3.04, 3) == "3.04"
    assert spell_above(7.3, 6) == "7.3"
    assert spell_above(73.4, 60) == "73"


def test_a_base_that_takes_longer_than_its_budget_is_no_broken_one():
    nothing = Captured()
    done = Completed(Ending.TIMEOUT, None, 9, nothing, nothing, b"", False, 20.0, 0.1, 9.0)
    talked = SimpleNamespace(
        failure=ArmError("base", "it ended before it was done"),
        done={"base": done},
        commands={"base": SimpleNamespace(timeout_s=20.0)},
    )
    error = _base_error(Benchmark("b", "m:f", "i.py:g"), talked, None, 20.0)
    assert isinstance(error, MisfitError)
    assert str(error) == (
        "bench.b: on the base, its first calls were not done after 20 s, and 6 sessions, the "
        "fewest that can decide anything, make 36 of them within budget_s (20); smaller inputs, or "
        "a larger budget_s"
    )
