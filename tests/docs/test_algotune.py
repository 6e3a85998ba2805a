"""The converter of AlgoTune's tasks, on a made-up checkout with one task and a few answers."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairtrial.arena import ArenaSettings, Verdict, evaluate_candidates_sync, load_problem

EXAMPLE = Path(__file__).parents[2] / "examples" / "algotune"

TASK = """
import logging
import random

from AlgoTuneTasks.base import Task, register_task


@register_task("any_large")
class AnyLarge(Task):
    def generate_problem(self, n, random_seed=1):
        rng = random.Random(random_seed)
        return {"numbers": [rng.random() for _ in range(n)], "limit": 0.5}

    def solve(self, problem):
        return next(i for i, x in enumerate(problem["numbers"]) if x > problem["limit"])

    def is_solution(self, problem, solution):
        if not problem["numbers"][solution] > problem["limit"]:
            logging.error("number %d is too small", solution)
            return False
        return True
"""
RIGHT = """
class Solver:
    def solve(self, problem, **kwargs):
        numbers = list(problem["numbers"])
        return numbers.index(max(numbers))
"""
ANSWERS = {
    "Alpha 1.5": RIGHT,
    "Wrong": RIGHT.replace("max", "min"),
    "R1": "import nowhere_installed\n" + RIGHT,
    "Below": RIGHT + "\nX = 1\n",
    "Unpublished": RIGHT + "\nX = 2\n",
}
PUBLISHED = {
    "alpha-1.5-20250101": "12.5",
    "wrong": "3.0",
    "deepseek-reasoner": "99.0",
    "below": "1.09",
    "unpublished": "N/A",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A made-up checkout: three tasks, of which one can be converted, and its five answers."""
    top = tmp_path / "checkout"
    tasks = {"any_large": TASK, "odd": "import nowhere_installed\n" + TASK}
    tasks["unplain"] = TASK.replace("any_large", "unplain").replace('"limit": 0.5', '"limit": rng')
    for name, text in tasks.items():
        (top / "AlgoTuneTasks" / name).mkdir(parents=True)
        (top / "AlgoTuneTasks" / name / f"{name}.py").write_text(text, "utf-8")
    answers = [(model, "any_large", text) for model, text in ANSWERS.items()]
    for model, task, text in [*answers, ("Alpha 1.5", "unplain", RIGHT)]:
        (top / "results" / model / task).mkdir(parents=True)
        (top / "results" / model / task / "solver.py").write_text(text, "utf-8")
    summary = {"any_large": {name: {"final_speedup": value} for name, value in PUBLISHED.items()}}
    summary["unplain"] = {"alpha-1.5": {"final_speedup": "2.0"}}
    sizes = {"any_large": {"n": 20_000}, "odd": {"n": 10}, "unplain": {"n": 10}}
    (top / "reports").mkdir()
    (top / "reports" / "agent_summary.json").write_text(json.dumps(summary), "utf-8")
    (top / "reports" / "generation.json").write_text(json.dumps(sizes), "utf-8")
    return top


def convert(*arguments: object) -> int:
    """Call the converter; return its exit code."""
    script = runpy.run_path(str(EXAMPLE / "convert.py"))
    code = script["main"]([str(argument) for argument in arguments])
    assert isinstance(code, int)
    return code


def read_task(out: Path) -> dict[str, Any]:
    """Return what the converter wrote about the task."""
    entry: dict[str, Any] = json.loads((out / "any_large" / "task.json").read_text("utf-8"))
    return entry


def test_answers_that_are_not_tried_are_listed_with_the_reason(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert convert(checkout, out, "--at-least", 1.1) == 0
    printed = capsys.readouterr().out
    assert "odd: not converted: needs nowhere_installed" in printed
    assert "unplain: not converted: problems hold values of type random.Random" in printed
    assert "any_large: size 20000 of 20000; Alpha 1.5, Wrong" in printed
    answers = {answer["model"]: answer for answer in read_task(out)["answers"]}
    assert answers["Alpha 1.5"]["published"] == 12.5
    assert not answers["Alpha 1.5"]["not_tried"]
    assert answers["R1"]["published"] == 99.0
    assert answers["R1"]["not_tried"] == "needs nowhere_installed"
    assert answers["Below"]["not_tried"] == "published speed-up below 1.1"
    assert answers["Unpublished"]["not_tried"] == "no published speed-up"
    assert sorted(path.name for path in (out / "any_large" / "candidates").iterdir()) == [
        "Alpha-1.5",
        "Wrong",
    ]
    assert [path.name for path in out.iterdir()] == ["any_large"]


def test_only_the_best_answers_are_tried(tmp_path: Path, checkout: Path) -> None:
    convert(checkout, tmp_path / "out", "--best", 1, "--task", "any_large")
    answers = {answer["model"]: answer for answer in read_task(tmp_path / "out")["answers"]}
    assert answers["Wrong"]["not_tried"] == "not among the best 1 that can be tried"
    assert not answers["Alpha 1.5"]["not_tried"]


def test_large_lists_have_two_forms_and_small_ones_keep_them(
    tmp_path: Path, checkout: Path
) -> None:
    """AlgoTune stores large lists of numbers as arrays; smaller problems must be as large ones."""
    out = tmp_path / "out"
    convert(checkout, out, "--largest-mb", 0.1)
    entry = read_task(out)
    assert entry["size"] < 12_800 < entry["published_size"]
    assert entry["forms"] == ["stored", "made"]
    assert entry["stored_arrays"] == ["/numbers"]
    make = "import random, problem_inputs as p; print(p.{}(random.Random(1))[0][0]['numbers'])"
    for form, text in {"stored": " ... ", "made": ", "}.items():
        repo = out / "any_large" / "repo"
        python = load_problem(out / "any_large" / "problem.yaml").python
        done = subprocess.run(
            [python, "-c", make.format(form)],
            env={"PYTHONPATH": f"{repo}:{repo / 'judging'}"},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert text in done.stdout, "arrays are printed in short"


def test_answers_are_judged_by_the_verifier_of_the_task(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    out = tmp_path / "out"
    convert(checkout, out, "--largest-mb", 0.01, "--cases", 3, "--at-least", 2)
    folder = out / "any_large"
    settings = ArenaSettings(timing="none", unsandboxed=True, audit=False, lock_folder=tmp_path)
    candidates = sorted((folder / "candidates").iterdir())
    evaluation = evaluate_candidates_sync(
        load_problem(folder / "problem.yaml"), candidates, settings=settings
    )
    right, wrong = evaluation.judgements
    assert right.verdict is Verdict.PASSED, "another solution than the base's, but a right one"
    assert wrong.verdict is Verdict.REJECTED
    assert wrong.rejection
    assert "is too small" in wrong.rejection.failures[0].differences[0].expected


def test_cpu_times_are_compared_at_the_published_size(tmp_path: Path, checkout: Path) -> None:
    out = tmp_path / "out"
    convert(checkout, out, "--largest-mb", 0.01)
    facts = {}
    for model in ("Alpha-1.5", "Wrong"):
        command = [sys.executable, str(EXAMPLE / "cpu_time.py"), str(out / "any_large"), model]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        facts[model] = json.loads(done.stdout)
    assert facts["Alpha-1.5"]["size"] == 20_000
    assert len(facts["Alpha-1.5"]["ratios"]) == 3
    assert facts["Alpha-1.5"]["accepted"]
    assert not facts["Alpha-1.5"]["changed_argument"]
    assert not facts["Wrong"]["accepted"]


def test_a_folder_that_is_no_checkout_is_refused(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert(tmp_path, tmp_path / "out") == 2
    assert "has no folder AlgoTuneTasks" in capsys.readouterr().out
    assert convert(checkout, tmp_path / "out", "--task", "nothing") == 2
    assert "no such task: nothing" in capsys.readouterr().out


def test_the_table_states_the_result_for_each_published_speedup(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    convert(checkout, out, "--best", 9)
    shared: dict[str, Any] = {"failures": [], "vetoes": [], "reason": None, "verdict": "faster"}
    shared["timings"] = [{"cpu_ratio": 10.5}]
    candidates = [
        {**shared, "name": "Alpha-1.5", "ratio": 11.0, "interval": [10.0, 12.0]},
        {**shared, "name": "Below", "ratio": 1.0, "interval": [0.99, 1.01]},
        {**shared, "name": "R1", "ratio": 300.0, "interval": [290.0, 310.0]},
        {
            **shared,
            "name": "Wrong",
            "verdict": "rejected",
            "timings": [],
            "ratio": None,
            "reason": "different results: too small",
        },
    ]
    nulls = [{"passed": True, "what": "always returns 0"}, {"passed": False, "what": "raises"}]
    evaluation = {"candidates": candidates, "adequacy": {"nulls": nulls}}
    result = {"task": "any_large", "form": "stored", "evaluation": evaluation}
    (out / "results.jsonl").write_text(json.dumps(result) + "\n", "utf-8")
    capsys.readouterr()
    assert runpy.run_path(str(EXAMPLE / "retrial.py"))["main"](["table", str(out)]) == 0
    rows = capsys.readouterr().out.splitlines()
    start = "| any_large | 20000/20000 | stored |"
    assert rows[2] == f"{start} Alpha 1.5 | 12.5 | 11 [10, 12] | 10.5 | holds |  |"
    assert rows[3] == f"{start} Below | 1.09 | 1 [0.99, 1.01] | 10.5 | less |  |"
    assert rows[4] == f"{start} R1 | 99 | 300 [290, 310] | 10.5 | more |  |"
    assert rows[5] == f"{start} Wrong | 3 |  |  | refused | different results: too small |"
    candidates[3]["reason"] = "ModuleNotFoundError: No module named 'numba'"
    (out / "results.jsonl").write_text(json.dumps(result) + "\n", "utf-8")
    assert runpy.run_path(str(EXAMPLE / "retrial.py"))["main"](["table", str(out)]) == 0
    assert "| not tried |" in capsys.readouterr().out.splitlines()[5]
    assert rows[7:] == ["- any_large (stored): always returns 0"]
