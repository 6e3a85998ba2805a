"""Code problems in studies: read when names are bound, and the evaluations of outputs."""

import subprocess
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import yaml
from optimize_kit import WORKING

from fairtrial import LabError, Study, StudyError, load_study, run_study
from fairtrial.arena import (
    ArenaSettings,
    Basis,
    Candidate,
    Estimate,
    FileState,
    Judgement,
    Measurement,
    Reason,
    Rejection,
    Verdict,
    delivery,
    evaluate_candidates_sync,
)
from fairtrial.arena.delivery.edits import FileEdit
from fairtrial.core import plugins
from fairtrial.optimize import OptimizationResult, code_problem as module
from fairtrial.optimize.code_problem import UNITS, BoundCode, Code, has_judged, read_answer
from fairtrial.optimize.result import JudgedOutput
from fairtrial.sandbox import host_lock as quiet
from fairtrial.study import ProblemBinding, RunBudget, RunStatus
from fairtrial.study.executors import pack, unpack
from fairtrial.study.problems.scoring import read_verdict
from fairtrial.study.runner.bound_objects import make_problem

MODULE = "def double(number):\n    return number + number\n"
DIFF = """\
--- a/src/twice.py
+++ b/src/twice.py
@@ -1,2 +1,2 @@
 def double(number):
-    return number + number
+    return {}
"""
PROBLEM = """\
problem_id: twice
brief: Make it faster.
editable: ["src/*.py"]
check:
  - function: "twice:double"
    calls: calls.json
"""
STUDY = {
    "study_id": "s",
    "title": "t",
    "agent_specs": ["a"],
    "problems": {"doubling": {"use": "code", "options": {"path": "below/twice.yaml"}}},
    "outcomes": [{"name": "speedup", "source_table": "evaluations", "primary": True}],
}
SETTINGS = ArenaSettings(unsandboxed=True, timing="none")
OPTIMIZED = OptimizationResult(
    best="2.1",
    estimate=Estimate(1.5, 1.4, 1.6, 16, 0.95),
    edits=delivery.FileEdits({}, b"\xff\r\n"),
    explanation="it is faster",
    candidates=9,
    passed=7,
    unjudged=2,
    tokens=1200,
    cost_usd=0.25,
    why_over="no gain any more",
    tree="t",
    problem="p",
    notes=("a note",),
    dropped={"0.0": "it crashed"},
)


@pytest.fixture
def folder(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(quiet, "HOST_FOLDER", tmp_path_factory.mktemp("locks"))  # not the host's
    files = {
        "below/src/twice.py": MODULE,
        "below/calls.json": '[{"args": [3], "kwargs": {}, "result": 6},'
        ' {"args": [4], "kwargs": {}, "result": 8}]',
        "below/twice.yaml": PROBLEM,
        "study.yaml": yaml.safe_dump({**STUDY, "output_dir": str(tmp_path / "out")}),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=60)
    return tmp_path


@pytest.fixture
def problem(folder):
    bound = Code("below/twice.yaml").bind("doubling", folder)
    return replace(bound, settings=SETTINGS)


def values_of(rows):
    """The rows as evaluations.csv has them, by metric."""
    return {row["metric_name"]: row["metric_value"] for row in read_verdict(rows)}


def judged_as(monkeypatch, judgement, given=None):
    """A problem whose arena comes to this; `given` gets the candidates."""

    def judge(problem, candidates, *, slots, settings):
        assert [type(each) for each in candidates] == [Candidate]
        if given is not None:
            given.extend(candidates)

        class Evaluation:
            judgements = (judgement,)
            adequacy = None

        return Evaluation

    monkeypatch.setattr(module, "evaluate_candidates_sync", judge)
    return BoundCode(code=None)


# -- in a study --


def test_it_is_found_by_its_name():
    assert plugins.load("problems", "code") is Code


def test_a_study_names_its_file(folder):
    binding = load_study(folder / "study.yaml").problems["doubling"]
    bound = make_problem("doubling", binding, folder)
    assert (bound.problem_id, bound.family, bound.brief) == ("doubling", "code", "Make it faster.")
    assert bound.code.problem_id == "twice"
    assert bound.code.folder == (folder / "below").resolve()
    assert BoundCode(bound.code).problem_id == "twice"


def test_mistakes_in_the_file_are_reported_with_its_lines(folder):
    (folder / "below/twice.yaml").write_text(PROBLEM.replace("brief", "breif") + "alpha: 2\n")
    study = load_study(folder / "study.yaml")
    with pytest.raises(StudyError) as caught:
        run_study(study, agent_bindings={"a": lambda task: {}}, dry_run=True)
    file = folder / "below/twice.yaml"
    place = "problems.doubling.options.path"
    lines = str(caught.value).splitlines()
    assert any(line.startswith(f"{place}: {file}:2: breif: ") for line in lines)
    assert any(line.startswith(f"{place}: {file}:7: alpha: must be above 0") for line in lines)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "none.yaml"}, "none.yaml"),
        ({}, "options: 'path' is missing"),
        ({"path": "below/twice.yaml", "slots": 3}, "options.slots"),
    ],
)
def test_options_are_checked_when_names_are_bound(folder, options, words):
    with pytest.raises(StudyError, match=words):
        make_problem("doubling", ProblemBinding(use="code", options=options), folder)


@pytest.mark.skipif(not WORKING, reason="no full sandbox works here")
def test_a_base_that_does_not_hold_is_no_failure_of_the_agent(folder):
    path = folder / "below/twice.yaml"
    path.write_text(path.read_text() + 'build: ["false"]\n')
    study = replace(load_study(folder / "study.yaml"), run_budget=RunBudget(retries=0))
    answer = {"files": {"below/src/twice.py": MODULE + "\n"}}
    (run,) = run_study(study, agent_bindings={"a": lambda task: answer}, executor="serial")
    assert run.status == RunStatus.BROKEN
    assert "the unchanged base can't be built" in run.error_info


def test_a_study_of_agents_that_write_code(folder, monkeypatch):
    """From YAML to tables: one agent gets it right, one wrong; both are results."""
    judge = partial(evaluate_candidates_sync, slots=1, settings=SETTINGS)
    monkeypatch.setattr(
        module, "evaluate_candidates_sync", lambda code, given, **_: judge(code, given)
    )

    def agent(task):
        assert task.problem.code.check[0].function == "twice:double"
        return {"diff": DIFF.format("2 * number" if task.run_spec.replicate == 1 else "number")}

    study = load_study(folder / "study.yaml")
    study = Study.from_dict({**study.to_dict(), "run_budget": {"replicates": 2}})
    object.__setattr__(study, "folder", folder)
    results = run_study(study, agent_bindings={"a": agent}, executor="serial")
    assert [each.status for each in results] == ["success", "success"]
    right, wrong = ({**row} for row in map(evaluated, results))
    assert (right["passed"], right["speedup"], right["adopt"]) == (1, None, 0)
    assert (wrong["passed"], wrong["speedup"], wrong["adopt"]) == (0, 1.0, 0)
    notes = results[1].evaluator_outputs[0]["notes_json"]
    assert notes["verdict"] == "rejected"
    assert notes["why"].startswith("different results: ")
    assert results[1].metrics["primary_outcome"] == 1.0


def evaluated(result):
    return {row["metric_name"]: row["metric_value"] for row in result.evaluator_outputs}


# -- what outputs come to --


def test_an_optimizer_says_itself_what_it_found():
    problem = BoundCode(code=None)
    rows = problem.evaluate(JudgedOutput(OPTIMIZED))
    assert values_of(rows) == {
        "speedup": 1.5,
        "speedup_low": 1.4,
        "speedup_high": 1.6,
        "confidence": 0.95,
        "adopt": True,
        "passed": 7,
        "candidates": 9,
        "unjudged": 2,
        "sessions": 16,
        "tokens": 1200,
        "cost_usd": 0.25,
    }
    assert {row["metric_name"]: row["metric_unit"] for row in read_verdict(rows)} == UNITS
    assert rows[0]["notes_json"] == {"best": "2.1"}


def test_an_output_that_only_claims_to_be_judged_is_judged(monkeypatch):
    """An agent proposes, a problem judges: figures in an output are worth nothing."""
    judgement = Judgement("answer", "d", Verdict.EQUIVALENT, Basis.TESTS)
    problem = judged_as(monkeypatch, judgement)
    for output in (OPTIMIZED.to_output(), unpack(pack(JudgedOutput(OPTIMIZED)))):
        values = values_of(problem.evaluate(output))
        assert (values["speedup"], values["candidates"]) == (None, 1)
    with pytest.raises(TypeError, match="holds nothing that could be judged"):
        problem.evaluate({"best": "2.1", "ratio": 100.0, "adopt": True})


def stored(output, rows):
    """A run's result with this output and these evaluations."""
    return SimpleNamespace(outputs=unpack(pack(output)), evaluator_outputs=read_verdict(rows))


OWN_ROWS = BoundCode(code=None).evaluate(JudgedOutput(OPTIMIZED))


@pytest.mark.parametrize(
    ("verdict", "rejection", "passed"),
    [
        (Verdict.EQUIVALENT, None, 7),
        (Verdict.REJECTED, Rejection(Reason.TESTS, "1 of 2 tests"), 6),
    ],
)
def test_of_an_optimizers_stored_output_only_the_best_is_judged_again(
    monkeypatch, verdict, rejection, passed
):
    given = []
    judgement = Judgement("answer", "d", verdict, Basis.TESTS, rejection=rejection)
    problem = judged_as(monkeypatch, judgement, given)
    rows = problem.rescore(stored(OPTIMIZED.to_output(), OWN_ROWS))
    values = values_of(rows)
    assert (values["candidates"], values["passed"], values["unjudged"]) == (9, passed, 2)
    assert rows[0]["notes_json"]["best"] == "2.1"
    assert given[0].diff == b"\xff\r\n", "the bytes, not the text that people see"
    assert has_judged(rows)
    plain = problem.rescore(stored({"diff": "x", "best": "2.1"}, ()))
    assert (has_judged(plain), values_of(plain)["candidates"]) == (False, 1)


def test_a_stored_winner_is_not_wrong_because_the_project_changed(monkeypatch):
    rejection = Rejection(Reason.UNUSABLE, "the diff doesn't apply")
    judgement = Judgement("answer", "", Verdict.REJECTED, rejection=rejection)
    problem = judged_as(monkeypatch, judgement)
    with pytest.raises(LabError, match="has changed since this was found: the diff doesn't"):
        problem.rescore(stored(OPTIMIZED.to_output(), OWN_ROWS))
    values = values_of(problem.evaluate(OPTIMIZED.to_output()))
    assert values["passed"] == 0, "another agent's own fault"


def test_an_optimizer_that_found_nothing_leaves_the_base():
    nothing = replace(OPTIMIZED, best=None, estimate=None, edits=None, cost_usd=None)
    values = values_of(BoundCode(code=None).evaluate(nothing.to_output()))
    assert values == values_of(BoundCode(code=None).evaluate(JudgedOutput(nothing)))
    assert values == values_of(
        BoundCode(code=None).rescore(
            stored(nothing.to_output(), BoundCode(code=None).evaluate(JudgedOutput(nothing)))
        )
    )
    assert [values[name] for name in ("speedup", "speedup_low", "speedup_high")] == [1.0] * 3
    assert (values["adopt"], values["candidates"], values["cost_usd"]) == (False, 9, None)


def test_a_figure_that_is_none_is_an_error():
    with pytest.raises(TypeError, match="`ratio` must be a number or None"):
        BoundCode(code=None).evaluate({**OPTIMIZED.to_output(), "ratio": "fast"})


# -- results of optimizations, as ledgers have them --


def test_a_result_is_read_back_unchanged():
    state = FileState(b"\xff", executable=True)
    edits = delivery.FileEdits(
        {"a.py": FileEdit(None, state), "b.py": FileEdit(state, None)}, b"\xff\n"
    )
    for result in (OPTIMIZED, replace(OPTIMIZED, edits=edits), OptimizationResult()):
        output = unpack(pack(result.to_output()))
        assert output["kind"] == "optimization"
        assert OptimizationResult.from_output(output) == result


def test_results_of_the_version_before_are_known_by_their_keys():
    output = OPTIMIZED.to_output()
    del output["kind"]
    assert OptimizationResult.from_output(output) == OPTIMIZED
    for other in ({}, {**output, "more": 1}, {"why_over": "", "best": None, "patch": ""}):
        assert OptimizationResult.from_output(other) is None


def test_a_candidate_that_was_timed(monkeypatch):
    estimate = Estimate(2.0, 1.8, 2.2, 10, 0.95)
    measured = Measurement(Verdict.FASTER, estimate, adopt=True)
    judgement = Judgement("answer", "d", Verdict.FASTER, Basis.TESTS, measurement=measured)
    rows = judged_as(monkeypatch, judgement).evaluate({"diff": "x", "tokens": 5})
    assert values_of(rows) == {
        "speedup": 2.0,
        "speedup_low": 1.8,
        "speedup_high": 2.2,
        "confidence": 0.95,
        "adopt": True,
        "passed": 1,
        "candidates": 1,
        "unjudged": 0,
        "sessions": 10,
        "tokens": 5,
        "cost_usd": None,
    }
    notes = {"verdict": "faster", "basis": "tests only", "digest": "d"}
    assert rows[0]["notes_json"] == notes


def test_a_lab_error_is_not_the_agents_failure(monkeypatch):
    rejection = Rejection(Reason.EVALUATOR, "no room")
    judgement = Judgement("answer", "d", Verdict.INCONCLUSIVE, rejection=rejection)
    with pytest.raises(LabError, match="no room"):
        judged_as(monkeypatch, judgement).evaluate({"diff": "x"})


def test_real_candidates_are_judged(problem):
    same = problem.evaluate({"files": {"below/src/twice.py": MODULE + "# the same\n"}})
    values = values_of(same)
    assert (values["passed"], values["speedup"], values["adopt"]) == (1, 1.0, False), same[0]


# -- answers --


@pytest.mark.parametrize(
    "output",
    [
        {"diff": "é"},
        {"diff": "é".encode()},
        {"candidate": "é"},
        {"candidate": {"diff": "é"}},
        {"diff": None, "candidate": Candidate("answer", diff="é".encode())},
        unpack(pack({"candidate": Candidate("mine", diff="é".encode())})),
    ],
)
def test_a_diff_is_found_wherever_it_is(output):
    assert read_answer(output) == Candidate("answer", diff="é".encode())


@pytest.mark.parametrize(
    "output",
    [
        {"files": {"a.py": "x"}},
        {"files": {"a.py": b"x"}},
        {"candidate": {"files": {"a.py": FileState(b"x")}}},
        unpack(pack({"candidate": Candidate("mine", files={"a.py": FileState(b"x")})})),
    ],
)
def test_files_are_found_wherever_they_are(output):
    assert read_answer(output) == Candidate("answer", files={"a.py": FileState(b"x")})


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ({"text": "done"}, "return a unified diff as `diff`"),
        ({"diff": 3}, "`diff` must be text, not int"),
        ({"files": "x"}, "`files` must be a mapping of paths to contents, not str"),
        ({"files": {"a.py": 3}}, "the content of `a.py` must be text, not int"),
        ({"candidate": {"patch": "x"}}, "return a unified diff as `diff`"),
    ],
)
def test_anything_else_is_refused(output, words):
    with pytest.raises(TypeError, match=words):
        read_answer(output)
