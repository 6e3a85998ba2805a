"""A Ray actor that keeps one worker process on its node, and passes on what it reports.

The actor runs no code of the study itself: a crash of an agent ends the worker process, which the
actor sees exactly as a study on one machine does, and replaces.
"""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any, NamedTuple

from fairtrial.core import LabError
from fairtrial.study.model.runs import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    Noted,
    NotedTogether,
    Outcome,
    Report,
    RunStatus,
)
from fairtrial.study.protocols import Send, Work
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.frames import DONE, ENTRY, EVENT, dump_outcome
from fairtrial.study.runner.executors.node_files import Luggage, NodeFiles, Places
from fairtrial.study.runner.executors.pickling import PickledWork
from fairtrial.study.runner.executors.start_methods import spawn_worker
from fairtrial.study.runner.executors.study_files import digest_package
from fairtrial.study.runner.executors.worker_pool import WorkerPool
from fairtrial.study.runner.executors.worker_process import WorkerProcess

FAILED = 5
"""A kind of reply beside those of frames: the worker process died, or was killed for its time."""
NO_ASSIGNMENT_S = 3600.0
NODE_POLL_S = 1.0
STUDY_CODE = "the study's code"
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
    problem: why no run can start there; empty if nothing is in the way
    """

    host: str
    node_id: str
    pid: int
    versions: Mapping[str, str]
    problem: str = ""


def read_versions() -> dict[str, str]:
    """Return the versions that driver and workers must share."""
    return {
        "fairtrial": metadata.version("fairtrial"),
        "Python": platform.python_version(),
        "fairtrial's code": digest_package(),
    }


class _FailureNotes(Work):
    """Stands in for the study's work in the actor, and keeps the failure that the pool reports."""

    failure: tuple[str, str, float] | None = None

    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        raise AssertionError("runs are attempted in worker processes")

    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        self.failure = (str(kind), message, latency_s)
        return Outcome(RunStatus.BROKEN, FailureKind(kind), 0.0, 0, latency_s, b"")


class _RelayPool(WorkerPool):
    """A pool of one worker process, whose assignments come already pickled."""

    content = b""

    def _dump(self, assignment: Assignment) -> bytes:
        return self.content


def _end_with_node() -> None:
    """End this process soon after the Ray node that started it; Ray doesn't always see to that.

    Its worker process dies with it, and the kernel lets go of the copies of files.
    """
    node = os.getppid()

    def watch() -> None:
        while os.getppid() == node:
            time.sleep(NODE_POLL_S)
        os._exit(1)

    threading.Thread(target=watch, name="fairtrial-node", daemon=True).start()


class RayWorker:
    """The actor; see the module. `stop` may be called while `exchange` is under way.

    pickled: the work, for the worker process
    environment: environment variables for the worker process only
    folder: the driver's working directory
    luggage: the files that the study needs
    """

    def __init__(
        self,
        pickled: PickledWork,
        environment: Mapping[str, str],
        folder: str,
        luggage: Luggage,
    ) -> None:
        _end_with_node()
        self._request: RunRequest | None = None
        self._stopping = threading.Event()
        self._failures = _FailureNotes()
        self._luggage, self._problem = luggage, ""
        try:
            self._files: NodeFiles | None = NodeFiles(luggage)
        except LabError as error:  # said by `describe`, since a constructor can't say on which node
            self._files, self._problem = None, str(error)
        root = "" if self._files is None else self._files.root
        places = Places(root, luggage.copied)
        start = partial(
            _spawn,
            PickledWork(pickled.work, places.search_path(pickled.path), (root, luggage.copied)),
            {**os.environ, **environment},
            places.find_folder(folder, luggage.roots),
        )
        self._source = AssignmentSource(self._feed)
        self._pool = _RelayPool(self._failures, self._source, 1, start)
        self._reports: Iterator[Report | None] = self._pool.run()

    def describe(self) -> NodeFacts:
        """Return where this actor is, and its versions."""
        import ray

        node_id = ray.get_runtime_context().get_node_id()
        versions = read_versions()
        if self._luggage.code and self._files is not None:
            versions[STUDY_CODE] = self._luggage.digest_copy(self._files.root)
        return NodeFacts(socket.gethostname(), node_id, os.getpid(), versions, self._problem)

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
            assert not isinstance(report, NotedTogether), "one worker has one entry at a time"
            if report is not None:
                replies.append(self._make_reply(report))
            if isinstance(report, (Noted, Finished)) or (report is None and replies):
                break
        if self._stopping.is_set():
            self._pool.end()
            if self._files is not None:
                self._files.close()
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

    def _make_reply(self, report: Emitted | Noted | Finished) -> Reply:
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
