"""The pool of worker processes, served by one loop.

No threads: a selector shows which pipes are ready, and twenty times a second, or when a time limit
is reached, the loop checks the workers themselves.
"""

from __future__ import annotations

import errno
import selectors
import time
from collections.abc import Callable, Iterable, Iterator

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
from fairtrial.study.protocols import Work
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.dispatcher import Dispatcher
from fairtrial.study.runner.executors.frames import (
    ENTRY,
    EVENT,
    READY,
    CorruptFrameError,
    dump_assignment,
    load_outcome,
)
from fairtrial.study.runner.executors.pipes import Pipe
from fairtrial.study.runner.executors.start_methods import blocked_signals
from fairtrial.study.runner.executors.worker_process import (
    START_LIMIT_S,
    WorkerProcess,
    describe_exit,
)

LONGEST_SILENCE_S = 0.05
EXIT_POLL_S = 0.002
CLOSED_PIPE_S = 1.0
"""How long a worker may run after it has closed its end of the pipe."""
END_S = 5.0
"""How long to wait for killed workers to exit."""
MAX_FAILED_STARTS = 3
MAX_REFUSALS, REFUSAL_S = 50, 0.02
SCARCE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
StartWorker = Callable[[Iterable[int]], WorkerProcess]
"""Starts a worker, which must close these file numbers of its parent."""


class WorkerPool(Dispatcher):
    """Starts worker processes on demand, assigns runs to them and reads their reports."""

    def __init__(
        self, work: Work, source: AssignmentSource, slots: int, start: StartWorker
    ) -> None:
        super().__init__(source)
        self._work, self._slots, self._start_process = work, slots, start
        self._selector = selectors.DefaultSelector()
        self._workers: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        self._killed: list[WorkerProcess] = []
        self._busy = 0
        self._next_check = 0.0
        self._failed_starts = 0

    @property
    def is_busy(self) -> bool:
        return self._busy > 0

    def end(self) -> None:
        """Kill all workers and wait until they have exited."""
        running = [*self._workers, *self._killed]
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.close()
        self._workers.clear()
        self._selector.close()
        until = time.monotonic() + END_S
        while running := [worker for worker in running if worker.poll() is None]:
            if time.monotonic() > until:
                return
            time.sleep(EXIT_POLL_S)

    # -- assignments --

    def _assign(self) -> None:
        while self._busy < self._slots:
            assignment = self._source.take()
            if assignment is None:
                return
            content = self._dump(assignment)
            worker = self._idle.pop() if self._idle else self._start_worker()
            if worker is None:
                self._source.give_back(assignment)
                return
            worker.assign(assignment, content, time.monotonic())
            self._busy += 1
            self._next_check = min(self._next_check, worker.deadline)
            self._write_requests(worker)

    def _dump(self, assignment: Assignment) -> bytes:
        """Return an assignment as the content of a request."""
        return dump_assignment(assignment)

    def _write_requests(self, worker: WorkerProcess) -> None:
        """Write as much as the pipe takes; the selector signals when it takes the rest."""
        is_waiting = worker.is_write_pending
        worker.is_write_pending = not worker.write_requests()
        if worker.is_write_pending and not is_waiting:
            self._selector.register(
                worker.pipes.request, selectors.EVENT_WRITE, (worker, Pipe.REQUEST)
            )
        elif is_waiting and not worker.is_write_pending:
            self._selector.unregister(worker.pipes.request)

    def _start_worker(self) -> WorkerProcess | None:
        """Start a worker and return it; None, and fewer slots from now on, if that is refused."""
        parent_files = [number for worker in self._workers for number in worker.pipes.all()]
        refusals = 0
        while True:
            try:
                with blocked_signals():  # until the worker is registered and can be killed
                    worker = self._start_process(parent_files)
                    self._workers.add(worker)
                break
            except OSError as error:
                refusals += 1
                if error.errno not in SCARCE or refusals > MAX_REFUSALS:
                    raise LabError(
                        f"no worker process can be started: {error}; lower --parallel, or raise "
                        "the limits on processes and open files (`ulimit -u`, `ulimit -n`)"
                    ) from error
                if self._workers:
                    self._slots = len(self._workers)
                    return None
                time.sleep(REFUSAL_S)
        for number, pipe in worker.pipes.readable():
            self._selector.register(number, selectors.EVENT_READ, (worker, pipe))
        return worker

    # -- reports --

    def _reports(self) -> Iterator[Report]:
        """Yield new reports of the workers; wait briefly if there are none."""
        now = time.monotonic()
        wait_s = min(LONGEST_SILENCE_S, max(0.0, self._next_check - now))
        if self._busy < self._slots:
            wait_s = self._source.wait_s(wait_s)
        for key, _ in self._selector.select(wait_s):
            worker, pipe = key.data
            if worker.is_closed:
                continue
            if pipe is Pipe.REPLY:
                yield from self._read_reply(worker)
            elif pipe is Pipe.REQUEST:
                self._write_requests(worker)
            elif not worker.read_output(pipe):
                self._selector.unregister(key.fd)
        # Last, so that runs that ended by `now` are reported even if handling reports took long.
        if now >= self._next_check:
            yield from self._check_workers(now)

    def _read_reply(self, worker: WorkerProcess) -> Iterator[Report]:
        data = worker.read_reply()
        if data:
            yield from self._read_frames(worker, data)
        elif data is not None:
            self._selector.unregister(worker.pipes.reply)
            worker.pipe_closed_at = time.monotonic()
            self._next_check = 0.0

    def _read_frames(self, worker: WorkerProcess, data: bytes) -> Iterator[Report]:
        """Yield the reports of all complete frames."""
        try:
            for kind, content in worker.frames.add(data):
                assignment = worker.assignment
                if kind == READY:
                    worker.is_ready = True
                    worker.start_clock(time.monotonic())
                    self._next_check = min(self._next_check, worker.deadline)
                elif assignment is None:
                    raise CorruptFrameError
                elif kind == EVENT:
                    yield Emitted(assignment.execution_index, assignment.attempt, content)
                elif kind == ENTRY:
                    yield Noted(assignment.execution_index, assignment.attempt, content)
                    worker.confirm_entry()  # the caller has stored it
                    self._write_requests(worker)
                else:
                    outcome = load_outcome(content, assignment)
                    worker.drain()
                    self._idle.append(worker)
                    yield self._finish(worker, outcome)
        except CorruptFrameError:
            message = "wrote into the pipe between the worker process and the study"
            yield from self._kill(worker, FailureKind.CRASH, message)

    def _finish(self, worker: WorkerProcess, outcome: Outcome) -> Finished:
        assignment = worker.release_assignment()
        self._busy -= 1
        self._failed_starts = 0
        worker.has_finished_a_run = True
        stdout, stderr = worker.stdout.take(), worker.stderr.take()
        return Finished(assignment.execution_index, assignment.attempt, outcome, stdout, stderr)

    # -- exits and time limits --

    def _check_workers(self, now: float) -> Iterator[Report]:
        """Handle workers that have exited, hang or have closed their pipe."""
        self._next_check = now + LONGEST_SILENCE_S
        for worker in list(self._workers):
            status = worker.poll()
            if status is not None:
                yield from self._handle_exit(worker, status)
            elif worker.deadline <= now:
                yield from self._expire(worker)
            elif worker.pipe_closed_at is None:
                self._next_check = min(self._next_check, worker.deadline)
            elif now - worker.pipe_closed_at < CLOSED_PIPE_S:
                self._next_check = min(self._next_check, now + EXIT_POLL_S)
            else:
                message = "closed the pipe between the worker process and the study"
                yield from self._kill(worker, FailureKind.CRASH, message)
        self._killed = [worker for worker in self._killed if worker.poll() is None]

    def _expire(self, worker: WorkerProcess) -> Iterator[Report]:
        """Kill a worker whose time limit, for its run or for its start, is reached."""
        assert worker.assignment is not None
        if worker.is_ready:
            message = f"took longer than {worker.assignment.timeout_s:g} s"
            yield from self._kill(worker, FailureKind.TIMEOUT, message)
        else:
            worker.kill()
            self._discard(worker)
            self._killed.append(worker)
            self._give_back(worker, f"it was not ready after {START_LIMIT_S:g} s")

    def _kill(self, worker: WorkerProcess, kind: FailureKind, message: str) -> Iterator[Report]:
        """Kill a worker and report its run as failed."""
        worker.kill()
        self._discard(worker)
        self._killed.append(worker)
        if worker.assignment is not None:
            yield self._fail(worker, kind, message)

    def _handle_exit(self, worker: WorkerProcess, status: int) -> Iterator[Report]:
        """Report the run of a worker that has exited, or give it back if it had not started."""
        data = worker.read_reply()  # it may have finished the run
        if data:
            yield from self._read_frames(worker, data)
        if worker.is_closed:
            return
        has_started = worker.assignment is not None and worker.has_read_assignment()
        self._discard(worker)
        if worker.assignment is None:
            return
        kind, message = describe_exit(status)
        if has_started:
            yield self._fail(worker, kind, message)
        else:
            self._give_back(worker, message)

    def _fail(self, worker: WorkerProcess, kind: FailureKind, message: str) -> Finished:
        assert worker.assignment is not None
        took_s = time.monotonic() - worker.began
        return self._finish(worker, self._work.fail(worker.assignment, kind, message, took_s))

    def _give_back(self, worker: WorkerProcess, message: str) -> None:
        """Return an assignment to the source; `LabError` if workers keep failing to start."""
        self._source.give_back(worker.release_assignment())
        self._busy -= 1
        self._failed_starts += not worker.has_finished_a_run
        if self._failed_starts >= MAX_FAILED_STARTS:
            stderr = worker.stderr.take().decode("utf-8", "replace").strip()
            last = f" ({stderr.splitlines()[-1]})" if stderr else ""
            raise LabError(
                f"worker processes end before they begin a run: {message}{last}; see that the "
                "modules of agents and problems can be imported, or use --executor serial"
            )

    def _discard(self, worker: WorkerProcess) -> None:
        """Read the rest of a worker's output, close its pipes and remove it."""
        worker.drain()
        for number in worker.pipes.parents():
            if number in self._selector.get_map():
                self._selector.unregister(number)
        worker.close()
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
