"""What the functions are called with. Candidates never see this file."""

from __future__ import annotations

import random

SYLLABLES = ("an", "bo", "cle", "da", "el", "fre", "gi", "ha", "jo", "ka", "li", "mo", "ne", "ro")


def sales(rng: random.Random) -> tuple[tuple[list[str], list[str]], dict[str, object]]:
    """A few hundred sales to almost as many customers, and some items that came back."""
    count = rng.randint(480, 500)
    customers = [_name(rng) for _ in range(3 * count)]
    items = [f"item {rng.randrange(10_000)}" for _ in range(40)]
    buyers = [rng.choice(customers) for _ in range(count)]
    return (buyers, [rng.choice(items) for _ in range(count // 3)]), {}


def rows(rng: random.Random) -> tuple[tuple[list[list[object]]], dict[str, object]]:
    """Rows of a table, some of them several times."""
    known = [[_name(rng), rng.randrange(100)] for _ in range(rng.randint(1, 12))]
    return ([list(rng.choice(known)) for _ in range(rng.randint(0, 30))],), {}


def _name(rng: random.Random) -> str:
    words = ("".join(rng.choices(SYLLABLES, k=rng.randint(2, 3))).title() for _ in range(2))
    return rng.choice((" ", "  ")).join(words)
