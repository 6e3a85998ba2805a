"""Topological order: right, and slower than it has to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class CycleError(ValueError):
    """Some nodes need each other; holds them, sorted."""


def sort(graph: Mapping[int, Iterable[int]]) -> list[int]:
    """The nodes, each after all that it needs; of several that could be next, the smallest.

    graph: for each node those that it needs
    """
    waiting = {node: set(needs) for node, needs in graph.items()}
    for needs in list(waiting.values()):
        for node in needs:
            waiting.setdefault(node, set())
    order: list[int] = []
    while waiting:
        ready = [node for node, needs in waiting.items() if not needs]
        if not ready:
            raise CycleError(sorted(waiting))
        node = min(ready)
        order.append(node)
        del waiting[node]
        for needs in waiting.values():
            needs.discard(node)
    return order
