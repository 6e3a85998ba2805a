"""`Results`: read lazily, in plan order, as rows and as columns."""

import json

import pandas
import pytest
from small_ledger_kit import (
    LedgerLab,
    emitting,
    evaluation,
    event,
    failure,
    make_small_study,
    success,
)

from fairtrial import LedgerError, RunBudget, RunStatus, StudyError
from fairtrial.study import Results, open_results
from fairtrial.study.ledger import LedgerReader


@pytest.fixture
def lab(tmp_path):
    lab = LedgerLab(tmp_path / "out", make_small_study(replicates=3))
    yield lab
    lab.ledger.close()


@pytest.fixture
def finished(lab):
    lab.run(
        run1=success(
            metrics={"score": 0.5, "seed": 7}, evaluations=[evaluation(2), evaluation(3, "b")]
        ),
        run2=failure(),
        run4=emitting(event(text="one"), event(text="two"), metrics={"late": True}),
    )
    with open_results(lab.folder) as results:
        yield results


def test_results_are_a_sequence_in_plan_order(finished, lab):
    ids = [spec.run_id for spec in lab.plan.specs()]
    assert len(finished) == 6
    assert [result.run_id for result in finished] == ids
    assert finished[0].run_id == ids[0]
    assert finished[-1].run_id == ids[-1]
    assert [result.run_id for result in finished[1:-1:2]] == ids[1:-1:2]
    assert finished[2].status is RunStatus.FAILED
    assert [result.run_id for result in reversed(finished)] == ids[::-1]
    with pytest.raises(IndexError, match="there are 6 results, no 6"):
        finished[6]
    assert "6 of 6 runs done" in repr(finished)


def test_results_have_their_study_conditions_and_folder(finished, lab):
    assert finished.study == lab.plan.study
    assert [condition.condition_id for condition in finished.conditions] == [
        condition.condition_id for condition in lab.plan.conditions
    ]
    assert finished.folder == lab.folder
    assert finished.stopped is None


def test_results_are_read_when_they_are_accessed(finished, monkeypatch):
    read = []
    result = LedgerReader.result
    monkeypatch.setattr(
        LedgerReader,
        "result",
        lambda self, plan_index: read.append(plan_index) or result(self, plan_index),
    )
    assert len(finished) == 6
    assert read == []
    assert finished[3].run_id
    assert read == [3]


def test_rows_have_the_canonical_columns_and_typed_values(finished):
    rows = list(finished.runs)
    assert [row["replicate"] for row in rows] == [1, 2, 3, 1, 2, 3]
    assert rows[1]["score"] == 0.5
    assert rows[1]["metric_seed"] == 7
    assert rows[1]["primary_outcome"] == 2
    assert rows[2]["failure_kind"] == "exception"
    assert [row["x"] for row in finished.condition_table] == [1, 2]
    assert [row["metric_value"] for row in finished.evaluations] == [2, 3]
    assert [row["text"] for row in finished.events] == ["done"] * 3 + ["one", "two", "done"]
    assert len({row["run_id"] for row in finished.events}) == 5


def test_a_data_frame_can_be_made_from_columns(finished):
    frame = pandas.DataFrame(finished.runs.columns())
    assert len(frame) == 6
    assert list(frame.columns)[-3:] == ["score", "metric_seed", "late"]
    assert frame["latency_s"].dtype.kind == "f"
    assert frame["score"].tolist()[1] == 0.5
    assert frame["score"].isna().sum() == 5
    assert finished.runs.columns("replicate", "late") == {
        "replicate": [1, 2, 3, 1, 2, 3],
        "late": [None, None, None, None, True, None],
    }
    assert finished.events.columns("actor_id") == {"actor_id": ["agent"] * 6}
    assert finished.condition_table.columns("x") == {"x": [1, 2]}
    with pytest.raises(StudyError, match=r"there is no column 'scor'; did you mean 'score'\?"):
        finished.runs.columns("scor")


def test_results_of_a_running_study_are_those_committed_when_it_was_opened(lab):
    lab.add(4)
    lab.add(1)
    lab.ledger.commit()
    results = open_results(lab.folder)
    lab.add(0)
    lab.ledger.commit()
    ids = [lab.plan.spec(plan_index).run_id for plan_index in (1, 4)]
    assert [result.run_id for result in results] == ids
    assert [result.run_id for result in results[:]] == ids
    assert len(results) == 2
    assert "2 of 6 runs done" in repr(results)
    assert len(list(results.runs)) == 2
    assert len(open_results(lab.folder)) == 3


def test_a_repeated_run_keeps_its_result_until_the_new_one_is_committed(lab):
    lab.add(0, failure())
    lab.ledger.commit()
    results = open_results(lab.folder)
    lab.ledger.reruns = {results.reader.execution_indexes[0]: "failed"}
    lab.add(0)
    assert results[0].status == "failed"
    lab.ledger.commit()
    assert results[0].status == "success"


def test_skipped_runs_are_in_the_table_and_not_among_the_results(tmp_path):
    budget = RunBudget(replicates=3, max_runs=4, max_runs_policy="balanced")
    lab = LedgerLab(tmp_path / "out", make_small_study(run_budget=budget)).run()
    results = Results(lab.reader)
    assert len(results) == 4
    assert results.runs.columns("status")["status"] == [
        *["success"] * 2,
        "skipped",
        *["success"] * 2,
        "skipped",
    ]
    results.close()


def test_results_that_are_no_longer_in_the_plan_are_left_out(lab):
    lab.run()
    order = lab.order[:]
    order[list(order).index(5)] = 0xFFFFFFFF
    order[list(order).index(4)] = 0xFFFFFFFF
    order[list(order).index(3)] = 0xFFFFFFFF
    study = make_small_study(levels=(1,), replicates=3)
    facts = {"study": json.dumps(study.to_dict())}
    lab.ledger.write_plan(facts, lab.plan.conditions[:1], order)
    assert len(open_results(lab.folder)) == 3


def test_results_can_be_read_from_a_ledger_in_memory(tmp_path):
    lab = LedgerLab(None, make_small_study(output_dir=tmp_path)).run()
    results = Results(lab.reader, stopped="interrupted")
    assert [result.status for result in results] == [RunStatus.SUCCESS] * 4
    assert (results.stopped, results.folder) == ("interrupted", tmp_path)


def test_a_folder_without_a_study_is_reported(tmp_path):
    with pytest.raises(LedgerError, match="no study"):
        open_results(tmp_path)


def test_data_frames_have_a_type_for_each_column(finished):
    runs = finished.to_pandas()
    assert list(runs["factor_x"]) == [1, 1, 1, 2, 2, 2]
    types = {name: str(runs[name].dtype) for name in ("factor_x", "latency_s", "late", "run_id")}
    assert types == {
        "factor_x": "Int64",
        "latency_s": "float64",
        "late": "boolean",
        "run_id": "string",
    }
    assert str(runs["start_time"].dtype).endswith("UTC]")
    assert len(finished.to_pandas("events")) == len(list(finished.events))
    with pytest.raises(StudyError, match=r"no table 'output'.*outputs"):
        finished.to_pandas("output")
