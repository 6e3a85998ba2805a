"""Dump records without defaults, and in their short forms: as a person would write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.core import Record, StudyError, build_record, dump_record, fields


def dump_brief(value: Any) -> Any:
    """Return the shortest plain data that reads back as the same records."""
    if isinstance(value, Record):
        return _dump_record(value)
    if isinstance(value, tuple):
        return [dump_brief(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): dump_brief(item) for key, item in value.items()}
    return dump_record(value)


def _dump_record(record: Record) -> Any:
    cls = type(record)
    values = {name: getattr(record, name) for name in fields.field_types(cls)}
    for name in [name for name in values if name not in fields.required_fields(cls)]:
        remaining = {key: value for key, value in values.items() if key != name}
        if _is_made_by(record, remaining):
            values = remaining
    for value in values.values():
        if cls._short_form(value) is not None and build_record(cls, value, (), []) == record:
            return dump_record(value)
    return {cls._file_keys.get(name, name): dump_brief(value) for name, value in values.items()}


def _is_made_by(record: Record, values: Mapping[str, Any]) -> bool:
    """Return whether these fields alone make the same record."""
    try:
        return type(record)(**values) == record
    except StudyError:
        return False
