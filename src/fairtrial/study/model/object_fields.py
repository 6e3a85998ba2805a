"""The fields of objects that agents and evaluators return, whatever library made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


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
