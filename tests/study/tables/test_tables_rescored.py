"""A new evaluator over stored outputs."""

import csv
import json

import pytest
from small_ledger_kit import Lab, body, failure, small_study, success, verdict

from fairtrial import OutcomeSpec
from fairtrial.core import Broken, LabError
from fairtrial.study import export_tables, unpack
from fairtrial.study.tables import rescored as rescoring
from fairtrial.study.tables.rescored import rescore


@pytest.fixture
def lab(tmp_path):
    study = small_study(outcomes=(OutcomeSpec("q", source_table="evaluations", primary=True),))
    here = Lab(tmp_path / "out", study)
    metrics = body()["metrics"]
    derived = {"metrics": {**metrics, "primary_outcome": 1}, "evaluations": [verdict(1, "q")]}
    own = {"metrics": {**metrics, "primary_outcome": 99}, "evaluations": [verdict(1, "q")]}
    here.run(
        run0=success(outputs={"answer": 3}, **derived),
        run1=success(outputs={"answer": 4}, **own),
        run2=failure(),
        run3=success(outputs={"answer": None}, **derived),
    )
    yield here
    here.ledger.close()


def judge(result):
    return [verdict(result.outputs["answer"] * 10, "q", evaluator_id="new")]


def outcome_of(lab, place):
    return lab.reader.result(place).metrics.get("primary_outcome")


def test_verdicts_take_the_place_of_the_first_and_the_first_stay(lab):  # spec 26
    told = rescore(lab.ledger, lab.reader, judge, evaluator="new")
    assert (told.scored, told.passed_over) == (2, 1)
    reader = lab.reader
    assert reader.result(0).evaluator_outputs[0]["metric_value"] == 30
    stored = lab.ledger.connection.execute(
        "SELECT body FROM bodies WHERE turn = ?", (reader.turns[0],)
    ).fetchone()[0]
    assert unpack(stored)["evaluations"][0]["metric_value"] == 1


def test_the_primary_outcome_follows_unless_it_is_the_agents_own(lab):
    before = [outcome_of(lab, place) for place in range(4)]
    assert before == [1, 99, None, 1]
    rescore(lab.ledger, lab.reader, judge, evaluator="new")
    assert [outcome_of(lab, place) for place in range(4)] == [30, 99, None, None]
    rescore(lab.ledger, lab.reader, lambda result: [verdict(0.5, "q")], evaluator="newer")
    assert [outcome_of(lab, place) for place in range(4)] == [0.5, 99, None, 0.5]


def test_runs_that_the_evaluator_fails_on_are_told_and_lose_their_old_verdict(lab):
    told = rescore(lab.ledger, lab.reader, judge, evaluator="new")
    run_id = lab.plan.spec(3).run_id
    assert list(told.failures) == [run_id]
    assert told.failures[run_id].startswith("TypeError: ")
    (row,) = lab.reader.result(3).evaluator_outputs
    assert (row["metric_name"], row["metric_value"]) == ("evaluation_error", None)
    assert row["notes_json"]["error"] == told.failures[run_id]


@pytest.mark.parametrize("error", [LabError("no room"), Broken("no network")])
def test_a_lab_that_breaks_costs_no_verdict(lab, error):
    def fail(result):
        raise error

    before = [lab.reader.result(place).evaluator_outputs for place in (0, 1, 3)]
    told = rescore(lab.ledger, lab.reader, fail, evaluator="new")
    assert (told.scored, len(told.failures)) == (0, 3)
    assert [lab.reader.result(place).evaluator_outputs for place in (0, 1, 3)] == before


def test_what_an_evaluator_gives_that_cannot_be_written_is_its_failure(lab):
    told = rescore(lab.ledger, lab.reader, lambda _: [verdict(object())], evaluator="new")
    assert (told.scored, len(told.failures)) == (0, 3)


def test_tables_and_manifest_tell_of_it(lab):
    rescore(lab.ledger, lab.reader, judge, evaluator="new")
    export_tables(lab.reader, lab.folder)
    with (lab.folder / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["metric_value"] for row in rows] == ["30", "40", ""]
    with (lab.folder / "runs.csv").open(newline="") as file:
        assert [row["primary_outcome"] for row in csv.DictReader(file)] == ["30", "99", "", ""]
    manifest = json.loads((lab.folder / "manifest.json").read_text())
    assert manifest["rescored"] == {"new": 3}


def test_an_interruption_keeps_the_groups_that_were_stored(lab, monkeypatch):
    monkeypatch.setattr(rescoring, "GROUP_RUNS", 1)

    def interrupted(result):
        if result.outputs["answer"] == 4:
            raise KeyboardInterrupt
        return judge(result)

    with pytest.raises(KeyboardInterrupt):
        rescore(lab.ledger, lab.reader, interrupted, evaluator="new")
    assert [outcome_of(lab, place) for place in (0, 1, 3)] == [30, 99, 1]
