"""Values of other libraries as plain ones: their numbers, and objects with fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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


def fields_of(value: Any) -> Mapping[str, Any] | None:
    """The fields of a dataclass, a named tuple or an object with `to_dict` (pydantic's have
    `model_dump`); None for others."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    for name in ("to_dict", "model_dump", "_asdict"):
        make = getattr(value, name, None)
        made = make() if callable(make) else None
        if isinstance(made, Mapping):
            return made
    return None
