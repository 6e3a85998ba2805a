"""Work that an executor does in the very thread that the loop runs in."""

from __future__ import annotations

import os
import threading

from fairtrial.core import LabError, LedgerError
from fairtrial.study.model.runs import Assignment, Outcome
from fairtrial.study.protocols import Send, Work
from fairtrial.study.runner.control import Interrupts
from fairtrial.study.runner.payments import Books


class InlineWork:
    """Work that happens in this very thread: an interrupt cuts the run off, not what we do between.

    An interrupt in the middle of writing a result down would lose it. Nobody is there to take the
    run's journal entries but the run itself: they are written at once.
    """

    def __init__(self, work: Work, interrupts: Interrupts, books: Books) -> None:
        self._attempt, self.fail, self._interrupts = work.attempt, work.fail, interrupts
        self._books = books

    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        """Do one run, in this thread."""
        interrupts, process = self._interrupts, os.getpid()

        def write(data: bytes) -> None:
            if os.getpid() != process:
                raise RuntimeError("a run's journal is kept by the process that the run began in")
            is_interruptible = threading.current_thread() is threading.main_thread()
            if is_interruptible:
                interrupts.raise_at_once = False
            try:
                self._books.add(assignment.spec, assignment.attempt, data)
            except LedgerError as error:  # ours, not the agent's; the loop meets it, too
                raise LabError(f"the journal can't be written: {error}") from error
            finally:
                if is_interruptible:
                    interrupts.raise_at_once = True
            if is_interruptible and interrupts.count:  # it came meanwhile
                raise KeyboardInterrupt

        interrupts.raise_at_once = True
        try:
            if interrupts.count:  # it came since the loop last looked
                raise KeyboardInterrupt
            return self._attempt(assignment, emit, note or write)
        finally:
            interrupts.raise_at_once = False
