"""Names and rows without repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Row = TypeVar("Row", bound=Sequence[object])


def squeeze(name: str) -> str:
    """A name without needless blanks."""
    return " ".join(name.split())


def unique(names: list[str]) -> list[str]:
    """Each name once, in the order in which they come first."""
    kept: list[str] = []
    for name in names:
        if name not in kept:
            kept.append(name)
    return kept


def unique_rows(rows: list[Row]) -> list[Row]:
    """The same for rows of a table, which are lists or tuples of cells."""
    kept: list[Row] = []
    for row in rows:
        if row not in kept:
            kept.append(row)
    return kept
