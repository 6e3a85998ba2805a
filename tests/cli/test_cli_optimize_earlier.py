"""`fairtrial optimize` with what an earlier version left: its ledgers, its names of options."""

import csv
import json
import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest
from optimize_kit import WORKING, make_repository

from fairtrial import AgentBinding, load_problem
from fairtrial.cli.optimize_study import AGENT, make_study
from fairtrial.cli.resume_command import resume_command
from fairtrial.optimize import OptimizationResult
from fairtrial.optimize.journal import problem_fingerprint
from fairtrial.study.runner import RunSettings, execute_study

PROBLEM = {
    "problem_id": "total",
    "editable": ["src/*.py"],
    "check": [{"command": ["false"]}],  # nothing may be run any more
    "bench": [{"name": "total", "command": ["true"]}],
}
OPTIONS = {
    "proposer": "codemod",
    "proposer_options": {},
    "lineages": 3,
    "max_candidates": 16,
    "repair": True,
    "slots": 0,
    "max_seconds": None,
    "max_cost_usd": None,
    "unsandboxed": not WORKING,
}


def as_before(study):
    """The study as the version before described it."""
    options = {("lines" if name == "lineages" else name): OPTIONS[name] for name in OPTIONS}
    return replace(study, agents={AGENT: AgentBinding(use="optimise", options=options)})


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a finished optimization of the version before, which found nothing."""
    monkeypatch.chdir(tmp_path)
    make_repository(
        tmp_path / "code", {"src/mod.py": "x = 1\n", "problem.yaml": json.dumps(PROBLEM)}
    )
    path = tmp_path / "code/problem.yaml"
    problem = load_problem(path)

    def optimise(task):
        known = {"candidate_id": "0.0", "line": 3, "step": 0, "kind": "initial"}
        task.emit("candidate", text="+x", **known, verdict="rejected")
        result = OptimizationResult(problem=problem_fingerprint(problem), why_over="2 lines: done")
        output = result.to_output()
        del output["kind"]
        return output

    study = as_before(make_study(path, "total", OPTIONS, 0))
    settings = RunSettings(
        output_dir=tmp_path / "out", agent_bindings={AGENT: optimise}, executor="serial"
    )
    execute_study(study, settings).close()
    return tmp_path


def test_a_finished_result_is_shown_without_another_search(run, place):
    words = ["optimize", "code/problem.yaml", "--lineages", "3", "--output", "out"]
    code, out, err = run(*words, *([] if WORKING else ["--unsandboxed"]))
    assert code == 0, err
    assert err.startswith("found earlier, for the project as it was then")
    assert out.startswith("0 judged, 0 passed their checks; why it ended: 2 lines: done\n")


def test_other_options_are_another_optimization(run, place):
    words = ["optimize", "code/problem.yaml", "--lineages", "4", "--output", "out"]
    code, _, err = run(*words, *([] if WORKING else ["--unsandboxed"]))
    assert code == 3
    assert "agents.optimiser.options.lineages: 3 -> 4" in err


def test_its_tables_have_the_lineage(run, place):
    assert run("export", "out")[0] == 0
    with (place / "out/candidates.csv").open(newline="") as file:
        assert [row["lineage"] for row in csv.DictReader(file)] == ["3"]
    assert run("show", "out")[0] == 0


def test_it_is_resumed_by_the_present_names(tmp_path):
    study = as_before(make_study(tmp_path / "p.yaml", "total", OPTIONS, 7))
    command = resume_command(tmp_path, study, SimpleNamespace(last_session=None))
    words = shlex.split(command)
    assert words[:2] == ["fairtrial", "optimize"]
    assert words[words.index("--lineages") + 1] == "3"
    assert words[words.index("--seed") + 1] == "7"


@pytest.mark.parametrize(
    "changes",
    [
        {"study_id": "optimize-other"},
        {"agents": {"mine": AgentBinding(use="optimize")}, "agent_specs": ("mine",)},
        {"agents": {AGENT: AgentBinding(use="another")}},
    ],
)
def test_a_study_of_the_users_own_is_resumed_as_a_study(tmp_path, changes):
    study = replace(make_study(tmp_path / "p.yaml", "total", OPTIONS, 0), **changes)
    summary = SimpleNamespace(last_session=None)
    assert resume_command(tmp_path, study, summary).startswith("fairtrial resume ")
