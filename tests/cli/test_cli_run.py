"""`fairtrial run`, `resume`, `retry`: output, files, and exit codes."""

import csv
import errno
import json
import math
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cli_kit import AGENTS, STUDY, SUMMARY
from run_kit import make_study, run as run_small, stable_tables

from fairtrial import open_results
from fairtrial.study import load_study, run_study
from fairtrial.study.runner import control, progress, run_loop
from fairtrial.study.tables.integrity import validate_artifacts


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Print progress at the end only, however slow the machine is."""
    monkeypatch.setattr(progress, "LINE_INTERVAL_S", math.inf)


@pytest.fixture
def study(write):
    """Write a study whose agent `a` is one of those above; returns its path."""
    write(AGENTS, "my_agents.py")

    def study(agent="add", name="study.yaml", **fields):
        agents = {"a": agent if isinstance(agent, dict) else f"my_agents:{agent}"}
        return write({**STUDY, "agents": agents, **fields}, name)

    return study


def runs_in(folder="out"):
    with Path(folder, "runs.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# -- how it ends --


def test_a_run_prints_its_outcome_and_its_folder(run, study, tmp_path):
    code, out, err = run("run", study())
    assert code == 0
    assert out.splitlines() == [
        "6 of 6 runs done: 6 success",
        "results: out",
        "next:    fairtrial report out",
    ]
    assert err == "6/6 runs\n"
    assert validate_artifacts(tmp_path / "out") == []
    assert [row["primary_outcome"] for row in runs_in()] == ["11", "11", "12", "12", "13", "13"]


def test_a_run_as_json(run, study, tmp_path):
    code, out, err = run("run", study("cost"), "--json", "--no-progress")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert set(summary) == SUMMARY | {
        "ok", "exit_code", "study_id", "stopped", "stop_reason", "output_dir",
    }  # fmt: skip
    expected = {
        "ok": True,
        "exit_code": 0,
        "study_id": "s",
        "stopped": None,
        "counts": {"success": 6},
        "planned": 6,
        "done": 6,
        "pending": 0,
        "cost_usd": 3.0,
        "tokens": 42,
        "is_running": False,
        "output_dir": f"{tmp_path}/out",
    }
    assert {key: summary[key] for key in expected} == expected
    assert summary["last_session"]["ended_how"] == "done"


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_failed_runs_are_exit_5_unless_they_are_allowed(run, study, flag):
    code, out, _ = run("run", study("fail"), *flag)
    assert code == 5
    if flag:
        assert json.loads(out)["ok"] is False
        assert json.loads(out)["failures"] == {"exception": 6}
    else:
        assert "6 of 6 runs done: 6 failed" in out
        assert re.search(r"run-\w+ and 5 more failed, exception: ValueError: not today", out)
        assert "fairtrial show out run-" in out
    assert run("run", study("fail"), "--resume", "--allow-failures", *flag)[0] == 0
    assert {row["error_info"] for row in runs_in()} == {"ValueError: not today"}


def test_the_failure_shown_is_the_first_of_the_plan(run, study):
    _, out, _ = run("run", study("fail"))
    shown = re.findall(r"^  (run-\w+) and 5 more", out, re.M)
    assert shown == [runs_in()[0]["run_id"]]


def test_a_budget_that_is_used_up_is_exit_6_and_says_how_to_continue(run, study):
    path = study("cost", run_budget={"replicates": 2, "max_cost_usd": 1.0})
    code, out, err = run("run", path)
    assert code == 6
    assert "2 of 6 runs done: 2 success ($1.00, 14 tokens)" in out
    assert "a budget is used up; raise it" in err
    assert "4 runs to go: fairtrial resume out --set run_budget.max_cost_usd=..." in err
    code, out, _ = run("resume", "out", "--set", "run_budget.max_cost_usd=9", "--json")
    assert code == 0
    assert json.loads(out)["done"] == 6


def test_a_cancelled_study_is_exit_130(run, study, monkeypatch):
    monkeypatch.setattr(control, "POLL_S", 0.0)  # or more runs than these may be done by then
    monkeypatch.setattr(run_loop, "POLL_S", 0.0)
    code, _, err = run("run", study("cancel"), "--executor", "serial")
    assert code == 130
    assert "cancelled" in err
    assert re.search(r"[56] runs to go: fairtrial resume", err)  # the first may have been cut short
    code, out, _ = run("resume", "out", "--limit", 1, "--json")
    assert code in (0, 130)
    assert json.loads(out)["planned"] == 6


def test_fail_fast_is_exit_5_and_says_so(run, study):
    path = study("fail", run_budget={"replicates": 2, "fail_fast": True})
    code, out, err = run("run", path)
    assert code == 5
    assert "1 of 6 runs done: 1 failed" in out
    assert "stopped at the first failure, as fail_fast asks" in err


def test_results_that_are_there_are_exit_3_with_what_to_do(run, study):
    run("run", study())
    before = stable_tables("out")
    code, out, err = run("run", study())
    assert (code, out) == (3, "")
    assert "holds results of this study already; continue with --resume" in err
    code, out, _ = run("run", study(), "--json")
    assert code == 3
    assert json.loads(out)["ok"] is False
    assert stable_tables("out") == before


def test_a_changed_study_is_exit_3_with_a_diff_and_can_be_accepted(run, study):
    run("run", study())
    changed = study(factors=[{"name": "x", "levels": [2, 3]}])
    code, _, err = run("run", changed, "--resume")
    assert code == 3
    assert "factors[x].levels[1]: removed" in err
    assert "--resume --accept-changes" in err
    code, out, err = run("resume", changed, "--accept-changes")
    assert code == 0
    assert "4 of 4 runs done" in out
    assert "2 results of runs that are no longer in the plan left out" in err


def test_repeated_failures_are_exit_8_with_both_ways_on(run, study):
    path = study("fail", run_budget={"replicates": 20})
    code, out, err = run("run", path, "--no-progress")
    assert code == 8
    assert "10 of 60 runs done" in out
    assert "the first 10 runs of 'a' in this session all failed in the same way" in err
    assert "fairtrial retry out --failed" in err
    assert "fairtrial resume out --keep-going" in err
    assert "paused: the first runs of an agent all failed" in run("status", "out")[1]
    assert run("resume", path, "--keep-going", "--no-progress")[0] == 5


def test_a_ceiling_names_both_figures_and_how_to_go_on(run, study):
    code, _, err = run("run", study("cost"), "--set", "run_budget.max_cost_usd=1.2")
    assert code == 6
    assert "$1.00 spent, $0.50 reserved for the next run of 'a', of $1.20" in err
    assert "--set run_budget.max_cost_usd=..." in err


# -- bad input --


BAD = {
    "executor": (["--executor", "thread"], "executor: there is no executor 'thread'; did you mean"),
    "parallel": (["--parallel", 0], "parallelism: must be 1 or more, got 0"),
    "limit": (["--limit", 0], "limit: must be 1 or more, got 0"),
    "only": (["--only", "y == 1"], "only: there is no 'y'; known: x, agent_id, problem_id"),
    "only misspelled": (["--only", "replicat == 1"], "'replicat'; did you mean 'replicate'?"),
    "only syntax": (["--only", "x =="], "only"),
    "set": (["--set", "run_budget.replicats=3"], "did you mean 'replicates'?"),
    "set value": (["--set", "run_budget.replicates=none"], "expected a whole number"),
    "set form": (["--set", "replicates"], "not of the form path=value"),
    "number": (["--limit", "few"], "few"),
}


def test_workers_that_cannot_start_are_exit_4_with_advice(run, study, monkeypatch):
    def refuse():
        raise PermissionError(errno.EPERM, "not permitted")

    with monkeypatch.context() as patch:
        patch.setattr("os.fork", refuse)
        patch.setattr("sys.platform", "linux")
        code, _, err = run("run", study(), "--parallel", 2)
    assert code == 4
    assert "no worker process can be started" in err
    assert "lower --parallel" in err
    assert run("resume", study())[0] == 0


def test_a_deleted_working_directory_is_reported_as_an_error_not_as_a_bug(
    run, study, tmp_path, monkeypatch
):
    path, here = study(), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    code, _, err = run("run", Path("..", path.name))
    monkeypatch.chdir(tmp_path)
    assert code == 2
    assert "change to another one" in err


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_exit_2_and_make_nothing(run, study, case):
    options, says = BAD[case]
    code, out, err = run("run", study(), *options)
    assert (code, out) == (2, "")
    assert says in err
    assert not Path("out").exists()
    code, out, _ = run("run", study(), *options, "--json")
    assert code == 2
    assert json.loads(out)["ok"] is False


def bound(use, **options):
    return {"agents": {"a": {"use": use, "options": options}}}


UNBINDABLE = {
    "no such module": (bound("my_agent:add"), "agents.a.use: module 'my_agent' can't be imp"),
    "no such name": (bound("my_agents:ad"), "agents.a.use: module 'my_agents' has no 'ad'; "),
    "not callable": (bound("my_agents:NUMBER"), "agents.a.use: 'my_agents:NUMBER' is not"),
    "no plug-in": (bound("add"), "a function of your own is written module:callable"),
    "wrong option": (bound("my_agents:add", trem=1), "agents.a.options.trem"),
    "missing option": (bound("my_agents:Adder"), "agents.a"),
    "unbound agent": ({"agent_specs": ["b"]}, "nothing is bound to the agent 'b'; "),
    "unbound problem": ({"problem_ids": ["q"]}, "nothing is bound to the problem 'q'; "),
    "evaluator": (
        {"problems": {"p": {"brief": "b", "evaluator": "my_agents:scor"}}},
        "problems.p.evaluator: module 'my_agents' has no 'scor'; did you mean 'score'?",
    ),
    "runner": ({"condition_runner": "my_agents:run"}, "condition_runner: module 'my_agents' has"),
}


@pytest.mark.parametrize("case", UNBINDABLE)
@pytest.mark.parametrize("how", ["run", "dry-run"])
def test_what_cannot_be_bound_is_said_before_anything_runs(run, study, case, how):
    fields, says = UNBINDABLE[case]
    code, out, err = run("run", study(**fields), *(["--dry-run"] if how == "dry-run" else []))
    assert (code, out) == (2, "")
    assert says in err
    assert not Path("out").exists()


def test_all_that_cannot_be_bound_is_one_report(run, study):
    path = study(agent_specs=["a", "b"], problem_ids=["q"], agents={"a": "nowhere:add"})
    code, _, err = run("run", path, "--limit", 0)
    assert code == 2
    for part in ("agents.a.use", "the agent 'b'", "the problem 'q'", "limit"):
        assert part in err
    assert "4 mistakes" in err


def test_a_misspelt_severity_is_refused(run, study):
    rule = {"constraint_id": "c", "expression": "x > 1", "severity": "eror"}
    code, _, err = run("run", study(constraints=[rule]))
    assert code == 2
    assert "severity" in err


def test_two_equal_levels_are_refused(run, study):
    code, _, err = run("run", study(factors=[{"name": "x", "levels": [1, 1]}]))
    assert code == 2
    assert "factors[0].levels[1]" in err


# -- a dry run --


def test_a_dry_run_says_what_would_run_and_makes_nothing(run, study):
    code, out, _ = run("run", study(), "--dry-run", "--parallel", 3)
    assert code == 0
    assert out == "s: 6 runs would go to out (processes, 3 at once); nothing was run\n"
    code, out, _ = run("run", study(), "--dry-run", "--json", "--output", "there")
    assert json.loads(out) == {
        "ok": True,
        "study_id": "s",
        "planned_runs": 6,
        "executor": "serial",
        "parallel": 1,
        "output_dir": "there",
    }
    assert {path.name for path in Path().iterdir()} <= {"study.yaml", "my_agents.py", "__pycache__"}


# -- agents and problems of a file (spec 16) --


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("add", ["11", "12", "13"]),
        ({"use": "my_agents:add", "options": {"term": 100}}, ["101", "102", "103"]),
        ({"use": "my_agents:Adder", "options": {"term": 5}}, ["6", "7", "8"]),
    ],
)
def test_options_are_keyword_arguments(run, study, agent, expected):
    assert run("run", study(agent, run_budget={}))[0] == 0
    assert [row["primary_outcome"] for row in runs_in()] == expected


def test_agents_may_be_named_by_a_factor(run, study):
    fields = {
        "factors": [{"name": "agent", "levels": ["ten", "more"]}, {"name": "x", "levels": [1]}],
        "agent_specs": [],
        "agents": {
            "ten": "my_agents:add",
            "more": {"use": "my_agents:Adder", "options": {"term": 7}},
        },
        "run_budget": {},
    }
    assert run("run", study(**fields))[0] == 0
    assert [(row["agent_id"], row["primary_outcome"]) for row in runs_in()] == [
        ("ten", "11"),
        ("more", "8"),
    ]


def test_a_condition_runner_of_a_file(run, study):
    assert run("run", study(condition_runner="my_agents:runner"))[0] == 0
    assert {row["agent_id"] for row in runs_in()} == {""}


def test_two_studies_may_each_have_their_own_agents_of_one_name(run, tmp_path):
    for name, term in (("one", 1), ("two", 2)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "agents.py").write_text(f"def agent(task): return {{'x': {term}}}\n")
        fields = {**STUDY, "agents": {"a": "agents:agent"}, "problems": {}, "problem_ids": []}
        (folder / "study.json").write_text(json.dumps(fields))
        assert run("run", folder / "study.json", "--output", folder / "out")[0] == 0
    for name, term in (("one", 1), ("two", 2)):
        with open_results(tmp_path / name / "out") as results:
            assert {result.outputs["x"] for result in results} == {term}
    # And in one process without the command.
    loaded = [load_study(tmp_path / name / "study.json") for name in ("one", "two")]
    values = [
        {result.outputs["x"] for result in run_study(study, checkpoint=False)} for study in loaded
    ]
    assert values == [{1}, {2}]


# -- progress and what agents print (spec 23) --


def test_a_log_gets_lines_and_nothing_of_what_agents_print(run, study):
    code, out, err = run("run", study(), "--progress")
    assert code == 0
    assert err == "6/6 runs\n"
    assert "agents print" not in out
    with open_results("out") as results:
        assert [result.stdout for result in results][:3] == ["agents print 1\n"] * 2 + [
            "agents print 2\n"
        ]
    _, out, err = run("run", study(), "--no-progress", "--output", "quiet")
    assert err == ""
    assert out.startswith("6 of 6 runs done")


def test_the_bar_on_a_terminal_ends_with_all_runs_and_gives_the_cursor_back(study, tmp_path):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fairtrial", "run", study(), "--parallel", "2"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(ours)
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait() == 0
    assert out.startswith(b"6 of 6 runs done: 6 success\n")
    assert shown.endswith(b"\x1b[?25h") or shown.rstrip().endswith(b"\x1b[?25h")
    lines = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode().replace("\r", "\n").split("\n")
    assert [line for line in lines if line.strip()][-1].endswith("6/6 runs")
    assert "agents print" not in shown.decode()
    assert "Traceback" not in shown.decode()


def test_a_reader_that_leaves_early_costs_no_run(study, tmp_path):
    command = f"{shlex.quote(sys.executable)} -m fairtrial run {study()} --no-progress"
    pipeline = f"{command} | true; exit ${{PIPESTATUS[0]}}"
    shown = subprocess.run(
        ["bash", "-c", pipeline], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in shown.stderr
    assert shown.returncode in (0, 141)
    assert len(open_results(tmp_path / "out")) == 6


# -- going on --


def test_resume_on_an_empty_directory_simply_starts(run, study):
    assert run("run", study(), "--resume")[0] == 0
    assert run("resume", study(), "--output", "other")[0] == 0
    assert len(runs_in()) == len(runs_in("other")) == 6


def test_a_pilot_is_marked_as_one_and_can_be_continued(run, study):
    code, out, err = run("run", study(), "--only", "x != 2 and replicate == 1", "--limit", 1)
    assert code == 0
    assert "1 of 6 runs done" in out
    assert "this was a pilot: 5 runs to go: fairtrial resume out" in err
    code, out, err = run("resume", "out", "--limit", 2)
    assert "3 of 6 runs done" in out
    code, out, err = run("resume", "out")
    assert code == 0
    assert "6 of 6 runs done: 6 success" in out
    assert "to go" not in err
    whole = run("run", study(), "--output", "whole")
    assert whole[0] == 0
    assert stable_tables("out") == stable_tables("whole")


def test_a_study_continues_from_its_ledger_without_its_file(study, tmp_path):
    """In a new process that has not imported the study's modules, in another folder."""
    path = study()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def fairtrial(folder, *arguments):
        return subprocess.run(
            [sys.executable, "-m", "fairtrial", *map(str, arguments)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    assert fairtrial(tmp_path, "run", "study.yaml", "--limit", 2).returncode == 0
    path.unlink()
    (tmp_path / "out").rename(tmp_path / "moved")
    shown = fairtrial(elsewhere, "resume", "../moved")
    assert shown.returncode == 0, shown.stderr
    assert "6 of 6 runs done: 6 success" in shown.stdout
    assert validate_artifacts(tmp_path / "moved") == []


def test_a_study_continues_from_its_ledger_without_its_matrix(run, study, write):
    matrix = write("x\n1\n3\n", "matrix.csv")
    design = {"kind": "custom_matrix", "matrix_path": "matrix.csv"}
    run("run", study(design_spec=design), "--limit", 1)
    matrix.unlink()
    code, out, _ = run("resume", "out")
    assert code == 0
    assert "4 of 4 runs done" in out


def test_a_study_that_python_bound_says_what_is_missing(run, tmp_path):
    study = make_study(tmp_path / "out")
    run_small(study, limit=1)
    code, _, err = run("resume", "out")
    assert code == 2
    assert "nothing is bound to the agent 'a'" in err
    assert "agent_bindings={'a': ...}" in err


def test_a_file_or_a_directory_can_be_resumed_but_nothing_else(run, study, tmp_path):
    code, _, err = run("resume", "nowhere")
    assert code == 2
    assert "nowhere" in err
    (tmp_path / "empty").mkdir()
    code, _, err = run("resume", "empty")
    assert code == 3
    assert "empty holds no study" in err
    run("run", study(), "--limit", 1)
    code, _, err = run("resume", "out", "--output", "other")
    assert code == 2
    assert "--output goes with a study file" in err


def test_values_can_be_set(run, study):
    code, out, _ = run(
        "run",
        study(),
        *("--set", "run_budget.replicates=1", "--set", "factors.x.levels=[5, 6]"),
        *("--set", "agents.a.options={term: 1000}", "--set", "output_dir=set"),
    )
    assert code == 0
    assert "2 of 2 runs done" in out
    assert [row["primary_outcome"] for row in runs_in("set")] == ["1005", "1006"]


def test_further_tables_can_be_asked_for(run, study):
    assert run("run", study(), "--sqlite", "--parquet")[0] == 0
    assert Path("out/study.sqlite").exists()
    assert Path("out/runs.parquet").exists()


# -- retry --


def test_retry_runs_again_what_failed_and_nothing_else(run, study):
    run("run", study("fail_at_2"), "--only", "x != 3")
    code, out, _ = run("retry", "out")
    assert code == 5
    assert "4 of 6 runs done: 2 success, 2 failed" in out
    assert "again:   fairtrial retry out --failed" in out
    Path("mended").touch()
    code, out, _ = run("retry", "out", "--failed", "--limit", 1, "--json")
    assert code == 5
    assert json.loads(out)["counts"] == {"failed": 1, "success": 3}
    code, out, err = run("retry", "out", "--failed")
    assert code == 0
    assert "4 of 6 runs done: 4 success" in out
    assert "again:" not in out
    assert "2 runs to go: fairtrial resume" in err
    assert [row["attempt"] for row in runs_in()] == ["1", "1", "2", "2"]


def test_retry_of_failed_runs_says_that_claims_about_them_become_exploratory(run, study):
    claim = {"hypothesis_id": "h", "label": "l", "statement": "s", "independent_vars": ["x"]}
    outcome = {"name": "score", "source_table": "evaluations", "primary": True}
    plan = {"analysis_plan_id": "p", "hypothesis_ids": ["h"], "tests": ["anova"]}
    path = study(
        "fail_at_2",
        outcomes=[outcome],
        hypotheses=[{**claim, "dependent_vars": ["score"]}],
        analysis_plans=[plan],
    )
    assert run("run", path)[0] == 5
    assert "become exploratory" not in run("retry", "out")[2]
    assert "become exploratory" in run("retry", "out", "--failed")[2]


def test_retry_wants_a_directory_with_a_study(run, study):
    code, _, err = run("retry", study().parent)
    assert code == 3
    assert "holds no study" in err


# -- where it is --


@pytest.mark.parametrize("name", ["with space", "ünïcødé-ヨ", "it's", "-dash", "a%20b?c#d"])
def test_odd_paths_work_and_are_shown_so_that_they_can_be_pasted(run, study, tmp_path, name):
    (tmp_path / name).mkdir()
    path = study(name=f"{name}/study.yaml")
    (tmp_path / name / "my_agents.py").write_text(AGENTS)
    output = tmp_path / name / "out"
    code, _, err = run("run", path, "--output", output, "--limit", 5)
    assert code == 0
    command = re.search(r"to go: (.*)", err).group(1)
    program, *arguments = shlex.split(command)
    assert program == "fairtrial"
    code, out, _ = run(*arguments)
    assert code == 0
    shown = shlex.split(re.search(r"next: +(.*)", out).group(1))[-1]
    assert Path(shown).resolve() == output
    assert not shown.startswith("-")
    code, out, _ = run("status", output, "--json")
    assert json.loads(out)["done"] == 6


def test_a_directory_that_cannot_be_made_is_exit_3(run, study):
    Path("file").touch()
    code, _, err = run("run", study(), "--output", "file/out")
    assert code == 3
    assert "can't be made" in err


def test_files_that_fairtrial_did_not_write_are_not_replaced(run, study):
    Path("out").mkdir()
    Path("out/runs.csv").write_text("mine\n")
    code, _, err = run("run", study())
    assert code == 2
    assert "was not written by this study" in err
    assert Path("out/runs.csv").read_text() == "mine\n"
    assert not Path("out/ledger.sqlite").exists()


def test_a_retry_that_comes_to_nothing_takes_nothing_away(run, study, tmp_path):
    path = study("fail_at_2", run_budget={"replicates": 2})
    assert run("run", path)[0] == 5
    before = runs_in()
    # Every result is there while nothing has replaced it: the budget lets nothing start.
    ledger = sqlite3.connect("out/ledger.sqlite")
    ledger.execute("UPDATE results SET cost_usd = 1.0")
    ledger.commit()
    ledger.close()
    budget = ("--set", "run_budget.max_cost_usd=1")
    assert run("retry", "out", "--failed", *budget)[0] == 6
    statuses = [row["status"] for row in runs_in()]
    assert statuses == [row["status"] for row in before]
    assert statuses.count("failed") == 2
    Path("mended").touch()
    assert run("retry", "out", "--failed", "--set", "run_budget.max_cost_usd=100")[0] == 0
    assert {row["status"] for row in runs_in()} == {"success"}
    assert sorted({row["attempt"] for row in runs_in()}) == ["1", "2"]


def test_an_expression_that_fails_for_a_condition_is_refused_before_anything_is_made(run, study):
    code, _, err = run("run", study(), "--only", "x > 'a'")
    assert code == 2
    assert err.startswith("error: only: the expression `x > 'a'` fails for")
    assert not Path("out").exists()


def test_messages_say_what_to_do_instead(run, study):
    path = study()
    assert run("run", path)[0] == 0
    for arguments, expected, message in (
        (("rescore", "out", "--evaluator", "my_agents"), 2, "expected module:callable"),
        (("export", "out", "--out", path), 2, "is a file; name a directory"),
        (("show", "out", "run-zz"), 2, "runs.csv has the ids"),
        (("run", path, "--output", f"{path}/x"), 3, "choose another --output"),
    ):
        code, _, err = run(*arguments)
        assert (code, message in err, "Traceback" in err) == (expected, True, False), err


def test_the_rest_is_to_be_run_the_way_that_it_was_begun(run, study):
    options = ("--executor", "threads", "--parallel", "2")
    _, _, err = run("run", study(), "--limit", "1", *options)
    assert "5 runs to go: fairtrial resume out --executor threads --parallel 2" in err


def last_session(folder="out"):
    with open_results(folder) as results:
        last = results.reader.summary().last_session
        return last["executor"], last["slots"]


@pytest.mark.parametrize("command", ["resume DIR", "resume STUDY", "run --resume", "retry"])
def test_a_resumed_study_uses_the_settings_of_the_last_session(run, study, command):
    path = study()
    run("run", path, "--limit", "1", "--executor", "threads", "--parallel", "2")
    target = {"resume STUDY": path, "run --resume": path}.get(command, "out")
    more = ["--resume"] if command.startswith("run") else []
    code, _, err = run(command.split()[0], target, *more, "--limit", "1", "--no-progress")
    assert code == 0
    assert err.splitlines()[0] == "resuming with --executor threads --parallel 2, as last time"
    assert last_session() == ("threads", 2)


def test_options_take_precedence_over_the_settings_of_the_last_session(run, study):
    run("run", study(), "--limit", "1", "--parallel", "2")
    _, _, err = run("resume", "out", "--limit", "1", "--parallel", "3", "--no-progress")
    assert "as last time" not in err
    assert last_session() == ("processes", 3)
    _, _, err = run("resume", "out", "--limit", "1", "--executor", "serial", "--no-progress")
    assert "as last time" not in err
    assert last_session() == ("serial", 1)


def test_what_the_study_says_of_parallelism_may_change(run, study):
    budget = {"replicates": 2, "parallelism": 2}
    run("run", study(run_budget=budget), "--limit", "1")
    assert last_session() == ("processes", 2)
    _, _, err = run("resume", study(run_budget={**budget, "parallelism": 1}), "--no-progress")
    assert err == ""
    assert last_session() == ("serial", 1)


@pytest.mark.parametrize(
    ("only", "hint"),
    [
        ("x == 4", "'x' never is the number 4; known: 1, 2, 3"),
        ("agent_id == 'b'", "'agent_id' never is the text 'b'; known: a"),
        ("replicate == 3", ""),
        ("x == 1 and x == 2", ""),
    ],
)
def test_a_pilot_of_no_run_at_all_is_refused_and_leaves_nothing(run, study, only, hint):
    code, out, err = run("run", study(), "--only", only)
    assert (code, out) == (2, "")
    assert err == f"error: only: no run of the plan meets `{only}`{f'; {hint}' if hint else ''}\n"
    assert not Path("out").exists()


def test_a_pilot_is_warned_of_a_value_that_nothing_ever_has(run, study):
    code, out, err = run("run", study(), "--only", "x in [1, 7]", "--no-progress")
    assert code == 0
    assert out.startswith("2 of 6 runs done")
    assert "warning: only: 'x' never is the number 7; known: 1, 2, 3" in err


def test_a_pilot_whose_runs_are_done_already_is_no_mistake(run, study):
    run("run", study(), "--only", "x == 1")
    assert run("resume", "out", "--only", "x == 1")[0] == 0


@pytest.mark.parametrize(
    ("replicates", "begins"),
    [(2, "warning: no run has"), (4, "warning: so far, in 10 runs: no run")],
)
def test_an_outcome_that_no_run_measures_is_reported_once(run, study, replicates, begins):
    outcomes = [{"name": "scor", "source_table": "evaluations"}]
    path = study(outcomes=outcomes, run_budget={"replicates": replicates})
    code, _, err = run("run", path, "--no-progress")
    assert code == 0
    (line,) = err.splitlines()
    assert line.startswith(begins)
    assert line.endswith(" a value for 'scor' (evaluations.scor); did you mean 'score'?")


def test_an_outcome_that_some_runs_measure_is_all_right(run, study):
    outcomes = [{"name": "score", "source_table": "evaluations"}, {"name": "latency_s"}]
    budget = {"replicates": 4}
    assert run("run", study(outcomes=outcomes, run_budget=budget), "--no-progress")[2] == ""


def test_who_is_not_bound_is_a_warning_to_those_who_look_and_an_error_to_those_who_run(run, study):
    path = study(agent_specs=["a", "add"], agents={"a": "my_agents:add", "adds": "my_agents:add"})
    prefix = f"warning: {path}:"
    for command in ("check", "plan"):
        code, _, err = run(command, path)
        assert code == 0
        assert err.startswith(prefix)
        assert "agent_specs[1]: nothing is bound to the agent 'add', so only Python can" in err
        assert err.endswith("did you mean 'adds'?\n")
    assert "no mistakes, 1 warning; " in run("check", path)[1]
    code, _, err = run("run", path)
    assert code == 2
    assert err.startswith(
        f"error: {path}:4: agents: nothing is bound to the agent 'add'; did you mean 'adds'?"
    )
    assert not Path("out").exists()


def test_an_evaluator_that_is_not_there_is_looked_for_among_what_a_module_offers(run, study):
    run("run", study())
    code, _, err = run("rescore", "out", "--evaluator", "my_agents:nope")
    assert code == 2
    known = err.partition("known: ")[2].strip().split(", ")
    assert {"add", "score", "Adder"} <= set(known)
    assert not [name for name in known if name.startswith("_") or name == "pathlib"]
