"""Rank the functions of a project by the time that they take in its tests or in a command."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from fairtrial.arena.build import build_base
from fairtrial.arena.candidates.protection import get_protection
from fairtrial.arena.checks.exit_text import tail_of, tell_ending
from fairtrial.arena.import_roots import find_import_roots
from fairtrial.arena.model.problem import Check, CodeProblem
from fairtrial.arena.opening import open_resources
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.snapshot.snapshot import find_top
from fairtrial.arena.stage import HARNESS
from fairtrial.arena.targets.commands import as_test_command, shorten
from fairtrial.arena.targets.functions import SourceFunction, list_functions
from fairtrial.arena.targets.lookup import find_project
from fairtrial.arena.targets.recording import (
    LONGEST_S,
    RecordedFunction,
    find_error,
    join_recordings,
    record,
)
from fairtrial.arena.targets.suites import PYTEST, TestCommand, find_commands
from fairtrial.core import Mistake, StudyError, events
from fairtrial.sandbox import Ending

MOST_RECORDED = 10
"""How many of the hottest functions are run with a recorder, to see whether it can record them."""
_CHANNEL_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class HotSpot:
    """A function, and what is known of its time.

    target: the function as a target: `file.py::function`
    own_s: its time without the functions that it calls; functions written in C count as its own
    total_s: its time with all that it calls
    calls: how often it was called
    tests: how many tests reached it; 0 if a command was profiled
    recordable: how many of its calls can be recorded; None if that wasn't tried
    why_not: why its calls can't be recorded; empty if they can
    """

    target: str
    own_s: float
    total_s: float
    calls: int
    tests: int
    recordable: int | None = None
    why_not: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the hot spot as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class HotSpots:
    """The functions of a project that take most time.

    command: what was profiled
    seconds: how long it took, profiled
    spots: the functions, by own time
    project: the project's folder
    notes: what people should know
    """

    command: str
    seconds: float
    spots: tuple[HotSpot, ...]
    project: Path
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the hot spots as plain data."""
        return {
            "command": self.command,
            "seconds": self.seconds,
            "project": str(self.project),
            "hotspots": [spot.as_dict() for spot in self.spots],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class _Located:
    """A function of the project with its profile."""

    path: str
    function: SourceFunction
    own_s: float
    total_s: float
    calls: int
    tests: int


async def find_hot_spots(
    command: Sequence[str] = (),
    *,
    folder: Path | None = None,
    most: int = 20,
    settings: ArenaSettings | None = None,
) -> HotSpots:
    """Profile the tests of a project, or a command, and rank its functions by their own time.

    command: a Python command; by default the project's tests
    folder: a folder of the project; by default the current one
    most: how many functions are returned

    Raises `StudyError` if there is nothing to profile, or nothing of the project was run.
    """
    settings = settings or ArenaSettings()
    folder = (folder or Path.cwd()).resolve()
    top = (await find_top(folder)).resolve()
    project = find_project(folder / "any.py", top)
    roots = find_import_roots(top, project.relative_to(top).as_posix())
    problem = CodeProblem(
        "hotspots",
        cwd=project.relative_to(top).as_posix(),
        import_roots=roots,
        check=(Check(command=PYTEST),),
        folder=top,
    )
    async with open_resources(problem, settings=settings) as resources:
        chosen = _choose_command(command, resources, project)
        settings.emit(events.Remark(f"profiling {shorten(chosen)}"))
        report, ended = await _profile(resources, chosen)
        located = _locate(report, resources)
        if not located:
            message = f"{shorten(chosen)} runs no function of the project"
            hint = ended or "name a command that does: fairtrial hotspots -- python script.py"
            raise StudyError(Mistake((), message, hint), source=str(project))
        hottest = located[:most]
        settings.emit(events.Remark("seeing which calls can be recorded"))
        spots = await _try_recording(resources, hottest, chosen)
    notes = [f"{shorten(chosen)} {ended}"] if ended else []
    return HotSpots(shorten(chosen), report["seconds"], tuple(spots), project, tuple(notes))


def _choose_command(
    command: Sequence[str], resources: ArenaResources, project: Path
) -> TestCommand:
    if command:
        return as_test_command(command)
    base = resources.pool.base / resources.problem.cwd
    commands = find_commands(base, "", (), resources.interpreter)
    if commands:
        return commands[0]
    hint = "name a command: fairtrial hotspots -- python script.py"
    raise StudyError(Mistake((), f"no tests were found in {project}", hint), source=str(project))


async def _profile(resources: ArenaResources, command: TestCommand) -> tuple[Any, str]:
    """Run a command with a profiler; return its report, and how it ended if it failed."""
    words = list(command.words)
    if words[0] in ("pytest", "py.test"):
        words[:1] = ["{python}", "-m", "pytest"]
    if words[0] != "{python}" or len(words) < 2:
        message = f"{words[0]} is not Python: only Python commands can be profiled"
        raise StudyError(Mistake((), message, "write: -- python script.py"))
    words += ["--continue-on-collection-errors"] if command.is_pytest else []
    job = {"run": words[1:], "top": ""}
    async with resources.lease() as (slot, _):
        stage = resources.stage(slot, may_be_warm=False)
        await build_base(stage, slot)
        job["top"] = str(stage.seen)
        made = stage.command(
            ["{python}", str(HARNESS / "profiler.py"), json.dumps(job)],
            timeout_s=2 * LONGEST_S,
            channel_bytes=_CHANNEL_BYTES,
        )
        done = await stage.run(made)
        await slot.restage()
    ended = ""
    if done.ending != Ending.EXITED or done.exit_code != 0:
        output = find_error(tail_of(done))
        ended = f"{tell_ending(done, made)}{': ' if output else ''}{output}"
    try:
        return json.loads(done.channel), ended
    except ValueError:
        message = f"{shorten(command)} could not be profiled: it {ended or 'wrote no report'}"
        raise StudyError(Mistake((), message, "see that it works by itself")) from None


def _locate(report: Mapping[str, Any], resources: ArenaResources) -> list[_Located]:
    """Return the project's own functions by their own time, the slowest first."""
    functions: dict[str, dict[int, SourceFunction]] = {}
    located = []
    for path, line, calls, own_s, total_s, tests in report["functions"]:
        if get_protection(path) is not None:
            continue
        if path not in functions:
            functions[path] = _list_by_line(resources.pool.base / path)
        function = functions[path].get(int(line))
        if function is not None:
            located.append(_Located(path, function, own_s, total_s, int(calls), int(tests)))
    return sorted(located, key=lambda item: (-item.own_s, item.path, item.function.line))


def _list_by_line(file: Path) -> dict[int, SourceFunction]:
    """Return functions by the line that their code begins with: of a decorator or of `def`."""
    try:
        functions = list_functions(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return {}
    by_line = {item.line: item for item in functions if item.kind != "class"}
    return {**by_line, **{item.first: item for item in functions if item.kind != "class"}}


_WHY_NOT = {
    "nested": "defined inside a function",
    "property": "a property",
}


async def _try_recording(
    resources: ArenaResources, hottest: Sequence[_Located], command: TestCommand
) -> list[HotSpot]:
    """Return hot spots; the first ones with the number of calls that can be recorded."""
    wanted = {
        number: RecordedFunction(item.path, PurePosixPath(item.path).stem, item.function)
        for number, item in enumerate(hottest[:MOST_RECORDED])
        if item.function.can_be_recorded
    }
    runs = [await record(resources, wanted, command)] if wanted else []
    spots = []
    cwd = PurePosixPath(resources.problem.cwd)
    for number, item in enumerate(hottest):
        path = PurePosixPath(item.path)
        shown = path.relative_to(cwd) if path.is_relative_to(cwd) else path
        spot = HotSpot(
            f"{shown}::{item.function.name}", item.own_s, item.total_s, item.calls, item.tests
        )
        if item.function.makes_itself:
            spot = replace(spot, recordable=0, why_not="it makes its own object")
        elif item.function.kind in _WHY_NOT:
            spot = replace(spot, recordable=0, why_not=_WHY_NOT[item.function.kind])
        elif number in wanted:
            recording = join_recordings(runs, number)
            reasons = sorted(recording.left_out.items(), key=lambda entry: -entry[1])
            lost = sum(recording.left_out.values())
            why = reasons[0][0] if reasons and not recording.calls else ""
            recordable = 0 if why else max(recording.total - lost, 0)
            spot = replace(spot, recordable=recordable, why_not=why)
        spots.append(spot)
    return spots
