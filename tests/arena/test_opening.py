"""Opening an arena: settings of a problem reach its checks."""

import json
import sys
from dataclasses import replace

import anyio
import pytest
from arena_kit import whole
from repository_kit import make_repository, write_files

import fairtrial.sandbox.warm_start as warm
from fairtrial.arena import (
    ArenaSettings,
    Basis,
    Check,
    CodeProblem,
    Evaluation,
    Judgement,
    Reason,
    Rejection,
    Verdict,
    evaluate_candidates,
    evaluate_candidates_sync,
    events as arena_events,
    load_problem,
    opening,
    warm_imports as warming,
)
from fairtrial.arena.checks import command_check as commands, pytest_check as tests
from fairtrial.arena.opening import find_roots
from fairtrial.arena.resources import find_hidden
from fairtrial.core import StudyError
from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox

HAS_SANDBOX = not all(try_sandbox(sandbox) for sandbox in FULL_SANDBOXES)
SANDBOXES = ["plain", pytest.param("require", marks=pytest.mark.skipif(
    not HAS_SANDBOX, reason="no full sandbox works here"))]  # fmt: skip
MODULE = "def double(x):\n    return 2 * x\n"
FILES = {
    "part/src/mod.py": MODULE,
    "part/tools/make.py": "def numbers(rng):\n    return (rng.randrange(9),), {}\n",
    "part/calls/double.json": json.dumps([{"args": [2], "result": 4}]),
    "part/look.py": "import os, mod\n",
    ".gitignore": "part/data/\n__pycache__/\n",
}
LOOK = Check(command=("{python}", "look.py"), timeout_s=60)


@pytest.fixture
def top(tmp_path):
    top = make_repository(tmp_path / "repo", FILES)
    write_files(top, {"part/data/table.bin": b"included"})
    return top


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    for kind in (commands, tests):
        monkeypatch.setattr(kind, "BASE_RUNS", 1)  # what runs differ in is no matter here
    (tmp_path / "locks").mkdir()
    return ArenaSettings(
        timing="none", unsandboxed=True, lock_folder=tmp_path / "locks", warm=False
    )


def make_problem(top, look="", **changes):
    """One whose check runs these lines, in the part of the repository that is the project."""
    write_files(top, {"part/look.py": "import os, mod\n" + look})
    given = {"editable": ("src/*.py",), "import_roots": ("src",), "check": (LOOK,)}
    given |= {"python": sys.executable, "sandbox": "plain"}
    return CodeProblem("look", folder=top, repo="part", **(given | changes))


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_included_paths_are_there_and_the_users_are_left_alone(top, settings, sandbox):  # 2
    look = """
with open("data/table.bin", "rb") as file:
    assert file.read() == b"included"
try:
    with open("data/table.bin", "wb") as file:
        file.write(b"changed!")
except OSError:
    pass
"""
    problem = make_problem(top, look, include=("data",), sandbox=sandbox)
    found = evaluate_candidates_sync(problem, [], settings=settings)
    assert (top / "part/data/table.bin").read_bytes() == b"included"
    if sandbox == "plain":
        assert any("included paths are copied into every slot" in note for note in found.notes)


def test_what_is_ignored_and_not_included_is_not_there(top, settings):  # 2
    look = "assert not os.path.exists('data')\n"
    look += "assert os.listdir('src/__pycache__')  # 5: compiled once, for all of them"
    evaluate_candidates_sync(make_problem(top, look), [], settings=settings)


@pytest.mark.parametrize("git", [True, False])
def test_a_repository_is_there_only_if_it_is_asked_for(top, settings, git):  # 4
    look = "import subprocess\nargv = ['git', 'rev-list', '--count', 'HEAD']\n"
    look += "told = subprocess.run(argv, capture_output=True, text=True).stdout\n"
    look += "assert told == '1\\n', told" if git else "assert told == '', told"
    evaluate_candidates_sync(make_problem(top, look, git=git), [], settings=settings)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_makers_and_recorded_calls_are_hidden_from_checks(top, settings, sandbox):  # 21
    look = "assert not os.listdir('tools') and not os.listdir('calls')"
    checks = (
        LOOK,
        Check(function="mod:double", inputs="tools/make.py:numbers", cases=2, timeout_s=60),
        Check(function="mod:double", calls="calls/double.json", timeout_s=60),
    )
    problem = make_problem(top, look, check=checks, sandbox=sandbox)
    found = evaluate_candidates_sync(problem, [], settings=settings)
    assert any("2 inputs of mod:double were made with seed" in note for note in found.notes)
    assert find_hidden(problem, top) == ("calls/double.json", "tools/make.py")


def test_files_beside_the_problem_are_hidden_where_they_lie_in_the_tree_too(tmp_path, settings):
    look = (
        "found = [name for _, _, names in os.walk('.') for name in names if 'hidden' in name]; "
        "assert not found, found"
    )
    files = {
        "drafts/one/problem.yaml": "problem_id: beside\nfamily: code\nrepo: ../..\n"
        "editable: [mod.py]\ncheck:\n"
        f'  - {{command: ["{{python}}", -c, "import os; {look}"]}}\n'
        "  - {function: 'mod:double', inputs: 'hidden.py:numbers', cases: 2}\n"
        "  - {function: 'mod:double', calls: hidden.json}\n",
        "drafts/one/hidden.py": "def numbers(rng):\n    return [rng.random()], {}\n",
        "drafts/one/hidden.json": '[{"args": [1], "kwargs": {}, "result": 2}]',
        "mod.py": "def double(number):\n    return 2 * number\n",
    }
    top = make_repository(tmp_path / "p", files)
    problem = load_problem(top / "drafts/one/problem.yaml")
    found = evaluate_candidates_sync(problem, [], settings=settings)  # the base passes its checks
    assert not any("found" in note for note in found.notes), found.notes


def test_a_limit_for_untracked_files_holds(top, settings):  # 2
    write_files(top, {"large.bin": bytes(3_000_000)})
    with pytest.raises(StudyError, match=r"large\.bin"):
        evaluate_candidates_sync(make_problem(top, largest_mb=2), [], settings=settings)


def mod(name, text):
    return whole(name, MODULE + text, "part/src/mod.py")


def test_as_many_are_under_way_as_there_are_slots_and_callbacks_are_called(top, settings):  # 3
    problem = make_problem(top)
    given = [mod(f"c{number}", f"N = {number}\n") for number in range(3)]
    events = []

    async def run():
        return await evaluate_candidates(
            problem, given, slots=1, settings=replace(settings, emit=events.append)
        )

    found = anyio.run(run)
    # With one slot no two are under way at once.
    about = [
        event
        for event in events
        if isinstance(event, (arena_events.CheckStarted, arena_events.CandidateJudged))
    ]
    assert about == [
        event
        for judgement in found.judgements
        for event in (
            arena_events.CheckStarted(judgement.name),
            arena_events.CandidateJudged(judgement.name, judgement),
        )
    ]
    assert [item.basis for item in found.judgements] == [Basis.EXIT_STATUS] * 3


def test_an_evaluation_that_failed_through_our_own_fault_is_not_complete():
    fault = Rejection(Reason.EVALUATOR, "the disk is full")
    wrong = Rejection(Reason.TESTS, "1 test")
    judgements = [
        Judgement("a", "1", Verdict.PASSED),
        Judgement("b", "2", Verdict.REJECTED, rejection=wrong),
    ]
    assert Evaluation("p", "base", "plain", tuple(judgements)).is_complete
    judgements.append(Judgement("c", "3", Verdict.INCONCLUSIVE, rejection=fault))
    found = Evaluation("p", "base", "plain", tuple(judgements))
    assert not found.is_complete
    keys = "name digest verdict basis reason failures duplicate_of ratio interval sessions check_s"
    keys = {*keys.split(), "bench_s", "peak_rss_mb"}
    plain = found.as_dict()
    assert all(keys <= set(item) for item in plain["candidates"])
    assert plain["candidates"][2]["reason"] == "evaluator: the disk is full"
    assert plain["candidates"][0]["reason"] is None
    assert json.loads(json.dumps(plain)) == plain


def test_no_import_roots_may_be_meant(top):
    assert find_roots(make_problem(top, import_roots=()), top) == ()
    assert find_roots(make_problem(top, import_roots=("a", "b")), top) == ("a", "b")
    assert find_roots(make_problem(top, import_roots=None, cwd="part"), top) == ("part/src",)


# -- warm starts --

NEEDS_WARMTH = pytest.mark.skipif(not HAS_SANDBOX, reason="no full sandbox works here")
WARM_TESTS = {
    "part/tests/test_mod.py": (
        "import mod, os, sys\n\ndef test_mod():\n    assert mod.double(2) == 4\n"
    )
}
PYTEST = Check(command=("{python}", "-m", "pytest", "-q", "tests"), timeout_s=60)


def warm_problem(top, test=""):
    text = WARM_TESTS["part/tests/test_mod.py"] + test
    write_files(top, {"part/tests/test_mod.py": text})
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return make_problem(top, check=(PYTEST,), sandbox="auto", env=env)


@pytest.mark.parametrize(
    ("cold", "told"),
    [
        ([], "checks start cold: forked from a warm process, the base fails check[0] (t)"),
        (["check[0] (t)"], "checks come and go: the unchanged base passed them at first, and then"),
    ],
)
def test_a_flaky_check_is_not_attributed_to_the_warm_start(monkeypatch, cold, told):
    async def find_failing(*given):
        return cold

    monkeypatch.setattr(warming, "find_failing", find_failing)
    assert anyio.run(warming._explain_failure, None, (), "check[0] (t)").startswith(told)


@NEEDS_WARMTH
def test_a_base_that_fails_warm_is_judged_cold_and_that_is_reported(top, settings, monkeypatch):
    orders = []
    start = warm.WarmServer.starting
    monkeypatch.setattr(
        warm.WarmServer, "starting", lambda *a, **b: orders.append(b) or start(*a, **b)
    )

    async def let_be(*_, **__):
        return []

    monkeypatch.setattr(opening, "run_canaries", let_be)  # it would be one suite more
    cold_only = "\ndef test_cold():\n    assert '_fairtrial_harness' not in sys.modules\n"
    problem = warm_problem(top, cold_only)
    given = [mod("right", "X = 1\n"), whole("wrong", "def double(x): return 3", "part/src/mod.py")]
    found = evaluate_candidates_sync(problem, given, settings=replace(settings, warm=True))
    (note,) = (note for note in found.notes if "cold" in note)
    assert note.startswith("checks start cold: forked from a warm process, the base fails check[0]")
    assert "tests/test_mod.py::test_cold" in note
    assert [judgement.verdict for judgement in found.judgements] == [
        Verdict.PASSED,
        Verdict.REJECTED,
    ]
    # Nothing of the project is to be imported before a candidate is there.
    assert "mod" in orders[0]["never"]
    assert not any("/repo/" in file for file in orders[0]["files"])
