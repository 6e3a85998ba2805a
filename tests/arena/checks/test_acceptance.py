"""Accept functions: several right answers, judged in a trusted process."""

import sys
from functools import partial

import anyio
import pytest
from arena_kit import whole
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    Benchmark,
    Check,
    CodeProblem,
    Reason,
    Verdict,
    evaluate_candidates,
    open_arena,
    problem_files,
)
from fairtrial.core import StudyError

BASE = """
def pair(numbers, total):
    for one in numbers:
        if total - one in numbers:
            return [one, total - one]
    raise ValueError("no pair")
"""
LAST = BASE.replace("in numbers:\n        if", "in reversed(numbers):\n        if")
WRONG = BASE.replace("return [one, total - one]", "return [one, one]")
SILENT = BASE.replace('raise ValueError("no pair")', "return []")
NOISY = LAST.replace("            return", "            print(one)\n            return")
ODD = BASE.replace("return [one, total - one]", "return None")
VERIFY = """
def is_pair(args, kwargs, result):
    numbers, total = args
    if sum(result) != total:
        return f"{result} doesn't add up to {total}"
    return True


def is_broken(args, kwargs, result):
    return 1 / 0


def is_vague(args, kwargs, result):
    return False


def is_strict(args, kwargs, result):
    return "nothing is right"
"""
MAKE = """
def make(rng):
    numbers = [rng.randrange(100) for _ in range(10)]
    return (numbers, numbers[3] + numbers[6]), {}
"""
FILES = {
    "src/pairs.py": BASE,
    "checks/verify.py": VERIFY,
    "checks/make.py": MAKE,
    "calls.json": '[{"args": [[1], 5], "kwargs": {}, "raises":'
    ' {"type": "builtins.ValueError", "args": ["no pair"]}},'
    ' {"args": [[1, 4, 2, 3], 5], "kwargs": {}, "result": [4, 1]}]',
}
CHECK = Check(
    function="pairs:pair",
    inputs="checks/make.py:make",
    cases=8,
    accept="checks/verify.py:is_pair",
)


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return make_repository(tmp_path_factory.mktemp("pairs") / "repo", FILES)


def make_problem(top, *checks, **more):
    given = {"editable": ("src/*.py",), "python": sys.executable, **more}
    return CodeProblem("pairs", check=checks, folder=top, **given)


def evaluate(problem, texts, **settings):
    candidates = [whole(name, text, "src/pairs.py") for name, text in texts.items()]
    options = ArenaSettings(**{"unsandboxed": True, "timing": "none", "audit": False, **settings})
    work = partial(evaluate_candidates, problem, candidates, settings=options)
    return {judgement.name: judgement for judgement in anyio.run(work).judgements}


@pytest.fixture(scope="module")
def judged(top):
    calls = Check(function="pairs:pair", calls="calls.json", accept=CHECK.accept)
    texts = {"last": LAST, "wrong": WRONG, "silent": SILENT, "noisy": NOISY, "odd": ODD}
    return evaluate(make_problem(top, CHECK, calls), texts)


def test_another_right_answer_is_accepted(judged):
    assert judged["last"].verdict == Verdict.PASSED


def test_a_wrong_answer_is_rejected_with_the_reason(judged):
    rejection = judged["wrong"].rejection
    assert rejection.reason == Reason.DIFFERENT
    assert "not accepted by checks/verify.py:is_pair" in rejection.message
    assert "doesn't add up to" in rejection.message
    (difference,) = rejection.failures[0].differences
    assert difference.expected.startswith("one that checks/verify.py:is_pair accepts (it says: ")


def test_exceptions_and_output_are_compared_with_the_base_nevertheless(judged):
    assert "no pair" in judged["silent"].rejection.message
    assert judged["noisy"].rejection.failures[0].differences[0].where == "output"


def test_an_exception_of_the_accept_function_is_not_the_candidates_fault(judged):
    judgement = judged["odd"]
    assert judgement.is_unjudged
    assert judgement.verdict == Verdict.INCONCLUSIVE
    assert "check[0].accept: checks/verify.py:is_pair: TypeError" in judgement.rejection.message


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ("is_strict", "doesn't accept the base's own result of case 1: nothing is right"),
        ("is_broken", "ZeroDivisionError"),
        ("is_vague", "it must return True, or a text that says why a result is wrong"),
        ("is_missing", "has no function is_missing"),
    ],
)
def test_an_accept_function_must_accept_the_base(top, accept, message):
    check = Check(
        function=CHECK.function, inputs=CHECK.inputs, cases=2, accept=f"checks/verify.py:{accept}"
    )

    async def open_it():
        problem = make_problem(top, check)
        async with open_arena(problem, settings=ArenaSettings(unsandboxed=True)):
            pass

    with pytest.raises(StudyError) as stop:
        anyio.run(open_it)
    assert message in str(stop.value)
    assert stop.value.mistakes[0].path == ("check[0]", "accept")


@pytest.mark.slow
def test_results_are_judged_while_they_are_timed(top):
    # Wrong for the larger numbers of the benchmark only.
    sneaky = LAST.replace("[one, total - one]", "[one, total - one] if total < 200 else [one, one]")
    bench = Benchmark("pairs", call="pairs:pair", inputs="checks/large.py:make")
    large = MAKE.replace("randrange(100)", "randrange(500, 900)")
    (top / "checks/large.py").write_text(large)
    problem = make_problem(top, CHECK, bench=(bench,), budget_s=20.0)
    odd = LAST.replace("[one, total - one]", "[one, total - one] if total < 200 else None")
    texts = {"odd": odd, "last": LAST, "sneaky": sneaky}
    judged = evaluate(problem, texts, timing="each")
    assert judged["odd"].is_unjudged  # the accept function raises, which harms no other candidate
    assert "checks/verify.py:is_pair: TypeError" in judged["odd"].rejection.message
    assert judged["last"].rejection is None
    assert judged["last"].measurement is not None
    assert "while it was timed" in judged["sneaky"].rejection.message
    assert "which checks/verify.py:is_pair doesn't accept" in judged["sneaky"].rejection.message


def test_candidates_may_not_change_the_accept_function(top):
    problem = make_problem(top, CHECK, editable=("**/*.py",))
    candidate = whole("cheat", "def is_pair(*a): return True\n", "checks/verify.py")
    options = ArenaSettings(unsandboxed=True, timing="none", audit=False)
    work = partial(evaluate_candidates, problem, [candidate], settings=options)
    (judgement,) = anyio.run(work).judgements
    assert judgement.rejection.reason == Reason.OUTSIDE


def test_a_missing_function_is_found_without_running_anything(tmp_path):
    top = make_repository(tmp_path / "repo", FILES)
    (top / "problem.yaml").write_text(
        'problem_id: pairs\neditable: ["src/*.py"]\ncheck:\n  - function: "pairs:pair"\n'
        '    inputs: "checks/make.py:make"\n    accept: "checks/verify.py:is_pairs"\n'
    )
    with pytest.raises(StudyError, match="did you mean 'is_pair'"):
        problem_files.check_problem_file(top / "problem.yaml")
