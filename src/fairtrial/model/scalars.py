"""Numbers of other libraries as Python's own: numpy, torch, Decimal, Fraction."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

_PLAIN = (int, float, bool)


def plain_number(value: Any) -> int | float | bool | None:
    """A single number (or true/false) as Python's own; None for anything else."""
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()  # numpy's scalars and arrays of no dimension, torch's tensors
        return value if type(value) in _PLAIN else None
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, (Real, Decimal)) else None
