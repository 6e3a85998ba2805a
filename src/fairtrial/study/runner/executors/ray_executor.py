"""The executor `ray`: each run in a worker process on some node of a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairtrial.core import Mistake
from fairtrial.study.model.resources import NO_NEEDS, WorkNeeds
from fairtrial.study.model.runs import Report
from fairtrial.study.protocols import Feed, Work
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.pickling import pickle_work
from fairtrial.study.runner.executors.ray_cluster import (
    INSTALL_RAY,
    NEEDS_RAY,
    RayCluster,
    is_ray_installed,
)
from fairtrial.study.runner.executors.ray_pool import RayPool

WINDOW = 256


@dataclass(frozen=True)
class Ray:
    """Runs assignments on a Ray cluster, each in a worker process that a Ray actor keeps.

    address: where the cluster is: `auto`, or the `host:port` of its head node; by default a
        cluster on this machine is started, and ended with the study
    window: the largest number of runs under way; with this many slots or more, as many runs are
        under way as the cluster has CPUs
    """

    address: str | None = None
    window: int = WINDOW

    @property
    def name(self) -> str:
        return "ray"

    @property
    def is_reproducible(self) -> bool:
        return True

    @property
    def is_isolated(self) -> bool:
        return True

    @property
    def is_forking(self) -> bool:
        """False: the work must pass `check_reachable`."""
        return False

    @property
    def is_distributed(self) -> bool:
        """True: Ray sees to it that runs have the resources that they need."""
        return True

    @property
    def default_slots(self) -> int:
        """How many slots a study has that doesn't say."""
        return self.window

    def find_mistakes(self) -> list[Mistake]:
        """Return why this executor can't work here."""
        return [] if is_ray_installed() else [Mistake(("executor",), NEEDS_RAY, INSTALL_RAY)]

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Yield reports of up to `slots` workers, started as the cluster has room for them."""
        pickled = pickle_work(work)
        needs: WorkNeeds = getattr(work, "needs", NO_NEEDS)
        is_free = slots < self.window and not needs.demands
        cluster = RayCluster(self.address, self.window, slots if is_free else None)
        try:
            cluster.refuse_impossible(needs.demands)
            variables = {name: os.environ[name] for name in needs.environment}
            cluster.load(pickled, variables, str(Path.cwd()))
            pool = RayPool(work, AssignmentSource(feed), slots, cluster)
            try:
                yield from pool.run()
            finally:
                pool.end()
        finally:
            cluster.close()
