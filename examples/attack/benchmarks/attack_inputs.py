"""Inputs for the functions: new ones for each call."""

from __future__ import annotations

from random import Random
from typing import Any

Call = tuple[tuple[Any, ...], dict[str, Any]]


def numbers(rng: Random) -> Call:
    """Return 30 to 60 numbers."""
    return ([rng.randrange(2**31) for _ in range(rng.randrange(30, 60))],), {}


def many(rng: Random) -> Call:
    """Return 500 to 900 small numbers."""
    return ([rng.randrange(5000) for _ in range(rng.randrange(500, 900))],), {}


def array(rng: Random) -> Call:
    """Return an array of a few thousand floats."""
    import numpy

    return (numpy.array([rng.random() for _ in range(rng.randrange(2000, 4000))]),), {}


def words(rng: Random) -> Call:
    """Return 40 to 80 words."""
    letters = "abcdefghijklmnop"
    count = rng.randrange(40, 80)
    return (["".join(rng.choices(letters, k=rng.randrange(2, 9))) for _ in range(count)],), {}
