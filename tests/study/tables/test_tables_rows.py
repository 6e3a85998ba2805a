"""Rows of the tables made from results: columns, cells, and nothing lost or overwritten."""

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, strategies as st
from small_ledger_kit import STARTED, evaluation, event, make_small_study

from fairtrial import OutcomeSpec, RunResult, RunSpec, RunStatus
from fairtrial.study.executors import FailureKind
from fairtrial.study.tables import as_cell, as_json
from fairtrial.study.tables.canonical import EVALUATION_COLUMNS, EVENT_COLUMNS, RUN_COLUMNS
from fairtrial.study.tables.primary_outcome import primary_outcome
from fairtrial.study.tables.rows import MetricColumns, RunRows, evaluation_rows, event_rows

SPEC = RunSpec("run-0123456789ab", "s", "cond-1", "p", 3, 99, "a", "p", {"agent_id": "a"})


def make_result(**fields):
    fields.setdefault("run_spec", SPEC)
    fields.setdefault("ended_at", STARTED)
    return RunResult(SPEC.run_id, fields.pop("status", RunStatus.SUCCESS), **fields)


def run_row(result, **fields):
    rows = RunRows(make_small_study(**fields))
    row = rows.row(result)
    return dict(zip(rows.columns, row, strict=True))


def test_the_columns_are_those_of_schema_0_2_0_in_its_order():
    assert RUN_COLUMNS[:21] == (
        "study_id",
        "condition_id",
        "run_id",
        "problem_id",
        "problem_family",
        "agent_id",
        "agent_kind",
        "pattern_name",
        "model_name",
        "seed",
        "replicate",
        "status",
        "start_time",
        "end_time",
        "latency_s",
        "input_tokens",
        "output_tokens",
        "cost_usd",
        "primary_outcome",
        "trace_path",
        "manifest_path",
    )
    assert RUN_COLUMNS[21:] == ("error_info", "failure_kind", "attempt", "executor", "host")
    assert EVENT_COLUMNS == (
        "timestamp",
        "record_id",
        "text",
        "session_id",
        "actor_id",
        "event_type",
        "meta_json",
        "level",
        "study_id",
        "run_id",
        "condition_id",
        "trial_id",
        "step_id",
        "tool_name",
        "evaluation_id",
    )
    assert EVALUATION_COLUMNS == (
        "run_id",
        "evaluator_id",
        "metric_name",
        "metric_value",
        "metric_unit",
        "aggregation_level",
        "notes_json",
    )


def test_the_row_of_a_run_has_all_its_data():
    metadata = {"model_name": "m", "agent_kind": "k", "pattern_name": "n", "problem_family": "f"}
    spec = RunSpec("run-1", "s", "cond-1", "p", 3, 99, "a", "p", {"agent_id": "a", **metadata})
    row = run_row(
        RunResult(
            "run-1",
            RunStatus.FAILED,
            metrics={"input_tokens": 3, "output_tokens": 4, "steps": 5},
            cost=0.25,
            latency=1.5,
            trace_refs=("t/1", "t/2"),
            error_info="no",
            run_spec=spec,
            started_at="2026-01-01T00:00:00.000+00:00",
            ended_at="2026-01-01T00:00:01.500+00:00",
            failure_kind=FailureKind.TIMEOUT,
            attempt=2,
            executor="processes",
            host="h",
        )
    )
    assert row == {
        "study_id": "s",
        "condition_id": "cond-1",
        "run_id": "run-1",
        "problem_id": "p",
        "problem_family": "f",
        "agent_id": "a",
        "agent_kind": "k",
        "pattern_name": "n",
        "model_name": "m",
        "seed": 99,
        "replicate": 3,
        "status": "failed",
        "start_time": "2026-01-01T00:00:00.000+00:00",
        "end_time": "2026-01-01T00:00:01.500+00:00",
        "latency_s": 1.5,
        "input_tokens": 3,
        "output_tokens": 4,
        "cost_usd": 0.25,
        "primary_outcome": None,
        "trace_path": "t/1",
        "manifest_path": "manifest.json",
        "error_info": "no",
        "failure_kind": "timeout",
        "attempt": 2,
        "executor": "processes",
        "host": "h",
        "factor_x": None,
        "steps": 5,
    }


def test_missing_metadata_are_unknown_and_a_skipped_run_has_no_measurements():
    row = run_row(make_result(status=RunStatus.SKIPPED, ended_at=None))
    unknown = ("problem_family", "agent_kind", "pattern_name", "model_name")
    assert {row[name] for name in unknown} == {"unknown"}
    measured = ("latency_s", "input_tokens", "output_tokens", "cost_usd", "attempt", "start_time")
    assert {row[name] for name in measured} == {None}
    assert run_row(make_result())["input_tokens"] == 0


def test_a_metric_named_like_a_key_column_does_not_overwrite_it():
    metrics = {"seed": -1, "run_id": "x", "Status": "y", "metric_seed": -2, "score": 1, "SCORE": 2}
    row = run_row(make_result(metrics=metrics))
    assert (row["seed"], row["run_id"], row["status"]) == (99, SPEC.run_id, "success")
    assert row["metric_seed"] == -1
    assert row["metric_metric_seed"] == -2
    assert row["metric_Status"] == "y"
    assert (row["score"], row["metric_SCORE"]) == (1, 2)


def test_metrics_of_every_run_get_a_column_in_order_of_first_appearance():
    columns = MetricColumns()
    assert columns.cells({"b": 1, "latency_s": 2.0}) == [1]
    assert columns.cells({}) == [None]
    assert columns.cells({"a": True, "b": 0.5}) == [0.5, True]
    assert columns.names == ["b", "a"]


def test_metrics_of_other_libraries_are_numbers_and_lists_are_counted_as_left_out():
    columns = MetricColumns()
    cells = columns.cells(
        {"a": np.float32(0.5), "b": np.int64(2), "c": [1, 2], "d": Decimal("1.5")}
    )
    assert cells == [0.5, 2, 1.5]
    assert [type(cell) for cell in cells] == [float, int, float]
    columns.cells({"c": {}})
    assert columns.left_out == {"c": 2}


OUTCOME = OutcomeSpec("quality", column="q", primary=True)


@pytest.mark.parametrize(
    ("metrics", "evaluations", "outcomes", "expected"),
    [
        ({"primary_outcome": 1, "q": 2}, [evaluation(3)], [OUTCOME], 1),
        ({"q": 2}, [evaluation(3, "q")], [OUTCOME], 2),
        ({}, [evaluation(9), evaluation(3, "q")], [OUTCOME], 3),
        ({}, [evaluation(1, "q"), evaluation(3, "q")], [OUTCOME], 2.0),
        ({"q": 2}, [evaluation(3, "q")], [OutcomeSpec("q", "evaluations", primary=True)], 3),
        ({"q": 2}, [evaluation(3)], [OutcomeSpec("q")], 3),
        ({"z": 2}, [evaluation(3), evaluation(4)], [OUTCOME], 3),
        ({"z": 2}, [], [OUTCOME], None),
        ({"q": 0}, [evaluation(3)], [OUTCOME], 0),
        ({}, [evaluation("good", "q"), evaluation("bad", "q")], [OUTCOME], "good"),
    ],
)
def test_the_primary_outcome_is_set_by_the_agent_or_derived_from_metrics_or_evaluations(
    metrics, evaluations, outcomes, expected
):
    assert primary_outcome(metrics, evaluations, outcomes) == expected


def test_a_run_without_events_gets_one_event_with_its_output():
    (row,) = event_rows(make_small_study(), make_result(outputs={"text": "hello"}))
    assert dict(zip(EVENT_COLUMNS, row, strict=True)) == {
        "timestamp": STARTED,
        "record_id": "evt-8fec491a0420",
        "text": "hello",
        "session_id": SPEC.run_id,
        "actor_id": "agent",
        "event_type": "assistant_output",
        "meta_json": '{"auto_generated":true}',
        "level": "step",
        "study_id": "s",
        "run_id": SPEC.run_id,
        "condition_id": "cond-1",
        "trial_id": None,
        "step_id": None,
        "tool_name": None,
        "evaluation_id": None,
    }
    failed = {"status": RunStatus.FAILED, "failure_kind": FailureKind.EXCEPTION}
    assert list(event_rows(make_small_study(), make_result(**failed))) == []
    assert list(event_rows(make_small_study(), make_result(status=RunStatus.SKIPPED))) == []
    reported = {"status": RunStatus.FAILED, "failure_kind": FailureKind.REPORTED}
    assert len(list(event_rows(make_small_study(), make_result(**reported)))) == 1


def test_events_keep_their_fields_and_always_have_the_id_of_their_run():
    events = (
        event(text="a", record_id="r", session_id="other", level="trial", meta={"b": 1, "a": 2}),
        event('tool "x"\u00e9', tool_name="t", run_id="a lie", extra=5),
        {"meta_json": '{"kept": "as it is"}'},
    )
    rows = [
        dict(zip(EVENT_COLUMNS, row, strict=True))
        for row in event_rows(make_small_study(), make_result(observations=events))
    ]
    assert [row["run_id"] for row in rows] == [SPEC.run_id] * 3
    assert [row["record_id"] for row in rows][:2] == ["r", "evt-a0cb78db9b76"]
    assert rows[0]["session_id"] == "other"
    assert rows[0]["level"] == "trial"
    assert rows[0]["meta_json"] == '{"a":2,"b":1}'
    assert (rows[1]["tool_name"], rows[1]["meta_json"]) == ("t", '{"extra":5}')
    assert rows[2]["meta_json"] == '{"kept": "as it is"}'
    assert (rows[2]["timestamp"], rows[2]["event_type"]) == (STARTED, "event")


def test_evaluations_keep_numbers_and_notes():
    evaluations = (evaluation(0.73, notes_json={"why": "so"}), {"metric_value": [1, 2]})
    rows = list(evaluation_rows(make_result(evaluator_outputs=evaluations)))
    assert rows[0] == [SPEC.run_id, "judge", "score", 0.73, "unitless", "run", '{"why":"so"}']
    assert rows[1] == [SPEC.run_id, "problem_evaluator", "score", "[1,2]", "unitless", "run", "{}"]


def test_json_cells_are_standard_json():
    value = {"n": math.nan, "i": [-math.inf], 3: b"\x00", "s": {1}, "p": np.arange(2)}
    text = as_json(value)
    assert json.loads(text, parse_constant=pytest.fail) == {
        "n": "nan",
        "i": ["-inf"],
        "3": "AA==",
        "s": [1],
        "p": [0, 1],
    }


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        max_size=8,
    )
)
def test_every_scalar_metric_reaches_the_table_under_a_name_of_its_own(metrics):
    rows = RunRows(make_small_study())
    row = rows.row(make_result(metrics=metrics))
    assert len(row) == len(rows.columns)
    assert len({name.lower() for name in rows.columns}) == len(rows.columns)
    own = {"latency_s", "cost_usd"}  # these are the result's, not the metrics'
    values = [repr(value) for value in row]
    shown = {name: value for name, value in metrics.items() if name not in own}
    assert all(repr(as_cell(value)) in values for value in shown.values())


def test_booleans_are_numbers_in_numeric_columns():
    evaluations = [evaluation(True, "is_right"), evaluation(0.5, "score")]
    result = make_result(evaluator_outputs=evaluations)
    assert [row[3] for row in evaluation_rows(result)] == [1, 0.5]
    cell = run_row(result)["primary_outcome"]
    assert (cell, type(cell)) == (1, int)
