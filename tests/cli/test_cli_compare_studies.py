"""`fairtrial report --compare`, `compare-studies` and `list`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_kit import AGENTS, STUDY

CLAIM = {
    "hypotheses": [
        {
            "hypothesis_id": "h", "label": "l", "statement": "s",
            "independent_vars": ["x"], "dependent_vars": ["score"],
        }
    ],
    "analysis_plans": [
        {"analysis_plan_id": "a", "hypothesis_ids": ["h"], "tests": ["difference_in_means"]}
    ],
    "outcomes": [{"name": "score", "source_table": "evaluations", "primary": True}],
}  # fmt: skip
PROBLEMS = {
    "problem_ids": list("pqrs"),
    "problems": {
        name: {"brief": "add", "family": "f", "evaluator": "my_agents:score"} for name in "pqrs"
    },
}


@pytest.fixture
def study(write):
    write(AGENTS, "my_agents.py")

    def study(**fields):
        return write({**STUDY, **PROBLEMS, **fields})

    return study


def test_a_comparison_is_printed_and_written_beside_the_report(run, study):
    run("run", study())
    code, out, err = run("report", "out", "--compare", "x", "--outcome", "score", "--by", "problem")
    assert code == 0
    assert "**Exploratory**" in out
    assert "for each problem" in out
    assert "compare-x.md" in err
    assert "**Exploratory**" in Path("out/compare-x.md").read_text("utf-8")
    code, out, _ = run("report", "out", "--compare", "x", "--outcome", "score", "--json")
    assert json.loads(out)["variables"] == ["x"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--compare", "y"], "'y' is no factor"),
        (["--compare", "x", "--outcome", "scroe"], "did you mean 'score'?"),
        (["--by", "problem"], "--outcome and --by are for --compare"),
        (["--compare", "x", "--html"], "leave out --html"),
    ],
)
def test_wrong_comparisons_are_exit_2(run, study, options, says):
    run("run", study())
    code, out, err = run("report", "out", *options)
    assert (code, out) == (2, "")
    assert says in err


def test_two_studies_are_compared_by_their_folders(run, study):
    run("run", study())
    run("run", study(output_dir="new"))
    code, out, _ = run("compare-studies", "out", "new", "--outcome", "score", "--out", "both.md")
    assert code == 0
    assert out.startswith("# `new` against `out`")
    assert "paired by problem: 4 problems" in out
    assert Path("both.md").read_text("utf-8").startswith("# `new` against `out`")
    code, out, _ = run("compare-studies", "out", "new", "--json")
    assert json.loads(out)["pairing"] == "paired"
    assert run("compare-studies", "out", "nowhere")[0] == 3
    assert run("compare-studies", "out", "out")[0] == 2


def test_studies_are_listed_with_state_cost_and_verdicts(run, study):
    use = {"agents": {"a": "my_agents:cost"}}
    run("run", study(output_dir="lab/done", tags=["pilot"], **use, **CLAIM))
    run("run", study(output_dir="lab/part"), "--limit", 5)
    Path("lab/broken").mkdir()
    Path("lab/broken/ledger.sqlite").write_text("junk")
    code, out, err = run("list", "lab")
    assert code == 0
    lines = out.splitlines()
    assert "24/24" in next(line for line in lines if "lab/done" in line)
    assert "$12" in out
    assert "pilot" in out
    assert "5/24" in next(line for line in lines if "lab/part" in line)
    assert "lab/broken: can't be read" in out
    assert "not reported" in out
    assert "1 finished study without verdicts" in err
    _, out, _ = run("list", "lab", "--verdicts")
    assert "not reported" not in out
    studies = json.loads(run("list", "lab", "--json", "--tag", "pilot")[1])
    done = next(item for item in studies if item["folder"].endswith("done"))
    assert (done["state"], done["done"], done["tags"]) == ("finished", 24, ["pilot"])
    assert [verdict["hypothesis_id"] for verdict in done["verdicts"]] == ["h"]


def test_verdicts_in_the_list_are_forgotten_when_results_come(run, study):
    path = study(output_dir="lab/s", **CLAIM)
    run("run", path, "--limit", 12)
    run("report", "lab/s")
    (before,) = json.loads(run("list", "lab", "--json")[1])
    assert (before["state"], len(before["verdicts"])) == ("stopped", 1)
    run("run", path, "--resume")
    (after,) = json.loads(run("list", "lab", "--json")[1])
    assert (after["state"], after["verdicts"]) == ("finished", None)


def test_an_empty_folder_has_no_studies_and_a_missing_one_is_exit_2(run, tmp_path):
    Path("empty").mkdir()
    code, out, err = run("list", "empty")
    assert (code, out) == (0, "")
    assert "there are no studies" in err
    assert run("list", "nowhere")[0] == 2


def test_verbose_shows_what_happens_on_standard_error(study):
    path = study()
    command = [sys.executable, "-m", "fairtrial", "--verbose", "run", str(path), "--no-progress"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=path.parent)
    assert "DEBUG fairtrial.study.runner.run_loop: run " in shown.stderr
    assert "24 of 24 runs done" in shown.stdout
    assert "DEBUG" not in shown.stdout
