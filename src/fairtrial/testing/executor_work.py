"""Work for tests of executors: runs whose condition says what they do, and how they fail."""

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

from fairtrial import Condition, RunSpec, RunStatus
from fairtrial.study import executors

BROKEN_KINDS = (
    executors.FailureKind.BROKEN,
    executors.FailureKind.KILLED,
    executors.FailureKind.UNWRITABLE,
)
POLL_S = 0.005


def assign(
    turn: int,
    action: str = "echo",
    *,
    attempt: int = 1,
    timeout_s: float | None = None,
    **arguments: Any,
) -> executors.Assignment:
    """Return an assignment to do an action of `ScriptedWork` with these arguments."""
    condition = Condition(f"cond-{turn}", {"action": action, **arguments})
    spec = RunSpec(
        f"run-{turn}", "trial", condition.condition_id, "problem", 1, turn, "agent", "problem"
    )
    return executors.Assignment(turn, attempt, spec, condition, timeout_s)


def read_body(report: executors.Finished) -> Any:
    """Return what a run of `ScriptedWork` reports, or the message of its failure."""
    return executors.unpack(report.outcome.body)


class ScriptedWork(executors.Work):
    """A `Work` whose runs call the method that their condition's `action` names.

    A run that succeeds reports its turn, its process, when it began and ended by the monotonic
    clock, and what the action returned.
    """

    def attempt(
        self,
        assignment: executors.Assignment,
        emit: executors.Send,
        note: executors.Send | None = None,
    ) -> executors.Outcome:
        """Do the action of an assignment."""
        arguments = dict(assignment.condition.factor_assignments)
        action = getattr(self, arguments.pop("action"))
        if action.__name__.startswith("note"):
            arguments |= {"note": note, "earlier": assignment.journal}
        began = time.monotonic()
        try:
            returned = action(emit=emit, **arguments)
        except (Exception, SystemExit) as error:
            took_s = time.monotonic() - began
            return self.fail(assignment, executors.FailureKind.EXCEPTION, repr(error), took_s)
        ended = time.monotonic()
        body = {
            "turn": assignment.execution_index,
            "attempt": assignment.attempt,
            "run_id": assignment.spec.run_id,
            "pid": os.getpid(),
            "began": began,
            "ended": ended,
            "returned": returned,
        }
        return executors.Outcome(
            RunStatus.SUCCESS, None, 0.5, 7, ended - began, executors.pack(body)
        )

    def fail(
        self, assignment: executors.Assignment, kind: str, message: str, latency_s: float
    ) -> executors.Outcome:
        """Return the outcome of a run that failed or broke."""
        status = RunStatus.BROKEN if kind in BROKEN_KINDS else RunStatus.FAILED
        return executors.Outcome(
            status, executors.FailureKind(kind), 0.0, 0, latency_s, executors.pack(message)
        )

    # -- actions that end well --

    def echo(self, emit: Callable[[bytes], None], **arguments: Any) -> Any:
        return arguments

    def sleep(self, emit: Callable[[bytes], None], seconds: float) -> None:
        time.sleep(seconds)

    def emit(self, emit: Callable[[bytes], None], count: int, size: int = 1) -> None:
        for number in range(count):
            emit(executors.pack(event(number=number, text="x" * size)))

    def emit_late(self, emit: Callable[[bytes], None], count: int) -> None:
        """Start a thread that emits after the run has ended."""

        def emit_on() -> None:
            for number in range(count):
                emit(executors.pack(event(number=number)))
                time.sleep(0.001)

        threading.Thread(target=emit_on, daemon=True).start()

    def print(self, emit: Callable[[bytes], None], out: str, err: str, times: int = 1) -> None:
        for _ in range(times):
            sys.stdout.write(out)
            sys.stderr.write(err)

    def await_file(self, emit: Callable[[bytes], None], path: str, seconds: float = 60) -> None:
        """Emit the pid, and wait until the file exists."""
        emit(executors.pack(event(pid=os.getpid())))
        until = time.monotonic() + seconds
        while not Path(path).exists() and time.monotonic() < until:
            time.sleep(POLL_S)

    # -- actions that keep a journal --

    def note(
        self, emit: executors.Send, note: executors.Send, earlier: tuple[bytes, ...], count: int
    ) -> Any:
        """Note numbers; returns when each was durable, and the notes of earlier attempts."""
        times = []
        for number in range(count):
            note(executors.pack(number))
            times.append(time.monotonic())
        return {"times": times, "earlier": [executors.unpack(data) for data in earlier]}

    def note_at_once(
        self, emit: executors.Send, note: executors.Send, earlier: tuple[bytes, ...], threads: int
    ) -> None:
        """Note from several threads at once."""
        notes = [executors.pack(number) for number in range(threads)]
        workers = [threading.Thread(target=note, args=(data,)) for data in notes]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def note_late(
        self, emit: executors.Send, note: executors.Send, earlier: tuple[bytes, ...], count: int
    ) -> None:
        """Start a thread that notes after the run has ended."""

        def note_on() -> None:
            for number in range(count):
                with contextlib.suppress(RuntimeError):
                    note(executors.pack(number))
                time.sleep(0.001)

        threading.Thread(target=note_on, daemon=True).start()

    def note_and_touch(
        self,
        emit: executors.Send,
        note: executors.Send,
        earlier: tuple[bytes, ...],
        kept: str,
        refused: str,
    ) -> None:
        """Emit the pid, note, and touch the file `kept` or `refused`."""
        emit(executors.pack(event(pid=os.getpid())))
        try:
            note(b"x" * 200_000)
        except RuntimeError:
            Path(refused).touch()
            raise
        Path(kept).touch()

    # -- actions that end badly --

    def leave(self, emit: Callable[[bytes], None], code: int) -> None:
        sys.exit(code)

    def interrupt(self, emit: Callable[[bytes], None]) -> None:
        raise KeyboardInterrupt

    def leave_at_once(self, emit: Callable[[bytes], None], code: int) -> None:
        os._exit(code)

    def die_of(self, emit: Callable[[bytes], None], name: str) -> None:
        emit(executors.pack(event(text="about to die")))
        print("about to die")
        os.kill(os.getpid(), signal.Signals[name])
        time.sleep(60)

    def hang(self, emit: Callable[[bytes], None]) -> None:
        while True:
            time.sleep(60)


def event(text: str = "", **meta: Any) -> executors.EventData:
    """Return an event of the kind that `ScriptedWork` emits."""
    return {
        "timestamp": "2000-01-01T00:00:00.000+00:00",
        "event_type": "action",
        "text": text,
        "actor_id": "scripted-work",
        "meta": meta,
    }
