"""Evaluators that run programs in the sandbox: unit tests of code, and a command."""

from __future__ import annotations

import json
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.core import LabError, Mistake, Record, StudyError, canonical_json
from fairtrial.sandbox import Command, Completed, Ending, Limits, Mount, View, find_sandbox
from fairtrial.study.evaluators.case import EvaluationCase, Evaluator
from fairtrial.study.evaluators.normalizing import as_text, find_field, no_answer
from fairtrial.study.model.study import RunBudget

DRIVER = Path(__file__).with_name("driver_of_tests.py")
PYTHON = "{python}"
STARTED = "started\n"
"""What the driver prints first: only before it could the machine, or the sandbox, be at fault."""
_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)```", re.DOTALL)
_MOST_NOTE = 1_000


@dataclass(frozen=True, slots=True)
class SandboxedEvaluator(Record, Evaluator):
    """Base class of evaluators that run a program in the sandbox, without network.

    timeout_s: how long the program may take
    limits: its memory, processes and files
    field: the key of the output that holds the answer
    sandbox: `auto` for the best sandbox of the machine, `plain` for none
    folder: the study's folder, which the program may read
    """

    timeout_s: float = 30.0
    limits: Limits = field(default_factory=Limits)
    field: str = ""
    sandbox: str = "auto"
    folder: Path | None = None

    def _mistakes(self) -> Iterator[Mistake]:
        if self.timeout_s <= 0:
            yield Mistake(("timeout_s",), f"must be above 0, got {self.timeout_s:g}")
        if self.sandbox not in ("auto", "plain"):
            yield Mistake(("sandbox",), f"expected 'auto' or 'plain', got '{self.sandbox}'")

    def in_folder(self, folder: Path | None) -> Any:
        """Return the evaluator with paths relative to the study's folder."""
        return self if self.folder is not None else replace(self, folder=folder)

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` if no sandbox works on this machine."""
        try:
            self._find_sandbox()
        except LabError as error:
            hint = "`sandbox: plain` runs answers with all that you may do yourself"
            raise StudyError(Mistake(("sandbox",), str(error), hint)) from None

    def _find_sandbox(self) -> Any:
        return find_sandbox(self.sandbox, unsandboxed=self.sandbox == "plain")

    async def run(self, argv: tuple[str, ...], work: Path, stdin: bytes) -> Completed:
        """Run a program in a folder, which it may write to."""
        mounts = tuple(
            Mount(path, path) for path in (*python_folders(), self.folder) if path is not None
        )
        command = Command(
            tuple(sys.executable if word == PYTHON else word for word in argv),
            work,
            {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"},
            View(readable=mounts, writable=(Mount(work, work),)),
            self.limits,
            self.timeout_s,
            stdin,
            output_bytes=1 << 20,
        )
        done: Completed = await self._find_sandbox().run(command)
        return done


def python_folders() -> list[Path]:
    """Return the folders of the running interpreter, its virtual environment included."""
    folders = dict.fromkeys(map(Path, (sys.prefix, sys.base_prefix, sys.base_exec_prefix)))
    program = Path(sys.executable)
    while program.is_symlink():
        program = program.parent / program.readlink()
        folders[program.parent] = None
    system = (Path("/usr"), Path("/bin"))
    # A prefix that contains the home folder would show all of it.
    return [
        folder
        for folder in folders
        if not Path.home().is_relative_to(folder)
        and not any(folder.is_relative_to(one) for one in system)
    ]


@dataclass(frozen=True, slots=True)
class UnitTests(SandboxedEvaluator):
    """Whether code passes tests in the sandbox; the answer is Python code, or has it in a fence.

    tests_column: the column with the tests: code with assertions or functions `test_...`, or a list
        of assertions; agents don't see it
    tests_file: a file with tests for every problem, in place of a column
    before_column: a column with code that comes before the answer, such as a function's head
    entry_column: the column with the name of the function that `check(candidate)` in the tests gets
    """

    tests_column: str = ""
    tests_file: str = ""
    before_column: str = ""
    entry_column: str = ""

    def _mistakes(self) -> Iterator[Mistake]:
        yield from SandboxedEvaluator._mistakes(self)
        if bool(self.tests_column) == bool(self.tests_file):
            yield Mistake((), "needs `tests_column` or `tests_file`", "name one of the two")

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` if the tests can't be read, or no sandbox works on this machine."""
        SandboxedEvaluator.check_start(self, budget)
        if self.tests_file:
            self._read_tests()

    def _read_tests(self) -> str:
        path = (self.folder or Path()) / self.tests_file
        try:
            return path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise StudyError(Mistake(("tests_file",), f"{path} can't be read: {error}")) from None

    async def evaluate(self, case: EvaluationCase) -> Any:
        """Return 1 if all tests pass, else 0, and the share of those that do."""
        value = find_field(case, self.field)
        if value is None:
            return no_answer(passed=0.0)
        tests = case.cell(self.tests_column) if self.tests_column else self._read_tests()
        token = secrets.token_hex(16)
        orders = {
            "before": as_text(case.cell(self.before_column)) if self.before_column else "",
            "answer": find_code(as_text(value)),
            "tests": _list_tests(tests),
            "entry": as_text(case.cell(self.entry_column)) if self.entry_column else "",
            "token": token,
        }
        with tempfile.TemporaryDirectory(prefix="fairtrial-tests-") as folder:
            work = Path(folder).resolve()
            driver = work / "driver.py"
            driver.write_bytes(DRIVER.read_bytes())
            stdin = json.dumps(orders).encode()
            done = await self.run((PYTHON, "-I", str(driver)), work, stdin)
        return _read_report(done, token)


def find_code(text: str) -> str:
    """Return the code of an answer: the last fenced block that ends, else all of it."""
    blocks = _FENCE.findall(text)
    return blocks[-1] if blocks else text


def _list_tests(tests: Any) -> list[str]:
    if isinstance(tests, str) and tests.lstrip().startswith("["):
        try:
            tests = json.loads(tests)
        except ValueError:
            return [str(tests)]
    return [as_text(item) for item in tests] if isinstance(tests, (list, tuple)) else [str(tests)]


def _read_report(done: Completed, token: str) -> dict[str, Any]:
    """Return the scores of a test run: without the token at its end it did not get there.

    Raises `LabError` if the driver of the tests could not be started.
    """
    if not done.stdout.text.startswith(STARTED):
        raise LabError(f"the tests could not be started: {_describe_end(done)}")
    if done.ending is Ending.EXITED and done.exit_code == 0:
        for line in reversed(done.stdout.text.splitlines()):
            if line.startswith(token):
                report = json.loads(line.removeprefix(token))
                passed, total = report["passed"], report["total"]
                share = passed / total if total else 0.0
                scores = {"score": int(passed == total > 0), "passed": share}
                return {**scores, "note": report["note"][:_MOST_NOTE]}
    return {"score": 0, "passed": 0.0, "note": f"the tests did not end: {_describe_end(done)}"}


def _describe_end(done: Completed) -> str:
    ending = f"exit code {done.exit_code}" if done.ending is Ending.EXITED else str(done.ending)
    return f"{ending}; {done.stderr.text.strip()[-_MOST_NOTE:]}"


@dataclass(frozen=True, slots=True)
class CommandEvaluator(SandboxedEvaluator):
    """What a command says of an answer: exit code 0 is 1, exit code 1 is 0.

    The command gets the answer on its standard input, and `case.json` in its folder: `answer`,
    `output`, `reference`, `row`. If the last line that it prints is a JSON number or mapping, these
    are the scores. Any other exit code says that the command itself failed, and breaks the run.

    command: the program and its arguments; `{python}` stands for the running interpreter, and
        `{folder}` for the study's folder
    """

    command: tuple[str, ...] = ()

    def _mistakes(self) -> Iterator[Mistake]:
        yield from SandboxedEvaluator._mistakes(self)
        if not self.command:
            yield Mistake(("command",), "must name a program")

    async def evaluate(self, case: EvaluationCase) -> Any:
        """Return what the command says."""
        value = find_field(case, self.field)
        value = case.output if value is None else value
        known = {
            "problem_id": case.problem.problem_id,
            "answer": value,
            "output": case.output,
            "reference": case.reference,
            "row": case.row,
        }
        folder = str((self.folder or Path()).resolve())
        argv = tuple(word.replace("{folder}", folder) for word in self.command)
        with tempfile.TemporaryDirectory(prefix="fairtrial-judge-") as name:
            work = Path(name).resolve()
            (work / "case.json").write_text(canonical_json(known), "utf-8")
            done = await self.run(argv, work, as_text(value).encode())
        if done.ending is not Ending.EXITED or done.exit_code not in (0, 1):
            raise LabError(f"the evaluating command failed: {_describe_end(done)}")
        scores = _last_json(done.stdout.text)
        return int(done.exit_code == 0) if scores is None else scores


def _last_json(text: str) -> Any:
    """Return the JSON number or mapping in the last line of a text; None if it is neither."""
    lines = text.strip().splitlines()
    try:
        value = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return value if isinstance(value, (int, float, Mapping)) else None
