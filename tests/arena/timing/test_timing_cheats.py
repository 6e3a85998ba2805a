"""Real sessions in real sandboxes: cheats don't win, and honest candidates are not accused."""

import random
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import cheats_kit
import pytest
from anyio.from_thread import start_blocking_portal
from arena_kit import whole
from cheats_kit import written
from clock_kit import SCHEDULE, make_inputs, make_pair, make_session, never_differs
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    Benchmark,
    Check,
    CodeProblem,
    Pair,
    Reason,
    TotalVerdict,
    Verdict,
    open_arena,
)
from fairtrial.arena.timing.bench import frozen_stage
from fairtrial.arena.timing.hidden_work import count_hidden
from fairtrial.arena.timing.session import take_turns
from fairtrial.arena.timing.stats.reconciliation import SavingClaim
from fairtrial.arena.timing.summary import replicate_statistics, summarize
from fairtrial.sandbox import Captured, Completed, Ending
from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        all(try_sandbox(sandbox) for sandbox in FULL_SANDBOXES), reason="no full sandbox works here"
    ),
]
BUDGET_S = 600.0
CALLS, ROUNDS = 4, 11
TOTAL_S = 30.0


@dataclass(frozen=True)
class Laboratory:
    """One bench for all candidates; each is timed alone."""

    portal: object
    arena: object
    bench: object

    def run(self, text, *, sessions=4, benchmark="work"):
        """What came of these sessions."""
        benchmarks = tuple(
            item for item in self.bench.benchmarks if item.benchmark.name == benchmark
        )
        bench = replace(self.bench, benchmarks=benchmarks)
        changes = self.portal.call(self.arena.resolve, whole("it", text, "src/lab.py"))
        return self.portal.call(bench.run, changes, text, 0, sessions, BUDGET_S)

    def check_total(self, text, ratio, *, benchmark="work"):
        """What whole processes say of a claimed ratio."""
        changes = self.portal.call(self.arena.resolve, whole("it", text, "src/lab.py"))
        claims = {benchmark: SavingClaim(ratio, ratio, ratio)}
        batch = self.portal.call(self.bench.check_totals, changes, text, claims, TOTAL_S)
        assert batch.rejection is None, batch.rejection
        (check,) = batch.checks
        return check

    def measure(self, text, **options):
        """What is said of it."""
        batch = self.run(text, **options)
        assert batch.rejection is None, batch.rejection
        return summarize(batch.replicates, alpha=0.05, min_effect=0.02)

    def measure_until(self, is_told, text, *, sessions=4, **options):
        """The same; in more and more sessions as long as others have the core and it isn't told."""
        for times in (1, 2, 4):
            found = self.measure(text, sessions=times * sessions, **options)
            if is_told(found) or not was_disturbed(found):
                break
        return found


def was_disturbed(found):
    """Whether the base, which never waits here, had the core for a part of its time only."""
    return any("had the core" in note for timing in found.timings for note in timing.notes)


def is_slower(found):
    return sum(replicate_statistics([(session,) for session in found.sessions])) > 0


def is_accused(found):
    return found.adopt or found.vetoes  # who is taken has got away with it


@asynccontextmanager
async def opened(problem, settings):
    async with open_arena(problem, settings=settings) as arena, arena.bench() as bench:
        # The same however busy the machine is while the base is timed.
        benchmarks = [
            replace(
                benchmark,
                benchmark=replace(
                    benchmark.benchmark, schedule=_steady(benchmark.benchmark.schedule)
                ),
            )
            for benchmark in bench.benchmarks
        ]
        yield arena, replace(bench, benchmarks=tuple(benchmarks))


def _steady(schedule):
    return replace(schedule, calls=max(schedule.calls, CALLS), rounds=ROUNDS, timeout_s=60.0)


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    names = ("work", "squares", "settle", "refuse", "answer", "fill", "report", "scale")
    problem = CodeProblem(
        "lab",
        folder=make_repository(tmp_path_factory.mktemp("lab") / "repo", cheats_kit.FILES),
        python=sys.executable,
        check=(Check(function="lab:work", inputs="inputs.py:numbers", cases=2),),
        bench=tuple(
            Benchmark(name, f"lab:{name}", f"inputs.py:{'grid' if name == 'scale' else 'numbers'}")
            for name in names
        ),
    )
    settings = ArenaSettings(lock_folder=tmp_path_factory.mktemp("lock"))
    with start_blocking_portal() as portal:
        context = opened(problem, settings)
        with portal.wrap_async_context_manager(context) as (arena, bench):
            yield Laboratory(portal, arena, bench)


def named(table):
    """Parameters with readable names."""
    return [pytest.param(text, id=name.replace(" ", "-")) for name, text in table.items()]


# -- cheats --


@pytest.mark.parametrize("text", named(cheats_kit.POINTLESS))
def test_what_is_slower_comes_out_slower_whatever_it_does_to_clocks(laboratory, text):
    found = laboratory.measure_until(is_slower, written(text), sessions=2)
    assert is_slower(found), found
    assert not found.adopt


@pytest.mark.parametrize("text", named(cheats_kit.WRONG))
def test_results_that_are_not_there_are_wrong(laboratory, text):
    rejection = laboratory.run(written(text), sessions=1).rejection
    assert rejection is not None
    assert rejection.reason == Reason.DIFFERENT
    assert "while it was timed, lab:work gave something else than the base" in rejection.message
    assert rejection.failures[0].differences


def test_what_is_not_printed_while_it_is_timed_is_missed(laboratory):
    quiet = written(cheats_kit.QUIET)
    rejection = laboratory.run(quiet, sessions=1, benchmark="report").rejection
    assert rejection.reason == Reason.DIFFERENT
    assert "printed something else than the base" in rejection.message
    assert "should be some output, is nothing" in rejection.message
    honest = laboratory.run(written("work = _work"), sessions=1, benchmark="report")
    assert honest.rejection is None
    loud = laboratory.run(written(cheats_kit.LOUD), sessions=1)
    assert "should be nothing, is some output" in loud.rejection.message


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("leaves", "it ended before it was done; the process exited with 0"),
        ("leaves after some calls", "it ended before it was done; the process exited with 0"),
        ("writes replies to whatever is open", "it sent something else than the requested reply"),
        ("replies with fewer results", "0 results of "),
        ("a reply that is too large", "it sent something else than the requested reply"),
    ],
)
def test_a_worker_that_breaks_the_protocol_is_rejected(laboratory, name, why):
    rejection = laboratory.run(written(cheats_kit.BROKEN[name]), sessions=1).rejection
    assert rejection is not None
    assert rejection.reason == Reason.CRASH
    assert rejection.message.startswith("work: while it was timed, " + why)


@pytest.mark.parametrize("text", named(cheats_kit.ELSEWHEN))
def test_work_that_is_done_at_another_time_speaks_against_it(laboratory, text):
    found = laboratory.measure_until(is_accused, written(text))
    assert not found.adopt
    assert any("while the clock doesn't run" in veto for veto in found.vetoes), found


@pytest.mark.parametrize("text", named(cheats_kit.OTHERS))
def test_work_of_other_processes_speaks_against_it(laboratory, text):
    found = laboratory.measure_until(is_accused, written(text))
    assert not found.adopt
    kinds = ("is done while the clock doesn't run", "is left to other processes")
    assert any(kind in veto for veto in found.vetoes for kind in kinds), found


def test_a_child_does_not_get_to_another_core(laboratory):
    text = written(cheats_kit.ANOTHER_CORE)
    found = laboratory.measure_until(lambda found: not found.adopt, text, sessions=6)
    assert not found.adopt, found


def test_no_process_leaves_the_timed_cores(laboratory):
    bench = laboratory.bench
    ask = "os.sched_setaffinity(0, range(os.cpu_count())); print(*os.sched_getaffinity(0))"
    stage = frozen_stage(bench.resources, bench.base)
    argv = ["{python}", "-c", f"import os; {ask}"]
    command = stage.command(argv, timeout_s=60, cores=bench.cores)
    done = laboratory.portal.call(stage.run, command)
    assert done.exit_code == 0, done.stderr.text
    assert done.stdout.text.split() == [str(core) for core in bench.cores]


def test_timed_commands_cannot_arm_timers_that_would_interrupt_others(laboratory):
    bench = laboratory.bench
    stage = frozen_stage(bench.resources, bench.base)
    ask = "import ctypes; print(ctypes.CDLL(None).timerfd_create(1, 0))"
    done = []
    for cores in (bench.cores, ()):
        command = stage.command(["{python}", "-c", ask], timeout_s=60, cores=cores)
        done.append(laboratory.portal.call(stage.run, command))
    assert done[0].stdout.text.strip() == "-1"
    assert int(done[1].stdout.text) >= 0


@pytest.mark.parametrize("text", named(cheats_kit.BEFORE))
def test_work_that_is_done_once_before_counts_as_start_up(laboratory, text):
    found = laboratory.measure_until(is_accused, written(text))
    assert not found.adopt
    assert any("to start and get going" in veto for veto in found.vetoes), found


@pytest.mark.parametrize(
    "text", named(cheats_kit.SPLIT | cheats_kit.ELSEWHEN | {"nothing": "work = _more"})
)
def test_no_work_escapes_the_total_of_whole_processes(laboratory, text):
    check = laboratory.check_total(written(text), 10.0)
    assert check.verdict != TotalVerdict.CONFIRMED, check
    assert check.share < 0.5


def test_work_before_the_clock_is_in_the_total_where_reading_takes_long(laboratory):
    pytest.importorskip("numpy")
    check = laboratory.check_total(written(cheats_kit.BEFORE_READ), 26.0, benchmark="scale")
    assert check.verdict != TotalVerdict.CONFIRMED, check


# -- honest candidates --


def test_an_honest_saving_appears_in_the_total_of_whole_processes(laboratory):
    check = laboratory.check_total(cheats_kit.TWICE + cheats_kit.MORE, 1.9)
    assert check.verdict == TotalVerdict.CONFIRMED, check
    assert check.candidate_s < check.base_s


@pytest.mark.parametrize("text", named(cheats_kit.HONEST_ARRAYS))
def test_honest_candidates_for_arrays_are_not_accused(laboratory, text):
    pytest.importorskip("numpy")
    found = laboratory.measure_until(is_spared, written(text), benchmark="scale", sessions=6)
    assert not any("is done while the clock" in veto for veto in found.vetoes), found


def is_spared(found):
    return not found.vetoes


def test_a_candidate_twice_as_fast_is_adopted(laboratory):
    text = cheats_kit.TWICE + cheats_kit.MORE
    found = laboratory.measure_until(lambda found: found.adopt, text, sessions=6)
    assert (found.adopt, found.vetoes) == (True, ()), found
    assert found.verdict == Verdict.FASTER


@pytest.mark.parametrize(
    ("benchmark", "text"),
    [pytest.param(*case, id=name.replace(" ", "-")) for name, case in cheats_kit.HONEST.items()],
)
def test_honest_candidates_are_not_accused(laboratory, benchmark, text):
    found = laboratory.measure_until(is_spared, written(text), benchmark=benchmark, sessions=3)
    assert found.vetoes == ()


def test_arrays_are_compared_and_timed(laboratory):
    pytest.importorskip("numpy")
    text = written(cheats_kit.ARRAYS)
    found = laboratory.measure_until(is_spared, text, benchmark="fill", sessions=2)
    assert found.vetoes == ()


def test_arrays_that_are_wrong_are_found_out(laboratory):
    pytest.importorskip("numpy")
    text = "def fill(numbers):\n    import numpy\n    return numpy.outer(numbers, numbers)\n"
    rejection = laboratory.run(written(text), benchmark="fill", sessions=1).rejection
    assert rejection is not None
    assert rejection.reason == Reason.DIFFERENT


# -- what finds them out, by simulated clocks --


def take(channels, rounds=11):
    schedule = replace(SCHEDULE, rounds=rounds)
    inputs = make_inputs(1 + schedule.calls * rounds)
    return take_turns(channels, schedule, inputs, random.Random(1), never_differs)


@pytest.mark.parametrize("turn", [0, 1, 4, 11])
def test_work_of_a_single_turn_is_part_of_start_up(turn):
    _, channels = make_pair()
    worker, turns = channels["candidate"], iter(range(99))
    ask = worker.ask

    def ask_and_work(letter, payload=b"", *, timeout_s):
        reply = ask(letter, payload, timeout_s=timeout_s)
        if letter == b"G" and next(turns) == turn:
            worker._used_s += 0.5
            return replace(reply, wall_s=reply.wall_s + 0.5, cpu_s=reply.cpu_s + 0.5)
        return reply

    worker.ask = ask_and_work
    started = take(channels).startup_s
    assert started.base == pytest.approx(0.375, abs=0.01)
    assert started.candidate == pytest.approx(0.875, abs=0.01)


def test_turns_that_all_take_long_are_not_part_of_start_up():
    _, channels = make_pair(call_s=7.0, spread=0.05)
    assert take(channels).startup_s.candidate == pytest.approx(0.375, abs=0.01)


def ended(cpu_s):
    nothing = Captured(b"", b"", 0)
    return Completed(Ending.EXITED, 0, None, nothing, nothing, b"", False, 1.0, cpu_s, 10.0)


def elsewhere(turns, *, base=0.0, candidate=0.0, cores=1):
    """What is added to a candidate's work outside when other processes took so long."""
    own = turns.cpu_s
    done = {"base": ended(own["base"] + base), "candidate": ended(own["candidate"] + candidate)}
    counted = count_hidden(turns, done, cores)
    usual = turns.outside_s
    return (counted.candidate - usual.candidate) - (counted.base - usual.base)


def test_other_processes_are_counted_beyond_what_the_base_s_do():
    turns = take(make_pair()[1])
    assert elsewhere(turns, candidate=1.1) == pytest.approx(0.1, rel=0.01)
    assert elsewhere(turns, base=0.05, candidate=0.05) == pytest.approx(0.0, abs=1e-6)


def test_processes_that_are_waited_for_while_the_clock_runs_are_not_counted():
    turns = take(make_pair(call_s=0.002, cpu_share=0.1)[1])
    waited_s = 0.9 * 0.002 * (1 + 11 * SCHEDULE.calls)
    assert elsewhere(turns, candidate=waited_s) == pytest.approx(0.0, abs=1e-4)
    assert elsewhere(turns, candidate=waited_s + 1.1) == pytest.approx(0.1, rel=0.01)


def test_threads_on_cores_that_were_not_given_are_counted():
    turns = take(make_pair(call_s=0.001, cpu_share=2.0)[1])
    assert elsewhere(turns) == pytest.approx(0.001 * SCHEDULE.calls, rel=0.2)
    assert elsewhere(turns, cores=2) == pytest.approx(0.0, abs=1e-6)


def test_a_candidate_that_gets_more_of_a_busy_core_than_the_base_is_not_blamed():
    turns = take(make_pair({"call_s": 0.002, "cpu_share": 0.5}, call_s=0.001)[1])
    assert elsewhere(turns) == pytest.approx(0.0, abs=1e-6)


def sum_up(sessions):
    return summarize([(session,) for session in sessions], alpha=0.05, min_effect=0.02)


def sessions_with(ratio, shares, **figures):
    """Sessions whose candidate does such shares of the base's samples outside of its own."""
    made = []
    for number, share in enumerate(shares):
        session = make_session(ratio * (1 + 0.001 * (number % 3)), number=number)
        sample_s = next(
            sample.cpu_s for sample in session.samples if sample.arm == "base" and sample.calls
        )
        made.append(replace(session, **{**figures, "outside_s": Pair(0.0, share * sample_s)}))
    return made


def test_idling_in_one_session_does_not_hide_work_outside_in_the_others():
    found = sum_up(sessions_with(0.1, [0.9, 0.9, 500.0, 0.9, 0.9, 0.9]))
    assert (found.verdict, found.adopt, len(found.vetoes)) == (Verdict.FASTER, False, 1)


@pytest.mark.parametrize(
    ("ratio", "share", "is_taken"),
    [(0.92, 0.08, False), (0.5, 0.08, True), (0.92, 0.01, True), (0.92, 0.0, True)],
)
def test_a_gain_is_not_what_is_done_outside(ratio, share, is_taken):
    assert sum_up(sessions_with(ratio, [share] * 6)).adopt == is_taken


def test_work_outside_in_some_sessions_only_is_neither_reported_as_agreed_nor_adopted():
    found = sum_up(sessions_with(0.2, [0.0, 1.0, 0.0, 0.9, 0.1, 0.0]))
    assert (found.verdict, found.adopt) == (Verdict.FASTER, False)
    (veto,) = found.vetoes
    assert veto.startswith("b: in 2 of 6 sessions work was done while the clock doesn't run")
    assert sum_up(sessions_with(0.2, [0.0, 0.09, -0.09, 0.09, 0.0, 0.09])).adopt


def test_a_worker_that_delays_its_results_is_detected():
    stalled = [replace(item, stalled_s=Pair(0.0, 1.0)) for item in sessions_with(0.5, [0.0] * 6)]
    assert "while the clock doesn't run" in sum_up(stalled).vetoes[0]
