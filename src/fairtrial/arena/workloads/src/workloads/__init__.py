"""Three kinds of ordinary Python: strings and dictionaries, heaps and tuples, floats in a loop."""

from __future__ import annotations

import heapq


def count_words(text: str) -> dict[str, int]:
    """How often each word stands in a text."""
    counts: dict[str, int] = {}
    for word in text.lower().split():
        bare = word.strip(".,;")
        counts[bare] = counts.get(bare, 0) + 1
    return counts


def shortest_paths(roads: list[list[list[int]]]) -> list[int]:
    """How far each place is from the first one; -1 if there is no way."""
    distances = [-1] * len(roads)
    ahead = [(0, 0)]
    while ahead:
        distance, place = heapq.heappop(ahead)
        if distances[place] >= 0:
            continue
        distances[place] = distance
        for neighbour, length in roads[place]:
            if distances[neighbour] < 0:
                heapq.heappush(ahead, (distance + length, neighbour))
    return distances


def smooth(values: list[float]) -> list[float]:
    """Each value drawn towards those before it."""
    smoothed, level = [], 0.0
    for value in values:
        level += 0.25 * (value - level)
        smoothed.append(level)
    return smoothed
