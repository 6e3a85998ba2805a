"""Work that an executor does in the thread of the run loop."""

from __future__ import annotations

import os
import threading

from fairtrial.core import LabError, LedgerError
from fairtrial.study.model.runs import Assignment, Outcome
from fairtrial.study.protocols import Send, Work
from fairtrial.study.runner.control import Interrupts
from fairtrial.study.runner.payment_tracker import PaymentTracker


class InlineWork(Work):
    """Runs work in this thread, so that an interrupt ends the run, but never a write to the ledger.

    An interrupt while a result is written would lose it. Journal entries are written directly,
    since the loop can't take them while the run has its thread.
    """

    def __init__(self, work: Work, interrupts: Interrupts, payments: PaymentTracker) -> None:
        self._work, self._interrupts = work, interrupts
        self._payments = payments

    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        """Attempt one run in this thread; raises KeyboardInterrupt if it is interrupted."""
        interrupts, process = self._interrupts, os.getpid()

        def write(data: bytes) -> None:
            if os.getpid() != process:
                raise RuntimeError("a run's journal is kept by the process that the run began in")
            is_interruptible = threading.current_thread() is threading.main_thread()
            if is_interruptible:
                interrupts.raise_at_once = False
            try:
                self._payments.add((assignment.spec, assignment.attempt, data))
            except LedgerError as error:  # not the agent's fault; the loop will raise it
                raise LabError(f"the journal can't be written: {error}") from error
            finally:
                if is_interruptible:
                    interrupts.raise_at_once = True
            if is_interruptible and interrupts.count:  # interrupted meanwhile
                raise KeyboardInterrupt

        interrupts.raise_at_once = True
        try:
            if interrupts.count:  # interrupted since the loop last checked
                raise KeyboardInterrupt
            return self._work.attempt(assignment, emit, note or write)
        finally:
            interrupts.raise_at_once = False

    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        """Return the outcome of an attempt that was ended."""
        return self._work.fail(assignment, kind, message, latency_s)
