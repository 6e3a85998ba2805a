"""Rescoring of stored outputs by a new evaluator."""

import csv
import json

import pytest
from small_ledger_kit import LedgerLab, body, evaluation, failure, make_small_study, success

from fairtrial import OutcomeSpec
from fairtrial.core import Broken, LabError
from fairtrial.study.executors import unpack
from fairtrial.study.tables import export_tables, rescored as rescoring
from fairtrial.study.tables.rescored import rescore


@pytest.fixture
def lab(tmp_path):
    study = make_small_study(outcomes=(OutcomeSpec("q", source_table="evaluations", primary=True),))
    lab = LedgerLab(tmp_path / "out", study)
    metrics = body()["metrics"]
    derived = {"metrics": {**metrics, "primary_outcome": 1}, "evaluations": [evaluation(1, "q")]}
    own = {"metrics": {**metrics, "primary_outcome": 99}, "evaluations": [evaluation(1, "q")]}
    lab.run(
        run0=success(outputs={"answer": 3}, **derived),
        run1=success(outputs={"answer": 4}, **own),
        run2=failure(),
        run3=success(outputs={"answer": None}, **derived),
    )
    yield lab
    lab.ledger.close()


def judge(result):
    return [evaluation(result.outputs["answer"] * 10, "q", evaluator_id="new")]


def primary_outcome(lab, plan_index):
    return lab.reader.result(plan_index).metrics.get("primary_outcome")


def test_new_evaluations_replace_the_first_ones_which_stay_in_the_ledger(lab):
    rescored = rescore(lab.ledger, lab.reader, judge, evaluator="new")
    assert (rescored.scored, rescored.passed_over) == (2, 1)
    reader = lab.reader
    assert reader.result(0).evaluator_outputs[0]["metric_value"] == 30
    stored = lab.ledger.connection.execute(
        "SELECT body FROM bodies WHERE turn = ?", (reader.execution_indexes[0],)
    ).fetchone()[0]
    assert unpack(stored)["evaluations"][0]["metric_value"] == 1


def test_the_primary_outcome_is_derived_again_unless_the_agent_set_it(lab):
    before = [primary_outcome(lab, plan_index) for plan_index in range(4)]
    assert before == [1, 99, None, 1]
    rescore(lab.ledger, lab.reader, judge, evaluator="new")
    assert [primary_outcome(lab, plan_index) for plan_index in range(4)] == [30, 99, None, None]
    rescore(lab.ledger, lab.reader, lambda result: [evaluation(0.5, "q")], evaluator="newer")
    assert [primary_outcome(lab, plan_index) for plan_index in range(4)] == [0.5, 99, None, 0.5]


def test_runs_on_which_the_evaluator_fails_are_reported_and_lose_their_old_evaluation(lab):
    rescored = rescore(lab.ledger, lab.reader, judge, evaluator="new")
    run_id = lab.plan.spec(3).run_id
    assert list(rescored.failures) == [run_id]
    assert rescored.failures[run_id].startswith("TypeError: ")
    (row,) = lab.reader.result(3).evaluator_outputs
    assert (row["metric_name"], row["metric_value"]) == ("evaluation_error", None)
    assert row["notes_json"]["error"] == rescored.failures[run_id]


@pytest.mark.parametrize("error", [LabError("no room"), Broken("no network")])
def test_a_failure_of_fairtrial_itself_keeps_the_old_evaluations(lab, error):
    def fail(result):
        raise error

    before = [lab.reader.result(plan_index).evaluator_outputs for plan_index in (0, 1, 3)]
    rescored = rescore(lab.ledger, lab.reader, fail, evaluator="new")
    assert (rescored.scored, len(rescored.failures)) == (0, 3)
    assert [lab.reader.result(plan_index).evaluator_outputs for plan_index in (0, 1, 3)] == before


def test_evaluations_that_cannot_be_stored_count_as_a_failure_of_the_evaluator(lab):
    rescored = rescore(lab.ledger, lab.reader, lambda _: [evaluation(object())], evaluator="new")
    assert (rescored.scored, len(rescored.failures)) == (0, 3)


def test_tables_and_manifest_have_the_new_evaluations(lab):
    rescore(lab.ledger, lab.reader, judge, evaluator="new")
    export_tables(lab.reader, lab.folder)
    with (lab.folder / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["metric_value"] for row in rows] == ["30", "40", ""]
    with (lab.folder / "runs.csv").open(newline="") as file:
        assert [row["primary_outcome"] for row in csv.DictReader(file)] == ["30", "99", "", ""]
    manifest = json.loads((lab.folder / "manifest.json").read_text())
    assert manifest["rescored"] == {"new": 3}


def test_an_interruption_keeps_the_groups_stored_before(lab, monkeypatch):
    monkeypatch.setattr(rescoring, "GROUP_RUNS", 1)

    def interrupted(result):
        if result.outputs["answer"] == 4:
            raise KeyboardInterrupt
        return judge(result)

    with pytest.raises(KeyboardInterrupt):
        rescore(lab.ledger, lab.reader, interrupted, evaluator="new")
    assert [primary_outcome(lab, plan_index) for plan_index in (0, 1, 3)] == [30, 99, 1]
