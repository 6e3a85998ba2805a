"""What every executor must do, as tests: make a subclass, and let pytest find it.

::

    from fairtrial.testing.executors import ExecutorConformance

    class TestMine(ExecutorConformance):
        @pytest.fixture
        def executor(self):
            return Mine()

Tests of promises that an executor doesn't make (`is_isolated`) are skipped. Needs pytest; with
``pytest.register_assert_rewrite("fairtrial.testing.executors")`` in a `conftest.py` failures tell
more.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fairtrial.study import Emitted, Executor, FailureKind, Finished, RunStatus, unpack
from fairtrial.testing.executor_driver import HesitantFeed, ListFeed, execute, finish, is_alive
from fairtrial.testing.executor_work import assign, told_by
from fairtrial.testing.journals import JournalConformance

MOST_KEPT = 100_000
MOST_LATE_S = 30.0
"""How long a run with a fifth of a second may last, on a machine that is busy."""


class ExecutorConformance(JournalConformance):
    """The tests. `is_inline`: whether runs happen inside `execute`, which can't do more then."""

    is_inline = False

    @pytest.fixture
    def executor(self) -> Executor:
        """The executor to be tried."""
        raise NotImplementedError

    @pytest.fixture
    def isolated(self, executor: Executor) -> Executor:
        if not executor.is_isolated:
            pytest.skip(f"{executor.name} doesn't promise isolation")
        return executor

    @pytest.fixture
    def outline(self, executor: Executor) -> Executor:
        if self.is_inline:
            pytest.skip(f"{executor.name} can do nothing while a run goes on")
        return executor

    # -- every executor --

    def test_it_has_a_name(self, executor: Executor) -> None:
        assert executor.name
        assert isinstance(executor.is_reproducible, bool)
        assert isinstance(executor.is_isolated, bool)

    @pytest.mark.parametrize("slots", [1, 3])
    def test_every_assignment_is_reported_once(self, executor: Executor, slots: int) -> None:
        feed = ListFeed(assign(turn, told=[turn, "é"]) for turn in range(60))
        reports = list(execute(executor, feed, slots))
        finished = [report for report in reports if isinstance(report, Finished)]
        assert sorted(report.turn for report in finished) == list(range(60))
        for report in finished:
            outcome, body = report.outcome, told_by(report)
            assert (outcome.status, outcome.failure_kind) == (RunStatus.SUCCESS, None)
            assert (outcome.cost_usd, outcome.tokens) == (0.5, 7)
            assert outcome.latency_s == body["ended"] - body["began"]
            assert (body["turn"], body["run_id"]) == (report.turn, f"run-{report.turn}")
            assert body["returned"] == {"told": [report.turn, "é"]}

    def test_nothing_to_do_is_soon_done(self, executor: Executor) -> None:
        assert finish(executor, []) == {}

    @pytest.mark.parametrize("slots", [1, 3])
    def test_it_takes_no_more_than_it_has_slots_for(self, executor: Executor, slots: int) -> None:
        feed = ListFeed(assign(turn) for turn in range(20))
        for report in execute(executor, feed, slots):
            if isinstance(report, Finished):
                assert len(feed.under_way) < slots, "it took more before it reported"
        assert feed.most <= slots

    def test_no_more_runs_go_on_at_once_than_there_are_slots(self, executor: Executor) -> None:
        finished = finish(executor, [assign(turn, "sleep", seconds=0.01) for turn in range(12)], 3)
        bodies = [told_by(report) for report in finished.values()]
        moments = [(body["began"], 1) for body in bodies] + [(body["ended"], -1) for body in bodies]
        running = most = 0
        for _, change in sorted(moments):
            running += change
            most = max(most, running)
        assert most <= 3

    def test_events_come_in_order_and_before_the_end(self, executor: Executor) -> None:
        feed = ListFeed(assign(turn, "emit", count=5) for turn in range(8))
        heard: dict[int, list[Any]] = {turn: [] for turn in range(8)}
        for report in execute(executor, feed, 2):
            if isinstance(report, Emitted):
                heard[report.turn].append(unpack(report.data)["meta"]["number"])
            elif report is not None:
                heard[report.turn].append("end")
        assert all(told == [0, 1, 2, 3, 4, "end"] for told in heard.values())

    def test_events_that_come_after_the_end_belong_to_nobody(self, executor: Executor) -> None:
        later = [assign(turn, "sleep", seconds=0.01) for turn in range(1, 6)]
        feed = ListFeed([assign(0, "emit_late", count=200), *later])
        for report in execute(executor, feed, 1):  # which knows what is under way
            assert report is None or report.turn == 0 or isinstance(report, Finished)

    def test_a_flood_of_events_is_cut_and_counted(self, executor: Executor) -> None:
        feed = ListFeed([assign(0, "emit", count=10_500), assign(1, "emit", count=40, size=10**6)])
        heard: dict[int, list[Any]] = {0: [], 1: []}
        for report in execute(executor, feed, 1):
            if isinstance(report, Emitted):
                heard[report.turn].append(unpack(report.data))
        for events, count in ((heard[0], 10_500), (heard[1], 40)):
            *kept, last = events
            assert len(kept) < count
            assert last["event_type"] == "events_dropped"
            assert last["meta"]["dropped"] == count - len(kept)

    def test_it_waits_as_long_as_it_is_told(self, executor: Executor) -> None:
        feed = HesitantFeed(assign(0), wait_s=0.3)
        reports = list(execute(executor, feed, 2))
        assert isinstance(reports[-1], Finished)
        assert None in reports, "the caller got no chance to do its own work"
        assert feed.asked < 50, "it asked again and again"

    def test_a_run_may_be_handed_out_again_after_the_last(self, executor: Executor) -> None:
        feed = ListFeed([assign(0), assign(1)])
        attempts = []
        for report in execute(executor, feed, 2):
            if isinstance(report, Finished):
                attempts.append((report.turn, report.attempt))
                if report.turn == 1 and report.attempt < 3:
                    feed.waiting.append(assign(1, attempt=report.attempt + 1))
        assert sorted(attempts) == [(0, 1), (1, 1), (1, 2), (1, 3)]

    def test_a_run_that_raises_costs_one_run(self, executor: Executor) -> None:
        finished = finish(executor, [assign(0), assign(1, "leave", code=3), assign(2)])
        assert finished[1].outcome.status is RunStatus.FAILED
        assert "SystemExit(3)" in told_by(finished[1])
        assert {finished[turn].outcome.status for turn in (0, 2)} == {RunStatus.SUCCESS}

    def test_what_is_printed_is_kept_run_by_run(
        self, executor: Executor, capfd: pytest.CaptureFixture[str]
    ) -> None:
        deeds = [assign(turn, "print", out=f"out {turn} é", err=f"err {turn}") for turn in range(6)]
        finished = finish(executor, deeds)
        assert {turn: report.stdout.decode() for turn, report in finished.items()} == {
            turn: f"out {turn} é" for turn in range(6)
        }
        assert {turn: report.stderr.decode() for turn, report in finished.items()} == {
            turn: f"err {turn}" for turn in range(6)
        }
        assert capfd.readouterr() == ("", ""), "it reached the terminal"

    def test_a_flood_of_print_is_cut(self, executor: Executor) -> None:
        line = "x" * 999 + "\n"
        flood = assign(0, "print", out=line, err=line, times=2_000)
        finished = finish(executor, [flood, assign(1, "print", out="a", err="b")], 1)
        for kept in (finished[0].stdout, finished[0].stderr):
            assert len(kept) < MOST_KEPT
            assert b"more bytes]" in kept
        assert (finished[1].stdout, finished[1].stderr) == (b"a", b"b")

    # -- executors that can do something while a run goes on --

    def test_the_caller_gets_its_turn_while_runs_go_on(
        self, outline: Executor, tmp_path: Path
    ) -> None:
        go = tmp_path / "go"
        feed = ListFeed([assign(0, "await_file", path=str(go))])
        silences = 0
        for report in execute(outline, feed, 2):
            silences += report is None
            if silences == 3:
                go.touch()
        assert silences >= 3

    def test_runs_go_on_at_once(self, outline: Executor, tmp_path: Path) -> None:
        go = tmp_path / "go"
        feed = ListFeed(assign(turn, "await_file", path=str(go)) for turn in range(3))
        heard = set()
        for report in execute(outline, feed, 3):
            if isinstance(report, Emitted):
                heard.add(report.turn)
            if heard == {0, 1, 2}:
                go.touch()
        assert not feed.under_way

    def test_a_run_past_its_time_holds_nobody_up(self, outline: Executor, tmp_path: Path) -> None:
        go = tmp_path / "go"
        for limit_s in (0.2, 2.0, 20.0):  # on a busy machine the others may need longer
            slow = assign(0, "await_file", path=str(go), timeout_s=limit_s)
            feed = ListFeed([slow, *(assign(turn, timeout_s=60.0) for turn in range(1, 20))])
            done = [each for each in execute(outline, feed, 2) if isinstance(each, Finished)]
            assert sorted(each.turn for each in done) == list(range(20))
            if done[-1].turn == 0:
                break
        go.touch()
        late = done[-1]
        assert late.turn == 0
        assert late.outcome.status is RunStatus.FAILED
        assert late.outcome.failure_kind is FailureKind.TIMEOUT
        assert limit_s <= late.outcome.latency_s < limit_s + MOST_LATE_S

    def test_a_caller_that_dawdles_makes_nobody_late(self, outline: Executor) -> None:
        for limit_s in (0.2, 2.0, 20.0):  # on a busy machine the run itself may be late
            slow = assign(1, "sleep", seconds=limit_s / 4, timeout_s=limit_s)
            feed = ListFeed([assign(0), slow])
            finished = {}
            for report in execute(outline, feed, 2):
                if isinstance(report, Finished):
                    finished[report.turn] = report
                    if report.turn == 0:
                        time.sleep(1.5 * limit_s)
            if finished[1].outcome.status is RunStatus.SUCCESS:
                break
        assert finished[1].outcome.status is RunStatus.SUCCESS

    def test_an_agents_own_interrupt_costs_one_run(self, outline: Executor) -> None:
        finished = finish(outline, [assign(0), assign(1, "interrupt"), assign(2)])
        assert finished[1].outcome.failure_kind is FailureKind.EXCEPTION
        assert {finished[turn].outcome.status for turn in (0, 2)} == {RunStatus.SUCCESS}

    def test_closing_ends_it_at_once(self, outline: Executor, tmp_path: Path) -> None:
        go = tmp_path / "go"
        feed = ListFeed(assign(turn, "await_file", path=str(go)) for turn in range(3))
        reports = execute(outline, feed, 3)
        pids: list[int] = []
        for report in reports:
            if isinstance(report, Emitted):
                pids.append(unpack(report.data)["meta"]["pid"])
                if len(pids) == 3:
                    break
        began = time.monotonic()
        assert isinstance(reports, Generator)
        reports.close()
        assert time.monotonic() - began < 30, "it waited for what still ran"
        go.touch()
        if outline.is_isolated:
            assert not any(map(is_alive, pids)), "a worker was left behind"

    # -- executors that promise isolation --

    @pytest.mark.parametrize(
        ("deed", "told", "status", "kind", "words"),
        [
            ("leave_at_once", {"code": 3}, RunStatus.FAILED, FailureKind.EXIT, "exit code 3"),
            ("leave_at_once", {"code": 0}, RunStatus.FAILED, FailureKind.EXIT, "exit code 0"),
            ("die_of", {"name": "SIGSEGV"}, RunStatus.FAILED, FailureKind.CRASH, "SIGSEGV"),
            ("die_of", {"name": "SIGABRT"}, RunStatus.FAILED, FailureKind.CRASH, "SIGABRT"),
            ("die_of", {"name": "SIGTERM"}, RunStatus.FAILED, FailureKind.CRASH, "SIGTERM"),
            ("die_of", {"name": "SIGKILL"}, RunStatus.BROKEN, FailureKind.KILLED, "SIGKILL"),
        ],
    )
    def test_a_process_that_dies_costs_one_run(
        self,
        isolated: Executor,
        deed: str,
        told: dict[str, Any],
        status: RunStatus,
        kind: FailureKind,
        words: str,
    ) -> None:
        bad = [assign(turn, deed, **told) for turn in (1, 4)]
        good = [assign(turn) for turn in (0, 2, 3, 5)]
        finished = finish(isolated, sorted([*bad, *good], key=lambda each: each.turn))
        for turn in (1, 4):
            outcome = finished[turn].outcome
            assert (outcome.status, outcome.failure_kind) == (status, kind)
            assert words in told_by(finished[turn])
        assert all(finished[turn].outcome.status is RunStatus.SUCCESS for turn in (0, 2, 3, 5))

    def test_what_was_said_before_a_crash_is_kept(self, isolated: Executor) -> None:
        feed = ListFeed([assign(0, "die_of", name="SIGSEGV")])
        reports = [report for report in execute(isolated, feed, 1) if report is not None]
        assert [type(report) for report in reports] == [Emitted, Finished]
        assert isinstance(reports[-1], Finished)
        assert reports[-1].stdout == b"about to die\n"

    def test_a_run_that_hangs_is_ended(self, isolated: Executor) -> None:
        deeds = [assign(0, "hang", timeout_s=0.2), assign(1), assign(2)]
        finished = finish(isolated, deeds, 1)
        assert finished[0].outcome.failure_kind is FailureKind.TIMEOUT
        assert finished[0].outcome.latency_s < MOST_LATE_S
        assert {finished[turn].outcome.status for turn in (1, 2)} == {RunStatus.SUCCESS}
