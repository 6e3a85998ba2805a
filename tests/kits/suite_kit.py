"""Slots for the tests of checks: folders of a few files, in the plain sandbox, with our Python."""

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from fairtrial.arena import Check, CodeProblem
from fairtrial.arena.checks import pytest_check as tests
from fairtrial.arena.checks.prepared_check import CheckRun, Trial
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.stage import Stage
from fairtrial.sandbox import Limits, Plain, Sandbox

PYTHON = Interpreter(Path(sys.executable), tuple(sys.version_info[:3]), (), has_pytest=True)


@dataclass
class Slots:
    """Gives out slots with these files in them, each in a folder of its own."""

    folder: Path
    files: dict[str, str]
    env: dict[str, str] = field(default_factory=dict)
    sandbox: Sandbox = field(default_factory=Plain)
    interpreter: Interpreter = PYTHON
    given: int = 0

    def stage(self, files, *, sandbox) -> Stage:
        self.given += 1
        slot = self.folder / f"slot{self.given}"
        slot.mkdir(parents=True)
        for name, content in files.items():
            path = slot / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(content), "utf-8")
        problem = CodeProblem(
            "p",
            # Loading the plug-ins that happen to be installed takes longer than all the rest.
            env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **self.env},
            check=(Check(command=("true",)),),  # a problem needs one; tests bring their own
            limits=Limits(memory_mb=512),
        )
        return Stage(problem, self.interpreter, sandbox, slot, slot, (".",))

    @asynccontextmanager
    async def __call__(self, *, sandboxed=True, trusted=False):
        yield self.stage(self.files, sandbox=self.sandbox if sandboxed else Plain())

    def try_candidate(self, trial: Trial, changes: dict[str, str | None]) -> CheckRun:
        """What a check comes to on the base with these files instead; None removes one."""
        files = {name: text for name, text in {**self.files, **changes}.items() if text is not None}
        return anyio.run(trial.run, self.stage(files, sandbox=self.sandbox))


CHECK = Check(command=("{python}", "-m", "pytest", "-q", "tests"))
CALC = """
    def double(x):
        return 2 * x

    def halve(x):
        return x / 2
"""
TESTS = """
    import unittest

    import pytest
    from calc import double, halve

    def test_before():
        assert double(0) == 0

    def test_double():
        assert double([1, 2]) == [1, 2, 1, 2]

    LONG = [pytest.param("x", id="x" * 3000 + end) for end in "ab"]

    @pytest.mark.parametrize("text", ["ä", "a\\nb", "::[]", *LONG])
    def test_text(text):
        assert double(text) == text + text

    def test_that_can_be_skipped():
        if double(1) != 2:
            pytest.skip("double is broken")

    class Halves(unittest.TestCase):
        def test_halve(self):
            self.assertEqual(halve(4), 2)

        def test_parts(self):
            for number in range(3):
                with self.subTest(number=number):
                    self.assertEqual(halve(2 * number), number)
"""
FILES = {"calc.py": CALC, "tests/test_calc.py": TESTS}


def prepare(slots, check=CHECK, base_runs=1):
    """The check as a trial; the base runs once, unless what its runs differ in matters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tests, "BASE_RUNS", base_runs)
        return anyio.run(tests.prepare_tests, "check[0]", check, slots)


def reject(slots, trial, changes):
    rejection = slots.try_candidate(trial, changes).rejection
    assert rejection is not None
    assert all(failure.check == "check[0]" for failure in rejection.failures)
    return rejection
