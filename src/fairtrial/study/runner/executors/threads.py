"""The executor `threads`: runs in threads of this process, for agents that wait on a network."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from fairtrial.core import LabError
from fairtrial.study.event_loop import use_shared_loop
from fairtrial.study.model.runs import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    Outcome,
    Report,
)
from fairtrial.study.protocols import Executor, Feed, Work
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.dispatcher import Dispatcher
from fairtrial.study.runner.executors.event_limit import LimitedEmitter
from fairtrial.study.runner.executors.output_capture import OutputCapture, ThreadCapture
from fairtrial.study.runner.executors.pending_entry import PendingEntry, note_together

LONGEST_SILENCE_S = 0.05


@dataclass(frozen=True)
class Threads(Executor):
    """Runs assignments in threads: cheap for many runs that mostly wait.

    All threads share `random` and `numpy.random`, so only `task.rng` gives the same numbers every
    time. A run that exceeds its time limit is recorded and abandoned: a thread can't be stopped.
    What Python code prints is captured if the run's own thread prints it.
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
        """Yield reports of up to `slots` threads, started on demand."""
        with ThreadCapture() as output:
            pool = _ThreadPool(work, AssignmentSource(feed), slots, output)
            try:
                yield from pool.run()
            finally:
                pool.release_threads()


@dataclass(eq=False, slots=True)
class _ThreadAttempt:
    """An assignment in a thread.

    began: when the thread started it; None before that
    """

    assignment: Assignment
    began: float | None = None


@dataclass(eq=False, slots=True)
class _WorkerThread:
    """A worker thread.

    capture: what its runs print
    inbox: its assignments; None ends it
    current: what it is running; None if idle or abandoned
    """

    capture: OutputCapture
    inbox: queue.SimpleQueue[_ThreadAttempt | None] = field(default_factory=queue.SimpleQueue)
    current: _ThreadAttempt | None = None


_Message = tuple[_WorkerThread, _ThreadAttempt, bytes | PendingEntry | Outcome | BaseException]


class _ThreadPool(Dispatcher):
    """The threads of one execution."""

    def __init__(
        self, work: Work, source: AssignmentSource, slots: int, output: ThreadCapture
    ) -> None:
        super().__init__(source)
        self._work, self._slots, self._output = work, slots, output
        self._messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._idle: list[_WorkerThread] = []
        self._busy: set[_WorkerThread] = set()
        self._has_abandoned = False
        self._next_deadline = math.inf
        self._unanswered: set[PendingEntry] = set()
        self._is_over = False

    @property
    def is_busy(self) -> bool:
        return bool(self._busy)

    def release_threads(self) -> None:
        """End all threads; one with a run ends after it, and the run isn't reported."""
        self._output.stays = bool(self._busy) or self._has_abandoned
        self._is_over = True
        for entry in tuple(self._unanswered):
            entry.answer(is_durable=False)
        for thread in (*self._idle, *self._busy):
            thread.inbox.put(None)

    # -- assignments --

    def _assign(self) -> None:
        while len(self._busy) < self._slots:
            assignment = self._source.take()
            if assignment is None:
                return
            thread = self._idle.pop() if self._idle else self._start()
            if thread is None:
                self._source.give_back(assignment)
                return
            thread.current = _ThreadAttempt(assignment)
            self._busy.add(thread)
            if assignment.timeout_s is not None:
                soonest = time.monotonic() + assignment.timeout_s
                self._next_deadline = min(self._next_deadline, soonest)
            thread.inbox.put(thread.current)

    def _start(self) -> _WorkerThread | None:
        """Start a thread and return it; None, and fewer slots from now on, if that is refused."""
        thread = _WorkerThread(OutputCapture(self._output.before))
        system_thread = threading.Thread(
            target=self._serve, args=(thread,), name="fairtrial-run", daemon=True
        )
        try:
            system_thread.start()
        except RuntimeError as error:
            if not self._busy:
                raise LabError(f"no thread can be started: {error}; end other programs") from error
            self._slots = len(self._busy)
            return None
        return thread

    def _serve(self, thread: _WorkerThread) -> None:
        """Run assignments until the inbox says to end; this is the body of a thread."""
        use_shared_loop()
        while (attempt := thread.inbox.get()) is not None:
            self._output.send_to(thread.capture)
            emitter = LimitedEmitter(self._event_sender(thread, attempt))
            attempt.began = began = time.monotonic()
            result: Outcome | BaseException
            try:
                add_entry = self._entry_sender(thread, attempt)
                result = self._work.attempt(attempt.assignment, emitter, add_entry)
            except KeyboardInterrupt:  # raised by the agent: a signal goes to the main thread
                took_s = time.monotonic() - began
                result = self._work.fail(
                    attempt.assignment, FailureKind.EXCEPTION, "KeyboardInterrupt", took_s
                )
            except BaseException as error:  # not the agent's: `attempt` handles those
                result = error
            emitter.close()
            self._messages.put((thread, attempt, result))

    def _event_sender(
        self, thread: _WorkerThread, attempt: _ThreadAttempt
    ) -> Callable[[bytes], None]:
        return lambda data: self._messages.put((thread, attempt, data))

    def _entry_sender(
        self, thread: _WorkerThread, attempt: _ThreadAttempt
    ) -> Callable[[bytes], None]:
        def send(data: bytes) -> None:
            entry = PendingEntry(data)
            self._unanswered.add(entry)
            self._messages.put((thread, attempt, entry))
            if self._is_over:  # checked last, and set before entries are refused: one side sees it
                entry.answer(is_durable=False)
            entry.is_answered.wait()
            self._unanswered.discard(entry)
            if not entry.is_durable:
                raise RuntimeError("a journal entry comes too late: the run is over")

        return send

    # -- reports --

    def _reports(self) -> Iterator[Report]:
        """Yield the reports since the last call; wait briefly if there are none."""
        now = time.monotonic()
        messages = self._receive(now)
        yield from self._note(messages)
        for thread, attempt, content in messages:
            if isinstance(content, PendingEntry) or thread.current is not attempt:
                continue  # an attempt that exceeded its time limit was reported
            if isinstance(content, BaseException):
                raise content
            key = attempt.assignment.execution_index, attempt.assignment.attempt
            if isinstance(content, bytes):
                yield Emitted(*key, content)
            else:
                self._idle.append(thread)
                yield self._finish(thread, content)
        # Last, so that runs that ended by `now` are reported even if handling reports took long.
        if now >= self._next_deadline:
            yield from self._expire(now)

    def _note(self, messages: Sequence[_Message]) -> Iterator[Report]:
        """Report the journal entries that wait, before anything else."""
        waiting = []
        for thread, attempt, content in messages:
            if not isinstance(content, PendingEntry):
                continue
            if thread.current is attempt:
                waiting.append((attempt.assignment, content))
            else:  # it exceeded its time limit
                content.answer(is_durable=False)
        yield from note_together(waiting)

    def _receive(self, now: float) -> list[_Message]:
        wait_s = min(LONGEST_SILENCE_S, max(0.0, self._next_deadline - now))
        if len(self._busy) < self._slots:
            wait_s = self._source.wait_s(wait_s)
        try:
            messages = [self._messages.get(timeout=wait_s)]
        except queue.Empty:
            return []
        messages.extend(self._messages.get() for _ in range(self._messages.qsize()))
        return messages

    def _expire(self, now: float) -> Iterator[Report]:
        """Report the runs that exceed their time limit, and abandon their threads."""
        self._next_deadline = math.inf
        for thread in list(self._busy):
            attempt = thread.current
            if attempt is None or attempt.assignment.timeout_s is None:
                continue
            began = now if attempt.began is None else attempt.began
            deadline = began + attempt.assignment.timeout_s
            if deadline > now:
                self._next_deadline = min(self._next_deadline, deadline)
                continue
            thread.inbox.put(None)
            self._has_abandoned = True
            message = f"took longer than {attempt.assignment.timeout_s:g} s"
            yield self._finish(
                thread,
                self._work.fail(attempt.assignment, FailureKind.TIMEOUT, message, now - began),
            )

    def _finish(self, thread: _WorkerThread, outcome: Outcome) -> Finished:
        assert thread.current is not None
        assignment, capture = thread.current.assignment, thread.capture
        self._busy.discard(thread)
        thread.current = None
        stdout, stderr = capture.stdout.take(), capture.stderr.take()
        return Finished(assignment.execution_index, assignment.attempt, outcome, stdout, stderr)
