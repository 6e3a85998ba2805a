"""Inputs for the three workloads."""

from __future__ import annotations

import random
from typing import Any

Made = tuple[tuple[Any, ...], dict[str, Any]]


def text(rng: random.Random) -> Made:
    """About 400 words."""
    words = [f"word{rng.randrange(120)}" + rng.choice(["", "", ",", "."]) for _ in range(400)]
    return (" ".join(words),), {}


def graph(rng: random.Random) -> Made:
    """100 places with four roads each."""
    roads = [[[rng.randrange(100), rng.randrange(1, 9)] for _ in range(4)] for _ in range(100)]
    return (roads,), {}


def numbers(rng: random.Random) -> Made:
    """1,000 numbers."""
    return ([rng.random() for _ in range(1000)],), {}
