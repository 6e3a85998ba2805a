"""Slots for the tests of function checks: a few files, in the plain sandbox, trusted or not."""

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent

import anyio

from fairtrial.arena import Check, CodeProblem
from fairtrial.arena.checks.function_check import FunctionTrial, prepare_calls
from fairtrial.arena.checks.prepared_check import CheckRun
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.stage import Stage
from fairtrial.sandbox import Command, Limits, Plain

PYTHON = Interpreter(Path(sys.executable), tuple(sys.version_info[:3]), (), has_pytest=True)
SORT = """
    def sort(items, reverse=False):
        return sorted(items, reverse=reverse)
"""
MAKER = """
    def make(rng):
        return ([rng.randrange(100) for _ in range(5)],), {"reverse": rng.random() < 0.5}
"""
CHECK = Check(function="tools:sort", inputs="bench/inputs.py:make", cases=4)


@dataclass
class Recorder:
    """The plain sandbox; remembers what was run in it."""

    commands: list[Command] = field(default_factory=list)
    name: str = "plain"
    relocates: bool = False
    shortfalls: tuple[str, ...] = ()

    async def run(self, command):
        self.commands.append(command)
        return await Plain().run(command)


@dataclass
class Slots:
    """Gives out slots with these files; those that are hidden are in trusted ones only."""

    folder: Path
    files: dict[str, str]
    hidden: tuple[str, ...] = ("bench/inputs.py", "cases.json")
    interpreter: Interpreter = PYTHON
    limits: Limits = field(default_factory=lambda: Limits(memory_mb=512, processes=16))
    sandbox: Recorder = field(default_factory=Recorder)
    given: int = 0

    def stage(self, files, *, trusted=False) -> Stage:
        self.given += 1
        slot = self.folder / f"slot{self.given}"
        for name, content in files.items():
            if trusted or name not in self.hidden:
                path = slot / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(dedent(content), "utf-8")
        problem = CodeProblem("p", check=(CHECK,), limits=self.limits)
        return Stage(problem, self.interpreter, self.sandbox, slot, slot, (".",))

    @asynccontextmanager
    async def __call__(self, *, sandboxed=True, trusted=False):
        yield self.stage(self.files, trusted=trusted)

    def prepare(self, check=CHECK, **changes) -> FunctionTrial:
        """The check, ready for candidates."""
        check = replace(check, **changes)

        async def prepare():
            return await prepare_calls("check[1]", check, self, seed="7")

        return anyio.run(prepare)

    def judge(self, trial, **changes) -> CheckRun:
        """What the check comes to with these modules instead of the base's."""
        files = {**self.files, **{f"{name}.py": text for name, text in changes.items()}}
        return anyio.run(trial.run, self.stage(files))
