"""Work for trying out an executor: runs that do what they are told, well or badly."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairtrial.study import (
    Assignment,
    Condition,
    EventData,
    FailureKind,
    Finished,
    Outcome,
    RunSpec,
    RunStatus,
    Send,
    pack,
    unpack,
)

OURS = (FailureKind.BROKEN, FailureKind.KILLED, FailureKind.UNWRITABLE)
LOOK_S = 0.005


def assign(
    turn: int, deed: str = "echo", *, attempt: int = 1, timeout_s: float | None = None, **told: Any
) -> Assignment:
    """An assignment to do a deed of `Deeds`, with the arguments it is told."""
    condition = Condition(f"cond-{turn}", {"deed": deed, **told})
    spec = RunSpec(
        f"run-{turn}", "trial", condition.condition_id, "problem", 1, turn, "agent", "problem"
    )
    return Assignment(turn, attempt, spec, condition, timeout_s)


def told_by(report: Finished) -> Any:
    """What a run of `Deeds` returned, or what is said of its failure."""
    return unpack(report.outcome.body)


class Deeds:
    """A `Work` whose runs do what their condition's `deed` says.

    A run that succeeds tells its turn, its process, when it began and ended by the monotonic
    clock, and what the deed returned.
    """

    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        told = dict(assignment.condition.factor_assignments)
        deed = getattr(self, told.pop("deed"))
        if deed.__name__.startswith("note"):
            told |= {"note": note, "earlier": assignment.journal}
        began = time.monotonic()
        try:
            returned = deed(emit=emit, **told)
        except (Exception, SystemExit) as error:
            took_s = time.monotonic() - began
            return self.fail(assignment, FailureKind.EXCEPTION, repr(error), took_s)
        ended = time.monotonic()
        body = {
            "turn": assignment.turn,
            "attempt": assignment.attempt,
            "run_id": assignment.spec.run_id,
            "pid": os.getpid(),
            "began": began,
            "ended": ended,
            "returned": returned,
        }
        return Outcome(RunStatus.SUCCESS, None, 0.5, 7, ended - began, pack(body))

    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        status = RunStatus.BROKEN if kind in OURS else RunStatus.FAILED
        return Outcome(status, FailureKind(kind), 0.0, 0, latency_s, pack(message))

    # -- deeds that end well --

    def echo(self, emit: Callable[[bytes], None], **told: Any) -> Any:
        return told

    def sleep(self, emit: Callable[[bytes], None], seconds: float) -> None:
        time.sleep(seconds)

    def emit(self, emit: Callable[[bytes], None], count: int, size: int = 1) -> None:
        for number in range(count):
            emit(pack(event(number=number, text="x" * size)))

    def emit_late(self, emit: Callable[[bytes], None], count: int) -> None:
        """Leave a thread behind that emits after the run has ended."""

        def emit_on() -> None:
            for number in range(count):
                emit(pack(event(number=number)))
                time.sleep(0.001)

        threading.Thread(target=emit_on, daemon=True).start()

    def print(self, emit: Callable[[bytes], None], out: str, err: str, times: int = 1) -> None:
        for _ in range(times):
            sys.stdout.write(out)
            sys.stderr.write(err)

    def await_file(self, emit: Callable[[bytes], None], path: str, seconds: float = 60) -> None:
        """Tell which process this is, and wait until the file is there."""
        emit(pack(event(pid=os.getpid())))
        until = time.monotonic() + seconds
        while not Path(path).exists() and time.monotonic() < until:
            time.sleep(LOOK_S)

    # -- deeds that keep a journal --

    def note(self, emit: Send, note: Send, earlier: tuple[bytes, ...], count: int) -> Any:
        """Note numbers; tells when each was durable, and what had been noted before."""
        times = []
        for number in range(count):
            note(pack(number))
            times.append(time.monotonic())
        return {"times": times, "earlier": [unpack(data) for data in earlier]}

    def note_at_once(
        self, emit: Send, note: Send, earlier: tuple[bytes, ...], threads: int
    ) -> None:
        """Note from several threads."""
        crowd = [threading.Thread(target=note, args=(pack(each),)) for each in range(threads)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()

    def note_late(self, emit: Send, note: Send, earlier: tuple[bytes, ...], count: int) -> None:
        """Leave a thread behind that notes after the run has ended."""

        def note_on() -> None:
            for number in range(count):
                with contextlib.suppress(RuntimeError):
                    note(pack(number))
                time.sleep(0.001)

        threading.Thread(target=note_on, daemon=True).start()

    def note_and_touch(
        self, emit: Send, note: Send, earlier: tuple[bytes, ...], kept: str, refused: str
    ) -> None:
        """Tell which process this is, note, and touch a file that says what came of it."""
        emit(pack(event(pid=os.getpid())))
        try:
            note(b"x" * 200_000)
        except RuntimeError:
            Path(refused).touch()
            raise
        Path(kept).touch()

    # -- deeds that end badly --

    def leave(self, emit: Callable[[bytes], None], code: int) -> None:
        sys.exit(code)

    def interrupt(self, emit: Callable[[bytes], None]) -> None:
        raise KeyboardInterrupt

    def leave_at_once(self, emit: Callable[[bytes], None], code: int) -> None:
        os._exit(code)

    def die_of(self, emit: Callable[[bytes], None], name: str) -> None:
        emit(pack(event(text="about to die")))
        print("about to die")
        os.kill(os.getpid(), signal.Signals[name])
        time.sleep(60)

    def hang(self, emit: Callable[[bytes], None]) -> None:
        while True:
            time.sleep(60)


def event(text: str = "", **meta: Any) -> EventData:
    """An event as `Deeds` emits them."""
    return {
        "timestamp": "2000-01-01T00:00:00.000+00:00",
        "event_type": "deed",
        "text": text,
        "actor_id": "deeds",
        "meta": meta,
    }
