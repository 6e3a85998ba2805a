"""Audits of problems: null candidates and mutants in real arenas."""

import json
import sys
from dataclasses import replace
from functools import partial

import anyio
import pytest
from click.testing import CliRunner
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    AuditLimits,
    Benchmark,
    Candidate,
    Check,
    CodeProblem,
    audit_problem,
    evaluate_candidates,
)
from fairtrial.arena.audit import audit as auditing
from fairtrial.arena.checks import command_check as commands, pytest_check as tests
from fairtrial.arena.model.adequacy import NullKind
from fairtrial.cli.audit_text import print_audit, summarize_audit
from fairtrial.cli.main import cli
from fairtrial.optimize.journal import problem_fingerprint

DUPLICATES = """
def find_duplicates(numbers):
    seen = set()
    duplicates = []
    for number in numbers:
        if number in seen and number not in duplicates:
            duplicates.append(number)
        seen.add(number)
    return duplicates
"""
FILES = {
    "src/dups/__init__.py": "from dups.core import find_duplicates\n",
    "src/dups/core.py": DUPLICATES,
    "inputs/make.py": (
        "def sparse(rng):\n    return ([rng.randrange(10**12) for _ in range(200)],), {}\n\n"
        "def dense(rng):\n    return ([rng.randrange(40) for _ in range(60)],), {}\n"
    ),
    "checks/verify.py": "def anything(args, kwargs, result):\n    return True\n",
    "tests/test_dups.py": (
        "from dups.core import find_duplicates\n\n"
        "def test_two():\n    assert find_duplicates([1, 2, 1]) == [1]\n"
        "    assert find_duplicates([1, 3, 3]) == [3]\n"
    ),
    "problem.yaml": (
        'problem_id: dups\neditable: ["src/**/*.py"]\ncheck:\n'
        '  - function: "dups:find_duplicates"\n    inputs: "inputs/make.py:sparse"\n    cases: 5\n'
    ),
}
FUNCTION = "dups:find_duplicates"
SPARSE = Check(function=FUNCTION, inputs="inputs/make.py:sparse", cases=5)
DENSE = Check(function=FUNCTION, inputs="inputs/make.py:dense", cases=5)
TESTS = Check(command=("{python}", "-m", "pytest", "-q", "tests/"))
PLAIN = ArenaSettings(unsandboxed=True)


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_HOME", str(tmp_path_factory.mktemp("home")))
        for module in (commands, tests):
            patch.setattr(module, "BASE_RUNS", 1)
        yield


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return make_repository(tmp_path_factory.mktemp("dups") / "repo", FILES)


def make_problem(top, *checks, **more):
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    given = {"editable": ("src/**/*.py",), "python": sys.executable, "env": env, **more}
    return CodeProblem("dups", check=checks, folder=top, **given)


def audit(problem, **limits):
    limits = {"max_seconds": 600.0, **limits}  # a busy machine judges no fewer
    return anyio.run(partial(audit_problem, problem, AuditLimits(**limits), settings=PLAIN))


def accepted(adequacy):
    return {null.kind for null in adequacy.accepted}


@pytest.fixture(scope="module")
def weak(top):
    """The audit of checks whose inputs all have one answer."""
    return audit(make_problem(top, SPARSE), mutants=20)


@pytest.mark.slow
def test_inputs_with_one_answer_accept_a_constant_and_the_reason_is_reported(weak):
    assert accepted(weak) == {NullKind.CONSTANT, NullKind.EMPTY, NullKind.LAST_RESULT}
    assert weak.veto == (
        "the checks accept a function that always returns [] in place of dups:find_duplicates: "
        "every input that the checks use has that answer; draw inputs with different answers, or "
        "add cases that have others"
    )
    rejected = [null for null in weak.nulls if null.passed is False]
    assert {null.check for null in rejected} == {"check[0]"}


@pytest.mark.slow
def test_an_accept_function_that_accepts_anything_is_named_as_the_cause(top):
    check = replace(DENSE, accept="checks/verify.py:anything")
    veto = audit(make_problem(top, check), mutants=0).veto
    assert "checks/verify.py:anything accepts its results; let it refuse wrong ones" in veto
    assert "every input" not in veto


@pytest.mark.slow
def test_a_surviving_mutant_is_shown_with_its_diff(weak, capsys):
    diffs = {mutant.diff for mutant in weak.survivors}
    assert any("-        seen.add(number)\n+        pass" in diff for diff in diffs)
    assert 0 < weak.killed < len(weak.mutants)
    data = weak.as_dict()
    assert data["score"] == weak.killed / len(weak.mutants)
    assert {survivor["diff"] for survivor in data["survivors"]} == diffs
    assert json.loads(json.dumps(data)) == data
    print_audit(weak)
    printed = capsys.readouterr().out
    assert "ACCEPTED  always returns []" in printed
    assert f"{weak.killed} of {len(weak.mutants)} mutants rejected" in printed
    assert "surviving: src/dups/core.py" in printed
    assert "\n    -        seen.add(number)\n    +        pass\n" in printed
    assert any(text.startswith("Nothing is to be adopted") for text in summarize_audit(weak))


@pytest.mark.slow
def test_inputs_with_different_answers_reject_all_nulls_and_most_mutants(top):
    adequacy = audit(make_problem(top, DENSE), mutants=5, seed=1)
    assert (len(adequacy.nulls), adequacy.accepted, adequacy.veto) == (6, (), "")
    assert (len(adequacy.mutants), adequacy.left) == (5, 0)
    assert adequacy.score is not None
    assert adequacy.score > 0.5
    assert "6 of 6 null candidates rejected" in next(iter(summarize_audit(adequacy)))


@pytest.mark.slow
def test_tests_alone_are_audited_with_what_is_compared_while_timing(top):
    bench = Benchmark("sparse", call=FUNCTION, inputs="inputs/make.py:sparse")
    adequacy = audit(make_problem(top, TESTS, bench=(bench,)), mutants=0)
    assert adequacy.accepted == ()
    assert {null.check for null in adequacy.nulls} == {"check[0]", "bench[sparse]"}


def test_without_a_function_nothing_is_audited_and_that_is_reported(top):
    check = Check(command=("{python}", "-c", "import dups"))
    adequacy = audit(make_problem(top, check))
    assert (adequacy.nulls, adequacy.score) == ((), None)
    assert adequacy.notes == (auditing.NOT_NAMED,)


def test_time_is_bounded_and_what_was_left_is_counted(top):
    adequacy = audit(make_problem(top, SPARSE), mutants=5, max_seconds=0.0)
    assert adequacy.left == len(NullKind) + 5
    assert [null.passed for null in adequacy.nulls] == [None] * len(NullKind)
    assert (adequacy.mutants, adequacy.score, adequacy.veto) == ((), None, "")
    nulls = len(NullKind)
    assert adequacy.summary == (
        f"0 of {nulls} null candidates rejected and {nulls} not judged; "
        f"{nulls + 5} not judged for want of time, mutants included"
    )


@pytest.mark.slow
def test_a_mutant_that_never_ends_is_rejected_soon(tmp_path):
    files = {
        "src/count.py": "def count(n):\n    while n:\n        n -= 1\n    return n\n",
        "inputs/make.py": "def make(rng):\n    return (rng.randrange(1, 9),), {}\n",
    }
    check = Check(function="count:count", inputs="inputs/make.py:make", cases=5)
    adequacy = audit(make_problem(make_repository(tmp_path / "repo", files), check), mutants=3)
    assert adequacy.left == 0
    assert any(mutant.survived is False for mutant in adequacy.mutants)
    assert NullKind.CONSTANT in accepted(adequacy)  # it always returns 0


EMPTY = Candidate("empty", files={"src/dups/core.py": "def find_duplicates(n):\n    return []\n"})


def evaluate(problem, *candidates, **settings):
    options = ArenaSettings(unsandboxed=True, **settings)
    return anyio.run(partial(evaluate_candidates, problem, candidates, settings=options))


@pytest.mark.slow
def test_a_candidate_that_returns_nothing_is_not_adopted_if_every_input_has_that_answer(top):
    bench = Benchmark("sparse", call=FUNCTION, inputs="inputs/make.py:sparse")
    problem = make_problem(top, SPARSE, bench=(bench,), budget_s=2.0)
    evaluation = evaluate(problem, EMPTY, timing="each")
    (judgement,) = evaluation.judgements
    assert judgement.rejection is None  # the checks can't tell it from the base
    assert judgement.measurement.adopt is False
    assert judgement.measurement.vetoes[0] == evaluation.adequacy.veto
    assert evaluation.as_dict()["adequacy"]["veto"].startswith("the checks accept a function that")
    assert evaluation.as_dict()["candidates"][0]["adopt"] is False


def test_without_an_audit_the_verdict_says_so(top):
    evaluation = evaluate(make_problem(top, SPARSE), EMPTY, audit=False, timing="none")
    assert evaluation.adequacy is None
    assert evaluation.as_dict()["adequacy"] is None
    assert any("not audited" in note for note in evaluation.notes)


def test_the_command_exits_with_5_if_a_null_passes(top):
    arguments = ["audit", str(top / "problem.yaml"), "--mutants", "0", "--unsandboxed", "--json"]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.return_value == 5, result.output
    data = json.loads(result.stdout)
    assert (data["problem_id"], data["score"], data["mutants"]) == ("dups", None, 0)
    accepted = [null["kind"] for null in data["nulls"] if null["passed"]]
    assert accepted == ["constant", "empty", "last_result"]


def test_an_optimization_stops_before_it_asks_for_candidates(top, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bench = 'bench: [{name: sparse, command: ["true"]}]\n'
    (top / "timed.yaml").write_text(FILES["problem.yaml"] + bench)
    arguments = ["optimize", str(top / "timed.yaml"), "--unsandboxed", "--json"]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.return_value == 2, result.output
    error = json.loads(result.stdout)["error"]
    assert "the checks accept a function that always returns []" in error
    assert "--no-audit" in error


def test_fields_that_came_later_do_not_change_the_digest_of_older_problems():
    problem = CodeProblem("old", check=(Check(command=("true",)),))
    (check,) = problem.identity()["check"]
    assert not {"accept", "must_pass", "fails_on_base"} & set(check)
    digest = problem_fingerprint(problem)
    assert digest == "01b3f0553d331277f6d8cbd8e074fee7deb793217a9c78151e8bba4e5a14e77e"
    changed = replace(problem, check=(Check(command=("true",), fails_on_base=True),))
    assert problem_fingerprint(changed) != digest
