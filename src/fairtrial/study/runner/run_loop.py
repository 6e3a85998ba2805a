"""The run loop: passes assignments to an executor and writes its reports to the ledger."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from fairtrial.core import LedgerError, events
from fairtrial.study.ledger.packing import pack, unpack
from fairtrial.study.ledger.writer import COMMIT_S, Ledger
from fairtrial.study.model.runs import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    Noted,
    NotedTogether,
    Outcome,
    Report,
    RunStatus,
)
from fairtrial.study.model.study import RunBudget
from fairtrial.study.protocols import Executor, Work
from fairtrial.study.runner.assignment_feed import AssignmentFeed
from fairtrial.study.runner.control import ControlFile, Interrupts
from fairtrial.study.runner.failure_watch import FailureWatch
from fairtrial.study.runner.inline import InlineWork
from fairtrial.study.runner.look_gate import LookGate
from fairtrial.study.runner.payment_tracker import PaymentTracker
from fairtrial.study.runner.progress import Progress, ProgressCounts
from fairtrial.study.runner.purse import Purse

Stop = Literal["failure", "budget", "cancelled", "interrupted", "repeated", "refused"]
"""Why a study ended before all its runs were done."""
log = logging.getLogger(__name__)
POLL_S = 0.01
LIVE_S = 1.0
SLOW_S = 0.5
"""Runs in this thread that take this long are committed and counted one by one."""
MAX_SHOWN_RUNS = 20
"""How many of the runs under way `fairtrial status` shows."""
RETRIED_KINDS = (FailureKind.BROKEN, FailureKind.KILLED)
"""The failures that are retried. An unwritable result would come out the same again."""


@dataclass
class RunLoop:
    """One session of running a study.

    ledger: where results are written
    payments: the costs of attempts under way
    purse: what is spent and reserved under the ceilings
    feed: the assignments
    work: what executors do with an assignment
    counts: the progress in numbers
    progress: shows the progress
    control: requests from other processes
    budget: the limits of the study
    retry_wait_s: how long to wait before a broken run is retried; doubles each time
    on_committed: called with the execution index of each result, once it is committed
    gate: makes the planned looks; None if there are none
    on_event: receives an event after each look
    keep_going: whether to go on although the first runs of an agent all fail in the same way, or an
        endpoint refuses the key
    stop, stop_reason: why the session ends early, as a word and in a sentence
    """

    ledger: Ledger
    payments: PaymentTracker
    purse: Purse
    feed: AssignmentFeed
    work: Work
    counts: ProgressCounts
    progress: Progress
    control: ControlFile
    budget: RunBudget
    retry_wait_s: float = 1.0
    on_committed: Callable[[int], None] | None = None
    gate: LookGate | None = None
    on_event: events.Emit = events.ignore_event
    keep_going: bool = False
    stop: Stop | None = None
    stop_reason: str = ""

    def __post_init__(self) -> None:
        self._uncommitted: deque[tuple[int, RunStatus]] = deque()
        self._counted = 0
        self._retry_counts: dict[int, int] = {}
        self._polled_at = self._live_written_at = 0.0
        self._last_live: object = None
        self._live_lock = threading.Lock()
        self._watch = FailureWatch()

    def run(self, executor: Executor, slots: int) -> Stop | None:
        """Run until there is no more to do, or a reason to stop, which is returned."""
        is_inline = executor.is_inline
        self._check_budget()
        try:
            with Interrupts() as interrupts, self._background_watch(interrupts, is_inline):
                work = self.work
                if is_inline:
                    work = InlineWork(work, interrupts, self.payments)
                self._make_due_looks()
                while True:
                    try:
                        reports = executor.execute(work, self.feed, slots)
                        self._handle_reports(reports, interrupts, is_inline)
                        break
                    except KeyboardInterrupt:
                        if interrupts.count or not self._fail_interrupted_agent():
                            self.stop = "cancelled" if self.stop == "cancelled" else "interrupted"
                            break
                        if self.stop == "failure":
                            break
                self._cancel_unfinished()
                self._write_live(time.monotonic())
                self.ledger.commit()
                self._count_committed()
                if interrupts.count > 1:
                    raise KeyboardInterrupt  # at once, without writing the tables
        finally:
            self.progress.close()
            self.control.clear()
        if self.purse.is_exhausted:
            self.stop = self.stop or "budget"
        has_more = self.counts.done < self.counts.total or self.ledger.reruns
        if self.stop == "budget" and not has_more:
            self.stop = None  # the last run used it up
        if self.stop == "budget":
            self.stop_reason = self.purse.describe()
        return self.stop

    def _handle_reports(
        self, reports: Iterator[Report | None], interrupts: Interrupts, is_inline: bool
    ) -> None:
        try:
            for report in reports:
                if isinstance(report, Finished):
                    self._finish(report)
                    if is_inline and report.outcome.latency_s >= SLOW_S:
                        self._commit_and_count()
                elif isinstance(report, (Noted, NotedTogether)):
                    self._store_entries((report,) if isinstance(report, Noted) else report.entries)
                elif report is not None:
                    self.ledger.add_event(report)
                self._poll(interrupts)
                if self.stop in ("failure", "cancelled", "interrupted"):
                    if is_inline and isinstance(report, Emitted):
                        continue  # its run is over, and its result comes next
                    break
                if self.gate is not None:
                    self._make_due_looks()
        finally:
            close = getattr(reports, "close", None)
            if close is not None:
                close()

    def _store_entries(self, entries: Iterable[Noted]) -> None:
        """Make entries of journals durable: the runs wait for that."""
        specs = self.feed.in_flight
        self.payments.add(
            *((specs[index][0].spec, attempt, data) for index, attempt, data in entries)
        )
        self._check_budget()

    def _make_due_looks(self) -> None:
        """Make the planned looks whose runs are all done; the runs after them may start then."""
        while self.gate is not None and self.gate.next_look is not None and self.feed.is_at_gate:
            self.ledger.commit()
            self._count_committed()
            event = self.gate.make_due_look()
            if event is None:  # this session does only a part of its runs
                self.feed.is_stopped = True
                return
            self.counts.total -= event.look.skipped
            with self.progress.hidden_bar():
                self.on_event(event)

    def _commit_and_count(self) -> None:
        """Commit and count at once: the next run may occupy this thread as long as the last one."""
        self.ledger.commit()
        self._count_committed()
        self.progress.update()

    def _finish(self, report: Finished) -> None:
        assignment, _ = self.feed.finish(report.execution_index)
        outcome = self._account(assignment, report.outcome)
        if outcome is not report.outcome:
            report = report._replace(outcome=outcome)
        self._check_budget()
        if outcome.status is RunStatus.BROKEN and outcome.failure_kind in RETRIED_KINDS:
            retries = self._retry_counts.get(report.execution_index, 0)
            if retries < self.budget.retries:
                self._retry_counts[report.execution_index] = retries + 1
                self.ledger.add_attempt(report, assignment.spec)
                self.feed.retry(assignment, self.retry_wait_s * 2**retries)
                log.info("run %s broke and is tried again", assignment.spec.run_id)
                return
        if self._retry_counts:
            self._retry_counts.pop(report.execution_index, None)
        self.counts.add_duration(outcome.latency_s)
        if log.isEnabledFor(logging.DEBUG):
            self._log_run(assignment, outcome)
        self._uncommitted.append((report.execution_index, outcome.status))
        self.ledger.add_result(assignment, report)
        if outcome.status is RunStatus.FAILED and self.budget.fail_fast:
            self.stop = "failure"
        if not self.keep_going:
            self._look_for_causes(assignment, outcome)

    def _log_run(self, assignment: Assignment, outcome: Outcome) -> None:
        spec, kind = assignment.spec, outcome.failure_kind
        log.debug(
            "run %s (%s on %s): %s in %.3f s",
            spec.run_id,
            spec.agent_spec_ref,
            spec.problem_spec_ref,
            outcome.status if kind is None else f"{outcome.status}, {kind}",
            outcome.latency_s,
        )

    def _look_for_causes(self, assignment: Assignment, outcome: Outcome) -> None:
        """Start no more runs if those that ended show that the others would fail, too."""
        reason = self._watch.add(assignment.spec, outcome)
        stop: Stop = "repeated"
        if outcome.failure_kind is FailureKind.REFUSED:
            stop, reason = "refused", str(unpack(outcome.body).get("error_info"))
        if reason and self.stop is None:
            self.stop, self.stop_reason = stop, reason
            log.warning("no more runs are started: %s", reason)
            self.feed.is_stopped = True

    def _account(self, assignment: Assignment, outcome: Outcome) -> Outcome:
        """Add the costs of an attempt to the totals; returns its outcome with these costs."""
        outcome = self.payments.close(assignment.spec, outcome)
        self.purse.settle(assignment.spec, outcome)
        return outcome

    def _check_budget(self) -> None:
        """Stop handing out runs once the budget is used up; runs under way are finished."""
        if self.purse.has_ceiling and self.purse.is_spent and self.stop is None:
            self.stop = "budget"
            self.feed.is_stopped = True

    def _poll(self, interrupts: Interrupts) -> None:
        if interrupts.count and self.stop != "cancelled":
            self.stop = "interrupted"
        now = time.monotonic()
        if now - self._polled_at < POLL_S:  # there may be thousands of quick runs a second
            return
        self._polled_at = now
        request = self.control.current_request()
        if request == "cancel":
            self.stop = "cancelled"
        self.feed.is_paused = self.counts.is_paused = request == "pause"
        self._commit_if_due()
        self._count_committed()
        self.progress.update()

    def _count_committed(self) -> None:
        """Count results that have been committed, and only those."""
        committed = self.ledger.committed
        while self._counted < committed:
            execution_index, status = self._uncommitted.popleft()
            self._counted += 1
            self.counts.count(status.value, self.ledger.reruns.pop(execution_index, None))
            if self.on_committed is not None:
                self.on_committed(execution_index)
        self.counts.cost_usd, self.counts.tokens = self.purse.spent
        self.counts.add_sample()

    def _write_live(self, now: float) -> None:
        """Commit the current progress if it has changed.

        One thread at a time: an older state must not overwrite a newer one.
        """
        with self._live_lock:
            self._write_changed_live(now)

    def _write_changed_live(self, now: float) -> None:
        self._live_written_at = now
        place = self.counts.place()
        state = (tuple(self.feed.in_flight), self.feed.is_paused, self._counted, place)
        if state == self._last_live:
            return
        self._last_live = state
        live = {
            "running": len(self.feed.in_flight),
            "runs": [
                {
                    "run_id": assignment.spec.run_id,
                    "turn": turn,
                    "agent_id": assignment.spec.agent_spec_ref,
                    "problem_id": assignment.spec.problem_id,
                    "attempt": assignment.attempt,
                    "began": time.time() - (now - started_at),
                }
                for turn, (assignment, started_at) in [*self.feed.in_flight.items()][
                    :MAX_SHOWN_RUNS
                ]
            ],
            "paused": self.feed.is_paused,
            "place": place,
            "rate": self.counts.rate,
            "eta_s": self.counts.eta_s,
            "again": dict(+self.counts.reruns),
            "settled": self.counts.finished(),
            "reported_at": time.time(),
        }
        self.ledger.set_live(pack(live))
        self.ledger.commit()

    def _cancel_unfinished(self) -> None:
        """Record what is under way as cancelled attempts; the runs stay pending."""
        for execution_index, (assignment, started_at) in list(self.feed.in_flight.items()):
            self.feed.finish(execution_index)
            took_s = time.monotonic() - started_at
            outcome = self.work.fail(
                assignment, FailureKind.CANCELLED, "the study was stopped", took_s
            )
            outcome = self._account(assignment, outcome)._replace(status=RunStatus.PENDING)
            self.ledger.add_attempt(
                Finished(execution_index, assignment.attempt, outcome), assignment.spec
            )

    def _fail_interrupted_agent(self) -> bool:
        """Fail the run whose agent raised KeyboardInterrupt; returns whether there is one."""
        if len(self.feed.in_flight) != 1:
            return False
        ((execution_index, (assignment, started_at)),) = self.feed.in_flight.items()
        outcome = self.work.fail(
            assignment, FailureKind.EXCEPTION, "KeyboardInterrupt", time.monotonic() - started_at
        )
        self._finish(Finished(execution_index, assignment.attempt, outcome))
        return True

    @contextmanager
    def _background_watch(self, interrupts: Interrupts, is_inline: bool) -> Iterator[None]:
        """Commit and poll in a background thread while this thread is busy with a run.

        Only for inline executors: others return to the loop every 50 ms, and a thread would be
        unsafe with fork.
        """
        if not is_inline:
            yield
            return
        ended = threading.Event()
        is_main = threading.current_thread() is threading.main_thread()

        def watch() -> None:
            while not ended.wait(COMMIT_S / 2):
                with suppress(LedgerError):  # the loop will raise it
                    self._commit_if_due()
                self.progress.update_remark()
                if is_main and self.feed.in_flight and self.control.current_request() == "cancel":
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

    def _commit_if_due(self) -> None:
        """Commit results and progress when they are due."""
        now = time.monotonic()
        if now - self._live_written_at >= LIVE_S:
            self._write_live(now)
        if self.ledger.is_due:
            self.ledger.commit()
