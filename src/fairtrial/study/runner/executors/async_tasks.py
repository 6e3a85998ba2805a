"""The executor `async`: thousands of waiting runs in one event loop of this process."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import LabError
from fairtrial.study.event_loop import run_guarded, shared_loop, use_shared_loop
from fairtrial.study.model.runs import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    Outcome,
    Report,
)
from fairtrial.study.protocols import AsyncWork, Executor, Feed, Work
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.dispatcher import Dispatcher
from fairtrial.study.runner.executors.event_limit import LimitedEmitter
from fairtrial.study.runner.executors.output_capture import OutputCapture, ThreadCapture
from fairtrial.study.runner.executors.pending_entry import PendingEntry, note_together

LONGEST_SILENCE_S = 0.05
MOST_THREADS = 256
"""How many agents and evaluators that aren't async run at once; others wait for a thread."""
DEFAULT_SLOTS = 100
"""How many runs wait at once if neither study nor command line say."""


@dataclass(frozen=True)
class Async(Executor):
    """Runs async agents in one event loop: cheap for thousands of runs that wait.

    What isn't async (an agent, an evaluator) runs in a thread meanwhile. All runs share `random`
    and `numpy.random`, so only `task.rng` gives the same numbers every time. A run that exceeds its
    time limit is cancelled where it awaits something; until then it is abandoned.
    """

    @property
    def name(self) -> str:
        return "async"

    @property
    def is_reproducible(self) -> bool:
        return False

    @property
    def is_isolated(self) -> bool:
        return False

    @property
    def default_slots(self) -> int:
        return DEFAULT_SLOTS

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Yield reports of up to `slots` runs at once."""
        with ThreadCapture() as output:
            pool = _TaskPool(work, AssignmentSource(feed), slots, output)
            try:
                yield from pool.run()
            finally:
                pool.cancel_all()


@dataclass(eq=False, slots=True)
class _AsyncAttempt:
    """An assignment in the event loop.

    capture: what it prints
    began: when it started; None before that
    task: its task; None before that
    """

    assignment: Assignment
    capture: OutputCapture
    began: float | None = None
    task: asyncio.Task[Any] | None = None


_Message = tuple[_AsyncAttempt, "bytes | PendingEntry | Outcome | BaseException"]
_Job = tuple["asyncio.Future[tuple[bool, Any]]", Callable[[], Any]]


class HelperThreads:
    """Threads for what would block the event loop; used by the loop's own thread only."""

    def __init__(self, most: int) -> None:
        """Make threads, up to `most` at once."""
        self._seats = asyncio.Semaphore(most)
        self._idle: list[queue.SimpleQueue[_Job | None]] = []
        self._is_over = False

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns that is called in a thread, in this context."""
        async with self._seats:
            return await self._run(function, arguments)

    async def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        loop, context = asyncio.get_running_loop(), copy_context()
        future: asyncio.Future[tuple[bool, Any]] = loop.create_future()
        inbox = self._idle.pop() if self._idle else self._start(loop)
        inbox.put((future, lambda: context.run(function, *arguments)))
        succeeded, value = await future
        if not succeeded:
            raise value
        return value

    def end(self) -> None:
        """End the idle threads, and the others after what they do."""
        self._is_over = True
        for inbox in self._idle:
            inbox.put(None)
        self._idle.clear()

    def _start(self, loop: asyncio.AbstractEventLoop) -> queue.SimpleQueue[_Job | None]:
        inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        thread = threading.Thread(
            target=self._serve, args=(loop, inbox), name="fairtrial-run", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            raise LabError(f"no thread can be started: {error}; lower --parallel") from error
        return inbox

    def _serve(
        self, loop: asyncio.AbstractEventLoop, inbox: queue.SimpleQueue[_Job | None]
    ) -> None:
        use_shared_loop()
        while (job := inbox.get()) is not None:
            future, function = job
            try:
                result = True, function()
            except BaseException as error:
                result = False, error
            loop.call_soon_threadsafe(self._answer, inbox, future, result)
            del job, future, function, result

    def _answer(
        self,
        inbox: queue.SimpleQueue[_Job | None],
        future: asyncio.Future[tuple[bool, Any]],
        result: tuple[bool, Any],
    ) -> None:
        if self._is_over:
            inbox.put(None)
        else:
            self._idle.append(inbox)
        if not future.done():  # its run may have been cancelled
            future.set_result(result)


@dataclass(eq=False)
class _TaskPool(Dispatcher):
    """The runs of one execution."""

    work: Work
    source: AssignmentSource
    slots: int
    output: ThreadCapture
    _busy: set[_AsyncAttempt] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(self.source)
        self._loop = shared_loop()
        self._helpers = HelperThreads(min(self.slots, MOST_THREADS))
        self._messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._unanswered: set[PendingEntry] = set()
        self._has_limits = False
        self._is_over = False

    @property
    def is_busy(self) -> bool:
        return bool(self._busy)

    def cancel_all(self) -> None:
        """Cancel all runs under way, without reports."""
        self.output.stays = bool(self._busy)
        self._is_over = True
        for entry in tuple(self._unanswered):
            entry.answer(is_durable=False)
        attempts = list(self._busy)
        self._busy.clear()
        for attempt in attempts:
            self._cancel(attempt)
        self._loop.call_soon_threadsafe(self._helpers.end)

    def _cancel(self, attempt: _AsyncAttempt) -> None:
        def cancel() -> None:
            if attempt.task is not None:
                attempt.task.cancel()

        self._loop.call_soon_threadsafe(cancel)

    # -- assignments --

    def _assign(self) -> None:
        while len(self._busy) < self.slots:
            assignment = self._source.take()
            if assignment is None:
                return
            attempt = _AsyncAttempt(assignment, OutputCapture(self.output.before))
            self._has_limits |= assignment.timeout_s is not None
            self._busy.add(attempt)
            self._loop.call_soon_threadsafe(self._begin, attempt)

    def _begin(self, attempt: _AsyncAttempt) -> None:
        """Start a run; called in the loop's thread."""
        attempt.task = self._loop.create_task(self._attempt(attempt))

    async def _attempt(self, attempt: _AsyncAttempt) -> None:
        self.output.send_to(attempt.capture)
        emitter = LimitedEmitter(lambda data: self._messages.put((attempt, data)))
        attempt.began = time.monotonic()
        assignment, note = attempt.assignment, self._entry_sender(attempt)
        if isinstance(self.work, AsyncWork):
            doing = self.work.attempt_async(assignment, emitter, note, self._helpers.run)
        else:
            doing = self._helpers.run(self.work.attempt, assignment, emitter, note)
        succeeded, result = await run_guarded(doing)
        if not succeeded and isinstance(result, KeyboardInterrupt):  # raised by the agent
            took_s = time.monotonic() - attempt.began
            result = self.work.fail(assignment, FailureKind.EXCEPTION, "KeyboardInterrupt", took_s)
        elif isinstance(result, asyncio.CancelledError):
            message = "its task was cancelled"
            took_s = time.monotonic() - attempt.began
            result = self.work.fail(assignment, FailureKind.EXCEPTION, message, took_s)
        emitter.close()
        self._messages.put((attempt, result))

    def _entry_sender(self, attempt: _AsyncAttempt) -> Callable[[bytes], None]:
        def send(data: bytes) -> None:
            entry = PendingEntry(data)
            self._unanswered.add(entry)
            self._messages.put((attempt, entry))
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
        for attempt, content in messages:
            if isinstance(content, PendingEntry) or attempt not in self._busy:
                continue  # an attempt that exceeded its time limit was reported
            if isinstance(content, BaseException):
                raise content
            key = attempt.assignment.execution_index, attempt.assignment.attempt
            if isinstance(content, bytes):
                yield Emitted(*key, content)
            else:
                yield self._finish(attempt, content)
        yield from self._expire(now)

    def _note(self, messages: Sequence[_Message]) -> Iterator[Report]:
        """Report the journal entries that wait, before anything else."""
        waiting = []
        for attempt, content in messages:
            if not isinstance(content, PendingEntry):
                continue
            if attempt in self._busy:
                waiting.append((attempt.assignment, content))
            else:  # it exceeded its time limit
                content.answer(is_durable=False)
        yield from note_together(waiting)

    def _receive(self, now: float) -> list[_Message]:
        wait_s = LONGEST_SILENCE_S
        if len(self._busy) < self.slots:
            wait_s = self._source.wait_s(wait_s)
        try:
            messages = [self._messages.get(timeout=wait_s)]
        except queue.Empty:
            return []
        messages.extend(self._messages.get() for _ in range(self._messages.qsize()))
        return messages

    def _expire(self, now: float) -> Iterator[Report]:
        """Report the runs that exceed their time limit, and cancel their tasks."""
        for attempt in list(self._busy) if self._has_limits else ():
            limit_s, began = attempt.assignment.timeout_s, attempt.began
            if limit_s is None or began is None or began + limit_s > now:
                continue
            self._cancel(attempt)
            message = f"took longer than {limit_s:g} s"
            failed = self.work.fail(attempt.assignment, FailureKind.TIMEOUT, message, now - began)
            yield self._finish(attempt, failed)

    def _finish(self, attempt: _AsyncAttempt, outcome: Outcome) -> Finished:
        self._busy.discard(attempt)
        capture, assignment = attempt.capture, attempt.assignment
        stdout, stderr = capture.stdout.take(), capture.stderr.take()
        return Finished(assignment.execution_index, assignment.attempt, outcome, stdout, stderr)
