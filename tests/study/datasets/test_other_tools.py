"""Tasks of Inspect and Harbor are problems of a study."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial import Study, run_study
from fairtrial.core import StudyError

HARBOR_STUDY = """
study_id: harbor
title: t
problems:
  from: harbor:tasks
  id: id
  brief: "{instruction}"
  family: category
  evaluator: {use: harbor, name: reward}
factors:
  - name: word
    levels: [hello, goodbye]
agents:
  shell:
    use: command
    options:
      argv: [sh, -c, "echo $0 > hello.txt; rm -f Dockerfile", "{word}"]
      files: {".": "{environment}"}
      collect: ["**"]
agent_specs: [shell]
outcomes: [{name: reward, source_table: evaluations, primary: true}]
"""
TASK = """
version = "1.0"
[metadata]
category = "files"
difficulty = "easy"
tags = ["shell"]
[verifier]
timeout_sec = 60.0
[agent]
timeout_sec = 120.0
[environment]
build_timeout_sec = 600.0
"""
TEST = """#!/bin/bash
cd "$(dirname "$0")"
pwd | grep -qx /tests || exit 3
if [ "$(cat /work/hello.txt)" = "$(cat expected.txt)" ] && [ -e /work/given.txt ]
then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""


def write_task(folder: Path, expected: str, test: str = TEST) -> None:
    for name, text in {
        "task.toml": TASK,
        "instruction.md": "Write a greeting to hello.txt.",
        "environment/Dockerfile": "FROM ubuntu:24.04\nWORKDIR /work\nCOPY given.txt .\n",
        "environment/given.txt": "given",
        "tests/test.sh": test,
        "tests/expected.txt": expected,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    write_task(tmp_path / "tasks/greet", "hello")
    write_task(tmp_path / "tasks/leave", "goodbye")
    (tmp_path / "study.yaml").write_text(HARBOR_STUDY)
    return tmp_path / "tasks"


def read_study(folder: Path) -> Study:
    return replace(Study.from_yaml(folder / "study.yaml"), output_dir=str(folder / "out"))


def run_rewards(folder: Path) -> dict[tuple[str, str], float]:
    study, output = read_study(folder), folder / "out"
    results = run_study(study)
    assert [result.error_info for result in results] == [None] * len(results)
    with (output / "runs.csv").open(newline="") as file:
        return {
            (row["problem_id"], row["factor_word"]): float(row["primary_outcome"])
            for row in csv.DictReader(file)
        }


def test_tests_of_harbor_judge_what_an_agent_has_left_behind(tasks: Path) -> None:
    assert run_rewards(tasks.parent) == {
        ("greet", "hello"): 1,
        ("greet", "goodbye"): 0,
        ("leave", "hello"): 0,
        ("leave", "goodbye"): 1,
    }


def test_tests_that_write_no_reward_break_the_run(tasks: Path) -> None:
    write_task(tasks / "greet", "hello", "#!/bin/bash\necho no pytest here >&2\nexit 1\n")
    study = read_study(tasks.parent)
    results = {
        result.run_spec.problem_id: result
        for result in run_study(study, only="problem_id == 'greet' and word == 'hello'")
        if result.run_spec is not None
    }
    assert results["greet"].status == "broken"
    assert "wrote no reward" in str(results["greet"].error_info)
    assert "no pytest here" in str(results["greet"].error_info)


def test_agents_see_neither_tests_nor_expected_files(tasks: Path) -> None:
    study = read_study(tasks.parent)
    assert study.dataset is not None
    parts = study.dataset.table.parts("greet")
    assert parts.family == "files"
    assert parts.brief == "Write a greeting to hello.txt."
    assert parts.payload["environment"] == "tasks/greet/environment"
    assert parts.payload["work_folder"] == "/work"


def test_changed_tests_of_harbor_change_the_data(tasks: Path) -> None:
    first = read_study(tasks.parent).dataset
    (tasks / "greet/tests/expected.txt").write_text("other")
    second = read_study(tasks.parent).dataset
    assert first is not None
    assert second is not None
    assert first.table.facts != second.table.facts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tasks: (tasks / "greet/tests/test.sh").unlink(), r"there is no tests/test\.sh"),
        (lambda tasks: (tasks / "greet/task.toml").write_text("x = "), "can't be used"),
        (lambda tasks: (tasks / "greet/instruction.md").unlink(), r"instruction\.md"),
        (
            lambda tasks: (tasks / "greet/task.toml").write_text('[[steps]]\nname = "a"\n'),
            "several steps",
        ),
    ],
)
def test_a_task_that_can_not_be_used_is_named(tasks: Path, change, message) -> None:
    change(tasks)
    study = read_study(tasks.parent)
    with pytest.raises(StudyError, match=message):
        run_study(study)


INSPECT_TASKS = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import choice, match, model_graded_qa

@task
def sums(count=2):
    samples = [Sample(input=f"{n} + {n}?", target=str(2 * n), id=f"s{n}", metadata={"level": n})
               for n in range(1, count + 1)]
    return Task(dataset=samples, scorer=match())

@task
def quiz():
    return Task(
        dataset=[Sample(
            input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Largest?")],
            choices=["one", "two"], target="B")],
        scorer=choice())

@task
def graded():
    return Task(dataset=[Sample(input="q", target="a")], scorer=model_graded_qa())

def nothing():
    return 1
"""


@pytest.fixture
def inspect_folder(tmp_path: Path) -> Path:
    pytest.importorskip("inspect_ai", reason="needs inspect_ai (extra: inspect)")
    (tmp_path / "inspect_examples.py").write_text(INSPECT_TASKS)
    return tmp_path


def inspect_study(folder: Path, task: str, more: str = "", options: str = "{}") -> Study:
    (folder / "study.yaml").write_text(
        f"study_id: inspect\ntitle: t\nproblems:\n"
        f"  from: inspect:inspect_examples:{task}\n  options: {options}\n"
        f'  brief: "{{input}}"\n  reference: target\n{more}'
        f"  evaluator: {{use: inspect, name: right, options: "
        f"{{task: 'inspect_examples:{task}', options: {options}}}}}\n"
        f"agent_specs: [a]\n"
        f"outcomes: [{{name: right, source_table: evaluations, primary: true}}]\n"
        f"output_dir: {folder / 'out'}\n"
    )
    return Study.from_yaml(folder / "study.yaml")


def test_samples_of_inspect_are_scored_by_their_own_scorer(inspect_folder: Path) -> None:
    study = inspect_study(inspect_folder, "sums", "  id: id\n  where: level > 1\n", "{count: 3}")
    results = run_study(study, agent_bindings={"a": lambda task: {"answer": "It is 4"}})
    scores = {
        result.run_spec.problem_id: result.metrics["primary_outcome"]
        for result in results
        if result.run_spec is not None
    }
    assert scores == {"s2": 1, "s3": 0}


@pytest.mark.parametrize(
    ("answer", "score"), [("ANSWER: B", 1), ("Answer: a", 0), ("ANSWER: A, B", 0), ("B", 0)]
)
def test_letters_of_choices_are_found_in_the_answer(
    inspect_folder: Path, answer: str, score: int
) -> None:
    study = inspect_study(inspect_folder, "quiz")
    asked = []

    def agent(task):
        asked.append(task.problem)
        return {"answer": answer}

    (result,) = run_study(study, agent_bindings={"a": agent})
    assert result.metrics["primary_outcome"] == score
    assert asked[0].payload["system"] == "Be brief."
    assert asked[0].payload["lettered_choices"] == "A) one\nB) two"
    assert "target" not in asked[0].payload


@pytest.mark.parametrize(
    ("task", "message"),
    [("graded", "asks a model"), ("nothing", "not a Task"), ("missing", "missing")],
)
def test_tasks_that_can_not_be_used_are_refused_before_anything_runs(
    inspect_folder: Path, task: str, message: str
) -> None:
    study = inspect_study(inspect_folder, task)
    with pytest.raises(StudyError, match=message):
        run_study(study, agent_bindings={"a": lambda task: {"answer": "x"}})
