"""Rows that wait for the next commit."""

from __future__ import annotations

from math import isfinite
from typing import Any

from fairtrial.study.model.runs import Outcome

MAX_TOKENS = 2**63 - 1


class CommitGroup:
    """Rows that are written together, in one transaction."""

    __slots__ = ("attempts", "bytes", "events", "overwritten", "results")

    def __init__(self) -> None:
        # A result's two rows are one item: an interrupt may come between any two steps.
        self.results: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        # Likewise an attempt and the key of the journal entries that are settled with it.
        self.attempts: list[tuple[tuple[Any, ...], tuple[str, int, int] | None]] = []
        self.overwritten: list[tuple[int, int]] = []
        self.events: list[tuple[Any, ...]] = []
        self.bytes = 0


def storable_numbers(outcome: Outcome) -> tuple[float, int, float]:
    """Return cost, tokens and latency within SQLite's range, so that no number stops a commit."""
    cost, latency, tokens = outcome.cost_usd, outcome.latency_s, outcome.tokens
    has_own_types = type(tokens) is int and type(cost) is float and type(latency) is float
    if has_own_types and isfinite(cost) and isfinite(latency) and abs(tokens) <= MAX_TOKENS:
        return cost, tokens, latency
    cost, latency = float(cost), float(latency)
    return (
        cost if isfinite(cost) else 0.0,
        max(-MAX_TOKENS, min(int(tokens), MAX_TOKENS)),
        latency if isfinite(latency) else 0.0,
    )
