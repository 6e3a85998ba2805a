"""The executor `serial`: runs in this process, one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from fairtrial.study.model.runs import Assignment, Emitted, Finished, Report
from fairtrial.study.protocols import Executor, Feed, Work
from fairtrial.study.runner.executors.event_limit import LimitedEmitter
from fairtrial.study.runner.executors.output_capture import OutputCapture
from fairtrial.study.runner.executors.process_state import ProcessState

LONGEST_SILENCE_S = 0.05


@dataclass(frozen=True)
class Serial(Executor):
    """Runs assignments one at a time in this process, which is easiest to debug.

    A crash ends the study, and a run that hangs can't be stopped. What Python code prints is
    captured; what C code and other programs print is not.
    """

    @property
    def name(self) -> str:
        return "serial"

    @property
    def is_reproducible(self) -> bool:
        return True

    @property
    def is_isolated(self) -> bool:
        return False

    @property
    def is_inline(self) -> bool:
        return True

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Run one assignment after the other, whatever `slots` is, and yield its reports."""
        state = ProcessState(of_worker=False)
        try:
            yield from _execute(work, feed, state)
        finally:
            state.close()


def _execute(work: Work, feed: Feed, state: ProcessState) -> Iterator[Report | None]:
    capture, process = OutputCapture(), os.getpid()
    while (answer := feed()) is not None:
        if not isinstance(answer, Assignment):
            time.sleep(max(0.0, min(answer, LONGEST_SILENCE_S)))
            yield None
            continue
        events: list[bytes] = []
        emitter = LimitedEmitter(events.append)
        try:
            with capture:
                outcome = work.attempt(answer, emitter)
        finally:
            state.restore()
        if os.getpid() != process:
            os._exit(0)  # this is a child that the agent has forked
        emitter.close()
        index, attempt = answer.execution_index, answer.attempt
        for data in events:
            yield Emitted(index, attempt, data)
        yield Finished(index, attempt, outcome, capture.stdout.take(), capture.stderr.take())
