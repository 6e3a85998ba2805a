"""Conformance tests for executors. Make a subclass in a test file of yours:

::

    from fairtrial.testing.executors import ExecutorConformance

    class TestMine(ExecutorConformance):
        @pytest.fixture
        def executor(self):
            return Mine()

Tests of what an executor doesn't claim (`is_isolated`) are skipped. Needs pytest; for detailed
failures put ``pytest.register_assert_rewrite("fairtrial.testing.executors")`` into a `conftest.py`.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fairtrial import RunStatus
from fairtrial.study import executors
from fairtrial.testing.executor_driver import DelayedFeed, ListFeed, execute, is_alive, run_all
from fairtrial.testing.executor_journals import JournalConformance
from fairtrial.testing.executor_work import assign, read_body

MAX_OUTPUT_BYTES = 100_000
MAX_DELAY_S = 30.0
"""How much later than its time limit a run may end on a busy machine."""


class ExecutorConformance(JournalConformance):
    """The tests of executors.

    is_inline: whether runs happen inside `execute`, which can't act during a run then
    """

    is_inline = False

    @pytest.fixture
    def executor(self) -> executors.Executor:
        """The tested executor; override it."""
        raise NotImplementedError

    @pytest.fixture
    def isolated(self, executor: executors.Executor) -> executors.Executor:
        """The tested executor; skips the test if it doesn't claim isolation."""
        if not executor.is_isolated:
            pytest.skip(f"{executor.name} doesn't claim isolation")
        return executor

    @pytest.fixture
    def concurrent(self, executor: executors.Executor) -> executors.Executor:
        """The tested executor; skips the test if it is inline."""
        if self.is_inline:
            pytest.skip(f"{executor.name} can't act during a run")
        return executor

    # -- every executor --

    def test_the_executor_has_a_name(self, executor: executors.Executor) -> None:
        assert executor.name
        assert isinstance(executor.is_reproducible, bool)
        assert isinstance(executor.is_isolated, bool)

    @pytest.mark.parametrize("slots", [1, 3])
    def test_every_assignment_is_reported_once(
        self, executor: executors.Executor, slots: int
    ) -> None:
        feed = ListFeed(assign(turn, argument=[turn, "é"]) for turn in range(60))
        reports = list(execute(executor, feed, slots))
        finished = [report for report in reports if isinstance(report, executors.Finished)]
        assert sorted(report.execution_index for report in finished) == list(range(60))
        for report in finished:
            outcome, body = report.outcome, read_body(report)
            assert (outcome.status, outcome.failure_kind) == (RunStatus.SUCCESS, None)
            assert (outcome.cost_usd, outcome.tokens) == (0.5, 7)
            assert outcome.latency_s == body["ended"] - body["began"]
            assert (body["turn"], body["run_id"]) == (
                report.execution_index,
                f"run-{report.execution_index}",
            )
            assert body["returned"] == {"argument": [report.execution_index, "é"]}

    def test_an_empty_feed_ends_at_once(self, executor: executors.Executor) -> None:
        assert run_all(executor, []) == {}

    @pytest.mark.parametrize("slots", [1, 3])
    def test_no_more_assignments_are_taken_than_there_are_slots(
        self, executor: executors.Executor, slots: int
    ) -> None:
        feed = ListFeed(assign(turn) for turn in range(20))
        for report in execute(executor, feed, slots):
            if isinstance(report, executors.Finished):
                assert len(feed.running) < slots, "it took more before it reported"
        assert feed.max_running <= slots

    def test_no_more_runs_are_active_than_there_are_slots(
        self, executor: executors.Executor
    ) -> None:
        finished = run_all(executor, [assign(turn, "sleep", seconds=0.01) for turn in range(12)], 3)
        bodies = [read_body(report) for report in finished.values()]
        moments = [(body["began"], 1) for body in bodies] + [(body["ended"], -1) for body in bodies]
        running = most = 0
        for _, change in sorted(moments):
            running += change
            most = max(most, running)
        assert most <= 3

    def test_events_are_reported_in_order_and_before_the_end_of_the_run(
        self, executor: executors.Executor
    ) -> None:
        feed = ListFeed(assign(turn, "emit", count=5) for turn in range(8))
        received: dict[int, list[Any]] = {turn: [] for turn in range(8)}
        for report in execute(executor, feed, 2):
            if isinstance(report, executors.Emitted):
                received[report.execution_index].append(
                    executors.unpack(report.data)["meta"]["number"]
                )
            elif report is not None:
                received[report.execution_index].append("end")
        assert all(events == [0, 1, 2, 3, 4, "end"] for events in received.values())

    def test_events_after_the_end_of_a_run_are_not_credited_to_another_run(
        self, executor: executors.Executor
    ) -> None:
        later = [assign(turn, "sleep", seconds=0.01) for turn in range(1, 6)]
        feed = ListFeed([assign(0, "emit_late", count=200), *later])
        for report in execute(executor, feed, 1):  # which checks what is running
            assert (
                report is None
                or report.execution_index == 0
                or isinstance(report, executors.Finished)
            )

    def test_too_many_events_are_dropped_and_counted(self, executor: executors.Executor) -> None:
        feed = ListFeed([assign(0, "emit", count=10_500), assign(1, "emit", count=40, size=10**6)])
        received: dict[int, list[Any]] = {0: [], 1: []}
        for report in execute(executor, feed, 1):
            if isinstance(report, executors.Emitted):
                received[report.execution_index].append(executors.unpack(report.data))
        for events, count in ((received[0], 10_500), (received[1], 40)):
            *kept, last = events
            assert len(kept) < count
            assert last["event_type"] == "events_dropped"
            assert last["meta"]["dropped"] == count - len(kept)

    def test_an_executor_waits_as_long_as_the_feed_asks(self, executor: executors.Executor) -> None:
        feed = DelayedFeed(assign(0), wait_s=0.3)
        reports = list(execute(executor, feed, 2))
        assert isinstance(reports[-1], executors.Finished)
        assert None in reports, "the caller got no chance to do its own work"
        assert feed.call_count < 50, "it asked again and again"

    def test_the_feed_may_return_a_run_again_after_the_last_one(
        self, executor: executors.Executor
    ) -> None:
        feed = ListFeed([assign(0), assign(1)])
        attempts = []
        for report in execute(executor, feed, 2):
            if isinstance(report, executors.Finished):
                attempts.append((report.execution_index, report.attempt))
                if report.execution_index == 1 and report.attempt < 3:
                    feed.waiting.append(assign(1, attempt=report.attempt + 1))
        assert sorted(attempts) == [(0, 1), (1, 1), (1, 2), (1, 3)]

    def test_an_exception_in_a_run_affects_that_run_only(
        self, executor: executors.Executor
    ) -> None:
        finished = run_all(executor, [assign(0), assign(1, "leave", code=3), assign(2)])
        assert finished[1].outcome.status is RunStatus.FAILED
        assert "SystemExit(3)" in read_body(finished[1])
        assert {finished[turn].outcome.status for turn in (0, 2)} == {RunStatus.SUCCESS}

    def test_printed_output_is_kept_separately_for_each_run(
        self, executor: executors.Executor, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assignments = [
            assign(turn, "print", out=f"out {turn} é", err=f"err {turn}") for turn in range(6)
        ]
        finished = run_all(executor, assignments)
        assert {turn: report.stdout.decode() for turn, report in finished.items()} == {
            turn: f"out {turn} é" for turn in range(6)
        }
        assert {turn: report.stderr.decode() for turn, report in finished.items()} == {
            turn: f"err {turn}" for turn in range(6)
        }
        assert capfd.readouterr() == ("", ""), "it reached the terminal"

    def test_too_much_printed_output_is_truncated(self, executor: executors.Executor) -> None:
        line = "x" * 999 + "\n"
        flood = assign(0, "print", out=line, err=line, times=2_000)
        finished = run_all(executor, [flood, assign(1, "print", out="a", err="b")], 1)
        for kept in (finished[0].stdout, finished[0].stderr):
            assert len(kept) < MAX_OUTPUT_BYTES
            assert b"more bytes]" in kept
        assert (finished[1].stdout, finished[1].stderr) == (b"a", b"b")

    # -- executors that can act during a run --

    def test_the_caller_gets_control_regularly_during_runs(
        self, concurrent: executors.Executor, tmp_path: Path
    ) -> None:
        go = tmp_path / "go"
        feed = ListFeed([assign(0, "await_file", path=str(go))])
        silences = 0
        for report in execute(concurrent, feed, 2):
            silences += report is None
            if silences == 3:
                go.touch()
        assert silences >= 3

    def test_runs_are_executed_concurrently(
        self, concurrent: executors.Executor, tmp_path: Path
    ) -> None:
        go = tmp_path / "go"
        feed = ListFeed(assign(turn, "await_file", path=str(go)) for turn in range(3))
        received = set()
        for report in execute(concurrent, feed, 3):
            if isinstance(report, executors.Emitted):
                received.add(report.execution_index)
            if received == {0, 1, 2}:
                go.touch()
        assert not feed.running

    def test_a_run_over_its_time_limit_delays_no_other_run(
        self, concurrent: executors.Executor, tmp_path: Path
    ) -> None:
        go = tmp_path / "go"
        for limit_s in (0.2, 2.0, 20.0):  # on a busy machine the other runs may need longer
            slow = assign(0, "await_file", path=str(go), timeout_s=limit_s)
            feed = ListFeed([slow, *(assign(turn, timeout_s=60.0) for turn in range(1, 20))])
            reports = execute(concurrent, feed, 2)
            finished = [report for report in reports if isinstance(report, executors.Finished)]
            assert sorted(report.execution_index for report in finished) == list(range(20))
            if finished[-1].execution_index == 0:
                break
        go.touch()
        late = finished[-1]
        assert late.execution_index == 0
        assert late.outcome.status is RunStatus.FAILED
        assert late.outcome.failure_kind is executors.FailureKind.TIMEOUT
        assert limit_s <= late.outcome.latency_s < limit_s + MAX_DELAY_S

    def test_a_slow_caller_does_not_make_a_run_time_out(
        self, concurrent: executors.Executor
    ) -> None:
        for limit_s in (0.2, 2.0, 20.0):  # on a busy machine the run itself may be late
            slow = assign(1, "sleep", seconds=limit_s / 4, timeout_s=limit_s)
            feed = ListFeed([assign(0), slow])
            finished = {}
            for report in execute(concurrent, feed, 2):
                if isinstance(report, executors.Finished):
                    finished[report.execution_index] = report
                    if report.execution_index == 0:
                        time.sleep(1.5 * limit_s)
            if finished[1].outcome.status is RunStatus.SUCCESS:
                break
        assert finished[1].outcome.status is RunStatus.SUCCESS

    def test_a_keyboard_interrupt_raised_by_an_agent_affects_that_run_only(
        self, concurrent: executors.Executor
    ) -> None:
        finished = run_all(concurrent, [assign(0), assign(1, "interrupt"), assign(2)])
        assert finished[1].outcome.failure_kind is executors.FailureKind.EXCEPTION
        assert {finished[turn].outcome.status for turn in (0, 2)} == {RunStatus.SUCCESS}

    def test_closing_the_executor_ends_all_runs_at_once(
        self, concurrent: executors.Executor, tmp_path: Path
    ) -> None:
        go = tmp_path / "go"
        feed = ListFeed(assign(turn, "await_file", path=str(go)) for turn in range(3))
        reports = execute(concurrent, feed, 3)
        pids: list[int] = []
        for report in reports:
            if isinstance(report, executors.Emitted):
                pids.append(executors.unpack(report.data)["meta"]["pid"])
                if len(pids) == 3:
                    break
        began = time.monotonic()
        assert isinstance(reports, Generator)
        reports.close()
        assert time.monotonic() - began < 30, "it waited for what still ran"
        go.touch()
        if concurrent.is_isolated:
            assert not any(map(is_alive, pids)), "a worker was left behind"

    # -- executors that claim isolation --

    @pytest.mark.parametrize(
        ("action", "arguments", "status", "kind", "words"),
        [
            (
                "leave_at_once",
                {"code": 3},
                RunStatus.FAILED,
                executors.FailureKind.EXIT,
                "exit code 3",
            ),
            (
                "leave_at_once",
                {"code": 0},
                RunStatus.FAILED,
                executors.FailureKind.EXIT,
                "exit code 0",
            ),
            (
                "die_of",
                {"name": "SIGSEGV"},
                RunStatus.FAILED,
                executors.FailureKind.CRASH,
                "SIGSEGV",
            ),
            (
                "die_of",
                {"name": "SIGABRT"},
                RunStatus.FAILED,
                executors.FailureKind.CRASH,
                "SIGABRT",
            ),
            (
                "die_of",
                {"name": "SIGTERM"},
                RunStatus.FAILED,
                executors.FailureKind.CRASH,
                "SIGTERM",
            ),
            (
                "die_of",
                {"name": "SIGKILL"},
                RunStatus.BROKEN,
                executors.FailureKind.KILLED,
                "SIGKILL",
            ),
        ],
    )
    def test_a_worker_process_that_dies_costs_one_run(
        self,
        isolated: executors.Executor,
        action: str,
        arguments: dict[str, Any],
        status: RunStatus,
        kind: executors.FailureKind,
        words: str,
    ) -> None:
        bad = [assign(turn, action, **arguments) for turn in (1, 4)]
        good = [assign(turn) for turn in (0, 2, 3, 5)]
        finished = run_all(
            isolated, sorted([*bad, *good], key=lambda assignment: assignment.execution_index)
        )
        for turn in (1, 4):
            outcome = finished[turn].outcome
            assert (outcome.status, outcome.failure_kind) == (status, kind)
            assert words in read_body(finished[turn])
        assert all(finished[turn].outcome.status is RunStatus.SUCCESS for turn in (0, 2, 3, 5))

    def test_events_and_output_before_a_crash_are_kept(self, isolated: executors.Executor) -> None:
        feed = ListFeed([assign(0, "die_of", name="SIGSEGV")])
        reports = [report for report in execute(isolated, feed, 1) if report is not None]
        assert [type(report) for report in reports] == [executors.Emitted, executors.Finished]
        assert isinstance(reports[-1], executors.Finished)
        assert reports[-1].stdout == b"about to die\n"

    def test_a_hanging_run_is_ended_at_its_time_limit(self, isolated: executors.Executor) -> None:
        assignments = [assign(0, "hang", timeout_s=0.2), assign(1), assign(2)]
        finished = run_all(isolated, assignments, 1)
        assert finished[0].outcome.failure_kind is executors.FailureKind.TIMEOUT
        assert finished[0].outcome.latency_s < MAX_DELAY_S
        assert {finished[turn].outcome.status for turn in (1, 2)} == {RunStatus.SUCCESS}
