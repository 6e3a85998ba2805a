"""Conversion of values from other libraries (numpy, pandas, pydantic, ...) to plain Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

_PLAIN = (int, float, bool)


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


def get_fields(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of a dataclass, a named tuple, a pydantic model or an object with
    `to_dict`; None for other values."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    for name in ("to_dict", "model_dump", "_asdict"):
        method = getattr(value, name, None)
        fields = method() if callable(method) else None
        if isinstance(fields, Mapping):
            return fields
    return None
