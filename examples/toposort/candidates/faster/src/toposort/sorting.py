"""Topological order, with a heap of what is ready: no node is looked at twice."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping


class CycleError(ValueError):
    """Some nodes need each other; holds them, sorted."""


def sort(graph: Mapping[int, Iterable[int]]) -> list[int]:
    """The nodes, each after all that it needs; of several that could be next, the smallest.

    graph: for each node those that it needs
    """
    missing: dict[int, int] = {}
    needed_by: dict[int, list[int]] = {}
    for node, given in graph.items():
        needs = set(given)
        missing[node] = len(needs)
        for need in needs:
            needed_by.setdefault(need, []).append(node)
    ready = [node for node, count in missing.items() if not count]
    ready += [node for node in needed_by if node not in missing]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        missing.pop(node, None)
        for other in needed_by.get(node, ()):
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, other)
    if missing:
        raise CycleError(sorted(missing))
    return order
