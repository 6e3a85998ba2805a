"""Rescoring through `rescore_study` and `fairtrial rescore`."""

import csv
import json

import pytest
from run_kit import make_study, read_table, run as run_it

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
    """A finished study, with evaluators in a module beside it."""
    (tmp_path / "judges.py").write_text(
        "def double(answer): return {'score': 2 * answer}\n"
        "def choosy(answer):\n"
        "    if answer > 1: raise ValueError('too much')\n"
        "    return {'score': answer}\n"
        "def leaving(answer): raise SystemExit(answer)\n"
        "def chatty(answer):\n"
        "    import rules\n"
        "    print('so', answer)\n"
        "    return rules.triple(answer)\n"
    )
    (tmp_path / "rules.py").write_text("def triple(answer): return 3 * answer\n")
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
    assert len(calls) == 4, "an agent ran again"


def scores(folder):
    with (folder / "evaluations.csv").open() as file:
        return [float(row["metric_value"] or "nan") for row in csv.DictReader(file)]


def primaries(folder):
    with open_results(folder) as results:
        return [result.metrics["primary_outcome"] for result in results]


def test_a_new_evaluator_replaces_the_old_evaluations(done, run):
    assert scores(done) == [1, 1, 2, 2]
    code, out, _ = run("rescore", str(done), "--evaluator", "judges:double")
    assert code == 0
    assert out.startswith("4 runs scored again")
    assert scores(done) == primaries(done) == [2, 2, 4, 4]


def test_all_existing_formats_of_the_tables_are_written_again(done):
    before = {path.name for path in done.iterdir() if not path.name.startswith(".")}
    assert {"study.sqlite", "runs.parquet"} <= before
    rescore_study(done, lambda answer: 7.0)
    assert {path.name for path in done.iterdir() if not path.name.startswith(".")} >= before
    assert all(path.exists() for path in done.iterdir())


def test_an_evaluator_that_fails_on_some_runs_is_reported_and_exits_with_5(done, run):
    code, out, err = run("rescore", str(done), "--evaluator", "judges:choosy")
    assert code == 5
    assert "2 runs scored again" in out
    assert err.count("ValueError: too much") == 2
    code, out, _ = run("rescore", str(done), "--evaluator", "judges:choosy", "--json")
    assert (code, json.loads(out)["scored"], len(json.loads(out)["failures"])) == (5, 2, 2)


def test_without_an_evaluator_the_problems_evaluate_again(done):
    packet = ProblemPacket("p", evaluator=lambda answer: {"score": -answer})
    result = rescore_study(done, problem_registry={"p": packet})
    assert (result.scored, result.failures) == (4, {})
    assert scores(done) == primaries(done) == [-1, -1, -2, -2]


def test_an_evaluator_that_is_not_found_is_reported_before_any_evaluation(done, run):
    with pytest.raises(StudyError, match="judges"):
        rescore_study(done, "judges:nobody")
    code, _, err = run("rescore", str(done), "--evaluator", "nowhere:nobody")
    assert code == 2
    assert "nowhere" in err
    code, _, err = run("rescore", str(done.parent), "--evaluator", "judges:double")
    assert code == 3
    assert scores(done) == [1, 1, 2, 2]


def test_evaluations_are_kept_where_problems_are_not_bound(done, run):
    code, _, err = run("rescore", str(done))
    assert code == 2
    assert "nothing is bound to 'p'; name what judges: --evaluator" in err
    assert scores(done) == [1, 1, 2, 2]


def test_an_evaluator_may_print_and_import_modules_beside_the_study(done, run):
    code, out, err = run("rescore", str(done), "--evaluator", "judges:chatty", "--json")
    assert (code, json.loads(out)["scored"]) == (0, 4)
    assert "so 2" in err
    assert scores(done) == [3, 3, 6, 6]


def test_an_evaluator_that_calls_exit_has_failed(done, run):
    code, out, _ = run("rescore", str(done), "--evaluator", "judges:leaving", "--json")
    assert code == 5
    assert set(json.loads(out)["failures"].values()) == {"SystemExit: 1", "SystemExit: 2"}


def test_runs_that_failed_only_in_their_evaluator_become_successes(tmp_path):
    calls = []

    def agent(task):
        calls.append(task.factors["x"])
        if task.factors["x"] == 3:
            raise ValueError("not today")
        return {"x": task.factors["x"]}

    def broken(answer):
        raise KeyError("oops")

    def choosy(answer):
        return {"score": [answer][2 - answer]}  # fails on 1

    study = make_study(tmp_path, replicates=1)
    results = run_it(study, agent, ProblemPacket("p", evaluator=broken))
    assert [str(result.status) for result in results] == ["failed"] * 3
    assert results[0].error_info == "the evaluator failed: KeyError: 'oops'"
    result = rescore_study(tmp_path, choosy)
    assert (result.scored, len(result.failures), result.passed_over) == (1, 1, 1)
    with open_results(tmp_path) as results:
        assert [str(result.status) for result in results] == ["failed", "success", "failed"]
        judged = results[1]
        assert (judged.failure_kind, judged.error_info, judged.traceback) == (None, None, None)
        assert judged.metrics["primary_outcome"] == 2
        assert results[0].error_info == "the evaluator failed: KeyError: 'oops'"
        assert results.reader.summary().counts == {"success": 1, "failed": 2}
    assert [row["status"] for row in read_table(tmp_path, "runs.csv")][1] == "success"
    assert sorted(calls) == [1, 2, 3]
