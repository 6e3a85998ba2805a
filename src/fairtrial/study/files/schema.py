"""JSON Schemas of study and problem files, for editors: completion, mistakes while typing.

Made from the records' own annotations and docstrings. What records check beyond their types stands
in `_RULES` and `_SHAPES`, and for problems in `problem_rules`; a test holds them against the
records, field by field.
"""

from __future__ import annotations

import copy
import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.problem_schema import PROBLEM_RULES, PROBLEM_SHAPES
from fairtrial.core import plugins
from fairtrial.core.fields import field_docs, field_types, required_fields
from fairtrial.study.model.factors import (
    DESIGN_ALIASES,
    MOST_CONDITIONS,
    MOVED_OPTIONS,
    Block,
    Constraint,
    DesignKind,
    DesignSpec,
    Factor,
    Level,
)
from fairtrial.study.model.hypotheses import (
    AnalysisPlan,
    Contrast,
    Hypothesis,
    Mediator,
    Moderator,
    OutcomeSpec,
)
from fairtrial.study.model.study import (
    SEED_STRATEGIES,
    AgentBinding,
    ProblemBinding,
    RunBudget,
    SeedPolicy,
    Study,
)

Schema = dict[str, Any]

_NOT_BLANK: Schema = {"pattern": r"\S"}
_REFERENCE: Schema = {"pattern": r"^[^:]+:[\s\S]"}
_ABOVE_ZERO: Schema = {"exclusiveMinimum": 0}
_FROM_ZERO: Schema = {"minimum": 0}
_FROM_ONE: Schema = {"minimum": 1}
_NOT_EMPTY: Schema = {"minItems": 1}

# What a field's type alone doesn't say.
_RULES: dict[type[Any], dict[str, Schema]] = {
    Study: {"study_id": _NOT_BLANK, "title": _NOT_BLANK, "condition_runner": _REFERENCE},
    Factor: {"name": _NOT_BLANK, "dtype": {"enum": ["str", "int", "float", "bool", None]}},
    Level: {"name": {"type": ["string", "number", "boolean"], **_NOT_BLANK}},
    Block: {"name": _NOT_BLANK, "levels": _NOT_EMPTY},
    Constraint: {"constraint_id": _NOT_BLANK, "callable_ref": _REFERENCE},
    DesignSpec: {
        "kind": {
            "anyOf": [
                {"enum": [*(str(kind) for kind in DesignKind), *DESIGN_ALIASES]},
                {"type": "string", **_NOT_BLANK},  # a plug-in's
            ]
        },
        "replicates": _FROM_ONE,
        "n_samples": _FROM_ONE,
        "center_points": _FROM_ZERO,
        "max_conditions": {**_FROM_ONE, "maximum": MOST_CONDITIONS},
    },
    Hypothesis: {
        "hypothesis_id": _NOT_BLANK,
        "label": _NOT_BLANK,
        "statement": _NOT_BLANK,
        "minimum_effect_of_interest": _ABOVE_ZERO,
    },
    Contrast: {"left": _NOT_BLANK, "right": _NOT_BLANK},
    Moderator: {"name": _NOT_BLANK},
    Mediator: {"name": _NOT_BLANK},
    OutcomeSpec: {"name": _NOT_BLANK, "source_table": _NOT_BLANK, "sd": _ABOVE_ZERO},
    AnalysisPlan: {
        "analysis_plan_id": _NOT_BLANK,
        "hypothesis_ids": _NOT_EMPTY,
        "tests": _NOT_EMPTY,
    },
    RunBudget: {
        "replicates": _FROM_ONE,
        "max_runs": _FROM_ONE,
        "parallelism": _FROM_ONE,
        "retries": _FROM_ZERO,
        "max_tokens": _FROM_ONE,
        "timeout_s": _ABOVE_ZERO,
        "max_cost_usd": _ABOVE_ZERO,
    },
    SeedPolicy: {"strategy": {"enum": list(SEED_STRATEGIES)}},
    AgentBinding: {
        "use": _NOT_BLANK,
        "max_parallel": _FROM_ONE,
        "max_per_minute": _ABOVE_ZERO,
    },
    **PROBLEM_RULES,
}


def _given(name: str, rule: Schema) -> Schema:
    return {"required": [name], "properties": {name: rule}}


# How the fields of a record depend on each other.
_SHAPES: dict[type[Any], Schema] = {
    Factor: {
        "anyOf": [_given("levels", _NOT_EMPTY), _given("default", {"not": {"type": "null"}})],
    },
    Constraint: {
        "anyOf": [
            _given("expression", {"type": "string"}),
            _given("callable_ref", {"type": "string"}),
        ],
    },
    Contrast: {"required": ["left", "right"]},
    ProblemBinding: {
        "anyOf": [
            {
                "required": ["use"],
                "properties": {
                    "use": {"type": "string"},
                    "family": {"maxLength": 0},
                    "brief": {"maxLength": 0},
                    "payload": {"maxProperties": 0},
                    "evaluator": {"maxLength": 0},
                },
            },
            {
                "properties": {"use": {"type": "null"}, "options": {"maxProperties": 0}},
                "anyOf": [
                    _given("family", {"minLength": 1}),
                    _given("brief", {"minLength": 1}),
                    _given("payload", {"minProperties": 1}),
                    _given("evaluator", {"type": "string", "minLength": 1}),
                ],
            },
        ],
    },
    **PROBLEM_SHAPES,
}

# A record may be written as a single value.
_SHORT_FORMS: dict[type[Any], Schema] = {
    Level: {"type": ["string", "number", "boolean", "null"], **_NOT_BLANK},
    Moderator: {"type": "string", **_NOT_BLANK},
    Mediator: {"type": "string", **_NOT_BLANK},
    AgentBinding: {"type": "string", **_NOT_BLANK},
    ProblemBinding: {"type": "string"},
}


def _old_names(instead: str) -> Schema:
    return {
        "description": f"older files only: {instead}",
        "deprecated": True,
        "type": ["array", "null"],
        "items": {"type": "string"},
    }


# Keys of older files.
_LEGACY_KEYS: dict[type[Any], dict[str, Schema]] = {
    Study: {
        "schema_version": {
            "description": "the version of the file's format",
            "anyOf": [
                {"type": "string", "pattern": r"^0\."},
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                {"type": "null"},
            ],
        },
        "primary_outcomes": _old_names("set `primary: true` for the outcomes"),
        "secondary_outcomes": _old_names("set `primary: false` for the outcomes"),
    },
    Hypothesis: {
        "linked_analysis_plan_id": {
            "description": "older files only: list the hypothesis in the plan's hypothesis_ids",
            "deprecated": True,
            "type": ["string", "null"],
        },
    },
}


def study_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of a study file."""
    definitions: dict[str, Schema] = {}
    study = _record_schema(Study, definitions)
    definitions["DesignSpec"]["allOf"] = [_options_of(kind) for kind in DesignKind]
    return _whole_schema("fairtrial study", study, definitions)


def problem_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of a code problem's file."""
    definitions: dict[str, Schema] = {}
    problem = _record_schema(CodeProblem, definitions)
    return _whole_schema("fairtrial code problem", problem, definitions)


def _whole_schema(title: str, root: Schema, definitions: dict[str, Schema]) -> Schema:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }
    return copy.deepcopy(schema)  # the rules above are not the caller's to change


def _options_of(kind: DesignKind) -> Schema:
    """Which options may stand beside a design that comes with fairtrial."""
    names = [kind.value, *(alias for alias, meant in DESIGN_ALIASES.items() if meant is kind)]
    options = _record_schema(plugins.load("designs", kind.value), {})
    options["properties"] |= {name: {"deprecated": True} for name in MOVED_OPTIONS}
    is_this: Schema = _given("kind", {"enum": names})
    if kind is DesignSpec().kind:
        is_this = {"anyOf": [is_this, {"not": {"required": ["kind"]}}]}
    return {"if": is_this, "then": {"properties": {"options": options}}}


def _record_schema(cls: type[Any], definitions: dict[str, Schema]) -> Schema:
    docs = field_docs(cls)
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    properties: dict[str, Schema] = {}
    for name, hint in field_types(cls).items():
        rule = _RULES.get(cls, {}).get(name, {})
        properties[name] = {"description": docs[name]}
        # A rule that names a type replaces the annotation's.
        if not rule.keys() & {"type", "enum", "anyOf"}:
            properties[name] |= _type_schema(hint, definitions)
        properties[name] |= rule
        default = defaults[name]
        if isinstance(default, (str, int, float)) and default != "":
            properties[name]["default"] = default.value if isinstance(default, Enum) else default
    return {
        "description": (cls.__doc__ or "").partition("\n")[0],
        "type": "object",
        "properties": properties | _LEGACY_KEYS.get(cls, {}),
        "required": list(required_fields(cls)),
        "additionalProperties": False,
        **_SHAPES.get(cls, {}),
    }


def _type_schema(hint: Any, definitions: dict[str, Schema]) -> Schema:
    if hint is Any:
        return {}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union_schema([_type_schema(arg, definitions) for arg in args])
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin is tuple:
        items = {"type": "array", "items": _type_schema(args[0], definitions)}
        fixed = {} if args[-1] is ... else {"minItems": len(args), "maxItems": len(args)}
        return items | fixed
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type_schema(args[1], definitions)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"type": "string", "enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint):
        return _reference(typing.cast("type[Any]", hint), definitions)
    names = {str: "string", Path: "string", int: "integer", float: "number", bool: "boolean"}
    return {"type": names[hint] if hint is not types.NoneType else "null"}


def _union_schema(options: list[Schema]) -> Schema:
    if all(option.keys() == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    return {"anyOf": options}


def _reference(cls: type[Any], definitions: dict[str, Schema]) -> Schema:
    name = cls.__name__
    if name not in definitions:
        record = _record_schema(cls, definitions)
        short = _SHORT_FORMS.get(cls)
        definitions[name] = {"anyOf": [short, record]} if short else record
    return {"$ref": f"#/$defs/{name}"}
