"""The loop at the heart of a run: assignments out, reports in, the ledger kept up to date."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from fairtrial.core import LedgerError
from fairtrial.study.ledger.packing import pack
from fairtrial.study.ledger.writer import GROUP_S, Ledger
from fairtrial.study.model.runs import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    Noted,
    Outcome,
    Report,
    RunStatus,
)
from fairtrial.study.model.study import RunBudget
from fairtrial.study.protocols import Executor, Work
from fairtrial.study.runner.control import ControlFile, Interrupts
from fairtrial.study.runner.feed import Feed
from fairtrial.study.runner.inline import InlineWork
from fairtrial.study.runner.payments import Books
from fairtrial.study.runner.progress import Progress, Tally

Stop = Literal["failure", "budget", "cancelled", "interrupted"]
"""Why a study ended before all its runs were done."""
LOOK_S = 0.01
LIVE_S = 1.0
SLOW_S = 0.5
"""Runs in this thread that take so long are committed and counted one by one."""
MOST_SHOWN = 20
"""How many of the runs under way `fairtrial status` can tell of."""
OURS = (FailureKind.BROKEN, FailureKind.KILLED)
"""What is tried again. A result that can't be written down would come out the same."""


@dataclass
class Loop:
    """One session of running a study; `run` returns why it ended early, or None."""

    ledger: Ledger
    books: Books
    feed: Feed
    work: Work
    tally: Tally
    progress: Progress
    control: ControlFile
    budget: RunBudget
    retry_wait_s: float = 1.0
    deliver: Callable[[int], None] | None = None
    """Called with the turn of each result, once it is committed."""
    stop: Stop | None = None

    def __post_init__(self) -> None:
        self._waiting: deque[tuple[int, RunStatus]] = deque()
        self._settled = 0
        self._tried: dict[int, int] = {}
        self._looked = self._told_live = 0.0
        self._live: object = None
        self._telling = threading.Lock()
        self._spent_usd = self.tally.cost_usd
        self._used_tokens = self.tally.tokens

    def run(self, executor: Executor, slots: int) -> Stop | None:
        """Run until there is no more to do, or a reason to stop."""
        is_inline = getattr(executor, "is_inline", False)
        self._mind_budget()
        try:
            with Interrupts() as interrupts, self._watching(interrupts, is_inline):
                work = self.work
                if is_inline:
                    work = InlineWork(work, interrupts, self.books)
                while True:
                    try:
                        reports = executor.execute(work, self.feed, slots)
                        self._follow(reports, interrupts, is_inline)
                        break
                    except KeyboardInterrupt:
                        if interrupts.count or not self._blame_agent():
                            self.stop = "cancelled" if self.stop == "cancelled" else "interrupted"
                            break
                        if self.stop == "failure":
                            break
                self._cancel_rest()
                self._tell_live(time.monotonic())
                self.ledger.commit()
                self._settle()
                if interrupts.count > 1:
                    raise KeyboardInterrupt  # at once: without the tables
        finally:
            self.progress.close()
            self.control.clear()
        has_more = self.tally.done < self.tally.total or self.ledger.again
        if self.stop == "budget" and not has_more:
            self.stop = None  # used up by the very last run
        return self.stop

    def _follow(
        self, reports: Iterator[Report | None], interrupts: Interrupts, is_inline: bool
    ) -> None:
        try:
            for report in reports:
                if isinstance(report, Finished):
                    self._finish(report)
                    if is_inline and report.outcome.latency_s >= SLOW_S:
                        self._catch_up()
                elif isinstance(report, Noted):
                    spec = self.feed.in_flight[report.turn][0].spec
                    self.books.add(spec, report.attempt, report.data)
                    self._mind_budget()
                elif report is not None:
                    self.ledger.add_event(report)
                self._look_around(interrupts)
                if self.stop in ("failure", "cancelled", "interrupted"):
                    if is_inline and isinstance(report, Emitted):
                        continue  # its run is over, and the result comes next
                    break
        finally:
            close = getattr(reports, "close", None)
            if close is not None:
                close()

    def _catch_up(self) -> None:
        """Commit and count: the next run has this thread, and may take as long as this one did."""
        self.ledger.commit()
        self._settle()
        self.progress.update()

    def _finish(self, report: Finished) -> None:
        assignment, _ = self.feed.finish(report.turn)
        outcome = self._pay(assignment, report.outcome)
        report = report._replace(outcome=outcome)
        self._mind_budget()
        if outcome.status is RunStatus.BROKEN and outcome.failure_kind in OURS:
            tried = self._tried.get(report.turn, 0)
            if tried < self.budget.retries:
                self._tried[report.turn] = tried + 1
                self.ledger.add_attempt(report, assignment.spec)
                self.feed.retry(assignment, self.retry_wait_s * 2**tried)
                return
        self._tried.pop(report.turn, None)
        self.tally.note_duration(outcome.latency_s)
        self._waiting.append((report.turn, outcome.status))
        self.ledger.add_result(assignment, report)
        if outcome.status is RunStatus.FAILED and self.budget.fail_fast:
            self.stop = "failure"

    def _pay(self, assignment: Assignment, outcome: Outcome) -> Outcome:
        """Count what an attempt has paid for; returns its outcome, which says so."""
        outcome = self.books.close(assignment.spec, outcome)
        self._spent_usd += outcome.cost_usd
        self._used_tokens += outcome.tokens
        return outcome

    def _mind_budget(self) -> None:
        """Start nothing more once the budget is used up; what is under way is finished."""
        most_usd, most_tokens = self.budget.max_cost_usd, self.budget.max_tokens
        if most_usd is None and most_tokens is None:
            return
        paid = self.books.under_way
        is_spent = (most_usd is not None and self._spent_usd + paid.cost_usd >= most_usd) or (
            most_tokens is not None and self._used_tokens + paid.tokens >= most_tokens
        )
        if is_spent and self.stop is None:
            self.stop = "budget"
            self.feed.is_stopped = True

    def _look_around(self, interrupts: Interrupts) -> None:
        if interrupts.count and self.stop != "cancelled":
            self.stop = "interrupted"
        now = time.monotonic()
        if now - self._looked < LOOK_S:  # quick runs come by the thousand
            return
        self._looked = now
        told = self.control.told()
        if told == "cancel":
            self.stop = "cancelled"
        self.feed.is_paused = self.tally.is_paused = told == "pause"
        self._keep_up()
        self._settle()
        self.progress.update()

    def _settle(self) -> None:
        """Count what has been committed, and only that."""
        committed = self.ledger.committed
        while self._settled < committed:
            turn, status = self._waiting.popleft()
            self._settled += 1
            self.tally.count(status.value, self.ledger.again.pop(turn, None))
            if self.deliver is not None:
                self.deliver(turn)
        self.tally.cost_usd, self.tally.tokens = self._spent_usd, self._used_tokens
        self.tally.note_time()

    def _tell_live(self, now: float) -> None:
        """Let the next commit say what is going on, where that has changed.

        One thread at a time: what was so earlier must not be told later.
        """
        with self._telling:
            self._tell(now)

    def _tell(self, now: float) -> None:
        self._told_live = now
        state = (tuple(self.feed.in_flight), self.feed.is_paused, self._settled)
        if state == self._live:
            return
        self._live = state
        live = {
            "running": len(self.feed.in_flight),
            "runs": [
                {
                    "run_id": assignment.spec.run_id,
                    "agent_id": assignment.spec.agent_spec_ref,
                    "problem_id": assignment.spec.problem_id,
                    "attempt": assignment.attempt,
                    "began": time.time() - (now - began),
                }
                for assignment, began in list(self.feed.in_flight.values())[:MOST_SHOWN]
            ],
            "paused": self.feed.is_paused,
            "rate": self.tally.rate,
            "eta_s": self.tally.eta_s,
            "again": dict(+self.tally.again),
            "settled": self.tally.settled(),
            "told": time.time(),
        }
        self.ledger.set_live(pack(live))
        self.ledger.commit()

    def _cancel_rest(self) -> None:
        """Note what was under way: it stays pending, and leaves an attempt."""
        for turn, (assignment, began) in list(self.feed.in_flight.items()):
            self.feed.finish(turn)
            took = time.monotonic() - began
            outcome = self.work.fail(
                assignment, FailureKind.CANCELLED, "the study was stopped", took
            )
            outcome = self._pay(assignment, outcome)._replace(status=RunStatus.PENDING)
            self.ledger.add_attempt(Finished(turn, assignment.attempt, outcome), assignment.spec)

    def _blame_agent(self) -> bool:
        """An agent that raises KeyboardInterrupt itself has failed like any other."""
        if len(self.feed.in_flight) != 1:
            return False
        ((turn, (assignment, began)),) = self.feed.in_flight.items()
        outcome = self.work.fail(
            assignment, FailureKind.EXCEPTION, "KeyboardInterrupt", time.monotonic() - began
        )
        self._finish(Finished(turn, assignment.attempt, outcome))
        return True

    @contextmanager
    def _watching(self, interrupts: Interrupts, is_inline: bool) -> Iterator[None]:
        """Do what has to be done while this thread is busy with a run.

        Other executors give the loop a chance every 50 ms; and a thread of ours would be in the
        way of forking.
        """
        if not is_inline:
            yield
            return
        ended = threading.Event()
        is_main = threading.current_thread() is threading.main_thread()

        def watch() -> None:
            while not ended.wait(GROUP_S / 2):
                with suppress(LedgerError):  # the loop meets it too, and says so
                    self._keep_up()
                self.progress.update_remark()
                if is_main and self.feed.in_flight and self.control.told() == "cancel":
                    self.stop = "cancelled"
                    interrupts.send()
                    return

        thread = threading.Thread(target=watch, name="fairtrial-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _keep_up(self) -> None:
        """Commit in time, and tell what is going on."""
        now = time.monotonic()
        if now - self._told_live >= LIVE_S:
            self._tell_live(now)
        if self.ledger.is_due:
            self.ledger.commit()
