"""Rescoring from the outside: `rescore_study` and `fairtrial rescore` (spec 26)."""

import csv
import json

import pytest

from fairtrial import (
    Factor,
    OutcomeSpec,
    ProblemPacket,
    RunBudget,
    Study,
    StudyError,
    open_results,
    rescore_study,
    run_study,
)


@pytest.fixture
def done(tmp_path):
    """A study that was run, with an evaluator in a module beside it."""
    (tmp_path / "judges.py").write_text(
        "def double(answer): return {'score': 2 * answer}\n"
        "def choosy(answer):\n"
        "    if answer > 1: raise ValueError('too much')\n"
        "    return {'score': answer}\n"
    )
    study = Study(
        "s",
        "s",
        factors=(Factor("x", levels=(1, 2)),),
        outcomes=(OutcomeSpec("score", source_table="evaluations", primary=True),),
        agent_specs=("a",),
        problem_ids=("p",),
        run_budget=RunBudget(replicates=2),
        output_dir=tmp_path / "out",
    )
    object.__setattr__(study, "folder", tmp_path)
    calls = []

    def agent(task):
        calls.append(task.run_spec.run_id)
        return {"answer": task.factors["x"]}

    packet = ProblemPacket("p", evaluator=lambda answer: {"score": answer})
    run_study(
        study,
        agent_bindings={"a": agent},
        problem_registry={"p": packet},
        include_sqlite=True,
        include_parquet=True,
    )
    assert len(calls) == 4
    yield tmp_path / "out"
    assert len(calls) == 4, "no agent runs again"


def scores(folder):
    with (folder / "evaluations.csv").open() as file:
        return [float(row["metric_value"] or "nan") for row in csv.DictReader(file)]


def primaries(folder):
    with open_results(folder) as results:
        return [result.metrics["primary_outcome"] for result in results]


def test_a_new_evaluator_takes_the_place_of_the_old_verdicts(done, run):
    assert scores(done) == [1, 1, 2, 2]
    code, out, _ = run("rescore", str(done), "--evaluator", "judges:double")
    assert code == 0
    assert out.startswith("4 runs judged again")
    assert scores(done) == primaries(done) == [2, 2, 4, 4]


def test_the_tables_keep_the_forms_that_they_had(done):
    before = {path.name for path in done.iterdir() if not path.name.startswith(".")}
    assert {"study.sqlite", "runs.parquet"} <= before
    rescore_study(done, lambda answer: 7.0)
    assert {path.name for path in done.iterdir() if not path.name.startswith(".")} >= before
    assert all(path.exists() for path in done.iterdir())


def test_an_evaluator_that_fails_on_some_is_said_and_exits_with_5(done, run):
    code, out, err = run("rescore", str(done), "--evaluator", "judges:choosy")
    assert code == 5
    assert "2 runs judged again" in out
    assert err.count("ValueError: too much") == 2
    code, out, _ = run("rescore", str(done), "--evaluator", "judges:choosy", "--json")
    assert (code, json.loads(out)["scored"], len(json.loads(out)["failures"])) == (5, 2, 2)


def test_without_an_evaluator_the_problems_are_asked_again(done):
    packet = ProblemPacket("p", evaluator=lambda answer: {"score": -answer})
    told = rescore_study(done, problem_registry={"p": packet})
    assert (told.scored, told.failures) == (4, {})
    assert scores(done) == primaries(done) == [-1, -1, -2, -2]


def test_what_can_not_be_found_is_said_before_anything_is_judged(done, run):
    with pytest.raises(StudyError, match="judges"):
        rescore_study(done, "judges:nobody")
    code, _, err = run("rescore", str(done), "--evaluator", "nowhere:nobody")
    assert code == 2
    assert "nowhere" in err
    code, _, err = run("rescore", str(done.parent), "--evaluator", "judges:double")
    assert code == 3
    assert scores(done) == [1, 1, 2, 2]


def test_verdicts_are_kept_where_the_problems_are_not_at_hand(done, run):
    code, _, err = run("rescore", str(done))
    assert code == 2
    assert "nothing is bound to 'p'; name what judges: --evaluator" in err
    assert scores(done) == [1, 1, 2, 2]
