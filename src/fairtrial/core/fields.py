"""What a dataclass says of its fields: their types, which must be given, and what they mean.

Lines of the form ``name: text`` in a docstring document a field; the schema shows them in editors.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

NOT_IN_FILES = {"in_files": False}
"""Metadata of a field that is neither read from files nor written to them."""
_FIELD_TYPES: dict[type[Any], dict[str, Any]] = {}


def field_types(cls: type[Any]) -> dict[str, Any]:
    """The resolved annotation of each field that files hold, in order."""
    if cls not in _FIELD_TYPES:
        hints = typing.get_type_hints(cls)
        _FIELD_TYPES[cls] = {
            field.name: hints[field.name]
            for field in dataclasses.fields(cls)
            if field.init and field.metadata.get("in_files", True)
        }
    return _FIELD_TYPES[cls]


def required_fields(cls: type[Any]) -> tuple[str, ...]:
    """The fields that have no default."""
    return tuple(
        field.name
        for field in dataclasses.fields(cls)
        if field.init
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    )


def field_docs(cls: type[Any]) -> dict[str, str]:
    """What the docstring says of each field."""
    known = {field.name for field in dataclasses.fields(cls)}
    docs: dict[str, str] = {}
    current = ""
    for line in (cls.__doc__ or "").splitlines():
        name, colon, text = line.strip().partition(": ")
        if colon and name in known:
            current = name
            docs[name] = text.strip()
        elif not line.strip():
            current = ""
        elif current:
            docs[current] += " " + line.strip()
    return {name: docs[name] for name in field_types(cls) if name in docs}
