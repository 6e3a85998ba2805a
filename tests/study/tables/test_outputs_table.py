"""The table of outputs: nothing that an agent returned is missing from the tables."""

import json

import pytest
from hypothesis import given, strategies as st
from run_kit import read_table
from small_ledger_kit import LedgerLab, emitting, event, failure, make_small_study, success

from fairtrial import Factor, RunResult, RunSpec, RunStatus
from fairtrial.study import open_results
from fairtrial.study.tables import export_tables
from fairtrial.study.tables.integrity import validate_artifacts
from fairtrial.study.tables.outputs_table import output_rows

SPEC = RunSpec("run-0123456789ab", "s", "cond-1", "p", 3, 99, "a", "p", {"agent_id": "a"})
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def make_lab(tmp_path):
    labs = []

    def make(study):
        labs.append(LedgerLab(tmp_path / "out", study))
        return labs[-1]

    yield make
    for lab in labs:
        lab.ledger.close()


def read_back(kind, text):
    return text if kind == "text" else json.loads(text)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_outputs_read_back_as_they_were_returned(outputs):
    rows = list(output_rows(RunResult(SPEC.run_id, RunStatus.SUCCESS, outputs, run_spec=SPEC)))
    assert len({row[1] for row in rows}) == len(rows)
    for (name, value), row in zip(outputs.items(), rows, strict=True):
        assert row[2:4] == ["output", name]
        found = row[5] if row[4] == "text" else json.loads(row[5])
        assert (type(found), found) == (type(value), value)


def test_an_output_beside_events_is_in_the_tables(make_lab):
    lab = make_lab(make_small_study(replicates=1))
    facts = {"agent_metadata": {"temperature": 0.5}}
    lab.run(
        run0=emitting(
            event(text="thinking"),
            outputs={"text": "the answer", "steps": [1, {"b": None}], "ok": True, "n": 1.0},
            metrics={"curve": [3, 2], "loss": 0.5},
            trace_refs=["a.jsonl", "b.jsonl"],
            execution_metadata=facts,
        ),
        run1=failure(),
    )
    export_tables(lab.reader, lab.folder, parquet=True, sqlite=True)
    assert validate_artifacts(lab.folder) == []
    rows = read_table(lab.folder, "outputs.csv")
    found = {row["field"]: (row["type"], row["value"]) for row in rows}
    assert found == {
        "output.text": ("text", "the answer"),
        "output.steps": ("json", '[1,{"b":null}]'),
        "output.ok": ("boolean", "true"),
        "output.n": ("number", "1.0"),
        "metric.curve": ("json", "[3,2]"),
        "metadata.temperature": ("number", "0.5"),
        "trace.0": ("text", "a.jsonl"),
        "trace.1": ("text", "b.jsonl"),
    }
    with open_results(lab.folder) as results:
        view = list(results.outputs)
        assert [row["value"] for row in view] == [row["value"] for row in rows]


def test_factors_are_columns_of_runs_and_take_no_other_columns_name(make_lab):
    factors = (Factor("status", levels=("on", "off")), Factor("score", levels=(1, 2)))
    lab = make_lab(make_small_study(factors=factors, replicates=1))
    metrics = {"factor_score": 9, "score": 0.5}
    lab.run(**{f"run{number}": success(metrics=metrics) for number in range(4)})
    export_tables(lab.reader, lab.folder)
    rows = read_table(lab.folder, "runs.csv")
    assert {(row["factor_status"], row["factor_score"]) for row in rows} == {
        (status, score) for status in ("on", "off") for score in ("1", "2")
    }
    assert {row["status"] for row in rows} == {"success"}
    assert {(row["score"], row["metric_factor_score"]) for row in rows} == {("0.5", "9")}
    assert validate_artifacts(lab.folder) == []


def test_an_option_of_one_agent_is_blank_in_the_runs_of_others(make_lab):
    factors = (Factor("agents.a.options.depth", levels=(1, 2)),)
    agents = {"a": {"use": "json:loads"}, "b": {"use": "json:loads"}}
    study = make_small_study(factors=factors, replicates=1, agent_specs=("a", "b"), agents=agents)
    lab = make_lab(study)
    lab.run()
    export_tables(lab.reader, lab.folder)
    rows = read_table(lab.folder, "runs.csv")
    cells = {(row["agent_id"], row["factor_agents.a.options.depth"]) for row in rows}
    assert cells == {("a", "1"), ("a", "2"), ("b", "")}
