"""Scalars of study files: which values count as one, and how YAML spells them."""

from __future__ import annotations

from typing import Any


def is_scalar(value: Any) -> bool:
    """Whether a value is a single one: text, a number, true, false or null."""
    return value is None or isinstance(value, (str, int, float))


def scalar_text(value: Any) -> str:
    """A scalar as YAML spells it; the name of a level that is written as its value alone."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
