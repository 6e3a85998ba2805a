"""Whole processes as a second instrument: how they are run, when, and what follows from them."""

import json
import random
from dataclasses import dataclass, field, replace

import anyio
import pytest
from clock_kit import (
    SimTimer,
    SimWorker,
    changes_of,
    make_inputs,
    make_pair,
    never_differs,
)

from fairtrial.arena import (
    Judgement,
    Measurement,
    Pair,
    Reason,
    Rejection,
    TotalCheck,
    TotalVerdict,
    Verdict,
    describe_measurement,
)
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.calibration import Pace
from fairtrial.arena.timing.decision import DecisionRules, measure, race
from fairtrial.arena.timing.hidden_work import count_others
from fairtrial.arena.timing.repeated_inputs import RepeatedInputs
from fairtrial.arena.timing.session import ArmError, Schedule, take_turns
from fairtrial.arena.timing.stats.reconciliation import ProcessBlock, ProcessTotals
from fairtrial.arena.timing.total_checks import TotalBatch, TotalTimer
from fairtrial.arena.timing.whole_process import ORDERS, count_turns, deliver_all
from fairtrial.arena.timing.worker_channel import ChannelError
from fairtrial.core import LabError
from fairtrial.sandbox import Captured, Completed, Ending

RULES = DecisionRules(alpha=0.05, min_effect=0.02, budget_s=100.0)
CONFIRMED, CONTRADICTED, UNCLEAR = TotalVerdict


def make_check(verdict, share=1.0, benchmark="b0", **changes):
    figures = (2e-4, 6e-4, 4e-4, 5e-4, 3e-4, share, share - 0.1, share + 0.1, 0.99)
    return replace(TotalCheck(benchmark, verdict, *figures, "wall", 3, 150, 2.5), **changes)


@dataclass
class SimTotalTimer(SimTimer, TotalTimer):
    """A simulated timer whose whole processes say what the test wants.

    checks: what they say of all candidates
    problem: what happens instead
    repeats: benchmarks whose inputs repeat
    asked: (digest, label, claims, limit) of each request
    """

    checks: tuple = ()
    problem: object = None
    repeats: tuple = ()
    asked: list = field(default_factory=list)

    async def check_totals(self, changes, label, claims, limit_s):
        self.asked.append((changes.digest, label, claims, limit_s))
        if isinstance(self.problem, Exception):
            raise self.problem
        return TotalBatch(self.checks, 2.5, 0.25, self.problem, repeats=self.repeats)


def time_one(timer, **options):
    async def work():
        return await measure(timer, "a", changes_of("a"), RULES, label="x", **options)

    return anyio.run(work)


# -- when they are run, and what follows --


def test_a_confirmed_saving_leaves_the_verdict_as_it_is():
    timer = SimTotalTimer({"a": 1.5}, spread=0.001, checks=(make_check(CONFIRMED),))
    found = time_one(timer)
    assert (found.verdict, found.adopt, found.vetoes) == (Verdict.FASTER, True, ())
    assert found.total_checks == timer.checks
    assert (found.seconds, found.waited_s) == (5.5, 0.375)
    ((digest, label, claims, limit_s),) = timer.asked
    assert (digest, label, limit_s) == ("a", "x/a/total", 15.0)
    assert claims["b0"].ratio == pytest.approx(1.5, rel=0.01)
    assert claims["b0"].low < claims["b0"].ratio
    assert describe_measurement(found).recommendation == "adopt"
    assert " ".join(describe_measurement(found).remarks).endswith(
        "100 % of the saving of 200 µs per call appears in the total of whole processes "
        "[90 %, 110 %]"
    )


def test_a_contradicted_saving_is_not_adopted_and_both_figures_are_shown():
    timer = SimTotalTimer({"a": 70.0}, spread=0.001, checks=(make_check(CONTRADICTED, 0.02),))
    found = time_one(timer)
    assert (found.verdict, found.adopt) == (Verdict.FASTER, False)
    (veto,) = found.vetoes
    assert veto.startswith(
        "b0: the saving of 200 µs per call doesn't appear in the total: with reading and writing, "
        "children and all else a call takes 400 µs, 600 µs on the base"
    )
    assert veto.endswith("2 % of the saving [-8 %, 12 %]")
    remarks = describe_measurement(found).remarks
    assert not any("whole processes" in remark for remark in remarks)  # the veto has said it


def test_a_large_claim_that_is_not_reconciled_is_not_adopted_without_accusing_it():
    timer = SimTotalTimer({"a": 1.5}, spread=0.001, checks=(make_check(UNCLEAR, clock="cpu"),))
    found = time_one(timer)
    assert not found.adopt
    (veto,) = found.vetoes
    assert "could not be reconciled with the total of 12 whole processes" in veto
    assert "300 µs of CPU time, 500 µs on the base" in veto
    assert "That says nothing against the candidate" in veto


def test_a_saving_that_appears_in_part_only_is_said_to_do_so():
    timer = SimTotalTimer({"a": 26.0}, spread=0.001, checks=(make_check(UNCLEAR, 0.55),))
    (veto,) = time_one(timer).vetoes
    assert "appears only in part in the total of whole processes (400 µs, 600 µs on" in veto
    assert "says nothing against" not in veto


def test_a_small_claim_that_is_not_reconciled_is_adopted_with_a_note():
    timer = SimTotalTimer({"a": 1.1}, spread=0.001, checks=(make_check(UNCLEAR),))
    found = time_one(timer)
    assert (found.adopt, found.vetoes) == (True, ())
    assert found.notes[0].startswith("b0: whole processes vary too much to show a gain of 1.10x")


@pytest.mark.parametrize("speed", [1.0, 0.5])
def test_what_is_not_to_be_adopted_is_not_checked(speed):
    timer = SimTotalTimer({"a": speed}, spread=0.001)
    assert time_one(timer).total_checks == ()
    assert timer.asked == []


def test_what_is_confirmed_later_is_not_checked_before():
    timer = SimTotalTimer({"a": 1.5}, spread=0.001)
    assert time_one(timer, is_final=False).adopt
    assert timer.asked == []


def test_timers_without_whole_processes_are_used_as_they_are():
    found = time_one(SimTimer({"a": 1.5}, spread=0.001))
    assert (found.adopt, found.total_checks) == (True, ())


def test_only_the_winner_of_a_race_is_checked_after_it_was_measured_again():
    timer = SimTotalTimer({"a": 1.5, "b": 2.5}, spread=0.001, checks=(make_check(CONFIRMED),))

    async def work():
        return await race(timer, {name: changes_of(name) for name in timer.speeds}, RULES)

    found = anyio.run(work)
    assert [(name, label) for name, label, _, _ in timer.asked] == [("b", "final/b/total")]
    assert (found["b"].adopt, found["b"].is_confirmed) == (True, True)
    assert found["a"].total_checks == ()


def test_each_benchmark_that_is_faster_has_its_claim():
    timer = SimTotalTimer({"a": (1.5, 2.0, 1.0)}, spread=0.001)
    time_one(timer)
    assert set(timer.asked[0][2]) == {"b0", "b1"}


def test_benchmarks_that_are_only_faster_together_have_claims_too():
    class Opposed(SimTotalTimer):
        """Makes the benchmarks vary in opposite directions."""

        async def run(self, *args):
            batch = await super().run(*args)
            batch.replicates = [
                tuple(
                    replace(
                        session,
                        samples=tuple(
                            replace(sample, wall_s=sample.wall_s * factor)
                            if sample.arm == "candidate"
                            else sample
                            for sample in session.samples
                        ),
                    )
                    for session, factor in zip(
                        replicate, (1.6, 0.625)[:: (-1) ** replicate[0].number], strict=True
                    )
                )
                for replicate in batch.replicates
            ]
            return batch

    timer = Opposed({"a": (1.5, 1.5)}, spread=0.001)
    found = time_one(timer)
    assert found.verdict == Verdict.FASTER
    assert all(timing.verdict == Verdict.INCONCLUSIVE for timing in found.timings)
    assert timer.asked[0][2]


def test_a_gain_that_is_missing_when_inputs_are_new_is_not_adopted():
    checks = (make_check(CONFIRMED), make_check(CONTRADICTED, 0.02, is_unseen=True))
    found = time_one(SimTotalTimer({"a": 70.0}, spread=0.001, checks=checks))
    assert (found.verdict, found.adopt) == (Verdict.FASTER, False)
    (veto,) = found.vetoes
    assert "doesn't appear when processes get each input once" in veto


def time_repeats(verdict, share=1.0, others=None, **changes):
    """Measure a claim of 70x whose inputs repeat, where new inputs say `verdict`.

    others: what a second benchmark of the same function, whose inputs vary, claims and shows
    """
    unseen = None if verdict is None else make_check(verdict, share, is_unseen=True)
    checks = [make_check(CONFIRMED), *([] if unseen is None else [unseen])]
    speeds = 70.0
    if others is not None:
        speeds = (70.0, others[0])
        checks.append(make_check(others[1], benchmark="b1"))
        changes["others"] = ("b1",)
    repeats = (RepeatedInputs("b0", unseen, **changes),)
    return time_one(
        SimTotalTimer({"a": speeds}, spread=0.001, checks=tuple(checks), repeats=repeats)
    )


@pytest.mark.parametrize("verdict", [UNCLEAR, None])
def test_a_gain_that_new_inputs_can_t_show_is_not_adopted_and_the_remedy_is_named(verdict):
    found = time_repeats(verdict)
    assert (found.verdict, found.adopt) == (Verdict.FASTER, False)
    (veto,) = found.vetoes
    assert "without remembered results" in veto
    assert "says nothing against the candidate" in veto
    assert "use inputs that vary" in veto


def test_a_gain_that_new_inputs_show_is_adopted():
    found = time_repeats(CONFIRMED)
    assert (found.adopt, found.vetoes) == (True, ())


def test_another_benchmark_of_the_function_with_varied_inputs_can_show_the_gain():
    found = time_repeats(UNCLEAR, others=(9.0, CONFIRMED))
    assert found.adopt
    assert any("b1, whose inputs vary, shows the gain" in note for note in found.notes)


@pytest.mark.parametrize("others", [(9.0, UNCLEAR), (8.0, CONFIRMED)])
def test_another_benchmark_shows_nothing_if_unclear_or_much_smaller(others):
    assert not time_repeats(UNCLEAR, others=others).adopt


def test_a_gain_on_a_suite_is_not_adopted_even_if_its_first_calls_are_faster():
    (veto,) = time_repeats(CONFIRMED, is_suite=True).vetoes
    assert "its code runs in their process" in veto
    assert "`trust: all`" in veto


@pytest.mark.parametrize("verdict", [CONFIRMED, None])
def test_trusted_candidates_are_adopted_for_a_gain_on_a_suite(verdict):
    found = time_repeats(verdict, is_suite=True, is_trusted=True)
    assert (found.adopt, found.vetoes) == (True, ())


@pytest.mark.parametrize(
    ("verdict", "is_suite"), [(UNCLEAR, False), (None, False), (UNCLEAR, True)]
)
def test_trusted_candidates_get_a_note_in_place_of_a_veto(verdict, is_suite):
    found = time_repeats(verdict, is_suite=is_suite, is_trusted=True)
    assert found.adopt
    assert any("candidates are trusted here" in note for note in found.notes)


def test_trusted_candidates_that_only_remember_results_are_not_adopted_either():
    found = time_repeats(CONTRADICTED, 0.02, is_trusted=True)
    assert not found.adopt
    assert len(found.vetoes) == 1


# -- doubts of sessions --


DOUBTFUL = {"outside_s": Pair(0.0, 0.0), "stalled_s": Pair(0.0, 1.0)}


@pytest.mark.parametrize(
    ("verdict", "is_adopted"), [(CONFIRMED, True), (UNCLEAR, False), (CONTRADICTED, False)]
)
def test_whole_processes_dispel_the_doubts_of_sessions(verdict, is_adopted):
    timer = SimTotalTimer(
        {"a": 1.5}, spread=0.001, checks=(make_check(verdict),), more={"a": DOUBTFUL}
    )
    found = time_one(timer)
    assert found.adopt == is_adopted
    assert any("waited for while the clock doesn't run" in veto for veto in found.vetoes) == (
        not is_adopted
    )


def test_doubts_alone_are_no_accusation_and_stand_only_where_a_gain_is_claimed():
    doubtful = time_one(SimTimer({"a": 1.5}, spread=0.001, more={"a": DOUBTFUL}))
    assert "nothing is held against the candidate" in doubtful.vetoes[0]
    assert time_one(SimTimer({"a": 0.5}, spread=0.001, more={"a": DOUBTFUL})).vetoes == ()


def test_doubts_don_t_take_a_candidate_out_of_a_race():
    checks = (make_check(CONFIRMED),)
    timer = SimTotalTimer(
        {"a": 1.5, "b": 1.1}, spread=0.001, checks=checks, more={"a": DOUBTFUL, "b": DOUBTFUL}
    )

    async def work():
        return await race(timer, {name: changes_of(name) for name in timer.speeds}, RULES)

    assert anyio.run(work)["a"].adopt


# -- failures --


def test_a_candidate_that_fails_in_a_whole_process_is_rejected():
    wrong = Rejection(Reason.DIFFERENT, "it gave something else")
    timer = SimTotalTimer({"a": 1.5}, spread=0.001, problem=wrong)
    assert time_one(timer) == wrong


def test_an_error_of_the_arena_is_reported_with_earlier_sessions():
    timer = SimTotalTimer({"a": 1.5}, spread=0.001, problem=LabError("the base failed"))
    found = time_one(timer)
    assert found.reason == Reason.EVALUATOR
    assert found.message.startswith(
        "it could not be timed: the base failed; its 6 sessions before that: 1.5"
    )
    timer = SimTotalTimer({"a": 1.5}, spread=0.001, problem=NoRoomError("full"))
    with pytest.raises(NoRoomError):
        time_one(timer)


def test_measurements_without_checks_have_an_empty_list():
    judgement = Judgement("a", "0", Verdict.FASTER, measurement=Measurement(Verdict.FASTER, None))
    assert judgement.as_dict()["total_checks"] == []
    checked = replace(judgement.measurement, total_checks=(make_check(CONFIRMED),))
    printed = replace(judgement, measurement=checked).as_dict()["total_checks"]
    assert json.loads(json.dumps(printed))[0]["verdict"] == "confirmed"


# -- whole processes --


SCHEDULE = Schedule(b"{}", calls=4, rounds=3)


def test_a_worker_is_driven_like_in_a_session_and_delivers_all_results():
    worker = SimWorker(cpu_share=0.5)
    run = deliver_all({"base": worker}, schedule=SCHEDULE, inputs=make_inputs(1 + 10))
    letters = b"".join(letter for _, letter, _ in worker.log)
    assert letters == b"L" + 4 * b"IGCV"  # the warm-up, then 4, 4 and 2 calls
    sizes = [payload.count(b"\n") + 1 for _, letter, payload in worker.log if letter == b"I"]
    assert sizes == [1, 4, 4, 2]
    assert [json.loads(line)["result"] for line in run.results] == [2 * n for n in range(11)]
    assert run.in_calls_s == pytest.approx(10 * 1e-3, rel=0.01)
    assert run.in_calls_cpu_s == pytest.approx(10 * 0.5e-3, rel=0.02)
    assert run.wall_s > 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"errors": {(b"G", 2): ChannelError("it is gone")}}, "it is gone"),
        ({"answers": {b"V": b'{"going_through_s":0.0}'}}, "0 results of 1 calls were reported"),
        ({"answers": {b"L": b'{"failed":"no module"}'}}, "it can't be loaded: 'no module'"),
    ],
)
def test_a_worker_that_can_t_go_on_is_named(options, why):
    worker = SimWorker("candidate", **options)
    with pytest.raises(ArmError, match=why) as caught:
        deliver_all({"candidate": worker}, schedule=SCHEDULE, inputs=make_inputs(9))
    assert caught.value.arm == "candidate"


@pytest.mark.parametrize(
    ("pace", "calls", "turns"),
    [
        (Pace(1e-3, 1e-4, 5e-5, 0.1, 100, {}), 2, 30),  # calls of 0.06 s
        (Pace(1e-3, 1e-2, 5e-5, 0.1, 100, {}), 2, 11),  # reading takes ten times as long
        (Pace(1e-3, 1e-4, 5e-5, 0.1, 5e6, {}), 2, 1),  # large inputs
        (Pace(3.0, 1e-4, 5e-5, 0.1, 100, {}), 1, 1),  # slow calls
    ],
)
def test_the_number_of_turns_follows_the_base_s_pace(pace, calls, turns):
    assert count_turns(pace, calls) == turns


def test_earlier_blocks_correct_a_pace_that_other_programs_disturbed():
    disturbed = Pace(1e-2, 1e-3, 5e-5, 0.1, 100, {})
    assert count_turns(disturbed, 2) == 3
    run = ProcessTotals(12, 0.06, 0.05, 0.1, 0.012)
    block = ProcessBlock((run, replace(run, calls=24, wall_s=0.12, in_calls_cpu_s=0.024)), ())
    assert count_turns(disturbed, 2, [block]) == 25
    unknown = replace(block, base=tuple(replace(run, in_calls_cpu_s=None) for run in block.base))
    assert count_turns(disturbed, 2, [unknown]) == 11


def test_every_block_has_a_short_and_a_long_process_of_each_version_in_balanced_orders():
    for order in ORDERS:
        assert len(set(order)) == 4
    first, second = ([arm for arm, _ in order] for order in ORDERS)
    assert first == list(reversed(first)) != second


# -- other processes in sessions --


def ended(cpu_s, *, counts_all_cpu=True):
    nothing = Captured(b"", b"", 0)
    return Completed(
        Ending.EXITED, 0, None, nothing, nothing, b"", False, 1.0, cpu_s, 10.0, counts_all_cpu
    )


def test_other_processes_are_counted_by_round_where_all_of_them_are():
    _, channels = make_pair()
    turns = take_turns(channels, SCHEDULE, make_inputs(13), random.Random(1), never_differs)
    done = {"base": ended(turns.cpu_s["base"]), "candidate": ended(turns.cpu_s["candidate"] + 0.3)}
    others = count_others(turns, done, 1)
    assert others.base == pytest.approx(0.0)
    assert others.candidate == pytest.approx(0.1)
    assert count_others(turns, done, 2) is None  # processes may share the cores
    assert count_others(turns, {"base": done["base"]}, 1) is None
    unknown = done | {"base": ended(9.0, counts_all_cpu=False)}
    assert count_others(turns, unknown, 1) is None


def test_whole_processes_are_announced_when_they_begin_and_only_then():
    began = []

    async def work(timer):
        return await measure(timer, "a", changes_of("a"), RULES, on_totals=began.append)

    anyio.run(work, SimTotalTimer({"a": 0.5}, spread=0.001, checks=(make_check(CONFIRMED),)))
    assert began == []
    anyio.run(work, SimTotalTimer({"a": 1.5}, spread=0.001, checks=(make_check(CONFIRMED),)))
    assert began == ["a"]
