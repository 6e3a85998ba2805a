"""What docs/running.md shows works as it is shown, and what it lists is all there is."""

import ast
import dataclasses
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from fairtrial import FairtrialError, LabError, LedgerError, RunBudget, StudyError, open_results
from fairtrial.cli import run_summary as outcome
from fairtrial.cli.main import cli
from fairtrial.core import plugins
from fairtrial.core.fields import field_docs
from fairtrial.optimize.command_agent.agent import CommandAgent
from fairtrial.study.agents.http_agent import HttpAgent
from fairtrial.study.executors import FailureKind
from fairtrial.study.runner.failures import failure_status
from fairtrial.study.runner.pilot import RUN_FACTS

GUIDE = (Path(__file__).parents[2] / "docs" / "running.md").read_text("utf-8")
STUDY = {
    "study_id": "my-study",
    "title": "A study of sums",
    "factors": [{"name": "style", "levels": ["plain", "worked_example"]}],
    "outcomes": [{"name": "score", "source_table": "evaluations", "primary": True}],
}
"""What the guide's pieces are part of."""
RESULTS = "artifacts/my-study"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.M | re.S)


def section(heading):
    return GUIDE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def table(heading):
    """The rows of the table under a heading, without its head."""
    lines = [line for line in section(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def commands():
    """Every command that the guide shows, as arguments."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.fixture
def folder(tmp_path):
    """A folder with the guide's study and modules in it."""
    pieces = [yaml.safe_load(block) for block in reversed(blocks("yaml"))]  # the first one counts
    study = {key: value for piece in (*pieces, STUDY) for key, value in piece.items()}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), "utf-8")
    for code in blocks("python"):
        if name := re.match(r"# (\w+\.py)\n", code):
            (tmp_path / name[1]).write_text(code, "utf-8")
    return tmp_path


def test_the_snippets_make_a_study_and_its_commands_run(run, folder):
    seen = set()
    for arguments in commands():
        name, *rest = arguments
        rest = [RESULTS if each == "DIR" else each for each in rest]
        if "RUN_ID" in rest:
            with open_results(folder / RESULTS) as results:
                rest[rest.index("RUN_ID")] = results[0].run_id
        code, _, err = run(name, *rest, *(["--resume"] if name == "run" and seen else []))
        # The study has ended when the guide comes to stopping it.
        assert code == (3 if name in ("pause", "cancel") else 0), (arguments, err)
        seen.add(name)
    assert seen == {
        *("run", "status", "pause", "resume", "cancel", "retry"),
        *("report", "show", "export", "rescore", "bundle"),
    }
    with open_results(folder / RESULTS) as results:
        assert len(results) == 4
        careful = [each for each in results if each.run_spec.agent_spec_ref == "careful"]
        assert [each.outputs for each in careful] == [
            {"answer": 6, "plain": True},
            {"answer": 6, "plain": False},
        ]
        assert {each.metrics["primary_outcome"] for each in careful} == {1.0}
        assert {row["metric_name"] for row in results.evaluations} == {"score", "is_right"}
        assert {row["meta_json"] for row in results.events} == {'{"confidence":0.9}'}
        assert all(
            (folder / RESULTS / each.artifact_refs[0] / "draft.txt").exists() for each in results
        )


def test_problems_that_are_made_with_their_judge_work(run, folder):
    (other,) = (yaml.safe_load(block) for block in blocks("yaml") if "sums:problem" in block)
    study = yaml.safe_load((folder / "study.yaml").read_text("utf-8"))
    (folder / "study.yaml").write_text(yaml.safe_dump({**study, **other}), "utf-8")
    assert run("run", "study.yaml", "--only", "agent_id == 'careful'")[0] == 0
    with open_results(folder / RESULTS) as results:
        assert {each.run_spec.problem_id for each in results} == {"small", "large"}
        assert [row["metric_value"] for row in results.evaluations] == [1] * 4


def test_the_python_runs(folder):
    (code,) = (block for block in blocks("python") if "run_study" in block)
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert len(lines) == 4
    for run_id, status, score in lines:
        assert run_id.startswith("run-")
        assert status == "success"
        assert 0 < float(score) <= 1


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_command_and_option_that_is_shown_exists(arguments):
    name, *rest = arguments
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    with command.make_context(name, list(rest)):
        pass  # it can be read


def test_every_option_that_is_named_exists():
    known = {
        flag
        for name in cli.list_commands(click.Context(cli))
        for option in cli.get_command(click.Context(cli), name).params
        for flag in option.opts
    }
    known |= {flag for option in cli.params for flag in option.opts}
    assert set(re.findall(r"--[a-z][a-z-]*", GUIDE)) <= known


def test_the_files_are_those_that_are_written(run, folder):
    assert run("run", "study.yaml")[0] == 0
    assert run("report", RESULTS)[0] == 0
    assert run("export", RESULTS, "--sqlite", "--parquet", "--complete-cases")[0] == 0
    told = [name for files, _ in table("Output files") for name in re.findall("`(.+?)`", files)]
    written = {p.name for p in (folder / RESULTS).iterdir() if not p.name.startswith(".")}
    assert written == set(told)
    links = {path.name for path in (folder / RESULTS).iterdir() if path.is_symlink()}
    assert {"runs.csv", "study.yaml", "study.sqlite", "runs.parquet"} <= links


def meanings(kind):
    """What the text below each member of an enumeration says."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    named = zip(tree.body, tree.body[1:], strict=False)
    return {
        node.value.value: after.value.value for node, after in named if isinstance(node, ast.Assign)
    }


def test_the_failure_kinds_are_those_there_are():
    told = {row[0].strip("`"): row[1:] for row in table("Failed, broken, pending")}
    assert told == {
        kind: [failure_status(FailureKind(kind)), text]
        for kind, text in meanings(FailureKind).items()
        if kind != FailureKind.CANCELLED  # which stays pending, and has no row
    }


def test_the_executors_are_those_there_are():
    told = {row[0].strip("`"): row for row in table("Executors")}
    assert set(told) == set(plugins.names("executors"))
    for name, (_, _, crashes, generators) in told.items():
        executor = plugins.load("executors", name)()
        assert executor.is_isolated == ("segfault" in crashes)
        assert executor.is_reproducible == (generators == "seeded for each run")


def test_the_exit_codes_are_those_there_are():
    errors = (FairtrialError, StudyError, LedgerError, LabError)
    stops = outcome.FAILED, outcome.BUDGET, outcome.REPEATED, outcome.INTERRUPTED
    codes = {0, *stops, *(e.exit_code for e in errors)}
    assert [int(code) for code, _ in table("Exit codes")] == sorted(codes)


def test_every_part_of_a_budget_is_explained():
    fields = field_docs(RunBudget).keys() - {"replicates", "parallelism"}
    assert set(re.findall(r"`(\w+)[`:]", section("Budgets"))) >= fields


def test_only_takes_the_names_that_are_listed():
    line = next(line for line in GUIDE.splitlines() if line.startswith("`--only` is"))
    assert set(re.findall(r"`(\w+)`", line)) == set(RUN_FACTS)


@pytest.mark.parametrize("agent", [CommandAgent, HttpAgent])
def test_the_guide_lists_every_option_of_agents_without_code(agent):
    text = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
    name = agent.__name__.removesuffix("Agent").lower()
    table = text.split(f"### Options of the agent `{name}`")[1].split("\n## ")[0]
    told = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert told == [field.name for field in dataclasses.fields(agent) if field.name != "folder"]
