"""What waits for a commit."""

from __future__ import annotations

from math import isfinite
from typing import Any

from fairtrial.study.model.runs import Outcome

MOST_TOKENS = 2**63 - 1


class CommitGroup:
    """Rows that wait for a commit."""

    __slots__ = ("attempts", "bytes", "events", "overwritten", "results")

    def __init__(self) -> None:
        # Both rows of a result in one step: an interrupt may come between any two.
        self.results: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        # The same of an attempt and the entries of its journal that are told with it.
        self.attempts: list[tuple[tuple[Any, ...], tuple[str, int, int] | None]] = []
        self.overwritten: list[tuple[int, int]] = []
        self.events: list[tuple[Any, ...]] = []
        self.bytes = 0


def storable_numbers(outcome: Outcome) -> tuple[float, int, float]:
    """Cost, tokens and latency as SQLite takes them; one bad number must not hold up a group."""
    cost, latency = float(outcome.cost_usd), float(outcome.latency_s)
    return (
        cost if isfinite(cost) else 0.0,
        max(-MOST_TOKENS, min(int(outcome.tokens), MOST_TOKENS)),
        latency if isfinite(latency) else 0.0,
    )
