"""Scalars: what counts as one, its text in YAML, and numbers of other libraries as plain ones."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

_PLAIN = (int, float, bool)


def is_scalar(value: Any) -> bool:
    """Return whether a value is text, a number, true, false or null."""
    return value is None or isinstance(value, (str, int, float))


def scalar_text(value: Any) -> str:
    """Return the YAML text of a scalar; also the name of a level given by its value alone."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def plain_number(value: Any) -> int | float | bool | None:
    """Convert a single number or boolean to Python's own type; None for anything else."""
    if type(value) in _PLAIN:
        return value  # type: ignore[no-any-return]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()  # numpy's scalars and zero-dimensional arrays, torch's tensors
        return value if type(value) in _PLAIN else None
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, (Real, Decimal)) else None
