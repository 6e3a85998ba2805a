"""Results as Python sees them: lazily, in plan order, as rows and as columns."""

import json

import pandas
import pytest
from small_ledger_kit import Lab, emitting, event, failure, small_study, success, verdict

from fairtrial import LedgerError, RunBudget, RunStatus, StudyError
from fairtrial.study import LedgerReader, Results, open_results


@pytest.fixture
def lab(tmp_path):
    here = Lab(tmp_path / "out", small_study(replicates=3))
    yield here
    here.ledger.close()


@pytest.fixture
def finished(lab):
    lab.run(
        run1=success(metrics={"score": 0.5, "seed": 7}, evaluations=[verdict(2), verdict(3, "b")]),
        run2=failure(),
        run4=emitting(event(text="one"), event(text="two"), metrics={"late": True}),
    )
    with open_results(lab.folder) as results:
        yield results


def test_it_is_a_sequence_in_plan_order(finished, lab):  # spec 28
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


def test_it_knows_its_study(finished, lab):
    assert finished.study == lab.plan.study
    assert [each.condition_id for each in finished.conditions] == [
        each.condition_id for each in lab.plan.conditions
    ]
    assert finished.folder == lab.folder
    assert finished.stopped is None


def test_results_are_read_when_they_are_asked_for(finished, monkeypatch):
    read = []
    result = LedgerReader.result
    monkeypatch.setattr(
        LedgerReader, "result", lambda self, place: read.append(place) or result(self, place)
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


def test_columns_are_what_a_data_frame_takes(finished):
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


def test_a_study_that_runs_is_seen_as_of_when_it_was_opened(lab):  # spec 28
    lab.add(4)
    lab.add(1)
    lab.ledger.commit()
    results = open_results(lab.folder)
    lab.add(0)
    lab.ledger.commit()
    ids = [lab.plan.spec(place).run_id for place in (1, 4)]
    assert [result.run_id for result in results] == ids
    assert [result.run_id for result in results[:]] == ids
    assert len(results) == 2
    assert "2 of 6 runs done" in repr(results)
    assert len(list(results.runs)) == 2
    assert len(open_results(lab.folder)) == 3


def test_a_run_that_is_run_again_keeps_its_result_until_there_is_another(lab):
    lab.add(0, failure())
    lab.ledger.commit()
    results = open_results(lab.folder)
    lab.ledger.again = {results.reader.turns[0]: "failed"}
    lab.add(0)
    assert results[0].status == "failed"
    lab.ledger.commit()
    assert results[0].status == "success"


def test_skipped_runs_are_in_the_table_and_not_among_the_results(tmp_path):
    budget = RunBudget(replicates=3, max_runs=4, max_runs_policy="balanced")
    lab = Lab(tmp_path / "out", small_study(run_budget=budget)).run()
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
    study = small_study(levels=(1,), replicates=3)
    facts = {"study": json.dumps(study.to_dict())}
    lab.ledger.write_plan(facts, lab.plan.conditions[:1], order)
    assert len(open_results(lab.folder)) == 3


def test_a_ledger_in_memory_has_results_too(tmp_path):
    lab = Lab(None, small_study(output_dir=tmp_path)).run()
    results = Results(lab.reader, stopped="interrupted")
    assert [result.status for result in results] == [RunStatus.SUCCESS] * 4
    assert (results.stopped, results.folder) == ("interrupted", tmp_path)


def test_a_folder_without_a_study_is_told(tmp_path):
    with pytest.raises(LedgerError, match="no study"):
        open_results(tmp_path)
