"""Graphs to sort. Candidates never see this file."""

from __future__ import annotations

import random


def graph_1k(rng: random.Random) -> tuple[tuple[dict[int, list[int]]], dict[str, object]]:
    """About a thousand nodes with up to three needs each; one graph in ten has a cycle."""
    nodes = list(range(rng.randint(900, 1_000)))
    rng.shuffle(nodes)
    graph = {
        node: rng.sample(nodes[:at], min(at, rng.randint(0, 3))) for at, node in enumerate(nodes)
    }
    if rng.random() < 0.1:
        graph[nodes[0]] = [nodes[-1]]
        graph[nodes[-1]] = [nodes[0]]
    return (graph,), {}
