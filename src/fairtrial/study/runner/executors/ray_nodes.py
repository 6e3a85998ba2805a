"""The nodes of a Ray cluster as a study sees them: which it uses, which it avoids, and how many."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from fairtrial.core import LabError
from fairtrial.study.model.resources import Demand
from fairtrial.study.runner.executors.ray_cluster import RayCluster
from fairtrial.study.runner.executors.ray_worker import NodeFacts

CAPACITY_S = 1.0
"""How often to look how many workers the cluster has room for."""
PULSE_S = 2.0
"""How often to look whether the cluster is still there."""
LOST_AFTER_S = 20.0
"""How long the cluster may be out of reach; after a minute, Ray would end this process."""


class RayNodes:
    """Watches the nodes.

    cluster: the connection
    demands: those of the workers
    """

    def __init__(self, cluster: RayCluster, demands: Sequence[Demand]) -> None:
        self._cluster, self._demands = cluster, demands
        self._capacity = 0
        self._capacity_at = self._pulse_at = float("-inf")
        self._seen_at = time.monotonic()
        self._problems: dict[str, str] = {}

    def capacity(self) -> int:
        """Return how many runs there is room for, as of a moment ago."""
        now = time.monotonic()
        if now - self._capacity_at >= CAPACITY_S:
            self._capacity, self._capacity_at = self._cluster.capacity(self._demands), now
        return max(1, min(self._cluster.window, self._capacity))

    def check(self) -> None:
        """Raise `LabError` if the cluster has been out of reach for some time."""
        now = time.monotonic()
        if now - self._pulse_at < PULSE_S:
            return
        self._pulse_at = now
        lost = self._cluster.find_loss()
        if lost is None:
            self._seen_at = now
        elif now - self._seen_at >= LOST_AFTER_S:
            self._cluster.abandon()
            raise LabError(
                f"{lost}: nothing that was counted is lost; resume the study when the cluster is "
                "back"
            )

    def avoid(self, facts: NodeFacts) -> None:
        """Start no more workers on a node; raises `LabError` if there is no other."""
        self._problems[facts.node_id] = f"{facts.host}: {facts.problem}"
        if not self._cluster.avoid(facts.node_id):
            raise LabError(f"no node can run the study; {'; '.join(self._problems.values())}")

    def describe(self, used: Iterable[NodeFacts]) -> str:
        """Return how many workers there are: `3 workers on 2 nodes`.

        used: the facts of each worker
        """
        counts = Counter(facts.node_id for facts in used)
        if not counts:
            return "waiting for nodes"
        text = f"{_count(counts.total(), 'worker')} on {_count(len(counts), 'node')}"
        left = f", {_count(len(self._problems), 'node')} left out" if self._problems else ""
        return text + left


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
