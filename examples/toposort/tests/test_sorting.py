"""What sort() promises."""

from __future__ import annotations

import random

import pytest
from toposort import CycleError, sort


def test_nothing_sorts_to_nothing() -> None:
    assert sort({}) == []


def test_a_node_comes_after_those_it_needs() -> None:
    assert sort({3: [2], 2: [1], 1: []}) == [1, 2, 3]


def test_nodes_that_are_only_needed_are_sorted_too() -> None:
    assert sort({5: [9]}) == [9, 5]


def test_the_smallest_goes_first() -> None:
    assert sort({4: [], 2: [], 3: [1], 1: []}) == [1, 2, 3, 4]


def test_the_graph_stays_as_it_was() -> None:
    graph = {2: [1], 3: [2, 1]}
    sort(graph)
    assert graph == {2: [1], 3: [2, 1]}


def test_a_cycle_is_refused_with_its_nodes() -> None:
    with pytest.raises(CycleError) as caught:
        sort({1: [], 2: [3], 3: [2]})
    assert caught.value.args == ([2, 3],)


@pytest.mark.parametrize("seed", range(5))
def test_every_order_is_a_right_one(seed: int) -> None:
    rng = random.Random(seed)
    graph = {node: [rng.randrange(node) for _ in range(2)] for node in range(1, 60)}
    place = {node: index for index, node in enumerate(sort(graph))}
    assert len(place) == 60
    assert all(place[need] < place[node] for node, needs in graph.items() for need in needs)
