"""Runs in threads of this process: for agents that wait on a network."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fairtrial.core import LabError
from fairtrial.study.model.runs import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    Noted,
    Outcome,
    Report,
)
from fairtrial.study.protocols import Feed, Work
from fairtrial.study.runner.executors.assignment_source import Source
from fairtrial.study.runner.executors.dispatch import Team
from fairtrial.study.runner.executors.event_limit import Emitter
from fairtrial.study.runner.executors.output_capture import Capture, ThreadCapture

LONGEST_SILENCE_S = 0.05


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


@dataclass(eq=False, slots=True)
class _Ticket:
    """One attempt in a thread's hands."""

    assignment: Assignment
    began: float | None = None


@dataclass(eq=False, slots=True)
class _Seat:
    """A thread, and what it is at."""

    capture: Capture
    inbox: queue.SimpleQueue[_Ticket | None] = field(default_factory=queue.SimpleQueue)
    ticket: _Ticket | None = None


@dataclass(eq=False, slots=True)
class _Note:
    """A journal entry, and a thread that waits until it is durable or refused."""

    data: bytes
    is_kept: bool = False
    is_settled: threading.Event = field(default_factory=threading.Event)

    def settle(self, *, is_kept: bool) -> None:
        """Let the thread go on; the first word holds."""
        if not self.is_settled.is_set():
            self.is_kept = is_kept
            self.is_settled.set()


_Said = tuple[_Seat, _Ticket, bytes | _Note | Outcome | BaseException]


class _Pool(Team):
    def __init__(self, work: Work, source: Source, slots: int, output: ThreadCapture) -> None:
        super().__init__(source)
        self._work, self._slots, self._output = work, slots, output
        self._said: queue.SimpleQueue[_Said] = queue.SimpleQueue()
        self._idle: list[_Seat] = []
        self._busy: set[_Seat] = set()
        self._has_abandoned = False
        self._next_deadline = math.inf
        self._unsettled: set[_Note] = set()
        self._is_over = False

    @property
    def is_busy(self) -> bool:
        return bool(self._busy)

    def dismiss(self) -> None:
        """Let go of all threads; one that is at a run ends after it, unheard."""
        self._output.is_needed = bool(self._busy) or self._has_abandoned
        self._is_over = True
        for note in tuple(self._unsettled):
            note.settle(is_kept=False)
        for seat in (*self._idle, *self._busy):
            seat.inbox.put(None)

    # -- work out --

    def _hand_out(self) -> None:
        while len(self._busy) < self._slots:
            assignment = self._source.take()
            if assignment is None:
                return
            seat = self._idle.pop() if self._idle else self._start()
            if seat is None:
                self._source.give_back(assignment)
                return
            seat.ticket = _Ticket(assignment)
            self._busy.add(seat)
            if assignment.timeout_s is not None:
                soonest = time.monotonic() + assignment.timeout_s
                self._next_deadline = min(self._next_deadline, soonest)
            seat.inbox.put(seat.ticket)

    def _start(self) -> _Seat | None:
        """A new thread; None, and fewer slots from now on, where the system gives no more."""
        seat = _Seat(Capture(self._output.before))
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
            self._output.send_to(seat.capture)
            emitter = Emitter(self._sender(seat, ticket))
            ticket.began = began = time.monotonic()
            said: Outcome | BaseException
            try:
                said = self._work.attempt(ticket.assignment, emitter, self._noter(seat, ticket))
            except KeyboardInterrupt:  # the agent's own: a real one comes to the main thread
                took_s = time.monotonic() - began
                said = self._work.fail(
                    ticket.assignment, FailureKind.EXCEPTION, "KeyboardInterrupt", took_s
                )
            except BaseException as error:  # not the agent's, `attempt` sees to those
                said = error
            emitter.close()
            self._said.put((seat, ticket, said))

    def _sender(self, seat: _Seat, ticket: _Ticket) -> Callable[[bytes], None]:
        return lambda data: self._said.put((seat, ticket, data))

    def _noter(self, seat: _Seat, ticket: _Ticket) -> Callable[[bytes], None]:
        def send(data: bytes) -> None:
            note = _Note(data)
            self._unsettled.add(note)
            self._said.put((seat, ticket, note))
            if self._is_over:  # set first and looked at last: one of us sees the other
                note.settle(is_kept=False)
            note.is_settled.wait()
            self._unsettled.discard(note)
            if not note.is_kept:
                raise RuntimeError("a journal entry comes too late: the run is over")

        return send

    # -- reports in --

    def _reports(self) -> Iterator[Report]:
        """What has been said since the last time; waits a little if there is nothing."""
        now = time.monotonic()
        for seat, ticket, said in self._hear(now):
            if seat.ticket is not ticket:  # it took too long, and has been reported
                if isinstance(said, _Note):
                    said.settle(is_kept=False)
                continue
            if isinstance(said, BaseException):
                raise said
            if isinstance(said, bytes):
                yield Emitted(ticket.assignment.turn, ticket.assignment.attempt, said)
            elif isinstance(said, _Note):
                yield Noted(ticket.assignment.turn, ticket.assignment.attempt, said.data)
                said.settle(is_kept=True)  # whoever asks for more has made it durable
            else:
                self._idle.append(seat)
                yield self._finish(seat, said)
        # Only now: whoever was done by `now` has been heard, however long all that took.
        if now >= self._next_deadline:
            yield from self._expire(now)

    def _hear(self, now: float) -> list[_Said]:
        wait_s = min(LONGEST_SILENCE_S, max(0.0, self._next_deadline - now))
        if len(self._busy) < self._slots:
            wait_s = self._source.wait_s(wait_s)
        try:
            heard = [self._said.get(timeout=wait_s)]
        except queue.Empty:
            return []
        heard.extend(self._said.get() for _ in range(self._said.qsize()))
        return heard

    def _expire(self, now: float) -> Iterator[Report]:
        """Report the runs past their time, and leave their threads to themselves."""
        self._next_deadline = math.inf
        for seat in list(self._busy):
            ticket = seat.ticket
            if ticket is None or ticket.assignment.timeout_s is None:
                continue
            began = now if ticket.began is None else ticket.began
            deadline = began + ticket.assignment.timeout_s
            if deadline > now:
                self._next_deadline = min(self._next_deadline, deadline)
                continue
            seat.inbox.put(None)
            self._has_abandoned = True
            message = f"took longer than {ticket.assignment.timeout_s:g} s"
            yield self._finish(
                seat,
                self._work.fail(ticket.assignment, FailureKind.TIMEOUT, message, now - began),
            )

    def _finish(self, seat: _Seat, outcome: Outcome) -> Finished:
        assert seat.ticket is not None
        assignment, capture = seat.ticket.assignment, seat.capture
        self._busy.discard(seat)
        seat.ticket = None
        stdout, stderr = capture.stdout.take(), capture.stderr.take()
        return Finished(assignment.turn, assignment.attempt, outcome, stdout, stderr)
