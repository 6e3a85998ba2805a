"""Helpers that run an executor, and check its reports."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from fairtrial.study import executors
from fairtrial.testing.executor_work import ScriptedWork

STUCK_AFTER_S = 60.0
"""After this time an executor counts as stuck; a test needs less than a second."""


class ListFeed:
    """A feed that hands out assignments in order, and records which are running.

    waiting: assignments that were not handed out yet
    running: assignments that were handed out and not finished
    max_running: the largest number of running assignments
    call_count: how often the feed was asked
    """

    def __init__(self, assignments: Iterable[executors.Assignment]) -> None:
        self.waiting = list(assignments)
        self.running: set[tuple[int, int]] = set()
        self.max_running = 0
        self.call_count = 0

    def __call__(self) -> executors.Assignment | float | None:
        self.call_count += 1
        if not self.waiting:
            return None
        assignment = self.waiting.pop(0)
        self.running.add((assignment.execution_index, assignment.attempt))
        self.max_running = max(self.max_running, len(self.running))
        return assignment

    def finish(self, report: executors.Finished) -> None:
        """Record that an assignment finished; raises `KeyError` if it isn't running."""
        self.running.remove((report.execution_index, report.attempt))


class DelayedFeed(ListFeed):
    """A feed of one assignment that is available only some time after the first call."""

    def __init__(self, assignment: executors.Assignment, wait_s: float) -> None:
        super().__init__([assignment])
        self._wait_s, self._until = wait_s, 0.0

    def __call__(self) -> executors.Assignment | float | None:
        self._until = self._until or time.monotonic() + self._wait_s
        left_s = self._until - time.monotonic()
        if left_s > 0:
            self.call_count += 1
            return left_s
        return super().__call__()


def execute(
    executor: executors.Executor, feed: ListFeed, slots: int, work: executors.Work | None = None
) -> Iterator[executors.Emitted | executors.Noted | executors.Finished | None]:
    """Yield the reports of an executor; fails if it is stuck, or reports what isn't running.

    Journal entries that it reports together are yielded one by one.
    """
    until = time.monotonic() + STUCK_AFTER_S
    reports = executor.execute(work or ScriptedWork(), feed, slots)
    try:
        for report in _one_by_one(reports):
            assert time.monotonic() < until, "the executor is stuck"
            if report is not None:
                key = (report.execution_index, report.attempt)
                assert key in feed.running, f"{report} is of nothing that is running"
            if isinstance(report, executors.Finished):
                feed.finish(report)
            yield report
    finally:
        assert isinstance(reports, Generator), "the caller must be able to close it"
        reports.close()


def _one_by_one(
    reports: Iterator[executors.Report | None],
) -> Iterator[executors.Emitted | executors.Noted | executors.Finished | None]:
    for report in reports:
        if isinstance(report, executors.NotedTogether):
            yield from report.entries
        else:
            yield report


def run_all(
    executor: executors.Executor, assignments: Iterable[executors.Assignment], slots: int = 2
) -> dict[int, executors.Finished]:
    """Run assignments to their end; returns the last report of each, by turn."""
    feed = ListFeed(assignments)
    reports = execute(executor, feed, slots)
    finished = {
        report.execution_index: report
        for report in reports
        if isinstance(report, executors.Finished)
    }
    assert not feed.running, "an assignment was never reported"
    return finished


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self").exists()
