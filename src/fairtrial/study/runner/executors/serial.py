"""Runs in this process, one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from fairtrial.study.model.runs import Assignment, Emitted, Finished, Report
from fairtrial.study.protocols import Feed, Work
from fairtrial.study.runner.executors.event_limit import Emitter
from fairtrial.study.runner.executors.output_capture import Capture
from fairtrial.study.runner.executors.process_state import Surroundings

LONGEST_SILENCE_S = 0.05


@dataclass(frozen=True)
class Serial:
    """One run at a time, here: the easiest to debug.

    Whatever ends a process ends the study, and nobody can stop a run that hangs. What Python code
    prints is captured; what C code and other programs print is not.
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
        """One assignment after the other, however many slots there are."""
        surroundings = Surroundings(of_worker=False)
        try:
            yield from _execute(work, feed, surroundings)
        finally:
            surroundings.close()


def _execute(work: Work, feed: Feed, surroundings: Surroundings) -> Iterator[Report | None]:
    capture, process = Capture(), os.getpid()
    while (given := feed()) is not None:
        if not isinstance(given, Assignment):
            time.sleep(max(0.0, min(given, LONGEST_SILENCE_S)))
            yield None
            continue
        events: list[bytes] = []
        emitter = Emitter(events.append)
        try:
            with capture:
                outcome = work.attempt(given, emitter)
        finally:
            surroundings.restore()
        if os.getpid() != process:
            os._exit(0)  # an agent forked, and this is not the one that was asked
        emitter.close()
        turn, attempt = given.turn, given.attempt
        for data in events:
            yield Emitted(turn, attempt, data)
        yield Finished(turn, attempt, outcome, capture.stdout.take(), capture.stderr.take())
