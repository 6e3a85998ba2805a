"""JSON Schemas of records, generated from their annotations and docstrings.

Checks beyond the types are repeated as `SchemaRules`; tests compare both, field by field.
"""

from __future__ import annotations

import copy
import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from fairtrial.core.fields import field_docs, field_types, required_fields

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """Rules that annotations don't express, by record class.

    fields: schemas of single fields
    shapes: schemas of dependencies between the fields of a record
    short_forms: schema of the single value by which a record may be written
    legacy_keys: schemas of keys from older files
    """

    fields: Mapping[type[Any], Mapping[str, Schema]] = field(default_factory=dict)
    shapes: Mapping[type[Any], Schema] = field(default_factory=dict)
    short_forms: Mapping[type[Any], Schema] = field(default_factory=dict)
    legacy_keys: Mapping[type[Any], Mapping[str, Schema]] = field(default_factory=dict)


def require_field(name: str, rule: Schema) -> Schema:
    """Return the schema of an object with a required field that follows a rule."""
    return {"required": [name], "properties": {name: rule}}


def file_schema(title: str, root: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return the schema (draft 2020-12) of a whole file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }
    return copy.deepcopy(schema)  # a caller's changes must not reach the rules


def record_schema(cls: type[Any], rules: SchemaRules, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a record; the schemas of records inside it go to `definitions`."""
    docs = field_docs(cls)
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    properties: dict[str, Schema] = {}
    keys: Mapping[str, str] = getattr(cls, "_file_keys", {})
    for name, hint in field_types(cls).items():
        rule = rules.fields.get(cls, {}).get(name, {})
        properties[name] = {"description": docs[name]}
        # A rule that names a type replaces the annotation's.
        if not rule.keys() & {"type", "enum", "anyOf"}:
            properties[name] |= _type_schema(hint, rules, definitions)
        properties[name] |= rule
        default = defaults[name]
        if isinstance(default, (str, int, float)) and default != "":
            properties[name]["default"] = default.value if isinstance(default, Enum) else default
    return {
        "description": (cls.__doc__ or "").partition("\n")[0],
        "type": "object",
        "properties": {keys.get(name, name): schema for name, schema in properties.items()}
        | dict(rules.legacy_keys.get(cls, {})),
        "required": [keys.get(name, name) for name in required_fields(cls)],
        "additionalProperties": False,
        **rules.shapes.get(cls, {}),
    }


def _type_schema(hint: Any, rules: SchemaRules, definitions: dict[str, Schema]) -> Schema:
    if hint is Any:
        return {}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union_schema([_type_schema(arg, rules, definitions) for arg in args])
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin is tuple:
        items = {"type": "array", "items": _type_schema(args[0], rules, definitions)}
        fixed = {} if args[-1] is ... else {"minItems": len(args), "maxItems": len(args)}
        return items | fixed
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type_schema(args[1], rules, definitions)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"type": "string", "enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint):
        return _reference(typing.cast("type[Any]", hint), rules, definitions)
    names = {str: "string", Path: "string", int: "integer", float: "number", bool: "boolean"}
    return {"type": names[hint] if hint is not types.NoneType else "null"}


def _union_schema(options: list[Schema]) -> Schema:
    if all(option.keys() == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    return {"anyOf": options}


def _reference(cls: type[Any], rules: SchemaRules, definitions: dict[str, Schema]) -> Schema:
    name = cls.__name__
    if name not in definitions:
        record = record_schema(cls, rules, definitions)
        short = rules.short_forms.get(cls)
        definitions[name] = {"anyOf": [short, record]} if short else record
    return {"$ref": f"#/$defs/{name}"}
