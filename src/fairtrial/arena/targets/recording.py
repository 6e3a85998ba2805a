"""Record the calls of functions: run tests or a command on a copy of the base with recorders."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.arena.build import build_base
from fairtrial.arena.checks.exit_text import tail_of, tell_ending
from fairtrial.arena.checks.pytest_check import pytest_command
from fairtrial.arena.checks.pytest_reports import PytestOutcome, SuiteRun, read_run
from fairtrial.arena.model.problem import Check
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.targets.functions import SourceFunction, add_recorders
from fairtrial.arena.targets.suites import TestCommand
from fairtrial.sandbox import Ending, wire

LONGEST_S = 120.0
"""How long a command may run while it is recorded."""
NO_OPTIONS = ("-o", "addopts=")
"""Options of pytest that turn off those of the project's configuration."""
_UNKNOWN = "unrecognized arguments"
_ERROR = re.compile(r"[\w.]*(Error|Exception|Warning|Interrupt|Exit)\b")
_LONGEST_ERROR = 300
_FOLDER = ".fairtrial-recording"
_MOST_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class RecordedFunction:
    """A function that gets a recorder.

    path: its file, from the top of the repository
    module: the name by which candidates import that file
    function: the function
    """

    path: str
    module: str
    function: SourceFunction


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call as it was recorded.

    key: the kind of its arguments: their types, and about their sizes
    case: its encoded arguments
    outcome: its encoded result or exception, as far as it could be read
    seconds: how long it took
    """

    key: str
    case: Mapping[str, Any]
    outcome: Mapping[str, Any]
    seconds: float


@dataclass(slots=True)
class Recording:
    """What was recorded of one function.

    calls: the recorded calls
    keys: how many calls there were of each kind, and how long they took together
    total, seconds: how many calls there were, recorded or not, and how long they took
    left_out: how many calls could not be recorded, by reason
    tests: the tests that reached the function
    modules: the names under which its module was imported
    """

    calls: list[RecordedCall] = field(default_factory=list)
    keys: dict[str, tuple[int, float]] = field(default_factory=dict)
    total: int = 0
    seconds: float = 0.0
    left_out: dict[str, int] = field(default_factory=dict)
    tests: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    def add(self, other: Recording) -> None:
        """Add the recording of another process or command."""
        self.calls += other.calls
        for key, (count, seconds) in other.keys.items():
            before = self.keys.get(key, (0, 0.0))
            self.keys[key] = before[0] + count, before[1] + seconds
        self.total += other.total
        self.seconds += other.seconds
        for why, count in other.left_out.items():
            self.left_out[why] = self.left_out.get(why, 0) + count
        self.tests |= other.tests
        self.modules |= other.modules


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A command that was run with recorders.

    command: the command
    recordings: what was recorded, by the function's number
    suite: the results of its tests, if it ran pytest
    ended: how it ended, if it failed; else empty
    output: the last lines that it printed, if it failed
    wall_s: how long it took
    """

    command: TestCommand
    recordings: Mapping[int, Recording]
    suite: SuiteRun | None = None
    ended: str = ""
    output: str = ""
    wall_s: float = 0.0

    def reaching(self, number: int) -> list[str]:
        """Return the tests that reached a function."""
        recording = self.recordings.get(number)
        return sorted(recording.tests - {""}) if recording else []

    @property
    def uncollected(self) -> dict[str, str]:
        """The test files that could not be imported, with the reasons."""
        nodes = self.suite.uncollected if self.suite else ()
        reasons = {
            node.what.partition("::")[0]: find_error(node.message)
            for node in nodes
            if not node.is_skipped
        }
        named = [file for file in self.command.files if file in reasons]
        return {file: reasons[file] for file in dict.fromkeys((*named, *reasons))}

    @property
    def trouble(self) -> str:
        """The first reason why tests, or the command, failed; empty if nothing did."""
        uncollected = [f"{file} can't be imported: {why}" for file, why in self.uncollected.items()]
        failing = [
            f"{name} fails: {find_error(test.message)}"
            for name, test in (self.suite.tests if self.suite else {}).items()
            if test.outcome in (PytestOutcome.FAILED, PytestOutcome.ERROR)
        ]
        for troubles, more in ((uncollected, "more files"), (failing, "more tests")):
            if troubles:
                rest = f" (and {len(troubles) - 1:,} {more})" if len(troubles) > 1 else ""
                return f"{troubles[0]}{rest}"
        output = find_error(self.output)
        return f"{self.ended}: {output}" if output else self.ended

    @property
    def passed(self) -> int:
        """How many tests passed."""
        tests = self.suite.tests.values() if self.suite else ()
        return sum(test.outcome == PytestOutcome.PASSED for test in tests)


async def record(
    resources: ArenaResources,
    functions: Mapping[int, RecordedFunction],
    command: TestCommand,
    timeout_s: float = LONGEST_S,
) -> RecordedRun:
    """Run a command on a copy of the base in which some functions have recorders.

    functions: by the number that tells their calls apart
    """
    async with resources.lease() as (slot, _):
        stage = resources.stage(slot, may_be_warm=False)
        await build_base(stage, slot)
        _instrument(stage, functions)
        folder = stage.slot / _FOLDER
        folder.mkdir(exist_ok=True)
        variables = {"FAIRTRIAL_RECORDING": str(stage.seen / _FOLDER)}
        ran = await _run(stage, command, variables, timeout_s)
        recordings = _read_folder(folder, functions)
        await slot.restage()
    return replace(ran, recordings=recordings)


def _instrument(stage: Stage, functions: Mapping[int, RecordedFunction]) -> None:
    by_file: dict[tuple[str, str], dict[SourceFunction, int]] = {}
    for number, recorded in functions.items():
        by_file.setdefault((recorded.path, recorded.module), {})[recorded.function] = number
    for (path, module), numbers in by_file.items():
        file = stage.slot / path
        content = add_recorders(file.read_bytes(), numbers, module)
        file.unlink()  # it may share its content with other slots
        file.write_bytes(content)


async def _run(
    stage: Stage, command: TestCommand, variables: Mapping[str, str], timeout_s: float
) -> RecordedRun:
    """Run the command; return its run without recordings.

    Options of the project's configuration that this pytest doesn't know are turned off.
    """
    if command.is_pytest:
        words = (*command.words, "--continue-on-collection-errors")
        made = pytest_command(stage, Check(command=words, timeout_s=timeout_s), env=variables)
    else:
        made = stage.command(
            command.words,
            timeout_s=timeout_s,
            env=variables,
            path_tail=[HARNESS / "plugin"],
        )
    done = await stage.run(made)
    if command.is_pytest and _UNKNOWN in done.stderr.text and not set(NO_OPTIONS) & set(words):
        plain = replace(command, words=(*command.words, *NO_OPTIONS))
        return await _run(stage, plain, variables, timeout_s)
    suite = read_run(done) if command.is_pytest else None
    ended = ""
    has_failed = done.ending != Ending.EXITED or done.exit_code != 0
    if has_failed:
        ended = tell_ending(done, made)
    output = tail_of(done) if has_failed else ""
    return RecordedRun(command, {}, suite, ended, output, done.wall_s)


def find_error(text: str) -> str:
    """Return the line of an output that says most of what went wrong: its last error."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    marked = [line[2:] for line in lines if line.startswith("E ")]
    named = [line for line in marked or lines if _ERROR.match(line)]
    return (named or marked or lines or [""])[-1][:_LONGEST_ERROR]


def _read_folder(folder: Path, numbers: Mapping[int, object]) -> dict[int, Recording]:
    """Read what recorders wrote, which code of the base could have forged: lines are checked."""
    recordings = {number: Recording() for number in numbers}
    size = 0
    for file in sorted(folder.glob("*.jsonl")):
        size += file.stat().st_size
        if size > _MOST_BYTES:
            break
        parts = {number: Recording() for number in numbers}
        for line in file.read_bytes().splitlines():
            try:
                _read_line(json.loads(line), parts)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                continue  # cut short by the end of its process
        for number, part in parts.items():
            recordings[number].add(part)
    return recordings


def _read_line(line: Mapping[str, Any], parts: Mapping[int, Recording]) -> None:
    part = parts[int(line["target"])]
    if "test" in line:
        part.tests.add(str(line["test"]))
        part.modules.add(str(line["module"]))
    elif "total" in line:
        part.total, part.seconds = int(line["total"]), float(line["seconds"])
        part.keys = {
            str(key): (int(count), float(seconds)) for key, (count, seconds) in line["keys"].items()
        }
        part.left_out = {str(why): int(count) for why, count in line["left"].items()}
    else:
        case = {name: line[name] for name in ("args", "kwargs", wire.PICKLED) if name in line}
        outcome = {name: line[name] for name in ("result", "raises") if name in line}
        part.calls.append(RecordedCall(str(line["key"]), case, outcome, float(line["seconds"])))


def join_recordings(runs: Sequence[RecordedRun], number: int) -> Recording:
    """Return all that was recorded of one function."""
    joined = Recording()
    for run in runs:
        if number in run.recordings:
            joined.add(run.recordings[number])
    return joined
