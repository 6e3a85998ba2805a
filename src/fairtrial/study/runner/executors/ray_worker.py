"""A Ray actor that keeps one worker process on its node, and passes on what it reports.

The actor runs no code of the study itself: a crash of an agent ends the worker process, which the
actor sees exactly as a study on one machine does, and replaces.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from fairtrial.study.model.runs import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    Noted,
    Outcome,
    Report,
    RunStatus,
)
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.frames import DONE, ENTRY, EVENT, dump_outcome
from fairtrial.study.runner.executors.pickling import PickledWork
from fairtrial.study.runner.executors.start_methods import spawn_worker
from fairtrial.study.runner.executors.worker_pool import WorkerPool
from fairtrial.study.runner.executors.worker_process import WorkerProcess

FAILED = 5
"""A kind of reply beside those of frames: the worker process died, or was killed for its time."""
NO_ASSIGNMENT_S = 3600.0
Reply = tuple[Any, ...]
"""`(EVENT, data)`, `(ENTRY, data)`, `(DONE, outcome, stdout, stderr)` or
`(FAILED, kind, message, latency_s, stdout, stderr)`."""


class RunRequest(NamedTuple):
    """An assignment on its way to a worker process, which only that process unpickles.

    execution_index, attempt, timeout_s: those of the assignment
    content: the pickled assignment
    """

    execution_index: int
    attempt: int
    timeout_s: float | None
    content: bytes


@dataclass(frozen=True)
class NodeFacts:
    """What an actor says about where it is.

    host: the machine
    node_id: the Ray node on it
    pid: the actor's process
    versions: versions by name, to compare with those of the driver
    """

    host: str
    node_id: str
    pid: int
    versions: Mapping[str, str]


def read_versions() -> dict[str, str]:
    """Return the versions that driver and workers must share."""
    return {"fairtrial": metadata.version("fairtrial"), "Python": platform.python_version()}


class _FailureNotes:
    """Stands in for the study's work in the actor, and keeps the failure that the pool reports."""

    failure: tuple[str, str, float] | None = None

    def attempt(self, *_: Any) -> Outcome:
        raise AssertionError("runs are attempted in worker processes")

    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        self.failure = (str(kind), message, latency_s)
        return Outcome(RunStatus.BROKEN, FailureKind(kind), 0.0, 0, latency_s, b"")


class _RelayPool(WorkerPool):
    """A pool of one worker process, whose assignments come already pickled."""

    content = b""

    def _dump(self, assignment: Assignment) -> bytes:
        return self.content


class RayWorker:
    """The actor; see the module. `stop` may be called while `exchange` is under way.

    pickled: the work, for the worker process
    environment: environment variables for the worker process only
    folder: its working directory; if it isn't on this node, that of the actor
    """

    def __init__(
        self, pickled: PickledWork, environment: Mapping[str, str], folder: str | None
    ) -> None:
        self._request: RunRequest | None = None
        self._stopping = threading.Event()
        self._failures = _FailureNotes()
        own_path = [entry for entry in sys.path if entry not in pickled.path]
        known = tuple(entry for entry in pickled.path if not entry or Path(entry).exists())
        start = partial(
            _spawn,
            PickledWork(pickled.work, (*known, *own_path)),
            {**os.environ, **environment},
            folder if folder is not None and Path(folder).is_dir() else None,
        )
        self._source = AssignmentSource(self._feed)
        self._pool = _RelayPool(self._failures, self._source, 1, start)
        self._reports: Iterator[Report | None] = self._pool.run()

    def describe(self) -> NodeFacts:
        """Return where this actor is, and its versions."""
        import ray

        node_id = ray.get_runtime_context().get_node_id()
        return NodeFacts(socket.gethostname(), node_id, os.getpid(), read_versions())

    def exchange(self, request: RunRequest | None = None) -> list[Reply]:
        """Take an assignment, if one is given, and return the next replies; waits for the first.

        An entry for the journal is the last reply of its call: the next call says that it is
        durable. Returns nothing once `stop` was called.
        """
        if request is not None:
            self._request = request
            self._source.poll_again()
        replies: list[Reply] = []
        for report in self._reports:
            if self._stopping.is_set():
                break
            if report is not None:
                replies.append(self._make_reply(report))
            if isinstance(report, (Noted, Finished)) or (report is None and replies):
                break
        if self._stopping.is_set():
            self._pool.end()
        return replies

    def stop(self) -> None:
        """Kill the worker process and all that it has started; `exchange` returns then."""
        self._stopping.set()

    def _feed(self) -> Assignment | float:
        request, self._request = self._request, None
        if request is None:
            return NO_ASSIGNMENT_S
        self._pool.content = request.content
        nothing: Any = None  # run and condition are in the content
        return Assignment(
            request.execution_index, request.attempt, nothing, nothing, request.timeout_s
        )

    def _make_reply(self, report: Report) -> Reply:
        if isinstance(report, Emitted):
            return EVENT, report.data
        if isinstance(report, Noted):
            return ENTRY, report.data
        failure, self._failures.failure = self._failures.failure, None
        if failure is not None:
            return FAILED, *failure, report.stdout, report.stderr
        return DONE, dump_outcome(report, report.outcome), report.stdout, report.stderr


def _spawn(
    pickled: PickledWork, environment: Mapping[str, str], folder: str | None, _files: Any
) -> WorkerProcess:
    return spawn_worker(pickled, environment, folder)
