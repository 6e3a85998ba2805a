"""The executor `processes`: each run in a worker process, so that a crash costs one run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from fairtrial.study.model.runs import Report
from fairtrial.study.protocols import Executor, Feed, Work
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.pickling import PickledWork, pickle_work
from fairtrial.study.runner.executors.start_methods import fork_worker, spawn_worker
from fairtrial.study.runner.executors.worker_pool import StartWorker, WorkerPool
from fairtrial.study.runner.executors.worker_process import WorkerProcess


@dataclass(frozen=True)
class Processes(Executor):
    """Runs assignments in worker processes, one for each slot.

    start_method: `fork` copies this process, so that lambdas and functions of a notebook work;
        `spawn` starts a new interpreter and can run only what is defined in modules; by default
        `fork` on Linux and `spawn` elsewhere
    """

    start_method: Literal["fork", "spawn"] | None = None

    @property
    def name(self) -> str:
        return "processes"

    @property
    def is_reproducible(self) -> bool:
        return True

    @property
    def is_isolated(self) -> bool:
        return True

    @property
    def is_forking(self) -> bool:
        """Whether workers are copies of this process; if not, work must pass `check_reachable`."""
        default = "fork" if sys.platform == "linux" else "spawn"
        return (self.start_method or default) == "fork"

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Yield reports of up to `slots` workers, started on demand and replaced if they die."""
        pool = WorkerPool(work, AssignmentSource(feed), slots, self._starter(work))
        try:
            yield from pool.run()
        finally:
            pool.end()

    def _starter(self, work: Work) -> StartWorker:
        return partial(fork_worker, work) if self.is_forking else partial(_spawn, pickle_work(work))


def _spawn(pickled: PickledWork, _parent_files: Iterable[int]) -> WorkerProcess:
    # A spawned process inherits only the files that are passed to it.
    return spawn_worker(pickled)
