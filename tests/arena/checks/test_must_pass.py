"""Tests and commands that fail on the base and must pass in candidates: they judge fixes."""

import sys
from functools import partial

import anyio
import pytest
from arena_kit import whole
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    Check,
    CodeProblem,
    Reason,
    Verdict,
    evaluate_candidates,
    open_arena,
)
from fairtrial.arena.checks import command_check as commands, pytest_check as tests
from fairtrial.arena.model.adequacy import NullKind
from fairtrial.core import StudyError

BASE = "def mean(numbers):\n    return sum(numbers) / len(numbers)\n"
FIXED = (
    "def mean(numbers):\n    return sum(numbers) / len(numbers) if numbers else 0.0\n\n"
    "def median(numbers):\n    return sorted(numbers)[len(numbers) // 2]\n"
)
FILES = {
    "src/stats.py": BASE,
    "tests/test_stats.py": (
        "import pytest\nfrom stats import mean\n\n"
        "def test_two():\n    assert mean([1, 3]) == 2\n\n"
        "def test_none():\n    assert mean([]) == 0\n\n"
        "@pytest.mark.parametrize('empty', [(), {}])\n"
        "def test_empty(empty):\n    assert mean(empty) == 0\n"
    ),
    "tests/test_median.py": (
        "from stats import median\n\ndef test_median():\n    assert median([3, 1, 2]) == 2\n"
    ),
    "inputs/make.py": "def make(rng):\n    return ([rng.random() for _ in range(5)],), {}\n",
}
PYTEST = ("{python}", "-m", "pytest", "-q", "tests/")
REQUIRED = ("tests/test_stats.py::test_none", "tests/test_stats.py::test_empty")
NEW = "tests/test_median.py::test_median"
COMMAND = ("{python}", "-c", "import stats; assert stats.mean([]) == 0")


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_HOME", str(tmp_path_factory.mktemp("home")))
        for module in (commands, tests):
            patch.setattr(module, "BASE_RUNS", 1)
        yield


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return make_repository(tmp_path_factory.mktemp("stats") / "repo", FILES)


def make_problem(top, *checks):
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    given = {"editable": ("src/*.py",), "python": sys.executable, "env": env}
    return CodeProblem("stats", check=checks, folder=top, **given)


SETTINGS = ArenaSettings(unsandboxed=True, timing="none")


def evaluate(problem, texts):
    candidates = [whole(name, text, "src/stats.py") for name, text in texts.items()]
    work = partial(evaluate_candidates, problem, candidates, settings=SETTINGS)
    return anyio.run(work)


def refusal(problem):
    async def open_it():
        async with open_arena(problem, settings=SETTINGS):
            pass

    with pytest.raises(StudyError) as stop:
        anyio.run(open_it)
    return str(stop.value)


@pytest.fixture(scope="module")
def evaluation(top):
    checks = (
        Check(command=PYTEST, must_pass=(*REQUIRED, NEW)),
        Check(command=COMMAND, fails_on_base=True),
        Check(function="stats:mean", inputs="inputs/make.py:make", cases=4),
    )
    half = BASE.replace("len(numbers)", "max(len(numbers), 1)")
    broken = FIXED.replace("sum(numbers) /", "1 + sum(numbers) /")
    texts = {"fixed": FIXED, "half": half, "broken": broken, "other": BASE + "\nX = 1\n"}
    texts["same"] = BASE + "# nothing new\n"
    return evaluate(make_problem(top, *checks), texts)


@pytest.fixture(scope="module")
def judged(evaluation):
    return {judgement.name: judgement for judgement in evaluation.judgements}


def test_a_fix_passes(judged):
    assert judged["fixed"].verdict == Verdict.PASSED


def test_a_candidate_without_the_fix_is_rejected_by_the_tests_that_must_pass(judged):
    rejection = judged["other"].rejection
    assert rejection.reason == Reason.TESTS
    assert rejection.message.startswith("must-pass tests don't pass: tests/test_stats.py::test_no")
    names = {failure.what for failure in rejection.failures}
    assert len(names) == 4  # both parameters of test_empty count
    assert NEW in names


def test_a_candidate_that_changes_nothing_is_rejected_as_the_base_would_be(judged):
    assert judged["same"].rejection.reason == Reason.TESTS
    assert "it changes nothing, and the base fails what must pass" in (
        judged["same"].rejection.message
    )


def test_a_part_of_the_fix_is_not_enough(judged):
    assert judged["half"].rejection.message == f"must-pass tests don't pass: {NEW}"
    assert "can't be collected" in judged["half"].rejection.failures[0].message


def test_a_fix_that_breaks_something_else_is_rejected_for_that(judged):
    assert "tests that the base passes" in judged["broken"].rejection.message


def test_notes_name_the_tests_that_must_pass_and_do_not_call_them_uncounted(evaluation):
    (note,) = [note for note in evaluation.notes if "must pass" in note]
    assert REQUIRED[0] in note
    assert not any("not counted" in note for note in evaluation.notes)
    assert not any("come and go" in note or "cold" in note for note in evaluation.notes)


def test_an_audit_does_not_credit_tests_that_fail_on_the_base(evaluation):
    checks = {null.kind: null.check for null in evaluation.adequacy.nulls}
    assert checks[NullKind.CONSTANT] in ("check[0]", "check[2]")
    assert evaluation.adequacy.accepted == ()


def test_tests_that_must_pass_are_enough_for_a_check(top):
    check = Check(command=(*PYTEST[:-1], "tests/test_median.py"), must_pass=(NEW,))
    work = partial(
        evaluate_candidates,
        make_problem(top, check),
        [whole("fixed", FIXED, "src/stats.py")],
        settings=ArenaSettings(unsandboxed=True),
    )
    (judgement,) = anyio.run(work).judgements
    assert judgement.verdict == Verdict.PASSED  # there is nothing to time


def test_tests_that_pass_on_the_base_already_are_refused(top):
    passing = "tests/test_stats.py::test_two"
    message = refusal(make_problem(top, Check(command=PYTEST, must_pass=(passing,))))
    assert f"{passing} passes on the unchanged base already" in message
    assert "must_pass[0]" in message


def test_tests_that_do_not_exist_are_refused_with_the_nearest_name(top):
    check = Check(command=PYTEST, must_pass=("tests/test_stats.py::test_nine", NEW))
    message = refusal(make_problem(top, check))
    assert "runs no test 'tests/test_stats.py::test_nine'; did you mean" in message


def test_a_command_that_succeeds_on_the_base_already_is_refused(top):
    check = Check(command=("{python}", "-c", "import stats"), fails_on_base=True)
    assert "check[0].fails_on_base: on the unchanged base, the command" in refusal(
        make_problem(top, check)
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"command": ("make",), "must_pass": ("a",)}, "is for a command that runs pytest"),
        ({"command": PYTEST, "fails_on_base": True}, "is for commands other than pytest"),
        (
            {"command": ("make",), "fails_on_base": True, "compare": "output"},
            "can't be combined with `compare: output`",
        ),
        ({"command": ("make",), "accept": "a.py:b"}, "is for a check of a `function`"),
    ],
)
def test_options_that_do_not_fit_the_kind_of_check_are_refused(fields, message):
    with pytest.raises(StudyError) as stop:
        Check(**fields)
    assert message in str(stop.value)
