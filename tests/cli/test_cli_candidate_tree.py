"""`fairtrial show DIR [CANDIDATE]`: the tree of candidates, and one of them."""

import json
import sys
from dataclasses import replace

import pytest

from fairtrial import OutcomeSpec, RunBudget, Study, run_study
from fairtrial.arena import Estimate
from fairtrial.cli.candidate_tree import make_heading
from fairtrial.optimize import OptimizationResult
from fairtrial.study import open_results


def optimizer(task):
    """Tells of candidates as an optimizer does."""
    known = {"ratio": 1.5, "low": 1.4, "high": 1.6, "sessions": 6}
    one = {"candidate_id": "0.0", "lineage": 0, "step": 0, "kind": "initial", "name": "heap+set"}
    task.emit("candidate", text="--- a/x\n+++ b/x\n", **one, verdict="faster", **known)
    two = {"candidate_id": "0.1", "parent_id": "0.0", "lineage": 0, "step": 1, "kind": "refine"}
    task.emit("candidate", text="worse", **two, verdict="rejected", reason="tests: 1 fails")
    three = {"candidate_id": "1.0", "lineage": 1, "step": 0, "kind": "initial"}
    task.emit("candidate", **three, verdict="faster", duplicate_of="0.0", **known)
    result = OptimizationResult(best="0.0", estimate=Estimate(1.45, 1.3, 1.6, 6, 0.95))
    return {"answer": 1, **result.to_output()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lineage")
    for name, replicates in (("one", 1), ("two", 2)):
        study = Study(
            name,
            name,
            outcomes=(OutcomeSpec("answer"),),
            run_budget=RunBudget(replicates=replicates),
            output_dir=folder / name,
        )
        run_study(study, agent_bindings={"default-agent": optimizer}, show_progress=False)
    return folder


@pytest.fixture
def show(run):
    def show(*arguments):
        code, out, err = run("show", *arguments)
        return code, out + err

    return show


def test_without_a_name_the_tree_is_shown(show, folder):
    code, out = show(folder / "one")
    assert code == 0
    run, *lines = out.splitlines()
    assert run.startswith("run-")
    assert lines == [
        "  0.0    initial  faster  1.50x [1.40, 1.60]  heap+set  "
        "<- the best: 1.45x [1.30, 1.60] when measured again",
        "    0.1    refine   rejected  tests: 1 fails",
        "  1.0    initial  faster  same as 0.0",
    ]
    code, out = show(folder / "one", "--json")
    assert [row["candidate_id"] for row in json.loads(out)] == ["0.0", "0.1", "1.0"]


def test_on_a_terminal_a_row_that_is_too_long_is_folded_between_words(show, folder, monkeypatch):
    wide = show(folder / "one")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    _, out = show(folder / "one")
    assert max(map(len, out.splitlines())) <= 60
    assert out.split() == wide.split()
    assert "\n         <- the best: 1.45x [1.30, 1.60] when measured again\n" in out


def test_candidates_that_were_not_confirmed_are_reported(show, folder):
    """What was said of it in the end stands beside what was said of it first."""
    why = "measured again, in fresh sessions, it is equivalent, 1.00x [0.98, 1.02]"
    with open_results(folder / "one") as results:
        (result,) = results
        result = replace(result, outputs={**result.outputs, "out": {"1.0": why}})
        heading = make_heading(result, results.study, {})
    assert heading.outcomes["1.0"] == f"<- out: {why}"
    assert heading.outcomes["0.0"].startswith("<- the best: 1.45x")
    assert make_heading(replace(result, outputs={}), results.study, {}).outcomes == {}


def test_of_several_runs_each_says_what_it_was(show, folder):
    code, out = show(folder / "two")
    assert code == 0
    heads = [line for line in out.splitlines() if line.startswith("run-")]
    assert [head.partition("  ")[2] for head in heads] == [
        "default-agent, default-problem, replicate 1",
        "default-agent, default-problem, replicate 2",
    ]


def test_a_candidate_is_shown_with_its_diff(show, folder):
    code, out = show(folder / "one", "0.0")
    assert code == 0
    assert "verdict       faster" in out
    assert "ratio         1.5\n" in out
    assert out.endswith("--- a/x\n+++ b/x\n")
    assert json.loads(show(folder / "one", "0.1", "--json")[1])["diff"] == "worse"


def test_of_several_runs_one_has_to_be_named(show, folder):
    code, out = show(folder / "two", "0.1")
    assert code == 2
    assert "several runs have a '0.1'" in out
    run = out.partition("run-")[2].partition("/")[0]
    code, out = show(folder / "two", f"run-{run}/0.1")
    assert code == 0
    assert "tests: 1 fails" in out


def test_what_is_not_there_is_reported(show, folder, tmp_path):
    code, out = show(folder / "one", "9.9")
    assert code == 2
    assert "there is no candidate '9.9'" in out
    study = Study("none", "none", outcomes=(OutcomeSpec("answer"),), output_dir=tmp_path / "none")
    run_study(study, agent_bindings={"default-agent": lambda task: {}}, show_progress=False)
    code, out = show(tmp_path / "none")
    assert code == 0
    assert "1 of 1 run done" in out
    with open_results(tmp_path / "none") as results:
        assert results[0].run_id[:12] in out


def test_a_study_without_candidates_lists_its_runs_and_why_they_failed(show, tmp_path):
    def fail_sometimes(task):
        if task.run_spec.replicate > 1:
            raise ValueError("no reply")
        return {"answer": 1}

    study = Study(
        "some",
        "some",
        outcomes=(OutcomeSpec("answer"),),
        run_budget=RunBudget(replicates=3),
        output_dir=tmp_path / "some",
    )
    run_study(study, agent_bindings={"default-agent": fail_sometimes}, show_progress=False)
    with open_results(tmp_path / "some") as results:
        run_id = next(result.run_id for result in results if result.error_info)
    code, out = show(tmp_path / "some")
    assert code == 0
    assert "ValueError: no reply" in next(line for line in out.splitlines() if run_id[:12] in line)


def test_what_a_candidate_writes_can_t_fool_whoever_reads_its_diff(show, tmp_path, monkeypatch):
    diff = "--- a/x\n+++ b/x\n+\tevil()\x1b[2K\x1b[1A\n+\u202efine\n"

    def hiding(task):
        print("\x1b[2Jgone")
        task.emit("candidate", text=diff, candidate_id="0.0", lineage=0, step=0, kind="initial")
        if task.replicate > 1:
            raise ValueError("\x1b[2Jgone")
        return {"answer": 1, "patch": diff * 20}

    run_study(
        Study("s", "s", outcomes=(OutcomeSpec("answer"),), output_dir=tmp_path / "out"),
        agent_bindings={"default-agent": hiding},
        show_progress=False,
    )
    assert "\n+\u202efine\n" in show(tmp_path / "out", "0.0")[1]  # into a file as it is
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    for what in ("0.0", "run-"):
        code, out = show(tmp_path / "out", what)
        assert code == 0
        assert "\x1b" not in out
        assert "\u202e" not in out
    assert "\n+\tevil()\\x1b[2K\\x1b[1A\n" in show(tmp_path / "out", "0.0")[1]


def test_a_run_is_shown_without_whole_files_on_its_lines(show, folder, tmp_path):
    def writes(task):
        task.emit("candidate", text="--- a/x\n+++ b/x\n" + "+line\n" * 99, candidate_id="0.0")
        return {"answer": 1, "patch": "line " * 99}

    run_study(
        Study("s", "s", outcomes=(OutcomeSpec("answer"),), output_dir=tmp_path / "out"),
        agent_bindings={"default-agent": writes},
        show_progress=False,
    )
    _, out = show(tmp_path / "out", "run-")
    (event,) = (line for line in out.splitlines() if "  candidate  " in line)
    assert "  candidate  --- a/x\\n+++ b/x\\n+line" in event
    assert event.endswith('...  {"candidate_id":"0.0"}')
    assert "+line" not in out.partition(event)[2]
    assert "(495 characters; --json prints them all)" in out
    assert "line " * 99 in show(tmp_path / "out", "run-", "--json")[1]
