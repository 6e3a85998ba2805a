"""The JSON Schema of problem files.

The schema can't express every rule of the records (known placeholders of a command, names that
Python reserves), but everything that it rejects, the records reject too.
"""

from __future__ import annotations

from typing import Any

from fairtrial.arena.model.problem import MIN_BUDGET_S, MOST_CASES, Benchmark, Check, CodeProblem
from fairtrial.arena.model.problem_syntax import RESERVED_PREFIX, RESERVED_VARIABLES
from fairtrial.core import json_schema
from fairtrial.sandbox import Limits

_NAME = r"[^\W\d]\w*"
_DOTTED = rf"{_NAME}(\.{_NAME})*"
_RELATIVE = r"^(?![/~\s]|[A-Za-z]:|\\\\|(.*/)?\.\.(/|$))"
# An empty string means "not given".
_FUNCTION: json_schema.Schema = {"pattern": rf"^((?!.*\.py:){_DOTTED}:{_DOTTED})?$"}
_INPUTS: json_schema.Schema = {"pattern": rf"^$|{_RELATIVE}.*\.py:{_NAME}$"}
_PATH: json_schema.Schema = {"pattern": rf"{_RELATIVE}.*\S"}
_PATHS: json_schema.Schema = {"items": {"type": "string", **_PATH}}
_PATTERNS: json_schema.Schema = {
    "items": {"type": "string", "pattern": rf"^(:[!^]|:\(exclude\))?(?!:){_RELATIVE[1:]}.*\S"}
}
_COMMAND: json_schema.Schema = {
    "items": {"type": "string"},
    "prefixItems": [{"type": "string", "pattern": r"^(?=.*\S)(.*/.*|\s*\S+\s*)$"}],
}
_RESERVED = "|".join(RESERVED_VARIABLES)
_VARIABLE: json_schema.Schema = {
    "pattern": f"^(?!{RESERVED_PREFIX}|({_RESERVED})$)[A-Za-z_][A-Za-z0-9_]*$"
}
_NOT_BLANK: json_schema.Schema = {"pattern": r"\S"}
_ABOVE_ZERO: json_schema.Schema = {"exclusiveMinimum": 0}
_AT_LEAST_ZERO: json_schema.Schema = {"minimum": 0}
_AT_LEAST_ONE: json_schema.Schema = {"minimum": 1}
_SHARE: json_schema.Schema = {"exclusiveMinimum": 0, "exclusiveMaximum": 1}

_RULES: dict[type[Any], dict[str, json_schema.Schema]] = {
    CodeProblem: {
        "problem_id": _NOT_BLANK,
        "repo": _NOT_BLANK,
        "cwd": _PATH,
        "editable": {**_PATTERNS, "contains": {"pattern": "^[^:]"}},
        "unprotect": _PATTERNS,
        "include": _PATHS,
        "import_roots": {"type": ["array", "null"], **_PATHS},
        "largest_mb": _AT_LEAST_ONE,
        "build": _COMMAND,
        "build_timeout_s": _ABOVE_ZERO,
        "env": {"propertyNames": _VARIABLE},
        "check": {"minItems": 1},
        "min_effect": _SHARE,
        "alpha": _SHARE,
        "budget_s": {"minimum": MIN_BUDGET_S},
    },
    Check: {
        "command": _COMMAND,
        "function": _FUNCTION,
        "inputs": _INPUTS,
        "calls": {"pattern": rf"^$|{_PATH['pattern']}"},
        "cases": {**_AT_LEAST_ONE, "maximum": MOST_CASES},
        "prepare": _INPUTS,
        "view": _FUNCTION,
        "accept": _INPUTS,
        "must_pass": {"items": {"type": "string", **_NOT_BLANK}},
        "rel_tol": _AT_LEAST_ZERO,
        "abs_tol": _AT_LEAST_ZERO,
        "timeout_s": _ABOVE_ZERO,
    },
    Benchmark: {
        "name": _NOT_BLANK,
        "call": _FUNCTION,
        "inputs": _INPUTS,
        "prepare": _INPUTS,
        "command": _COMMAND,
        "cores": _AT_LEAST_ONE,
        "max_startup_ratio": _AT_LEAST_ONE,
        "trust": {"enum": ["some", "none", "all"]},
        "measure": {"contains": {"const": "time"}},
        "suite": {"pattern": rf"^$|{_PATH['pattern']}"},
    },
    Limits: {"memory_mb": _AT_LEAST_ONE, "processes": _AT_LEAST_ONE, "file_mb": _AT_LEAST_ONE},
}


_OF_FUNCTIONS = ("function", "inputs", "calls", "prepare", "view", "accept")
_STRICT: json_schema.Schema = {"const": "strict"}
_TEXT: json_schema.Schema = {"minLength": 1}
_NO_TEXT: json_schema.Schema = {"maxLength": 0}
_WORDS: json_schema.Schema = {"minItems": 1}
_NO_WORDS: json_schema.Schema = {"maxItems": 0}

# How the fields of a record depend on each other.
_DEPENDENCIES: dict[type[Any], json_schema.Schema] = {
    CodeProblem: {"required": ["problem_id", "check"]},
    Check: {
        "oneOf": [
            {
                "required": ["command"],
                "properties": {
                    "command": _WORDS,
                    **dict.fromkeys(_OF_FUNCTIONS, _NO_TEXT),
                    "dict_order": _STRICT,
                    "array_layout": _STRICT,
                    "attributes": _STRICT,
                    "aliasing": _STRICT,
                    "process_state": _STRICT,
                },
            },
            {
                "required": ["function"],
                "properties": {
                    "function": _TEXT,
                    "command": _NO_WORDS,
                    "compare": {"const": "exit"},
                    "must_pass": _NO_WORDS,
                    "fails_on_base": {"const": False},
                },
                "oneOf": [
                    json_schema.require_field("inputs", _TEXT),
                    json_schema.require_field("calls", _TEXT),
                ],
            },
        ]
    },
    Benchmark: {
        "oneOf": [
            {
                "required": ["command"],
                "properties": {"command": _WORDS, "call": _NO_TEXT, "suite": _NO_TEXT},
            },
            {
                "required": ["call", "inputs"],
                "properties": {
                    "call": _TEXT,
                    "inputs": _TEXT,
                    "command": _NO_WORDS,
                    "suite": _NO_TEXT,
                },
            },
            {
                "required": ["suite"],
                "properties": {
                    "suite": _TEXT,
                    "call": _NO_TEXT,
                    "inputs": _NO_TEXT,
                    "command": _NO_WORDS,
                },
            },
        ]
    },
}


def problem_schema() -> json_schema.Schema:
    """Return the JSON Schema (draft 2020-12) of a problem file."""
    definitions: dict[str, json_schema.Schema] = {}
    problem = json_schema.record_schema(
        CodeProblem, json_schema.SchemaRules(_RULES, _DEPENDENCIES), definitions
    )
    return json_schema.file_schema("fairtrial code problem", problem, definitions)
