"""Inspection of dataclass fields: types, required fields, and documentation.

Lines of the form ``name: text`` in a class's docstring document its fields; JSON Schemas contain
them, so editors show them.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

NOT_IN_FILES = {"in_files": False}
"""Metadata of a field that is neither read from files nor written to them."""
ONLY_IF_SET = {"only_if_set": True}
"""Metadata of a field that is dumped only with a value other than its default.

Later fields have it, so that what records of earlier versions are dumped as never changes.
"""
_FIELD_TYPES: dict[type[Any], dict[str, Any]] = {}


def field_types(cls: type[Any]) -> dict[str, Any]:
    """Return the resolved annotation of each field that is read from files, in order."""
    if cls not in _FIELD_TYPES:
        hints = typing.get_type_hints(cls)
        _FIELD_TYPES[cls] = {
            field.name: hints[field.name]
            for field in dataclasses.fields(cls)
            if field.init and field.metadata.get("in_files", True)
        }
    return _FIELD_TYPES[cls]


def fields_to_dump(record: Any) -> list[str]:
    """Return the names of the fields that plain data for a record has."""
    unset = {
        field.name
        for field in dataclasses.fields(record)
        if field.metadata.get("only_if_set") and getattr(record, field.name) == _default(field)
    }
    return [name for name in field_types(type(record)) if name not in unset]


def _default(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def required_fields(cls: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields without a default."""
    return tuple(
        field.name
        for field in dataclasses.fields(cls)
        if field.init
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    )


def field_docs(cls: type[Any]) -> dict[str, str]:
    """Return the documentation of each field, from ``name: text`` lines of docstrings.

    Fields of a base class may be documented there.
    """
    names = {field.name for field in dataclasses.fields(cls)}
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        current = ""
        for line in (base.__doc__ or "").splitlines():
            name, colon, text = line.strip().partition(": ")
            if colon and name in names:
                current = name
                docs[name] = text.strip()
            elif not line.strip():
                current = ""
            elif current:
                docs[current] += " " + line.strip()
    return {name: docs[name] for name in field_types(cls) if name in docs}
