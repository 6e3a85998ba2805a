"""What every executor must do with the notes of runs, as tests; part of `testing.executors`."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fairtrial.study import Emitted, Executor, Finished, Noted, pack, unpack
from fairtrial.testing.executor_driver import PATIENCE_S, ListFeed, execute, finish, is_alive
from fairtrial.testing.executor_work import assign, told_by

LOOK_S = 0.005


class JournalConformance:
    """The tests. Whoever makes runs inline passes no `note`, and has nothing to keep."""

    @pytest.fixture
    def outline(self) -> Executor:
        """The executor to be tried, if it can do something while a run goes on."""
        raise NotImplementedError

    def test_a_run_goes_on_when_its_note_is_durable(self, outline: Executor) -> None:
        feed = ListFeed(assign(turn, "note", count=5) for turn in range(4))
        heard: dict[int, list[Any]] = {turn: [] for turn in range(4)}
        asked: dict[int, list[float]] = {turn: [] for turn in range(4)}
        for report in execute(outline, feed, 2):
            if isinstance(report, Noted):
                heard[report.turn].append(unpack(report.data))
                asked[report.turn].append(time.monotonic())
            elif isinstance(report, Finished):
                heard[report.turn].append("end")
                times = told_by(report)["returned"]["times"]
                pairs = zip(times, asked[report.turn], strict=True)
                assert all(went_on >= told for went_on, told in pairs), "it didn't wait"
        assert all(told == [0, 1, 2, 3, 4, "end"] for told in heard.values())

    def test_earlier_notes_come_with_the_assignment(self, outline: Executor) -> None:
        earlier = (pack("a"), pack({"b": "x" * 300_000}))
        given = [assign(0, "note", count=0)._replace(journal=earlier), assign(1, "note", count=0)]
        finished = finish(outline, given, 1)
        told = [told_by(finished[turn])["returned"]["earlier"] for turn in (0, 1)]
        assert told == [["a", {"b": "x" * 300_000}], []]

    def test_threads_of_a_run_may_note_at_once(self, outline: Executor) -> None:
        feed = ListFeed([assign(0, "note_at_once", threads=8), assign(1)])
        reports = list(execute(outline, feed, 1))
        noted = [unpack(report.data) for report in reports if isinstance(report, Noted)]
        assert sorted(noted) == list(range(8))

    def test_notes_that_come_after_the_end_belong_to_nobody(self, outline: Executor) -> None:
        later = [assign(turn, "sleep", seconds=0.01) for turn in range(1, 6)]
        feed = ListFeed([assign(0, "note_late", count=100), *later])
        for report in execute(outline, feed, 1):  # which knows what is under way
            assert report is None or report.turn == 0 or isinstance(report, Finished)

    def test_a_run_that_waits_for_its_note_ends_with_the_study(
        self, outline: Executor, tmp_path: Path
    ) -> None:
        kept, refused = tmp_path / "kept", tmp_path / "refused"
        feed = ListFeed([assign(0, "note_and_touch", kept=str(kept), refused=str(refused))])
        reports, pid = execute(outline, feed, 1), 0
        for report in reports:
            if isinstance(report, Emitted):
                pid = unpack(report.data)["meta"]["pid"]
            if isinstance(report, Noted):
                break
        assert isinstance(reports, Generator)
        reports.close()
        until = time.monotonic() + PATIENCE_S
        while is_alive(pid) and not refused.exists():
            assert time.monotonic() < until, "it waits for ever"
            time.sleep(LOOK_S)
        assert not kept.exists()
