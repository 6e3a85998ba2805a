"""The example problem, judged from end to end: at the top of a repository and in a part of one."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from fairtrial.arena import (
    Arena,
    ArenaSettings,
    Basis,
    Candidate,
    Judgement,
    Reason,
    Verdict,
    evaluate_candidates_sync,
    load_problem,
    open_arena,
    read_candidate,
)
from fairtrial.arena.checks import pytest_check as tests
from fairtrial.arena.checks.pytest_check import PreparedPytestCheck
from fairtrial.arena.evaluation import judge_all

EXAMPLE = Path(__file__).parents[2] / "examples" / "toposort"


def copy_example(top: Path, folder: str) -> Path:
    """The example in a repository of its own, without a commit; returns its folder."""
    shutil.copytree(EXAMPLE, top / folder, ignore=shutil.ignore_patterns("__pycache__", ".*cache"))
    subprocess.run(["git", "init", "-q", str(top)], check=True, timeout=60)
    return top / folder


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArenaSettings:
    """Slots and a lock of our own, and one run of the base: its tests are the same each time."""
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tests, "BASE_RUNS", 1)
    return ArenaSettings(timing="none", unsandboxed=True, lock_folder=tmp_path)


@pytest.mark.parametrize("folder", [".", "examples/toposort"])
def test_each_candidate_of_the_example_gets_the_verdict_it_deserves(
    tmp_path: Path, settings: ArenaSettings, folder: str
) -> None:
    """With fewer inputs than people get; tests, and those who fail them, in one place only."""
    example = copy_example(tmp_path / "repo", folder)
    problem = load_problem(example / "toposort.yaml")
    checks = [replace(check, timeout_s=120.0, cases=3) for check in problem.check]
    names = ["faster", "reformatted.diff"]
    if folder != ".":
        checks = checks[1:]
    else:
        names += ["wrong.diff", "touching-a-test.diff", "crashing.diff"]
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # loading them takes longer than all the rest
    problem = replace(problem, check=tuple(checks), env=env)

    async def judge() -> tuple[Judgement, ...]:
        given = [read_candidate(example / "candidates" / name) for name in names]
        async with open_arena(problem, settings=settings) as arena:
            judged = await judge_all(arena, given)
            if folder == ".":
                hanging = read_candidate(example / "candidates" / "hanging.diff")
                judged = (*judged, await in_a_hurry(arena).judge(hanging))
            return judged

    found = anyio.run(judge)
    assert [judgement.name for judgement in found[: len(names)]] == names
    faster, reformatted, *rejected = found
    assert faster.verdict == reformatted.verdict == Verdict.PASSED
    assert faster.basis == Basis.COMPARED
    assert faster.not_exercised == ()
    assert reformatted.duplicate_of == "faster"
    reasons = [each.rejection.reason for each in rejected if each.rejection]
    expected = [Reason.TESTS, Reason.OUTSIDE, Reason.CRASH, Reason.TIMEOUT]
    assert reasons == expected[: len(rejected)]
    if folder == ".":
        assert documented_verdicts() == {each.name: (each.verdict, why(each)) for each in found}


def in_a_hurry(arena: Arena) -> Arena:
    """The same tests with little time, of which others had enough: who hangs uses it up."""
    ground, trial, rules = arena.resources, arena.checks[0], arena.path_rules
    assert isinstance(trial, PreparedPytestCheck)
    return Arena(ground, [replace(trial, check=replace(trial.check, timeout_s=2.0))], rules, ())


def documented_verdicts() -> dict[str, tuple[str, str]]:
    """The table that the guide shows: candidates, their verdicts and how the reason begins."""
    shown = (EXAMPLE.parents[1] / "docs" / "evaluating.md").read_text("utf-8")
    table = shown.partition("toposort/candidates/*\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^(\S+) +([a-z]+)\b.*\n  (.*)", table, re.M)
    return {
        name: ("passed" if verdict == "faster" else verdict, told_why(why))
        for name, verdict, why in rows
    }


def told_why(text: str) -> str:
    """The first thing that is said beside numbers of sessions and seconds."""
    parts = (part for part in text.split("; ") if not re.match(r"\d|checks |timing ", part))
    return next(parts).partition(":")[0]


def why(judgement: Judgement) -> str:
    """The beginning of what the table says of it."""
    if judgement.duplicate_of:
        return f"same as {judgement.duplicate_of}"
    return judgement.rejection.reason if judgement.rejection else "basis"


def test_files_may_be_named_from_the_top_or_from_the_project(
    tmp_path: Path, settings: ArenaSettings
) -> None:
    example = copy_example(tmp_path / "repo", "part")
    problem = load_problem(example / "toposort.yaml")
    problem = replace(problem, check=(replace(problem.check[2], cases=1),))
    text = (example / "src/toposort/sorting.py").read_bytes().replace(b"min(ready)", b"ready[0]")
    from_project = example / "a"
    from_top = example / "b"
    for place in (from_project / "src/toposort", from_top / "part/src/toposort"):
        place.mkdir(parents=True)
        (place / "sorting.py").write_bytes(text)
    given = [from_project, from_top, Candidate("none", files={})]
    found = evaluate_candidates_sync(problem, given, settings=settings)
    first, second, third = found.judgements
    assert first.rejection is not None
    assert first.rejection.reason == Reason.DIFFERENT
    assert second.duplicate_of == first.name
    assert third.duplicate_of == "base"
