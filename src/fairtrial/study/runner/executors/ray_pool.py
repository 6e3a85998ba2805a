"""The workers of a study on a Ray cluster, as the driver sees them.

At most a window of assignments is under way or waiting for a worker; nothing more is taken before
their outcomes are handled, so a slow ledger holds the cluster back and the driver's memory stays
flat. Ray retries and restarts nothing: an actor or a node that dies costs the attempts under way
there, which are reported as broken, and retried by the rules of the study.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fairtrial.core import LabError
from fairtrial.study.model.resources import Demand
from fairtrial.study.model.runs import Assignment, Emitted, FailureKind, Finished, Noted, Report
from fairtrial.study.protocols import Work
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.dispatcher import Dispatcher
from fairtrial.study.runner.executors.frames import (
    DONE,
    ENTRY,
    EVENT,
    CorruptFrameError,
    dump_assignment,
    load_outcome,
)
from fairtrial.study.runner.executors.ray_cluster import RayCluster
from fairtrial.study.runner.executors.ray_nodes import RayNodes
from fairtrial.study.runner.executors.ray_worker import (
    STUDY_CODE,
    NodeFacts,
    Reply,
    RunRequest,
    read_versions,
)
from fairtrial.study.runner.executors.worker_process import START_LIMIT_S

LONGEST_SILENCE_S = 0.05
END_S = 10.0
"""How long to wait for workers to end before their actors are killed."""
MAX_FAILED_STARTS = 3
LATE_S = START_LIMIT_S + 60.0
"""How long after its time limit a run may be reported; then its node counts as lost.

The limit counts from when a worker process is ready, which may have to be started first."""


class RemoteWorker:
    """One actor: what it is asked, and what it runs."""

    def __init__(self, actor: Any, asked: Any, demand: Demand = ()) -> None:
        self.actor, self.demand = actor, demand
        self.asked = asked
        """The reference to the answer that is awaited; None while it is idle."""
        self.facts: NodeFacts | None = None
        self.assignment: Assignment | None = None
        self.began = time.monotonic()
        """When its start, or else its last run, began."""

    @property
    def place(self) -> str:
        """The machine that it is on, in words."""
        return "an unknown node" if self.facts is None else self.facts.host


class RayPool(Dispatcher):
    """Starts actors as the cluster has room, assigns runs to them and reads their replies."""

    def __init__(
        self,
        work: Work,
        source: AssignmentSource,
        slots: int,
        cluster: RayCluster,
        study_code: str = "",
    ) -> None:
        super().__init__(source)
        self._versions = {**read_versions(), **({STUDY_CODE: study_code} if study_code else {})}
        self._work, self._slots, self._cluster = work, slots, cluster
        self._workers: dict[Any, RemoteWorker] = {}
        """Workers by the reference to the answer that is awaited from them."""
        self._idle: defaultdict[Demand, list[RemoteWorker]] = defaultdict(list)
        self._waiting: defaultdict[Demand, deque[tuple[Assignment, RunRequest]]]
        self._waiting = defaultdict(deque)
        self._starting: Counter[Demand] = Counter()
        needs = work.needs
        self._nodes = RayNodes(cluster, needs.demands)
        self._busy = self._queued = self._failed_starts = 0
        self._start_failed_at = float("-inf")

    @property
    def is_busy(self) -> bool:
        return self._busy + self._queued > 0

    def end(self) -> None:
        """End all workers and what they have started, wait for that, and kill the actors."""
        if self._cluster.abandon_lost():
            return
        workers = self._all_workers()
        for worker in workers:
            if worker.facts is None:  # it may wait for room, without end
                self._cluster.kill(worker.actor)
        workers = [worker for worker in workers if worker.facts is not None]
        stops = []
        for worker in workers:
            with suppress(self._cluster.errors):
                stops.append(worker.actor.stop.remote())
                stops.append(worker.asked or worker.actor.exchange.remote())
        with suppress(self._cluster.errors):
            self._cluster.wait(stops, END_S, len(stops))
        for worker in workers:
            self._cluster.kill(worker.actor)
        self._workers.clear()
        self._idle.clear()

    def _all_workers(self) -> list[RemoteWorker]:
        return [
            *self._workers.values(),
            *(worker for idle in self._idle.values() for worker in idle),
        ]

    # -- assignments --

    def _assign(self) -> None:
        while self._busy + self._queued < self._limit():
            assignment = self._source.take()
            if assignment is None:
                break
            index, attempt, limit_s = (
                assignment.execution_index,
                assignment.attempt,
                assignment.timeout_s,
            )
            request = RunRequest(index, attempt, limit_s, dump_assignment(assignment))
            self._waiting[assignment.demand].append((assignment, request))
            self._queued += 1
        for demand, waiting in self._waiting.items():
            idle = self._idle[demand]
            while waiting and idle:
                self._queued -= 1
                self._send(idle.pop(), *waiting.popleft())
            while len(waiting) > self._starting[demand]:
                actor, described = self._cluster.start_worker(demand)
                self._workers[described] = RemoteWorker(actor, described, demand)
                self._starting[demand] += 1
        if len(self._waiting) > 1:
            self._make_room()

    def _make_room(self) -> None:
        """End idle workers with demands that no run waits with, while others wait to start."""
        for demand, idle in self._idle.items():
            if not self._waiting[demand] and self._starting.total() > self._starting[demand]:
                for worker in idle:
                    self._cluster.kill(worker.actor)
                idle.clear()

    def _limit(self) -> int:
        """Return how many runs may be under way; with room for more, as many as there is room."""
        is_few = self._slots < self._cluster.window
        return self._slots if is_few else self._nodes.capacity()

    def _send(self, worker: RemoteWorker, assignment: Assignment, request: RunRequest) -> None:
        worker.assignment, worker.began = assignment, time.monotonic()
        self._busy += 1
        self._ask(worker, request)

    def _ask(self, worker: RemoteWorker, request: RunRequest | None = None) -> None:
        """Ask a worker for its next replies."""
        worker.asked = worker.actor.exchange.remote(request)
        self._workers[worker.asked] = worker

    # -- reports --

    def _reports(self) -> Iterator[Report]:
        self._nodes.check()
        wait_s = LONGEST_SILENCE_S
        if self._busy + self._queued < self._limit():
            wait_s = self._source.wait_s(wait_s)
        if not self._workers:
            time.sleep(wait_s)
            return
        for answer in self._cluster.wait(list(self._workers), wait_s, 1):
            worker = self._workers.pop(answer)
            worker.asked = None
            try:
                value = self._cluster.get(answer)
            except self._cluster.errors as error:
                yield from self._lose(worker, error)
                continue
            if isinstance(value, NodeFacts):
                self._accept(worker, value)
                self._tell_place()
            else:
                yield from self._read_replies(worker, value)
        yield from self._lose_late()

    def _tell_place(self) -> None:
        """Have the progress show how many workers there are."""
        workers = self._all_workers()
        used = [worker.facts for worker in workers if worker.facts is not None]
        with suppress(AttributeError):  # a work that has no place for it
            self._work.place = self._nodes.describe(used)

    def _accept(self, worker: RemoteWorker, facts: NodeFacts) -> None:
        """Accept a worker that is ready; `LabError` if its versions aren't those of the driver."""
        self._starting[worker.demand] -= 1
        self._failed_starts = 0
        if facts.problem:
            self._cluster.kill(worker.actor)
            self._nodes.avoid(facts)
            return
        for name, own in self._versions.items():
            if (other := facts.versions.get(name)) != own:
                self._idle[worker.demand].append(worker)  # to be ended
                raise LabError(
                    f"the worker on {facts.host} has {name} {other}, the driver has {name} {own}: "
                    "every node needs the same"
                )
        worker.facts = facts
        self._idle[worker.demand].append(worker)

    def _read_replies(self, worker: RemoteWorker, replies: list[Reply]) -> Iterator[Report]:
        assignment = worker.assignment
        assert assignment is not None
        index, attempt = assignment.execution_index, assignment.attempt
        for kind, *content in replies:
            if kind == EVENT:
                yield Emitted(index, attempt, *content)
            elif kind == ENTRY:
                yield Noted(index, attempt, *content)  # the caller has stored it after this
            else:
                yield self._finish(worker, assignment, kind, content)
                return
        self._ask(worker)

    def _finish(
        self, worker: RemoteWorker, assignment: Assignment, kind: int, content: list[Any]
    ) -> Finished:
        if kind == DONE:
            packed, stdout, stderr = content
            try:
                outcome = load_outcome(packed, assignment)
            except CorruptFrameError:
                raise LabError(f"the worker on {worker.place} sent what is no outcome") from None
        else:
            reason, message, latency_s, stdout, stderr = content
            outcome = self._work.fail(assignment, reason, message, latency_s)
        worker.assignment = None
        self._busy -= 1
        self._idle[worker.demand].append(worker)
        return Finished(assignment.execution_index, assignment.attempt, outcome, stdout, stderr)

    # -- actors and nodes that are lost --

    def _lose(self, worker: RemoteWorker, error: Exception) -> Iterator[Report]:
        """Report the run of a worker whose actor or node is lost, as broken."""
        self._cluster.kill(worker.actor)
        self._tell_place()
        cause = getattr(error, "cause", None)
        if isinstance(cause, LabError):
            raise LabError(f"{worker.place}: {cause}") from error
        if worker.facts is None:
            self._starting[worker.demand] -= 1
            self._count_failed_start(worker, error)
        if worker.assignment is not None:
            message = f"the Ray actor on {worker.place} is gone: {_first_line(error)}"
            yield self._break(worker, message)

    def _count_failed_start(self, worker: RemoteWorker, error: Exception) -> None:
        """Count starts that fail one after the other; `LabError` if there are too many.

        Those that were under way at once count as one: a node that dies ends many.
        """
        if worker.began < self._start_failed_at:
            return
        self._start_failed_at = time.monotonic()
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            raise LabError(
                f"Ray actors can't be started: {_first_line(error)}; see that fairtrial is "
                "installed on every node"
            ) from error

    def _break(self, worker: RemoteWorker, message: str) -> Finished:
        assignment, took_s = worker.assignment, time.monotonic() - worker.began
        assert assignment is not None
        worker.assignment = None
        self._busy -= 1
        outcome = self._work.fail(assignment, FailureKind.KILLED, message, took_s)
        return Finished(assignment.execution_index, assignment.attempt, outcome)

    def _lose_late(self) -> Iterator[Report]:
        """Report runs as broken whose actor should have ended them long ago."""
        now = time.monotonic()
        for answer, worker in list(self._workers.items()):
            limit_s = worker.assignment.timeout_s if worker.assignment is not None else None
            if limit_s is not None and now - worker.began > limit_s + LATE_S:
                del self._workers[answer]
                self._cluster.kill(worker.actor)
                yield self._break(worker, f"{worker.place} doesn't answer")


def _first_line(error: Exception) -> str:
    """Return the first line of what Ray says, which may be a page."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
