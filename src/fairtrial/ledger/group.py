"""What waits for a commit."""

from __future__ import annotations

from typing import Any


class Group:
    """Rows that wait for a commit."""

    __slots__ = ("attempts", "bytes", "events", "overwritten", "results")

    def __init__(self) -> None:
        # Both rows of a result in one step: an interrupt may come between any two.
        self.results: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        self.attempts: list[tuple[Any, ...]] = []
        self.overwritten: list[tuple[int, int]] = []
        self.events: list[tuple[Any, ...]] = []
        self.bytes = 0
