"""Conformance tests for the journals of runs; part of `fairtrial.testing.executors`."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fairtrial.study import executors
from fairtrial.testing.executor_driver import STUCK_AFTER_S, ListFeed, execute, is_alive, run_all
from fairtrial.testing.executor_work import assign, read_body

POLL_S = 0.005


class JournalConformance:
    """The tests of journals, for executors that aren't inline: inline ones pass no `note`."""

    @pytest.fixture
    def concurrent(self) -> executors.Executor:
        """The tested executor, if it can act during a run."""
        raise NotImplementedError

    def test_a_note_is_durable_before_the_run_continues(
        self, concurrent: executors.Executor
    ) -> None:
        feed = ListFeed(assign(turn, "note", count=5) for turn in range(4))
        received: dict[int, list[Any]] = {turn: [] for turn in range(4)}
        received_s: dict[int, list[float]] = {turn: [] for turn in range(4)}
        for report in execute(concurrent, feed, 2):
            if isinstance(report, executors.Noted):
                received[report.execution_index].append(executors.unpack(report.data))
                received_s[report.execution_index].append(time.monotonic())
            elif isinstance(report, executors.Finished):
                received[report.execution_index].append("end")
                times = read_body(report)["returned"]["times"]
                pairs = zip(times, received_s[report.execution_index], strict=True)
                assert all(went_on >= noted for went_on, noted in pairs), "it didn't wait"
        assert all(notes == [0, 1, 2, 3, 4, "end"] for notes in received.values())

    def test_an_assignment_holds_the_notes_of_earlier_attempts(
        self, concurrent: executors.Executor
    ) -> None:
        earlier = (executors.pack("a"), executors.pack({"b": "x" * 300_000}))
        first = assign(0, "note", count=0)._replace(journal=earlier)
        finished = run_all(concurrent, [first, assign(1, "note", count=0)], 1)
        notes = [read_body(finished[turn])["returned"]["earlier"] for turn in (0, 1)]
        assert notes == [["a", {"b": "x" * 300_000}], []]

    def test_several_threads_of_a_run_can_note_concurrently(
        self, concurrent: executors.Executor
    ) -> None:
        feed = ListFeed([assign(0, "note_at_once", threads=8), assign(1)])
        reports = list(execute(concurrent, feed, 1))
        noted = [
            executors.unpack(report.data)
            for report in reports
            if isinstance(report, executors.Noted)
        ]
        assert sorted(noted) == list(range(8))

    def test_notes_after_the_end_of_a_run_are_not_credited_to_another_run(
        self, concurrent: executors.Executor
    ) -> None:
        later = [assign(turn, "sleep", seconds=0.01) for turn in range(1, 6)]
        feed = ListFeed([assign(0, "note_late", count=100), *later])
        for report in execute(concurrent, feed, 1):  # which checks what is running
            assert (
                report is None
                or report.execution_index == 0
                or isinstance(report, executors.Finished)
            )

    def test_closing_the_executor_ends_a_run_that_waits_for_its_note(
        self, concurrent: executors.Executor, tmp_path: Path
    ) -> None:
        kept, refused = tmp_path / "kept", tmp_path / "refused"
        feed = ListFeed([assign(0, "note_and_touch", kept=str(kept), refused=str(refused))])
        reports, pid = execute(concurrent, feed, 1), 0
        for report in reports:
            if isinstance(report, executors.Emitted):
                pid = executors.unpack(report.data)["meta"]["pid"]
            if isinstance(report, executors.Noted):
                break
        assert isinstance(reports, Generator)
        reports.close()
        until = time.monotonic() + STUCK_AFTER_S
        while is_alive(pid) and not refused.exists():
            assert time.monotonic() < until, "it waits for ever"
            time.sleep(POLL_S)
        assert not kept.exists()
