"""The JSON Schema of study files, with which editors complete and check them.

The schema is generated from the annotations and docstrings of the records; the tables below add
what records check beyond types.
"""

from __future__ import annotations

from typing import Any

from fairtrial.core import json_schema, plugins
from fairtrial.study.model.factors import (
    DESIGN_ALIASES,
    MAX_CONDITIONS,
    MOVED_OPTIONS,
    VALUE_TYPES,
    Block,
    Constraint,
    DesignKind,
    DesignSpec,
    Factor,
    Level,
)
from fairtrial.study.model.hypotheses import (
    OVER_REPLICATES,
    AnalysisPlan,
    Contrast,
    Hypothesis,
    Mediator,
    Moderator,
    OutcomeSpec,
    Stopping,
)
from fairtrial.study.model.problems import Dataset, EvaluatorBinding, ProblemBinding, RowSample
from fairtrial.study.model.resources import Resources
from fairtrial.study.model.study import (
    SEED_STRATEGIES,
    AgentBinding,
    RunBudget,
    SeedPolicy,
    Study,
)

_NOT_BLANK: json_schema.Schema = {"pattern": r"\S"}
_REFERENCE: json_schema.Schema = {"pattern": r"^[^:]+:[\s\S]"}
_ABOVE_ZERO: json_schema.Schema = {"exclusiveMinimum": 0}
_FROM_ZERO: json_schema.Schema = {"minimum": 0}
_FROM_ONE: json_schema.Schema = {"minimum": 1}
_NOT_EMPTY: json_schema.Schema = {"minItems": 1}

# Rules for single fields beyond their types.
_RULES: dict[type[Any], dict[str, json_schema.Schema]] = {
    Study: {"study_id": _NOT_BLANK, "title": _NOT_BLANK, "condition_runner": _REFERENCE},
    Factor: {"name": _NOT_BLANK, "dtype": {"enum": [*VALUE_TYPES, None]}},
    Level: {"name": {"type": ["string", "number", "boolean"], **_NOT_BLANK}},
    Block: {"name": _NOT_BLANK, "levels": _NOT_EMPTY},
    Constraint: {"constraint_id": _NOT_BLANK, "callable_ref": _REFERENCE},
    DesignSpec: {
        "kind": {
            "anyOf": [
                {"enum": [*(str(kind) for kind in DesignKind), *DESIGN_ALIASES]},
                {"type": "string", **_NOT_BLANK},  # the name of a plug-in
            ]
        },
        "replicates": _FROM_ONE,
        "n_samples": _FROM_ONE,
        "center_points": _FROM_ZERO,
        "max_conditions": {**_FROM_ONE, "maximum": MAX_CONDITIONS},
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
    OutcomeSpec: {
        "name": _NOT_BLANK,
        "source_table": _NOT_BLANK,
        "sd": _ABOVE_ZERO,
        "icc": {"minimum": 0, "exclusiveMaximum": 1},
        "slope_sd": _FROM_ZERO,
        "over_replicates": {"pattern": rf"^(|{OVER_REPLICATES})$"},
    },
    AnalysisPlan: {
        "analysis_plan_id": _NOT_BLANK,
        "hypothesis_ids": _NOT_EMPTY,
        "tests": _NOT_EMPTY,
    },
    Stopping: {"looks": _FROM_ONE, "min_problems": {"minimum": 2}},
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
        "max_cost_usd": _ABOVE_ZERO,
        "max_tokens": _FROM_ONE,
    },
    EvaluatorBinding: {"use": _NOT_BLANK},
    RowSample: {"n": _FROM_ONE},
    Dataset: {
        "source": {"type": "string", **_NOT_BLANK},
        "delimiter": {"maxLength": 1},
        "split": {
            "type": "object",
            "properties": {"seed": {"type": "number"}},
            "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        },
    },
    Resources: {"cpus": _FROM_ZERO, "gpus": _FROM_ZERO, "memory_gb": _FROM_ZERO},
}


# Rules for the fields of a record in combination.
_SHAPES: dict[type[Any], json_schema.Schema] = {
    Factor: {
        "anyOf": [
            json_schema.require_field("levels", _NOT_EMPTY),
            json_schema.require_field("default", {"not": {"type": "null"}}),
        ],
    },
    Constraint: {
        "anyOf": [
            json_schema.require_field("expression", {"type": "string"}),
            json_schema.require_field("callable_ref", {"type": "string"}),
        ],
    },
    Contrast: {"required": ["left", "right"]},
    Dataset: {
        "allOf": [
            {
                "if": json_schema.require_field("split", {"minProperties": 1}),
                "then": json_schema.require_field("use", {"minLength": 1}),
            },
            {
                "if": json_schema.require_field("use", {"minLength": 1}),
                "then": json_schema.require_field("split", {"minProperties": 1}),
            },
        ],
    },
    ProblemBinding: {
        "anyOf": [
            {
                "required": ["use"],
                "properties": {
                    "use": {"type": "string"},
                    "family": {"maxLength": 0},
                    "brief": {"maxLength": 0},
                    "payload": {"maxProperties": 0},
                    "evaluator": {"type": ["string", "null"], "maxLength": 0},
                },
            },
            {
                "properties": {"use": {"type": "null"}, "options": {"maxProperties": 0}},
                "anyOf": [
                    json_schema.require_field("family", {"minLength": 1}),
                    json_schema.require_field("brief", {"minLength": 1}),
                    json_schema.require_field("payload", {"minProperties": 1}),
                    json_schema.require_field(
                        "evaluator", {"minLength": 1, "minItems": 1, "not": {"type": "null"}}
                    ),
                ],
            },
        ],
    },
}

# Records that may be written as a single value.
_SHORT_FORMS: dict[type[Any], json_schema.Schema] = {
    Level: {"type": ["string", "number", "boolean", "null"], **_NOT_BLANK},
    Moderator: {"type": "string", **_NOT_BLANK},
    Mediator: {"type": "string", **_NOT_BLANK},
    AgentBinding: {"type": "string", **_NOT_BLANK},
    ProblemBinding: {"type": "string"},
    EvaluatorBinding: {"type": "string", **_NOT_BLANK},
    RowSample: {"type": "integer", **_FROM_ONE},
    Dataset: {"type": "string", **_NOT_BLANK},
}


def _legacy_names(instead: str) -> json_schema.Schema:
    return {
        "description": f"older files only: {instead}",
        "deprecated": True,
        "type": ["array", "null"],
        "items": {"type": "string"},
    }


# Keys of older files.
_LEGACY_KEYS: dict[type[Any], dict[str, json_schema.Schema]] = {
    Study: {
        "schema_version": {
            "description": "the version of the file's format",
            "anyOf": [
                {"type": "string", "pattern": r"^0\."},
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                {"type": "null"},
            ],
        },
        "primary_outcomes": _legacy_names("set `primary: true` for the outcomes"),
        "secondary_outcomes": _legacy_names("set `primary: false` for the outcomes"),
    },
    Hypothesis: {
        "linked_analysis_plan_id": {
            "description": "older files only: list the hypothesis in the plan's hypothesis_ids",
            "deprecated": True,
            "type": ["string", "null"],
        },
    },
}


_STUDY_RULES = json_schema.SchemaRules(_RULES, _SHAPES, _SHORT_FORMS, _LEGACY_KEYS)


def study_schema() -> json_schema.Schema:
    """Return the JSON Schema (draft 2020-12) of a study file."""
    definitions: dict[str, json_schema.Schema] = {}
    study = json_schema.record_schema(Study, _STUDY_RULES, definitions)
    definitions["DesignSpec"]["allOf"] = [_options_rule(kind) for kind in DesignKind]
    return json_schema.file_schema("fairtrial study", study, definitions)


def _options_rule(kind: DesignKind) -> json_schema.Schema:
    """Return the rule that allows only the options of a built-in design beside its name."""
    names = [kind.value, *(alias for alias, target in DESIGN_ALIASES.items() if target is kind)]
    options = json_schema.record_schema(plugins.load("designs", kind.value), _STUDY_RULES, {})
    options["properties"] |= {name: {"deprecated": True} for name in MOVED_OPTIONS}
    has_kind: json_schema.Schema = json_schema.require_field("kind", {"enum": names})
    if kind is DesignSpec().kind:
        has_kind = {"anyOf": [has_kind, {"not": {"required": ["kind"]}}]}
    return {"if": has_kind, "then": {"properties": {"options": options}}}
