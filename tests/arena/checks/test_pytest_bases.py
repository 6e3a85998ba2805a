"""Settling what a base's tests are worth before candidates are held to them (12, 20)."""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from suite_kit import CALC, CHECK, FILES, PYTHON, Slots, prepare, reject

from fairtrial.arena import Check
from fairtrial.arena.checks.pytest_check import BASE_RUNS, pytest_command
from fairtrial.core import StudyError
from fairtrial.sandbox import Plain


def refused(slots, check=CHECK):
    with pytest.raises(StudyError) as caught:
        prepare(slots, check)
    [mistake] = caught.value.mistakes
    assert mistake.path == ("check[0]",)
    return str(mistake)


STRICT = """
    [pytest]
    addopts = -x --strict-markers --strict-config --doctest-modules -p no:logging --lf --sw
    filterwarnings = error
    markers = mine: known
"""


def test_a_demanding_configuration_is_obeyed_but_for_what_hides_results(tmp_path):
    documented = (
        CALC
        + '''
    def triple(x):
        """Three times.

        >>> triple(2)
        6
        """
        return 3 * x
'''
    )
    files = {
        "calc.py": documented,
        "pytest.ini": STRICT,
        "tests/test_a.py": "def test_bad(): assert 0\ndef test_worse(): assert 0\n",
        "tests/test_z.py": """
            import pytest

            @pytest.mark.mine
            def test_last():
                pass
        """,
    }
    slots = Slots(tmp_path, files)
    trial = prepare(slots, replace(CHECK, command=("pytest", "-x", "tests", "calc.py")))
    assert set(trial.standard.counted) == {"tests/test_z.py::test_last", "calc.py::calc.triple"}
    assert "--maxfail" in trial.notes[-1]
    assert "test_bad, tests/test_a.py::test_worse (the first: assert 0)" in trial.notes[0]
    broken = {"calc.py": documented.replace("3 * x", "4 * x")}
    rejection = reject(slots, trial, broken)
    assert rejection.failures[0].what == "calc.py::calc.triple"
    assert "Expected:\n    6\nGot:\n    8" in rejection.failures[0].message


def test_a_test_that_varies_on_the_base_is_named_and_does_not_count(tmp_path):
    """20: the base runs three times."""
    flaky = """
        import os

        def test_flaky():
            # Passes for all but the run that comes first.
            try:
                os.close(os.open(os.environ["MARK"], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            assert False

        def test_stable():
            pass
    """
    slots = Slots(tmp_path, {"tests/test_f.py": flaky}, env={"MARK": str(tmp_path / "mark")})
    trial = prepare(slots, base_runs=BASE_RUNS)
    assert list(trial.standard.counted) == ["tests/test_f.py::test_stable"]
    assert trial.notes == (
        "check[0]: unstable on the base, not counted: tests/test_f.py::test_flaky",
    )
    failing = {"tests/test_f.py": flaky.replace("return", "assert False")}
    assert slots.try_candidate(trial, failing).rejection is None


def test_of_a_base_whose_tests_come_and_go_it_is_not_said_that_none_passes(tmp_path):
    flaky = """
        import os
        def test_flaky():
            try:
                os.close(os.open(os.environ["MARK"], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            assert False
    """
    slots = Slots(tmp_path, {"tests/test_f.py": flaky}, env={"MARK": str(tmp_path / "mark")})
    told = r"none passes each time, tests/test_f.py::test_flaky only now and then"
    with pytest.raises(StudyError, match=told):
        prepare(slots, base_runs=BASE_RUNS)


@dataclass(frozen=True)
class Pretended:
    """A sandbox that a test can tell from none."""

    name = "pretended"
    relocates = False
    shortfalls = ()

    async def run(self, command):
        return await Plain().run(replace(command, env={**command.env, "INSIDE": "1"}))


def test_tests_that_pass_only_outside_the_sandbox_are_named_with_the_reason(tmp_path):
    """20"""
    text = """
        import os

        def test_network():
            assert "INSIDE" not in os.environ, "no network"

        def test_fine():
            pass
    """
    slots = Slots(tmp_path, {"tests/test_n.py": text}, sandbox=Pretended())
    trial = prepare(slots)
    assert list(trial.standard.counted) == ["tests/test_n.py::test_fine"]
    [note] = trial.notes
    assert "pass only outside the sandbox, not counted: tests/test_n.py::test_network" in note
    assert "no network" in note
    alone = Slots(
        tmp_path / "alone",
        {"tests/test_n.py": text[: text.index("        def test_fine")]},
        sandbox=Pretended(),
    )
    assert "1 tests pass only outside the sandbox" in refused(alone)


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("", "collected no tests (exit code 5", "check the paths"),
        ("import nowhere", "No module named 'nowhere'", "importable"),
        ("def test_a(): assert 1 == 2", "assert 1 == 2", "fix the tests"),
        ("import os; os.kill(os.getpid(), 11)", "died of SIGSEGV", "without a crash"),
        ("def test_a(): import os; os._exit(0)", "before it was done", "without a crash"),
    ],
)
def test_a_base_without_tests_to_count_is_refused_with_the_reason(tmp_path, text, words, hint):
    message = refused(Slots(tmp_path, {"tests/test_a.py": text}))
    assert words in message
    assert hint in message.split(words)[1]


def test_a_base_that_takes_too_long_is_refused(tmp_path):
    slots = Slots(tmp_path, {"tests/test_a.py": "def test_a(): import time; time.sleep(1e4)"})
    for limit_s in (1.5, 6, 30):  # on a busy machine pytest may not come to the test
        message = refused(slots, replace(CHECK, timeout_s=limit_s))
        if "::test_a" in message:
            break
    assert f"longer than {limit_s} s in tests/test_a.py::test_a" in message
    assert "raise check[0].timeout_s" in message


@pytest.mark.parametrize("words", [["nowhere"], ["--no-such-option"]])
def test_a_command_that_pytest_refuses_is_refused(tmp_path, words):
    check = replace(CHECK, command=(*CHECK.command, *words))
    message = refused(Slots(tmp_path, FILES), check)
    assert words[0] in message
    assert "check the command's options and paths" in message


def test_a_python_without_pytest_is_refused(tmp_path):
    slots = Slots(tmp_path, FILES, interpreter=replace(PYTHON, has_pytest=False))
    assert f"{sys.executable} has no pytest" in refused(slots)


@pytest.mark.parametrize(
    "command", [("pytest", "-q"), (".venv/bin/py.test", "-q"), ("{python}", "-m", "pytest", "-q")]
)
def test_pytest_is_run_as_a_module_of_the_problems_python_with_our_plugin(tmp_path, command):
    stage = Slots(tmp_path, {}).stage({}, sandbox=Plain())
    made = pytest_command(stage, Check(command=command))
    assert made.argv == (sys.executable, "-m", "pytest", "-p", "fairtrial_pytest", "-q")
    assert Path(made.env["PYTHONPATH"].split(os.pathsep)[-1]).name == "plugin"
