"""A study as a person would write it: no defaults, and the short forms where there are any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.core import Record, StudyError, build, dump, field_types, required_fields


def dump_brief(value: Any) -> Any:
    """Plain data that reads back as the same records, with as few words as that takes."""
    if isinstance(value, Record):
        return _dump_record(value)
    if isinstance(value, tuple):
        return [dump_brief(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): dump_brief(item) for key, item in value.items()}
    return dump(value)


def _dump_record(record: Record) -> Any:
    cls = type(record)
    fields = {name: getattr(record, name) for name in field_types(cls)}
    for name in [name for name in fields if name not in required_fields(cls)]:
        others = {key: value for key, value in fields.items() if key != name}
        if _makes(record, others):
            fields = others
    for value in fields.values():
        if cls._short_form(value) is not None and build(cls, value, (), []) == record:
            return dump(value)
    return {name: dump_brief(value) for name, value in fields.items()}


def _makes(record: Record, fields: Mapping[str, Any]) -> bool:
    """Whether these fields alone make the same record."""
    try:
        return type(record)(**fields) == record
    except StudyError:
        return False
