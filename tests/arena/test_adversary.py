"""Candidates that should not pass, and honest ones that must not be accused: one evaluation of all.

What each of them does was once a way through, or an accusation of somebody who had done nothing.
"""

import io
import json
import sys
from contextlib import redirect_stdout

import pytest
from arena_kit import whole
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    Check,
    CodeProblem,
    Reason,
    Verdict,
    evaluate_candidates_sync,
)
from fairtrial.arena.checks import pytest_check as tests
from fairtrial.cli.output import print_json
from fairtrial.cli.verdict_text import print_evaluation
from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox

pytestmark = pytest.mark.skipif(
    all(try_sandbox(sandbox) for sandbox in FULL_SANDBOXES), reason="no full sandbox works here"
)
CORE = "import click\n\ndef smallest(numbers, count):\n    return sorted(numbers)[:count]\n"
WRONG = CORE.replace("sorted(numbers)", "sorted(set(numbers))")
CHECKS = """
import subprocess, sys
from few import smallest

def verify_two():
    assert smallest([3, 3, 1], 3) == [1, 3, 3]

def verify_elsewhere():
    code = "import sys; sys.path.insert(0, 'src'); import few.core"
    subprocess.run([sys.executable, "-I", "-c", code], check=True)
"""
FILES = {
    "src/few/__init__.py": "from few.core import smallest\n",
    "src/few/core.py": CORE,
    "examined/verify_few.py": CHECKS,
    "pytest.ini": "[pytest]\npython_files = verify_*.py\npython_functions = verify_*\n",
    "inputs.py": (
        "def numbers(rng):\n"
        "    return ([rng.randrange(9) for _ in range(30)], rng.randrange(2, 8)), {}\n"
    ),
}
FORGED = r"""
import os, sys
if sys.argv[0].endswith("worker.py"):
    bad = r"\ud800\u001b[31mRED"
    node = r'{"$":"object","type":"%s","base":1,"state":{"%s":1}}' % (bad, bad)
    line = '{"case":%d,"result":[' + node + '],"output":"","traceback":"' + bad + '"}\n'
    lines = [line % number for number in range(8)] + ['{"done":8,"files":["' + bad + '"]}\n']
    for descriptor in range(3, 300):
        try:
            os.write(descriptor, "".join(lines).encode())
        except OSError:
            pass
    os._exit(0)
"""
PATCHED = """
import sys
if "_pytest.python" in sys.modules:
    sys.modules["_pytest.python"].Function.runtest = lambda self: None
"""


def core(name, text):
    return whole(name, text, "src/few/core.py")


CANDIDATES = [
    core("honest", CORE.replace("sorted(numbers)", "list(sorted(numbers))")),
    core("forger", FORGED + CORE),
    core("patches the runner", PATCHED + WRONG),
    whole("hides a package", "raise ImportError('not the one you know')\n", "src/click.py"),
    Candidate("rewrites tests", files={
        **core("", WRONG).files,
        **whole("", CHECKS.replace("[1, 3, 3]", "[1, 3]"), "examined/verify_few.py").files,
    }),
    core("not text", CORE + "\ndef smallest(numbers, count):\n    raise ValueError('\\udc80')\n"),
]  # fmt: skip


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    top = make_repository(tmp_path_factory.mktemp("few") / "repo", FILES)
    checks = (
        Check(command=("{python}", "-m", "pytest", "-q", "examined")),
        Check(function="few:smallest", inputs="inputs.py:numbers", cases=8),
    )
    settings = ArenaSettings(timing="none", lock_folder=tmp_path_factory.mktemp("lock"))
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # loading them takes longer than all the rest
    problem = CodeProblem("few", folder=top, check=checks, python=sys.executable, env=env)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setattr(tests, "BASE_RUNS", 1)  # what runs of the base differ in is no matter here
        return evaluate_candidates_sync(problem, CANDIDATES, settings=settings)


@pytest.fixture(scope="module")
def judged(evaluation):
    return {judgement.name: judgement for judgement in evaluation.judgements}


def test_bytecode_that_a_process_without_our_variables_writes_is_not_tampering(judged):  # 19
    assert judged["honest"].verdict == Verdict.PASSED, judged["honest"].rejection


def test_a_patched_test_runner_does_not_help_against_compared_results(judged):  # 22
    assert judged["patches the runner"].rejection.reason == Reason.DIFFERENT


def test_a_module_that_hides_an_installed_one_runs_although_starts_are_warm(judged):  # 12
    assert judged["hides a package"].rejection.reason == Reason.TESTS
    assert "not the one you know" in judged["hides a package"].rejection.failures[0].message


def test_files_with_tests_are_protected_whatever_they_are_called(judged):  # 24
    rejection = judged["rewrites tests"].rejection
    assert (rejection.reason, rejection.failures[0].what) == (
        Reason.OUTSIDE,
        "examined/verify_few.py",
    )


@pytest.mark.parametrize("name", ["forger", "not text"])
def test_whatever_a_report_holds_is_text_afterwards(judged, name):  # 17
    assert judged[name].rejection is not None
    str(judged[name]).encode("utf-8")


def test_verdicts_can_be_printed_whatever_a_report_holds(evaluation):  # 17
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
        print_json(evaluation.as_dict())
        print_evaluation(evaluation)
    out.flush()
    printed = out.buffer.getvalue().decode("utf-8")
    assert json.JSONDecoder().raw_decode(printed)[0]["candidates"]
    assert "\x1b[31mRED" not in printed


def test_names_that_are_no_text_can_be_printed(capsys):
    print_json({"name": "caf\udce9"})
    assert json.loads(capsys.readouterr().out) == {"name": "caf\udce9"}
