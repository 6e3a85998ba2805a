"""Sessions with a simulated clock."""

import json
import math
import random
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise

import anyio
import pytest
from clock_kit import SCHEDULE, SimWorker, double, make_inputs, make_pair, never_differs
from hypothesis import given, strategies as st

from fairtrial.arena import Benchmark, Check, Pair, Reason
from fairtrial.arena.timing import function_benchmark as calls
from fairtrial.arena.timing.calibration import Pace
from fairtrial.arena.timing.function_benchmark import FunctionBenchmark
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.arena.timing.session import (
    EMPTY_TURNS,
    ENOUGH_ROUNDS,
    ArmError,
    take_turns,
)
from fairtrial.arena.timing.stats.session_ratio import session_cpu_ratio, session_ratio
from fairtrial.arena.timing.worker_channel import ChannelError, ChannelTimeoutError
from fairtrial.arena.timing.workers import WorkResult
from fairtrial.core import LabError
from fairtrial.sandbox.harness import packing

COUNT = 1 + SCHEDULE.calls * SCHEDULE.rounds


def take(channels, *, schedule=SCHEDULE, seed=1, differ=never_differs):
    inputs = make_inputs(1 + schedule.calls * schedule.rounds)
    return take_turns(channels, schedule, inputs, random.Random(seed), differ)


def arms_of(turns):
    """Who came first and second in each round."""
    rounds = {}
    for sample in turns.samples:
        if sample.calls:
            rounds.setdefault(sample.round, {})[sample.position] = sample.arm
    return [(rounds[item][0], rounds[item][1]) for item in sorted(rounds)]


@pytest.mark.parametrize("seed", range(4))
def test_rounds_go_there_and_back(seed):
    _, channels = make_pair()
    first, *rest = arms_of(take(channels, seed=seed))
    assert rest == [first[::-1], first, first[::-1]]


def test_either_may_begin():
    counts = Counter(arms_of(take(make_pair()[1], seed=seed))[0][0] for seed in range(60))
    assert min(counts["base"], counts["candidate"]) > 15


def test_what_is_asked_and_in_which_order():
    log, channels = make_pair()
    first, other = arms_of(take(channels))[0]
    asked = [(arm, letter) for arm, letter, _ in log]
    turn = [b"I", b"G", b"C"]
    both = [("base", b"V"), ("candidate", b"V")]
    opening = [
        (first, b"L"),
        (other, b"L"),
        *((arm, one) for arm in (first, other) for one in turn),
        *both,
    ]
    assert asked[:10] == opening
    empty = [(arm, one) for arm in (first, other) for one in (b"I", b"G")] * EMPTY_TURNS
    assert asked[10 : 10 + len(empty)] == empty
    rounds = [
        [(arm, one) for arm in arms for one in turn]
        for arms in ((first, other), (other, first)) * 2
    ]
    # The results of one round, drawn by chance, are read in full.
    rest = asked[10 + len(empty) :]
    audits = [index for index, entry in enumerate(rest) if entry == ("base", b"V")]
    assert audits[0] % 6 == 0
    assert rest[audits[0] : audits[0] + 2] == both
    del rest[audits[0] : audits[0] + 2]
    assert rest == [entry for part in rounds for entry in part]


def test_which_round_is_read_in_full_is_left_to_chance():
    audited = Counter()
    for seed in range(60):
        log, channels = make_pair()
        take(channels, seed=seed)
        letters = [letter for arm, letter, _ in log if arm == "base"]
        audited[letters[: len(letters) - letters[::-1].index(b"V")].count(b"C")] += 1
    assert set(audited) == {2, 3, 4, 5}  # turns of the base until then; the first is the warm-up


def test_equal_digests_of_other_results_are_found_by_the_audit():
    """A worker that forges its digest can't know which results will be read."""
    log, channels = make_pair(function=odd_from(1))
    honest, forger = channels["base"], channels["candidate"]

    class Forger(SimWorker):
        def ask(self, letter, payload=b"", *, timeout_s):
            reply = super().ask(letter, payload, timeout_s=timeout_s)
            return replace(reply, payload=self.copied()) if letter == b"C" else reply

        def copied(self):
            told = "\n".join(json.dumps(double(json.loads(case))) for case in self._cases)
            digest = packing.digest(told.encode())
            return packing.pack_summary(digest, len(self._cases), 0.0)

    channels["candidate"] = Forger("candidate", log, function=forger.function)
    turns = take({"base": honest, "candidate": channels["candidate"]}, differ=lambda *_: True)
    assert turns.differing is not None


def test_both_get_the_same_inputs_and_each_input_once():
    log, channels = make_pair()
    take(channels)
    given = {
        arm: [payload for who, letter, payload in log if (who, letter) == (arm, b"I") and payload]
        for arm in channels
    }
    assert given["base"] == given["candidate"]
    assert [line for turn in given["base"] for line in turn.split(b"\n")] == make_inputs(COUNT)
    assert [len(turn.split(b"\n")) for turn in given["base"]] == [1] + [SCHEDULE.calls] * 4


@given(
    st.integers(1, 7), st.integers(1, 9), st.integers(0, 3), st.integers(0, 99), st.floats(0, 0.5)
)
def test_any_schedule_gives_all_samples_in_order(calls, rounds, discarded, seed, spread):
    schedule = replace(SCHEDULE, calls=calls, rounds=rounds, discarded=discarded)
    log, channels = make_pair({"spread": spread}, spread=spread)
    turns = take(channels, schedule=schedule, seed=seed)
    empty, timed = turns.samples[:EMPTY_TURNS], turns.samples[EMPTY_TURNS:]
    assert {(item.round, item.calls, item.arm, item.is_kept) for item in empty} == {
        (-1, 0, "base", False)
    }
    assert [(entry.round, entry.position) for entry in timed] == [
        (number, place) for number in range(rounds) for place in (0, 1)
    ]
    assert all(element.is_kept == (element.round >= discarded) for element in timed)
    assert Counter(each.arm for each in timed) == {"base": rounds, "candidate": rounds}
    assert {each.calls for each in timed} == {calls}
    orders = arms_of(turns)
    assert all(one == other[::-1] for one, other in pairwise(orders))
    asked = [payload for arm, letter, payload in log if (arm, letter) == ("candidate", b"I")]
    used = [payload for payload in asked if payload]
    assert b"\n".join(used) == b"\n".join(make_inputs(1 + calls * rounds))


def test_a_far_slower_candidate_does_not_use_up_the_budget_in_one_session():
    schedule = replace(SCHEDULE, rounds=400, most_s=0.5)
    turns = take(make_pair(call_s=0.5)[1], schedule=schedule)
    kept = Counter(sample.arm for sample in turns.samples if sample.is_kept)
    assert kept == {"base": ENOUGH_ROUNDS, "candidate": ENOUGH_ROUNDS}
    assert session_ratio(turns.samples) == pytest.approx(math.log(500), rel=1e-3)
    as_fast = take(make_pair(call_s=1e-6)[1], schedule=schedule)
    assert max(sample.round for sample in as_fast.samples) > 100


def test_warm_up_and_first_round_do_not_count():
    _, channels = make_pair({"cold": 2, "call_s": 0.004}, cold=1, call_s=0.001)
    turns = take(channels)
    kept = [sample for sample in turns.samples if sample.is_kept]
    assert {item.round for item in kept} == {1, 2, 3}
    assert session_ratio(turns.samples) == pytest.approx(math.log(1 / 4))


def test_the_cost_of_asking_is_subtracted_as_measured_by_empty_turns():
    _, channels = make_pair({"reply_s": 0.002}, reply_s=0.002, call_s=0.5e-3)
    turns = take(channels)
    assert [sample.wall_s for sample in turns.samples[:EMPTY_TURNS]] == [0.002] * EMPTY_TURNS
    assert session_ratio(turns.samples) == pytest.approx(math.log(1 / 2))


def test_wall_and_cpu_are_the_line_s_own():
    _, channels = make_pair(call_s=0.001, cpu_share=3.0)
    turns = take(channels)
    sample = next(item for item in turns.samples if item.is_kept and item.arm == "candidate")
    assert sample.wall_s == pytest.approx(0.003 + 2**-16)
    assert sample.cpu_s == pytest.approx(0.009 + 2**-16)
    assert session_cpu_ratio(turns.samples) == pytest.approx(math.log(3))


def test_without_cpu_time_from_the_kernel_there_is_none():
    _, channels = make_pair({"knows_cpu": False}, knows_cpu=False, late_s=9.0)
    turns = take(channels)
    assert {sample.cpu_s for sample in turns.samples} == {None}
    assert session_cpu_ratio(turns.samples) is None
    assert turns.outside_s.base == turns.outside_s.candidate
    assert turns.startup_s == Pair(0.25, 0.25)


# -- time at work that isn't timed --


USUAL_S = 2 * 2**-16 + SCHEDULE.calls * 2 * 2**-20


@pytest.mark.parametrize(
    ("what", "extra_s"),
    [
        ({}, 0.0),
        ({"late_s": 0.5}, 0.5),
        ({"encode_s": 0.125}, SCHEDULE.calls * 0.125),
        ({"decode_s": 0.125}, SCHEDULE.calls * 0.125),
        ({"call_s": 7.0}, 0.0),
    ],
)
def test_work_before_and_after_is_counted(what, extra_s):
    _, channels = make_pair(**what)
    outside = take(channels).outside_s
    assert outside.base == pytest.approx(USUAL_S)
    assert outside.candidate == pytest.approx(USUAL_S + extra_s, rel=1e-3)


def test_late_work_of_the_first_turns_alone_does_not_count():
    _, channels = make_pair()
    worker = channels["candidate"]
    worker.late_s = 5.0

    def function(case):
        if case["args"][0] > SCHEDULE.calls:  # the first round is over
            worker.late_s = 0.0
        return {"result": 2 * case["args"][0], "after": None}

    worker.function = function
    assert take(channels).outside_s.candidate == pytest.approx(USUAL_S, rel=1e-3)


def test_start_up_is_the_interpreter_s_cpu_time_and_loading():
    _, channels = make_pair(load_s=1.0, boot_s=0.5)
    assert take(channels).startup_s == near(0.125 + 0.25, 0.5 + 1.0)


def near(base, candidate):
    """Figures of both, but for the little that empty turns take."""
    return Pair(pytest.approx(base, abs=1e-3), pytest.approx(candidate, abs=1e-3))


def test_what_is_done_once_belongs_to_start_up():
    """In the first call of all: no kept sample shows it, and no median."""
    _, channels = make_pair({"call_s": 1.0}, call_s=1.0, cold=1)
    startup = take(channels).startup_s
    assert startup.base == pytest.approx(0.375, abs=1e-3)
    usual_s = SCHEDULE.calls * 1.0
    once_s = 10.0 + SCHEDULE.rounds * usual_s - 1.1 * (1 + SCHEDULE.rounds) * usual_s
    assert startup.candidate == pytest.approx(0.375 + once_s, rel=1e-3)


def test_waiting_is_detected_although_it_takes_no_cpu_time():
    _, channels = make_pair(stall_s=0.5)
    turns = take(channels)
    assert turns.stalled_s == Pair(pytest.approx(0.0), pytest.approx(0.5))
    assert turns.outside_s.candidate == pytest.approx(USUAL_S)


@pytest.mark.parametrize(
    ("said", "share"),
    [
        (0.0, 0.0),
        (SCHEDULE.calls * 0.25e-3, 0.25),
        (1e9, 1.0),
        (-1.0, 0.0),
        (float("inf"), 0.0),
        (float("nan"), 0.0),
    ],
)
def test_going_through_is_a_share_whatever_a_worker_says(said, share):
    _, channels = make_pair(going_through=said, reply_s=0.0)
    assert take(channels).going_through == Pair(0.0, pytest.approx(share))


# -- results --


def odd_from(number, by=1.0):
    """A function that is wrong from an input on."""
    return lambda case: {
        "result": 2 * case["args"][0] + (by if case["args"][0] >= number else 0),
        "after": None,
    }


@pytest.mark.parametrize(("wrong", "rounds"), [(0, 0), (1, 1), (3, 1), (4, 2), (9, 3), (12, 4)])
def test_the_first_difference_ends_the_session_after_its_round(wrong, rounds):
    seen = []

    def differ(place, base, candidate):
        seen.append(place)
        return True

    _, channels = make_pair(function=odd_from(wrong))
    turns = take(channels, differ=differ)
    assert turns.differing[0] == wrong
    assert b'"result": %d' % (2 * wrong) in turns.differing[1]
    assert b'"result": %d' % (2 * wrong + 1) in turns.differing[2]
    assert max((sample.round for sample in turns.samples), default=-1) == rounds - 1
    assert seen == [wrong]


def test_the_comparison_may_accept_a_small_difference():
    seen = []

    def differ(place, base, candidate):
        seen.append(place)
        return False

    _, channels = make_pair(function=odd_from(5))
    turns = take(channels, differ=differ)
    assert turns.differing is None
    assert seen == list(range(5, COUNT))
    assert max(sample.round for sample in turns.samples) == SCHEDULE.rounds - 1


@pytest.mark.parametrize("arm", ["base", "candidate"])
@pytest.mark.parametrize(
    ("letter", "payload", "words"),
    [
        (b"V", b"", "0 results of 1 calls"),
        (b"V", b"{}", "0 results of 1 calls"),
        (b"V", b"\n" * 9, "9 results of 1 calls"),
        (b"V", b"{}\n{}\n{}", "2 results of 1 calls"),
        (b"C", packing.pack_summary(bytes(16), 0, 0.0), "0 results of 1 calls"),
        (b"C", packing.pack_summary(bytes(16), 3, 0.0), "3 results of 1 calls"),
        (b"C", b"", "the summary of its results can't be read"),
        (b"C", b"x" * 29, "the summary of its results can't be read"),
    ],
)
def test_too_many_or_too_few_results_are_that_one_s_fault(arm, letter, payload, words):
    _, channels = make_pair()
    channels[arm].answers = {letter: payload}
    with pytest.raises(ArmError, match=words) as stop:
        take(channels, differ=lambda *_: False)
    assert stop.value.arm == arm


@pytest.mark.parametrize("arm", ["base", "candidate"])
@pytest.mark.parametrize(
    "error", [ChannelError("it ended before it was done"), ChannelTimeoutError("late")]
)
@pytest.mark.parametrize("at", [(b"L", 0), (b"I", 0), (b"I", 3), (b"G", 2), (b"C", 4)])
def test_a_line_that_breaks_is_that_one_s_fault(arm, error, at):
    _, channels = make_pair()
    channels[arm].errors = {at: error}
    with pytest.raises(ArmError, match=str(error)) as stop:
        take(channels)
    assert (stop.value.arm, stop.value.error) == (arm, error)


@pytest.mark.parametrize(
    "told",
    [b"", b"{}", b"[]", b"5", b'{"failed": 1}', b"\xff", b"[" * 99_999, b'{"files": 5}',
     b'{"files": null}', b'{"files": "abc"}'],
)  # fmt: skip
def test_a_worker_that_can_not_load_is_out_whatever_it_says(told):
    _, channels = make_pair(answers={b"L": told})
    with pytest.raises(ArmError, match="can't be loaded") as stop:
        take(channels)
    assert stop.value.arm == "candidate"


def test_a_list_of_files_without_end_is_not_read():
    _, channels = make_pair(answers={b"L": b'{"files":["' + b"a" * 5_000_000 + b'"]}'})
    with pytest.raises(ArmError, match="can't be loaded: None"):
        take(channels)


def test_only_file_names_are_kept_of_the_reported_files():
    _, channels = make_pair(answers={b"L": b'{"files": ["/a.py", 5, null]}'})
    assert take(channels).files == {"base": ("/project/mod.py",), "candidate": ("/a.py",)}


# -- a meter, whose workers are simulated --

PACE = Pace(1e-3, 1e-4, 1e-5, 0.1, 20, {})
BENCHMARK = Benchmark("b", "mod:f", "make.py:g")


class Inputs:
    async def make(self, seed, count):
        return make_inputs(count)


def time_session(monkeypatch, channels, *, compares=True, number=0, failure=None, **check):
    async def run_workers(stages, make, work, *, away_from):
        try:
            return WorkResult(await anyio.to_thread.run_sync(work, channels))
        except ArmError as error:
            return WorkResult(failure=error, commands=dict.fromkeys(stages))

    monkeypatch.setattr(calls, "run_workers", run_workers)
    check = Check(function="mod:f", inputs="make.py:g", **check)
    benchmark = FunctionBenchmark(BENCHMARK, check, Inputs(), SCHEDULE, PACE, compares)
    return anyio.run(benchmark.run, TimingSetup(None, None, (1,), "secret"), number)


def test_a_session_has_all_that_its_turns_gave(monkeypatch):
    _, channels = make_pair(late_s=0.5, load_s=1.0)
    session = time_session(monkeypatch, channels, number=7)
    assert (session.benchmark, session.number, session.rejection) == ("b", 7, None)
    assert len(session.samples) == EMPTY_TURNS + 2 * SCHEDULE.rounds
    assert session.startup_s == near(0.375, 1.125)
    assert session.outside_s.candidate - session.outside_s.base == pytest.approx(0.5)
    assert session.materializing == Pair(0.0, 0.0)


def test_sessions_begin_at_random_and_the_same_one_always_alike(monkeypatch):
    firsts = []
    for number in [*range(30), *range(30)]:
        log, channels = make_pair()
        time_session(monkeypatch, channels, number=number)
        firsts.append(log[0][0])
    assert firsts[:30] == firsts[30:]
    assert min(Counter(firsts).values()) > 10


def test_other_results_reject_with_what_was_called(monkeypatch):
    _, channels = make_pair(function=odd_from(5))
    rejection = time_session(monkeypatch, channels).rejection
    assert rejection.reason == Reason.DIFFERENT
    assert "while it was timed" in rejection.message
    assert "should be 10, is 11" in rejection.message
    (failure,) = rejection.failures
    assert (failure.check, failure.what) == ("bench[b]", "mod:f")
    assert "f(5)" in failure.message


@pytest.mark.parametrize(
    ("by", "tolerance", "is_out"),
    [
        (1e-3, {"rel_tol": 1e-9}, True),
        (1e-3, {"rel_tol": 1e-3}, False),
        (1e-3, {"rel_tol": 0, "abs_tol": 1e-2}, False),
        (1e-12, {}, False),
    ],
)
def test_floats_are_compared_as_the_check_says(monkeypatch, by, tolerance, is_out):
    def function(case):
        return {"result": float(case["args"][0] + 2), "after": None}

    def near(case):
        return {"result": function(case)["result"] + by, "after": None}

    _, channels = make_pair({"function": function}, function=near)
    assert bool(time_session(monkeypatch, channels, **tolerance).rejection) == is_out


@pytest.mark.parametrize("report", [{"result": float("nan")}, {}, {"raised": 5}, {"after": 5}])
def test_a_forged_result_is_another_result(monkeypatch, report):
    _, channels = make_pair(function=lambda case: report)
    assert time_session(monkeypatch, channels).rejection.reason == Reason.DIFFERENT


def test_a_result_far_longer_than_the_base_s_is_another_one_unread(monkeypatch):
    _, channels = make_pair(function=lambda case: {"result": "x" * 5_000_000, "after": None})
    rejection = time_session(monkeypatch, channels).rejection
    assert rejection.reason == Reason.DIFFERENT
    assert "which is too long to be read" in rejection.message


def test_changed_arguments_are_another_result(monkeypatch):
    def function(case):
        return {"result": 2 * case["args"][0], "after": {"args": [0], "kwargs": {}}}

    _, channels = make_pair(function=function)
    rejection = time_session(monkeypatch, channels).rejection
    assert "after the call" in rejection.message


def test_results_that_can_not_be_compared_are_not(monkeypatch):
    _, channels = make_pair(function=odd_from(0))
    assert time_session(monkeypatch, channels, compares=False).rejection is None


def test_the_base_s_failure_is_ours(monkeypatch):
    _, channels = make_pair({"errors": {(b"G", 3): ChannelError("it left")}})
    with pytest.raises(LabError, match="the base failed while it was timed: it left"):
        time_session(monkeypatch, channels)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ChannelError("gone"), Reason.CRASH), (ChannelTimeoutError("slow"), Reason.TIMEOUT)],
)
def test_the_candidate_s_failure_is_its_own(monkeypatch, error, reason):
    _, channels = make_pair(errors={(b"G", 3): error})
    session = time_session(monkeypatch, channels)
    assert session.rejection.reason == reason
    assert str(error) in session.rejection.message
    assert session.samples == ()


def test_simulated_workers_know_what_they_are_asked():
    """The kit itself: without it nothing here means anything."""
    worker = SimWorker()
    ask = partial(worker.ask, timeout_s=1)
    ask(b"I", b"\n".join(make_inputs(3)))
    assert ask(b"G").wall_s == pytest.approx(0.003 + 2**-16)
    assert packing.unpack_summary(ask(b"C").payload)[1] == 3
    assert ask(b"V").payload.count(b"\n") == 3


def test_without_trust_the_clock_runs_from_the_first_input_to_the_last_result():
    # A candidate that works while it reads inputs and writes results, and not when it is called.
    cheat = {"call_s": 0.0, "decode_s": 0.0005, "encode_s": 0.0005}
    _, channels = make_pair(**cheat)
    believed = take(channels)
    _, channels = make_pair(**cheat)
    counted = take(channels, schedule=replace(SCHEDULE, counts_all=True))

    def total_s(turns, arm):
        return sum(item.wall_s for item in turns.samples if item.is_kept and item.arm == arm)

    assert total_s(believed, "base") > 5 * total_s(believed, "candidate")
    assert total_s(counted, "candidate") == pytest.approx(total_s(counted, "base"), rel=0.05)
    assert believed.outside_s.candidate > 10 * believed.outside_s.base
    assert counted.outside_s.candidate == 0
