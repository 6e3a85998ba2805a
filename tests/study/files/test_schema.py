"""The JSON Schema of study files, held against the records by an independent validator."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fairtrial.core import Mistake, StudyError, build_record
from fairtrial.core.fields import field_docs, field_types
from fairtrial.study import DesignKind, DesignSpec, Study, load_study
from fairtrial.study.design import DESIGN_ALIASES
from fairtrial.study.design.build import make_design
from fairtrial.study.files import study_schema

STUDIES = Path(__file__).parents[2] / "data" / "studies"
SCHEMA = study_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def parse(path: Path) -> Any:
    text = path.read_text("utf-8")
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


WHOLE = parse(STUDIES / "full.yaml")


def records() -> dict[str, type[Any]]:
    """Every record class that a study file may hold, found through the annotations."""
    result: dict[str, type[Any]] = {}

    def visit(hint: Any) -> None:
        if dataclasses.is_dataclass(hint) and hint not in result.values():
            result[hint.__name__] = hint
            for inner in field_types(hint).values():
                visit(inner)
        for inner in getattr(hint, "__args__", ()):
            visit(inner)

    visit(Study)
    return result


RECORDS = records()


def validator_of(name: str) -> jsonschema.Draft202012Validator:
    if name == "Study":
        return VALIDATOR
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]},
    )


def key_of(cls: type[Any], field: str) -> str:
    """The key that a field has in files."""
    key: str = getattr(cls, "_file_keys", {}).get(field, field)
    return key


def is_built(cls: type[Any], data: Any) -> bool:
    mistakes: list[Mistake] = []
    made = build_record(cls, copy.deepcopy(data), (), mistakes)
    if isinstance(made, DesignSpec) and isinstance(made.kind, DesignKind) and not mistakes:
        make_design(made, mistakes)
    return not mistakes


def object_schema(name: str) -> dict[str, Any]:
    if name == "Study":
        return SCHEMA
    schema = SCHEMA["$defs"][name]
    return schema["anyOf"][1] if "anyOf" in schema and "properties" not in schema else schema


def test_the_schema_is_itself_valid_and_plain_json() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_callers_get_a_schema_of_their_own() -> None:
    study_schema()["properties"].clear()
    study_schema()["$defs"]["Factor"]["anyOf"].clear()
    assert study_schema() == SCHEMA


@pytest.mark.parametrize("path", sorted(STUDIES.iterdir()), ids=lambda path: path.name)
def test_good_files_are_accepted_as_they_are_and_as_they_are_written(path: Path) -> None:
    VALIDATOR.validate(parse(path))
    VALIDATOR.validate(load_study(path).to_dict())


@pytest.mark.parametrize("name", RECORDS)
def test_every_field_of_every_record_is_described(name: str) -> None:
    schema, cls = object_schema(name), RECORDS[name]
    assert schema["additionalProperties"] is False
    docs = field_docs(cls)
    for field in field_types(cls):
        assert schema["properties"][key_of(cls, field)]["description"] == docs[field]
        assert docs[field]
    assert schema["description"]


def test_what_is_not_in_files_is_not_in_the_schema() -> None:
    assert "folder" not in SCHEMA["properties"]
    assert "folder" not in SCHEMA["properties"]["condition_runner"]["description"]


def test_designs_are_suggested_and_those_of_plug_ins_allowed() -> None:
    suggested, other = SCHEMA["$defs"]["DesignSpec"]["properties"]["kind"]["anyOf"]
    assert set(suggested["enum"]) == {*map(str, DesignKind), *DESIGN_ALIASES}
    assert other["type"] == "string"
    VALIDATOR.validate({"study_id": "s", "title": "t", "design_spec": {"kind": "my_own"}})


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"kind": "lhs", "options": {"bounds": {"x": [0, 1]}, "criterion": "maximin"}}, True),
        ({"kind": "lhs", "options": {"n_samples": 4}}, True),
        ({"kind": "lhs", "options": {"bounds": {"x": [0, 1, 2]}}}, False),
        ({"kind": "latin_hypercube", "options": {"criterion": "minimax"}}, False),
        ({"kind": "frac2", "options": {"resolution": "V"}}, True),
        ({"kind": "frac2", "options": {"resolution": "VI"}}, False),
        ({"kind": "central_composite", "options": {"alpha": 1.5}}, True),
        ({"options": {"resolution": "V"}}, False),
        ({"kind": "my_own", "options": {"anything": 1}}, True),
    ],
)
def test_options_are_those_of_the_design(spec: dict[str, Any], fits: bool) -> None:
    assert VALIDATOR.is_valid({"study_id": "s", "title": "t", "design_spec": spec}) is fits
    assert is_built(DesignSpec, spec) is fits


def test_editors_see_defaults() -> None:
    budget = SCHEMA["$defs"]["RunBudget"]["properties"]
    assert budget["replicates"]["default"] == 1
    assert budget["fail_fast"]["default"] is False
    assert "default" not in budget["max_runs"]
    assert SCHEMA["$defs"]["DesignSpec"]["properties"]["kind"]["default"] == "full_factorial"


# A record of each class, to change one field of.
SAMPLES: dict[str, Any] = {
    "Study": {"study_id": "s", "title": "t", "tags": ["x"]},
    "Hypothesis": WHOLE["hypotheses"][0],
    "Contrast": WHOLE["hypotheses"][0]["contrast"],
    "Moderator": WHOLE["hypotheses"][0]["moderators"][0],
    "Mediator": WHOLE["hypotheses"][0]["mediators"][0],
    "Factor": WHOLE["factors"][0],
    "Level": WHOLE["factors"][0]["levels"][0],
    "Block": WHOLE["blocks"][0],
    "Constraint": WHOLE["constraints"][0],
    "DesignSpec": WHOLE["design_spec"],
    "OutcomeSpec": WHOLE["outcomes"][0],
    "AnalysisPlan": WHOLE["analysis_plans"][0],
    "Stopping": {"looks": 3, "spending": "pocock"},
    "RunBudget": WHOLE["run_budget"],
    "SeedPolicy": WHOLE["seed_policy"],
    "AgentBinding": WHOLE["agents"]["a"],
    "ProblemBinding": WHOLE["problems"]["sum"],
    "Resources": {"cpus": 2, "custom": {"tpu": 1}},
    "EvaluatorBinding": {"use": "exact", "options": {"ignore_case": True}},
    "RowSample": {"n": 3, "stratify": "topic"},
    "Dataset": {"from": "tasks.jsonl", "brief": "{question}", "sample": {"n": 5}},
}
PROBES: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 0.5, -0.5, "", " ", "x", "a:b", ":", "a:", ":b", "b: c:d"),
    *("str", "effect", "greater", "warning", "nuisance", "condition_replicate", "lhs", "0.9"),
    *([], ["x"], [1], [None], [""], [[]], [{}], {}, {"a": 1}, {"name": "x"}, {"use": "x"}),
    *({"x": "y"}, {"x": {"use": "y"}}, {"x": {"brief": "y"}}, {"x": ""}, [{"name": "y"}]),
    *({"left": "a", "right": "b"}, {"left": "a"}, [{"name": "y", "value": None}], ["x", 1, None]),
]


def test_there_is_a_sample_of_every_record() -> None:
    assert SAMPLES.keys() == RECORDS.keys()
    for name, sample in SAMPLES.items():
        assert is_built(RECORDS[name], sample)
        validator_of(name).validate(sample)


@pytest.mark.parametrize("name", RECORDS)
def test_schema_and_records_agree_on_every_field(name: str) -> None:
    validator, cls, sample = validator_of(name), RECORDS[name], SAMPLES[name]
    keys = [key_of(cls, field) for field in field_types(cls)]
    cases = [(key, {**sample, key: probe}) for key in keys for probe in PROBES]
    cases += [
        (field, {key: value for key, value in sample.items() if key != field}) for field in sample
    ]
    cases += [("an unknown key", {**sample, "unknwon": 1}), ("nothing", {})]
    verdicts = {True: 0, False: 0}
    for field, data in cases:
        expected = is_built(cls, data)
        assert validator.is_valid(data) == expected, f"{field}: {data.get(field)!r}"
        verdicts[expected] += 1
    assert verdicts[True] > 5
    assert verdicts[False] > 5


@pytest.mark.parametrize("name", RECORDS)
def test_schema_and_records_agree_on_short_forms(name: str) -> None:
    for probe in PROBES:
        if not isinstance(probe, dict):
            assert validator_of(name).is_valid(probe) == is_built(RECORDS[name], probe), repr(probe)


@pytest.mark.parametrize("missing", ["use", "family", "brief", "payload", "evaluator"])
def test_schema_and_records_agree_on_what_a_problem_is(missing: str) -> None:
    binding = validator_of("ProblemBinding")
    values = {"family": "f", "brief": "b", "payload": {"a": 1}, "evaluator": "m:f", "use": "u"}
    empty = {"family": "", "brief": "", "payload": {}, "evaluator": None, "use": None}
    for other in values:
        for options in ({}, {"a": 1}):
            for data in (
                {other: values[other], "options": options},
                {missing: empty[missing], other: values[other], "options": options},
                {missing: values[missing], other: empty[other], "options": options},
                {missing: values[missing], other: values[other], "options": options},
            ):
                assert binding.is_valid(data) == is_built(RECORDS["ProblemBinding"], data), data


BASE: dict[str, Any] = {"study_id": "s", "title": "t"}
CLAIM = {"hypothesis_id": "h", "label": "l", "statement": "s"}
REFUSED: dict[str, dict[str, Any]] = {
    "no title": {"study_id": "s"},
    "unknown key": BASE | {"titel": "t"},
    "blank id": {"study_id": " ", "title": "t"},
    "number for text": BASE | {"notes": 5},
    "text for a list": BASE | {"tags": "one"},
    "null for a list": BASE | {"factors": None},
    "factor without levels": BASE | {"factors": [{"name": "f"}]},
    "factor with empty levels": BASE | {"factors": [{"name": "f", "levels": []}]},
    "blank level": BASE | {"factors": [{"name": "f", "levels": [" "]}]},
    "list as level": BASE | {"factors": [{"name": "f", "levels": [[1]]}]},
    "level without value": BASE | {"factors": [{"name": "f", "levels": [{"name": "a"}]}]},
    "unknown factor kind": BASE | {"factors": [{"name": "f", "levels": [1], "kind": "x"}]},
    "unknown dtype": BASE | {"factors": [{"name": "f", "levels": [1], "dtype": "text"}]},
    "constraint without rule": BASE | {"constraints": [{"constraint_id": "c"}]},
    "reference without colon": BASE | {"condition_runner": "module.function"},
    "unknown seed strategy": BASE | {"seed_policy": {"strategy": "random"}},
    "no replicates": BASE | {"run_budget": {"replicates": 0}},
    "timeout of nothing": BASE | {"run_budget": {"timeout_s": 0}},
    "plan without tests": BASE
    | {"analysis_plans": [{"analysis_plan_id": "p", "hypothesis_ids": ["h"], "tests": []}]},
    "contrast with one side": BASE | {"hypotheses": [CLAIM | {"contrast": {"left": "a"}}]},
    "effect of nothing": BASE | {"hypotheses": [CLAIM | {"minimum_effect_of_interest": 0}]},
    "blank agent": BASE | {"agents": {"a": ""}},
    "problem without anything": BASE | {"problems": {"p": {}}},
    "newer format": BASE | {"schema_version": "1.0"},
    "legacy names as text": BASE | {"primary_outcomes": "y", "outcomes": [{"name": "y"}]},
    "legacy names as numbers": BASE | {"primary_outcomes": [1], "outcomes": [{"name": "y"}]},
    "legacy link as number": BASE | {"hypotheses": [CLAIM | {"linked_analysis_plan_id": 5}]},
}
ACCEPTED: dict[str, dict[str, Any]] = {
    "minimal": BASE,
    "default for levels": BASE | {"factors": [{"name": "f", "default": 0}]},
    "bare levels": BASE | {"factors": [{"name": "f", "levels": ["a", 1, 2.5, True, None]}]},
    "named levels": BASE | {"factors": [{"name": "f", "levels": [{"name": 5, "value": [1]}]}]},
    "names for records": BASE
    | {"hypotheses": [CLAIM | {"moderators": ["m", {"name": "n"}], "mediators": ["x"]}]},
    "bound by name": BASE | {"agents": {"a": "m:f"}, "problems": {"p": "plugin"}},
    "older numbers": BASE | {"schema_version": 0.2, "primary_outcomes": None},
    "older names": BASE | {"outcomes": [{"name": "y"}], "secondary_outcomes": ["y"]},
    "alias": BASE | {"design_spec": {"kind": "frac2"}},
    "design of a plug-in": BASE | {"design_spec": {"kind": "somebody_elses"}},
}


@pytest.mark.parametrize("case", REFUSED)
def test_schema_and_loader_refuse_the_same_files(tmp_path: Path, case: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(REFUSED[case]))
    assert not VALIDATOR.is_valid(REFUSED[case])
    with pytest.raises(StudyError):
        load_study(path)


@pytest.mark.parametrize("case", ACCEPTED)
def test_schema_and_loader_accept_the_same_files(tmp_path: Path, case: str) -> None:
    path = tmp_path / "study.json"
    path.write_text(json.dumps(ACCEPTED[case]))
    VALIDATOR.validate(ACCEPTED[case])
    load_study(path)
