"""Scalars of study files, and their text in YAML."""

from __future__ import annotations

from typing import Any


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
