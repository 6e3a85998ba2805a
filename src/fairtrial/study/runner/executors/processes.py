"""Runs in worker processes of our own: one that dies costs one run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from fairtrial.study.model.runs import Report
from fairtrial.study.protocols import Feed, Work
from fairtrial.study.runner.executors.assignment_source import Source
from fairtrial.study.runner.executors.pickling import Luggage, pack_work
from fairtrial.study.runner.executors.start_methods import fork_child, spawn_child
from fairtrial.study.runner.executors.worker_pool import Crew, Start
from fairtrial.study.runner.executors.worker_process import Child


@dataclass(frozen=True)
class Processes:
    """Each slot a process of its own, with pipes to it.

    start_method: `fork` copies this process, so that lambdas and functions of a notebook work;
        `spawn` starts afresh, and can run only what stands in modules; by default `fork` on Linux
        and `spawn` elsewhere
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
        """Whether workers are copies of this process; if not, see `reach.check_reachable`."""
        default = "fork" if sys.platform == "linux" else "spawn"
        return (self.start_method or default) == "fork"

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Up to `slots` workers, started as they are needed and again when one has died."""
        crew = Crew(work, Source(feed), slots, self._starter(work))
        try:
            yield from crew.run()
        finally:
            crew.end()

    def _starter(self, work: Work) -> Start:
        return partial(fork_child, work) if self.is_forking else partial(_spawn, pack_work(work))


def _spawn(luggage: Luggage, _not_theirs: Iterable[int]) -> Child:
    # A process that starts afresh gets no file of its parent's but those that it is meant to.
    return spawn_child(luggage)
