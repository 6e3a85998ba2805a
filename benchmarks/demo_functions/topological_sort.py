# ruff: noqa
"""Depth-first topological sorts that insert each node in front of a list."""

from __future__ import annotations

from collections import defaultdict


class Graph:
    """A directed graph with nodes 0, 1, 2, ...

    node_count: how many nodes there are
    """

    def __init__(self, node_count: int) -> None:
        self.edges = defaultdict(list)
        self.node_count = node_count

    def add_edge(self, start: int, end: int) -> None:
        """Add an edge."""
        self.edges[start].append(end)

    def visit(self, node, visited, stack):
        """Put a node in front of all that can be reached from it."""
        visited[node] = True
        for following in self.edges[node]:
            if visited[following] == False:
                self.visit(following, visited, stack)
        stack.insert(0, node)

    def sort(self):
        """Return the nodes, each before all that can be reached from it."""
        visited = [False] * self.node_count
        stack = []
        for node in range(self.node_count):
            if visited[node] == False:
                self.visit(node, visited, stack)
        return stack


def sort_with_helper(node_count: int, edges: list[tuple[int, int]]) -> list[int]:
    """Sort by the methods of a class."""
    graph = Graph(node_count)
    for start, end in edges:
        graph.add_edge(start, end)
    return graph.sort()


def sort_with_closure(node_count: int, edges: list[tuple[int, int]]) -> list[int]:
    """Sort by an inner function that knows the lists of the outer one."""
    following = {node: [] for node in range(node_count)}
    for start, end in edges:
        following[start].append(end)
    visited = []
    order = []

    def visit(node):
        visited.append(node)
        for other in following[node]:
            if other not in visited:
                visit(other)
        order.insert(0, node)

    for node in range(node_count):
        if node not in visited:
            visit(node)
    return order


def _collect(node, following, seen, order):
    if node in seen:
        return
    seen.add(node)
    for other in following.get(node, ()):
        _collect(other, following, seen, order)
    order.insert(0, node)


def sort_with_function(node_count: int, edges: list[tuple[int, int]]) -> list[int]:
    """Sort by a recursive function of the module."""
    following = {}
    for start, end in edges:
        following.setdefault(start, []).append(end)
    seen = set()
    order = []
    for node in range(node_count):
        _collect(node, following, seen, order)
    return order
