"""Until when candidates are timed, and who wins: a simulated timer with seeded noise.

Judgements are completed by `TimingPhase`.
"""

import errno
import re
from dataclasses import replace
from functools import partial

import anyio
import pytest
from clock_kit import SimTimer, changes_of
from hypothesis import given, settings, strategies as st

from fairtrial.arena import (
    Basis,
    Benchmark,
    Check,
    CodeProblem,
    Judgement,
    Measurement,
    Pair,
    Reason,
    Rejection,
    Verdict,
    events as arena_events,
)
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.decision import DecisionRules, measure, race
from fairtrial.arena.timing.stats.sequential import LOOKS
from fairtrial.arena.timing.summary import summarize
from fairtrial.arena.timing_phase import TimingPhase, timing_rules
from fairtrial.core import LabError, StudyError

RULES = DecisionRules(alpha=0.05, min_effect=0.02, budget_s=100.0)
CRASH = Rejection(Reason.CRASH, "it died")
SLOW_START = {"startup_s": Pair(0.1, 0.9)}


def time_one(timer, rules=RULES, **more):
    async def work():
        return await measure(timer, "a", changes_of("a"), rules, **more)

    return anyio.run(work)


def hold_race(timer, rules=RULES, **more):
    async def work():
        entries = {name: changes_of(name) for name in timer.speeds}
        return await race(timer, entries, rules, **more)

    return anyio.run(work)


# -- one candidate --


@pytest.mark.parametrize(
    ("speed", "verdict"), [(1.5, Verdict.FASTER), (0.5, Verdict.SLOWER), (1.0, Verdict.EQUIVALENT)]
)
def test_what_is_clear_at_the_first_look_takes_six_sessions(speed, verdict):
    timer = SimTimer({"a": speed}, spread=0.001)
    found = time_one(timer, label="x")
    assert (found.verdict, found.estimate.sessions) == (verdict, 6)
    assert timer.log == [("a", "x/a", 0, 6, 6)]
    assert (found.notes, found.is_confirmed) == ((), False)
    assert (found.seconds, found.waited_s) == (3.0, 0.125)


def test_sessions_are_taken_from_look_to_look_until_the_last():
    timer = SimTimer({"a": 1.0}, spread=0.3)
    found = time_one(timer)
    assert [(first, count) for _, _, first, count, _ in timer.log] == list(
        zip((0, *LOOKS), [6, 4, 6, 8, 10, 12], strict=False)
    )
    assert (found.verdict, found.estimate.sessions) == (Verdict.INCONCLUSIVE, 46)
    assert [session.number for session in found.sessions] == list(range(46))
    assert found.notes == ()


@given(st.floats(0.8, 1.25), st.floats(0.001, 0.1), st.integers(0, 99), st.floats(1, 40))
@settings(max_examples=60)
def test_it_stops_at_a_look_or_with_its_budget_and_not_before(speed, spread, seed, budget_s):
    timer = SimTimer({"a": speed}, spread, seed=seed)
    found = time_one(timer, replace(RULES, budget_s=budget_s))
    sessions = len(found.sessions)
    is_spent = found.seconds + timer.session_s / 2 > budget_s
    assert found.seconds == pytest.approx(timer.session_s * sessions)
    assert found.seconds < budget_s + timer.session_s  # a heat that was begun has a session
    assert sessions in LOOKS or is_spent
    if found.verdict == Verdict.INCONCLUSIVE:
        assert is_spent or sessions == LOOKS[-1]
    assert (found.estimate is None) == (sessions < LOOKS[0])
    # What is told is what its sessions say, and nothing else.
    again = summarize([(session,) for session in found.sessions], alpha=0.05, min_effect=0.02)
    assert (again.verdict, again.estimate, again.adopt) == (
        found.verdict,
        found.estimate,
        found.adopt,
    )


def test_a_budget_that_ends_between_looks_still_gives_an_estimate():
    timer = SimTimer({"a": 1.03}, spread=0.04, seed=4)
    found = time_one(timer, replace(RULES, budget_s=4.0))
    assert found.estimate.sessions == len(found.sessions) == 8
    assert timer.log[-1] == ("a", "/a", 6, 4, 2)
    clear = SimTimer({"a": 2.0}, spread=0.5, seed=4)
    assert time_one(clear, replace(RULES, budget_s=4.0)).estimate.sessions in (6, 8)


@pytest.mark.parametrize(("budget_s", "sessions"), [(0.0, 1), (1.0, 2), (2.5, 5)])
def test_fewer_than_six_sessions_are_inconclusive_and_say_why(budget_s, sessions):
    found = time_one(SimTimer({"a": 3.0}), replace(RULES, budget_s=budget_s))
    assert (found.verdict, found.estimate, found.adopt) == (Verdict.INCONCLUSIVE, None, False)
    assert len(found.sessions) == sessions
    (note,) = found.notes
    assert note.startswith(f"only {sessions} sessions fit into {budget_s:g} s")
    assert "raise budget_s" in note


def test_what_was_rejected_meanwhile_is_out_whatever_it_showed():
    timer = SimTimer({"a": 1.0}, spread=0.3, deeds={("a", 8): CRASH})
    assert time_one(timer) == CRASH
    assert timer.log[-1] == ("a", "/a", 6, 4, 2)


@pytest.mark.parametrize("error", [LabError("the base failed"), StudyError("no inputs")])
def test_our_own_failures_are_no_rejection_of_the_candidate(error):
    found = time_one(SimTimer({"a": 1.0}, deeds={("a", 2): error}))
    assert found.reason == Reason.EVALUATOR
    assert str(error) in found.message


@pytest.mark.parametrize(
    "error", [NoRoomError("no room"), OSError(errno.ENOSPC, "no room"), OSError(errno.EDQUOT, "no")]
)
def test_a_full_disk_is_raised_to_the_caller(error):
    with pytest.raises(NoRoomError, match="no"):
        time_one(SimTimer({"a": 1.0}, deeds={("a", 2): error}))


def test_another_error_of_the_system_is_no_rejection_of_the_candidate():
    error = OSError(errno.EMFILE, "too many open files")
    found = time_one(SimTimer({"a": 1.0}, deeds={("a", 2): error}))
    assert (found.reason, "too many open files" in found.message) == (Reason.EVALUATOR, True)


def test_the_result_of_sessions_before_our_failure_is_reported():
    found = time_one(SimTimer({"a": 1.0}, spread=0.3, deeds={("a", 8): LabError("it broke")}))
    told = re.fullmatch(
        r"it could not be timed: it broke; its (\d) sessions.*: (.*)", found.message
    )
    assert told[1] == "6"
    assert re.fullmatch(r"[\d.]+x \[[\d.]+, [\d.]+\]", told[2])


def test_a_mistake_in_our_code_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        time_one(SimTimer({"a": 1.0}, deeds={("a", 2): ZeroDivisionError()}))


def test_the_watcher_is_called_at_each_look():
    told = []
    time_one(SimTimer({"a": 1.0}, spread=0.3), watcher=lambda *each: told.append(each))
    assert [(name, count) for name, count, _ in told] == [("a", count) for count in LOOKS]
    assert all(estimate.sessions == count for _, count, estimate in told)


# -- many --

FIELD = {"same": 1.0, "good": 1.2, "worse": 0.8, "best": 1.5}


def test_the_winner_is_confirmed_and_only_that_is_reported():
    timer = SimTimer(FIELD)
    results = hold_race(timer)
    best = results["best"]
    assert (best.verdict, best.adopt, best.is_confirmed) == (Verdict.FASTER, True, True)
    *raced, final = timer.log
    assert final[:3] == ("best", "final/best", 0)
    assert {label for _, label, *_ in raced} == {f"race/{name}" for name in FIELD}
    fresh = SimTimer({"best": 1.5})
    alone = anyio.run(partial(measure, fresh, "best", changes_of("best"), RULES, label="final"))
    assert best.sessions == alone.sessions
    assert (best.estimate, best.estimate.confidence) == (alone.estimate, 0.95)
    # All that it took is counted, although only the last sessions are told.
    own = sum(item[-1] for item in timer.log if item[0] == "best")
    assert best.seconds == pytest.approx(own * timer.session_s)


def test_results_come_in_the_order_of_the_candidates():
    assert list(hold_race(SimTimer(FIELD))) == list(FIELD)
    backwards = dict(reversed(FIELD.items()))
    assert list(hold_race(SimTimer(backwards))) == list(backwards)


def test_those_that_lost_say_so_with_bounds_that_hold_for_all():
    results = hold_race(SimTimer(FIELD))
    for name in ("same", "good", "worse"):
        assert not results[name].is_confirmed
        assert results[name].estimate.confidence == pytest.approx(1 - 0.05 / 4)
    assert results["good"].verdict == Verdict.FASTER
    assert "slower than the leader (best)" in results["good"].notes[0]
    assert results["worse"].verdict == Verdict.SLOWER


def test_losers_get_fewer_sessions_than_timing_each_would_take():
    speeds = {"best": 1.5, **{f"n{place}": 1.0 + place / 100 for place in range(15)}}
    timer = SimTimer(speeds, spread=0.05)
    results = hold_race(timer)
    raced = sum(item[-1] for item in timer.log)
    alone = SimTimer(speeds, spread=0.05)
    for name in speeds:
        anyio.run(partial(measure, alone, name, changes_of(name), RULES))
    assert results["best"].is_confirmed
    assert raced * 2 < sum(entry[-1] for entry in alone.log)


def test_a_winner_that_was_lucky_is_reported_by_its_confirmation():  # no winner's curse
    lucky = SimTimer({f"n{place}": 1.0 for place in range(8)}, spread=0.03, seed=2)
    results = hold_race(lucky)
    finals = [name for name, label, *_ in lucky.log if label.startswith("final/")]
    assert len(set(finals)) <= 1
    assert not any(result.adopt for result in results.values())


def test_one_alone_is_measured_at_once():
    timer = SimTimer({"a": 1.5})
    (found,) = hold_race(timer).values()
    assert [label for _, label, *_ in timer.log] == ["final/a"]
    assert (found.verdict, found.is_confirmed) == (Verdict.FASTER, False)
    assert found.estimate.confidence == 0.95


def test_a_race_without_candidates_has_no_results():
    assert hold_race(SimTimer({})) == {}


@pytest.mark.parametrize("number", [0, 3, 7])
@pytest.mark.parametrize("deed", [CRASH, LabError("the base failed")])
def test_one_that_fails_costs_no_other(number, deed):
    timer = SimTimer(FIELD, spread=0.08, deeds={("good", number): deed})
    results = hold_race(timer)
    if ("good", number) in {(name, first + done) for name, _, first, _, done in timer.log}:
        assert isinstance(results["good"], Rejection)
    assert results["best"].is_confirmed
    assert results["best"].verdict == Verdict.FASTER
    assert isinstance(results["worse"], Measurement)


def test_a_candidate_that_fails_is_reported_with_the_reason():
    deeds = {("good", 1): CRASH, ("worse", 1): LabError("the base failed")}
    results = hold_race(SimTimer(FIELD, deeds=deeds))
    assert results["good"] == CRASH
    assert results["worse"].reason == Reason.EVALUATOR
    assert results["best"].is_confirmed


def test_a_winner_that_fails_when_it_is_measured_again_is_out():
    class Second(SimTimer):
        async def run(self, changes, label, *rest):
            if label == "final/best":
                raise LabError("the base failed")
            return await super().run(changes, label, *rest)

    results = hold_race(Second(FIELD))
    assert results["best"].reason == Reason.EVALUATOR
    assert re.search(r"the base failed; its \d+ sessions in the race: ", results["best"].message)
    assert isinstance(results["good"], Measurement)


@pytest.mark.parametrize("label", ["race/good", "race/worse", "final/best"])
def test_a_disk_that_gets_full_costs_only_the_candidates_that_need_it_their_verdict(label):
    class Full(SimTimer):
        async def run(self, changes, other, *rest):
            if other == label:
                raise NoRoomError("no room")
            return await super().run(changes, other, *rest)

    results = hold_race(Full(FIELD))
    lost = {name for name, found in results.items() if isinstance(found, Rejection)}
    assert lost == {label.partition("/")[2]}
    assert all(results[name].reason == Reason.EVALUATOR for name in lost)


def test_one_that_is_vetoed_can_not_win():
    timer = SimTimer(FIELD, more={"best": SLOW_START})
    results = hold_race(timer)
    assert results["best"].vetoes
    assert not results["best"].adopt
    assert not results["best"].is_confirmed
    assert results["good"].is_confirmed
    assert results["good"].adopt
    assert sum(done for name, *_, done in timer.log if name == "best") == 6


def test_one_benchmark_that_got_slower_keeps_from_winning():
    timer = SimTimer({"good": (1.2, 1.2), "mixed": (4.0, 0.7)})
    results = hold_race(timer)
    assert not results["mixed"].adopt
    assert "b1 got slower" in results["mixed"].vetoes[0]
    assert results["good"].is_confirmed
    assert timer.log[-1][1] == "final/good"


def test_a_veto_is_reported_although_bounds_get_wider():
    """Vetoes are found at alpha, what is told in the end at a share of it."""
    timer = SimTimer({"a": (2.0, 0.85), "b": (1.1, 1.1), "c": (1.1, 1.1)}, spread=0.03, seed=4)
    found = hold_race(timer)["a"]
    assert not any(label == "final/a" for _, label, *_ in timer.log)
    assert found.timings[1].verdict == Verdict.INCONCLUSIVE
    assert "b1 got slower" in found.vetoes[0]
    assert not found.adopt


def test_a_race_without_a_budget_gives_what_there_is():
    timer = SimTimer(FIELD)
    results = hold_race(timer, replace(RULES, budget_s=1.0))
    assert list(results) == list(FIELD)
    assert all(result.verdict == Verdict.INCONCLUSIVE for result in results.values())
    assert sum(done for *_, done in timer.log) <= 4


def test_without_a_faster_candidate_there_is_no_winner():
    timer = SimTimer({"a": 0.7, "b": 1.0, "c": 0.9}, spread=0.001)
    results = hold_race(timer)
    assert [result.verdict for result in results.values()] == [
        Verdict.SLOWER,
        Verdict.EQUIVALENT,
        Verdict.SLOWER,
    ]
    assert not any(label.startswith("final/") for _, label, *_ in timer.log)


@given(
    st.lists(st.floats(0.7, 1.6), min_size=2, max_size=5),
    st.floats(0.002, 0.1),
    st.integers(0, 50),
    st.floats(2, 60),
)
@settings(max_examples=40)
def test_any_race_gives_every_one_a_result_and_confirms_one_at_most(speeds, spread, seed, budget_s):
    timer = SimTimer({f"n{at}": speed for at, speed in enumerate(speeds)}, spread, seed=seed)
    results = hold_race(timer, replace(RULES, budget_s=budget_s))
    assert list(results) == list(timer.speeds)
    confirmed = [name for name, found in results.items() if found.is_confirmed]
    finals = {name for name, label, *_ in timer.log if label.startswith("final/")}
    assert confirmed == sorted(finals)
    assert len(confirmed) <= 1
    for name in timer.speeds:
        numbers = [
            first for who, label, first, *_ in timer.log if (who, label[:4]) == (name, "race")
        ]
        assert numbers == sorted(set(numbers))  # no session is taken twice


# -- judgements --

PROBLEM = CodeProblem(
    "p",
    check=(Check(command=("true",)),),
    bench=(Benchmark("b", "m:f", "i.py:g"),),
    budget_s=100.0,
)


def judged(name, digest=None, *, verdict=Verdict.PASSED, duplicate_of=None):
    return Judgement(name, name if digest is None else digest, verdict, Basis.COMPARED,
                     duplicate_of=duplicate_of)  # fmt: skip


def settle(timer, judgements, timing="race", **more):
    resolved = [
        Rejection(Reason.UNUSABLE, "no diff")
        if judgement.verdict == Verdict.REJECTED
        else changes_of(judgement.digest)
        for judgement in judgements
    ]
    phase = TimingPhase(PROBLEM, timer, timing)
    return anyio.run(partial(phase.run, judgements, resolved, **more))


def test_only_those_that_passed_are_timed_and_the_order_stays():
    given = [
        judged("out", verdict=Verdict.REJECTED),
        judged("good"),
        judged("unclear", verdict=Verdict.INCONCLUSIVE),
        judged("best"),
    ]
    timer = SimTimer(FIELD)
    found = settle(timer, given)
    assert [item.name for item in found] == ["out", "good", "unclear", "best"]
    assert [entry.verdict for entry in found] == [
        Verdict.REJECTED,
        Verdict.FASTER,
        Verdict.INCONCLUSIVE,
        Verdict.FASTER,
    ]
    assert {name for name, *_ in timer.log} == {"good", "best"}
    assert found[0] == given[0]
    assert found[3].measurement.is_confirmed


@pytest.mark.parametrize("timing", ["race", "each"])
def test_equal_ones_are_timed_once_and_inherit(timing):
    given = [
        judged("good"),
        judged("twin", "good", duplicate_of="good"),
        judged("worse"),
        judged("nothing", "", duplicate_of="base"),
    ]
    timer = SimTimer(FIELD)
    good, twin, worse, nothing = settle(timer, given, timing)
    assert twin.measurement is good.measurement
    assert (twin.verdict, twin.duplicate_of) == (Verdict.FASTER, "good")
    assert worse.verdict == Verdict.SLOWER
    assert (nothing.verdict, nothing.measurement) == (Verdict.PASSED, None)
    assert len({label for name, label, *_ in timer.log if name == "good"}) <= 2


def test_a_rejection_is_inherited_too():
    given = [judged("good"), judged("twin", "good", duplicate_of="good"), judged("best")]
    good, twin, best = settle(SimTimer(FIELD, deeds={("good", 2): CRASH}), given)
    assert (good.verdict, good.rejection) == (twin.verdict, twin.rejection)
    assert (good.verdict, good.rejection) == (Verdict.REJECTED, CRASH)
    assert best.verdict == Verdict.FASTER


def test_what_we_could_not_time_is_inconclusive():
    given = [judged("good"), judged("best")]
    good, best = settle(SimTimer(FIELD, deeds={("good", 2): LabError("no base")}), given)
    assert (good.verdict, good.rejection.reason) == (Verdict.INCONCLUSIVE, Reason.EVALUATOR)
    assert best.verdict == Verdict.FASTER


@pytest.mark.parametrize("timing", ["race", "each"])
def test_a_candidate_that_a_full_disk_leaves_untimed_is_reported_with_the_other_verdicts(
    timing,
):
    given = [judged("out", verdict=Verdict.REJECTED), judged("good"), judged("best")]
    timer = SimTimer(FIELD, deeds={("good", 0): NoRoomError("no room")})
    out, good, best = settle(timer, given, timing)
    assert (out.verdict, best.verdict) == (Verdict.REJECTED, Verdict.FASTER)
    assert (good.verdict, good.is_unjudged) == (Verdict.INCONCLUSIVE, True)
    assert good.rejection.message == "it could not be timed: no room"


def test_two_of_one_name_are_two():
    given = [judged("x", "good"), judged("x", "worse")]
    one, other = settle(SimTimer(FIELD), given)
    assert (one.verdict, other.verdict) == (Verdict.FASTER, Verdict.SLOWER)


def test_each_is_timed_to_its_end_at_a_share_of_alpha():
    timer = SimTimer(FIELD)
    found = settle(timer, [judged(name) for name in FIELD], "each")
    assert [item.measurement.verdict for item in found] == [entry.verdict for entry in found]
    assert {element.measurement.estimate.confidence for element in found} == {1 - 0.05 / 4}
    assert not any(each.measurement.is_confirmed for each in found)


def test_events_name_the_candidates():
    given = [judged("out", verdict=Verdict.REJECTED), judged("good"), judged("best")]
    events = []
    completed = settle(SimTimer(FIELD), given, emit=events.append)
    judgements = [event for event in events if isinstance(event, arena_events.CandidateJudged)]
    assert [(event.candidate_id, event.judgement) for event in judgements] == [
        ("good", completed[1]),
        ("best", completed[2]),
    ]
    timed = [event for event in events if isinstance(event, arena_events.TimingProgress)]
    assert {event.candidate_id for event in timed} == {"good", "best"}
    assert all(event.sessions for event in timed)


def test_the_budget_is_each_benchmark_s():
    bench = tuple(Benchmark(f"b{at}", "m:f", "i.py:g") for at in range(3))
    assert timing_rules(replace(PROBLEM, bench=bench)).budget_s == 300.0
    assert timing_rules(replace(PROBLEM, bench=())).budget_s == 100.0
