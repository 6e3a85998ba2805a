"""Making an executor run, and watching what it does."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from fairtrial.study import Assignment, Executor, Finished, Report, Work
from fairtrial.testing.executor_work import Deeds

PATIENCE_S = 60.0
"""After this long an executor counts as stuck; no test needs a second."""


class ListFeed:
    """Hands out assignments in order; notes what is under way, and the most that ever was."""

    def __init__(self, assignments: Iterable[Assignment]) -> None:
        self.waiting = list(assignments)
        self.under_way: set[tuple[int, int]] = set()
        self.most = 0
        self.asked = 0

    def __call__(self) -> Assignment | float | None:
        self.asked += 1
        if not self.waiting:
            return None
        assignment = self.waiting.pop(0)
        self.under_way.add((assignment.turn, assignment.attempt))
        self.most = max(self.most, len(self.under_way))
        return assignment

    def finish(self, report: Finished) -> None:
        """Note a report; one of something that isn't under way is a mistake."""
        self.under_way.remove((report.turn, report.attempt))


class HesitantFeed(ListFeed):
    """Has nothing for a while, from when it is first asked."""

    def __init__(self, assignment: Assignment, wait_s: float) -> None:
        super().__init__([assignment])
        self._wait_s, self._until = wait_s, 0.0

    def __call__(self) -> Assignment | float | None:
        self._until = self._until or time.monotonic() + self._wait_s
        left_s = self._until - time.monotonic()
        if left_s > 0:
            self.asked += 1
            return left_s
        return super().__call__()


def execute(
    executor: Executor, feed: ListFeed, slots: int, work: Work | None = None
) -> Iterator[Report | None]:
    """The reports of an executor; fails when it is stuck, and checks each against the feed."""
    until = time.monotonic() + PATIENCE_S
    reports = executor.execute(work or Deeds(), feed, slots)
    try:
        for report in reports:
            assert time.monotonic() < until, "the executor is stuck"
            if report is not None:
                key = (report.turn, report.attempt)
                assert key in feed.under_way, f"{report} is of nothing that is under way"
            if isinstance(report, Finished):
                feed.finish(report)
            yield report
    finally:
        assert isinstance(reports, Generator), "the caller must be able to close it"
        reports.close()


def finish(
    executor: Executor, assignments: Iterable[Assignment], slots: int = 2
) -> dict[int, Finished]:
    """What comes of all these assignments, by turn."""
    feed = ListFeed(assignments)
    reports = execute(executor, feed, slots)
    finished = {report.turn: report for report in reports if isinstance(report, Finished)}
    assert not feed.under_way, "something was never reported"
    return finished


def is_alive(pid: int) -> bool:
    """Whether there is such a process, other than as a dead one that nobody has waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self").exists()
