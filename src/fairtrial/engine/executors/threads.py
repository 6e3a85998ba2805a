"""Runs in threads of this process: for agents that wait on a network."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from fairtrial.engine.executors.capture import Capture, ThreadCapture
from fairtrial.engine.executors.events import Emitter
from fairtrial.engine.executors.source import Source
from fairtrial.errors import LabError
from fairtrial.model.runs import Assignment, Emitted, FailureKind, Finished, Outcome, Report
from fairtrial.protocols import Feed, Work

LONGEST_SILENCE_S = 0.1


@dataclass(frozen=True)
class Threads:
    """Many runs at once, cheaply, where they mostly wait.

    All threads share `random` and `numpy.random`, so only `task.rng` gives the same numbers every
    time. A run past its time is recorded and left to itself: a thread can't be stopped. What
    Python code prints is captured where the run's own thread prints it.
    """

    @property
    def name(self) -> str:
        return "threads"

    @property
    def is_reproducible(self) -> bool:
        return False

    @property
    def is_isolated(self) -> bool:
        return False

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Up to `slots` threads, started as they are needed."""
        with ThreadCapture() as output:
            pool = _Pool(work, Source(feed), slots, output)
            try:
                yield from pool.run()
            finally:
                pool.dismiss()


@dataclass(eq=False)
class _Ticket:
    """One attempt in a thread's hands."""

    assignment: Assignment
    capture: Capture = field(default_factory=Capture)
    began: float | None = None


_Said = tuple["_Seat", _Ticket, "bytes | Outcome | BaseException"]


@dataclass(eq=False)
class _Seat:
    """A thread, and what it is at."""

    inbox: queue.SimpleQueue[_Ticket | None] = field(default_factory=queue.SimpleQueue)
    ticket: _Ticket | None = None


class _Pool:
    def __init__(self, work: Work, source: Source, slots: int, output: ThreadCapture) -> None:
        self._work, self._source, self._slots, self._output = work, source, slots, output
        self._said: queue.SimpleQueue[_Said] = queue.SimpleQueue()
        self._idle: list[_Seat] = []
        self._busy: set[_Seat] = set()
        self._next_deadline = math.inf

    def run(self) -> Iterator[Report | None]:
        while True:
            self._hand_out()
            if not self._busy and self._source.is_dry:
                return
            report = self._listen()
            if report is None:
                yield from self._expired()
            yield report
            if report is not None:
                self._source.ask_again()

    def dismiss(self) -> None:
        """Let go of all threads; one that is at a run ends after it, unheard."""
        for seat in (*self._idle, *self._busy):
            seat.inbox.put(None)
        self._idle.clear()
        self._busy.clear()

    # -- work out --

    def _hand_out(self) -> None:
        while len(self._busy) < self._slots:
            assignment = self._source.take()
            if assignment is None:
                return
            seat = self._idle.pop() if self._idle else self._start()
            if seat is None:
                self._source.give_back(assignment)
                continue
            seat.ticket = _Ticket(assignment)
            self._busy.add(seat)
            if assignment.timeout_s is not None:
                soonest = time.monotonic() + assignment.timeout_s
                self._next_deadline = min(self._next_deadline, soonest)
            seat.inbox.put(seat.ticket)

    def _start(self) -> _Seat | None:
        """A new thread; None, and fewer slots from now on, where the system gives no more."""
        seat = _Seat()
        thread = threading.Thread(
            target=self._serve, args=(seat,), name="fairtrial-run", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            if not self._busy:
                raise LabError(f"no thread can be started: {error}; end other programs") from error
            self._slots = len(self._busy)
            return None
        return seat

    def _serve(self, seat: _Seat) -> None:
        """What a thread does."""
        while (ticket := seat.inbox.get()) is not None:
            self._output.send_to(ticket.capture)
            emitter = Emitter(lambda data, ticket=ticket: self._said.put((seat, ticket, data)))  # type: ignore[misc]
            ticket.began = began = time.monotonic()
            said: Outcome | BaseException
            try:
                said = self._work.attempt(ticket.assignment, emitter)
            except KeyboardInterrupt:  # the agent's own: a real one comes to the main thread
                took = time.monotonic() - began
                said = self._work.fail(
                    ticket.assignment, FailureKind.EXCEPTION, "KeyboardInterrupt", took
                )
            except BaseException as error:  # a bug of ours; raised where it is seen
                said = error
            emitter.close()
            self._said.put((seat, ticket, said))

    # -- reports in --

    def _listen(self) -> Report | None:
        """The next report; None if there is none for a while, or a deadline may have passed."""
        try:
            seat, ticket, said = self._said.get_nowait()
        except queue.Empty:
            patience_s = self._next_deadline - time.monotonic()
            if len(self._busy) < self._slots:
                patience_s = min(patience_s, self._source.wait_s(LONGEST_SILENCE_S))
            try:
                seat, ticket, said = self._said.get(
                    timeout=min(LONGEST_SILENCE_S, max(patience_s, 0.0))
                )
            except queue.Empty:
                return None
        assignment = ticket.assignment
        if seat.ticket is not ticket:  # it took too long, and has been reported
            return None
        if isinstance(said, bytes):
            return Emitted(assignment.turn, assignment.attempt, said)
        if isinstance(said, BaseException):
            raise said
        self._busy.discard(seat)
        self._idle.append(seat)
        seat.ticket = None
        return _finished(ticket, said)

    def _expired(self) -> Iterator[Report]:
        """Reports of runs past their time; their threads are left to themselves."""
        now = time.monotonic()
        if now < self._next_deadline:
            return
        self._next_deadline = math.inf
        for seat in list(self._busy):
            ticket = seat.ticket
            assert ticket is not None
            limit_s = ticket.assignment.timeout_s
            if limit_s is None:
                continue
            began = now if ticket.began is None else ticket.began
            if now < began + limit_s:
                self._next_deadline = min(self._next_deadline, began + limit_s)
                continue
            self._busy.discard(seat)
            seat.ticket = None
            seat.inbox.put(None)
            message = f"took longer than {limit_s:g} s"
            outcome = self._work.fail(
                ticket.assignment, FailureKind.TIMEOUT, message, now - began
            )
            yield _finished(ticket, outcome)


def _finished(ticket: _Ticket, outcome: Outcome) -> Finished:
    assignment, capture = ticket.assignment, ticket.capture
    return Finished(
        assignment.turn,
        assignment.attempt,
        outcome,
        capture.stdout.take(),
        capture.stderr.take(),
    )
