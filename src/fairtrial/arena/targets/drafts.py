"""From a function's name to a problem: find it, record its calls, draft the files, keep them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from fairtrial.arena.model.figures import rough_seconds
from fairtrial.arena.model.problem import Check, CodeProblem
from fairtrial.arena.opening import open_resources
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.targets.commands import as_test_command, shorten
from fairtrial.arena.targets.drafting import (
    CALLS,
    MAKERS,
    PROBLEM,
    Findings,
    draft_files,
    write_calls_file,
    write_makers,
)
from fairtrial.arena.targets.growth import Growth, find_growth, find_hinted
from fairtrial.arena.targets.lookup import Target, find_target
from fairtrial.arena.targets.recording import (
    LONGEST_S,
    NO_OPTIONS,
    RecordedFunction,
    RecordedRun,
    Recording,
    join_recordings,
    record,
)
from fairtrial.arena.targets.replay import choose_calls
from fairtrial.arena.targets.suites import PYTEST, TestCommand, find_commands, find_script
from fairtrial.core import Mistake, StudyError, atomic_write, events

STATE = "target.json"
"""The file that says what the others were drafted from."""
SHORT_SUITE_S = 10.0
"""A suite up to this long is taken as a whole, not only the files that reach the function."""
NUMBER = 0
_MISSING = re.compile(r"No module named '([^'.]+)")
_WORKS = "see that it works in a copy of your tree, without network"


@dataclass(frozen=True, slots=True)
class TargetDraft:
    """A problem that was drafted for a target.

    target: the function
    folder: the folder of the problem's files
    lines: what was found, for people
    is_new: whether it was drafted now; otherwise earlier, for the same tree
    """

    target: Target
    folder: Path
    lines: tuple[str, ...]
    is_new: bool = True

    @property
    def problem(self) -> Path:
        """The problem file."""
        return self.folder / PROBLEM

    def as_dict(self) -> dict[str, object]:
        """Return the draft as plain data."""
        return {
            "target": self.target.text,
            "function": self.target.reference,
            "problem": str(self.problem),
            "files": sorted(str(file) for file in self.folder.iterdir()),
            "found": list(self.lines),
            "is_new": self.is_new,
        }


async def prepare_target(
    text: str,
    folder: Path | None = None,
    *,
    command: Sequence[str] = (),
    settings: ArenaSettings | None = None,
    replaces: bool = False,
) -> TargetDraft:
    """Find a function, record its calls, and write a problem for it.

    text: `path.py::function`, `path.py::Class.method`, `module:function`, `module:Class.method`
    folder: where the problem's files go; by default `artifacts/targets/NAME`. Files that were
        drafted there for the same tree are taken as they are, and files that were edited are kept
    command: a command whose run is recorded, instead of the tests
    replaces: whether files in the folder are replaced in any case

    Raises `StudyError` if there is no such function, or nothing by which it could be judged.
    """
    settings = settings or ArenaSettings()
    target = await find_target(text, Path.cwd())
    folder = folder or Path("artifacts", "targets", target.problem_id)
    async with open_resources(_make_problem(target), settings=settings) as resources:
        key = _make_key(target, command, resources.pool.snapshot.tree, resources)
        earlier = _read_state(folder)
        if not replaces and earlier.get("key") == key and (folder / PROBLEM).is_file():
            return TargetDraft(target, folder, tuple(earlier["lines"]), is_new=False)
        if not replaces:
            _refuse_edited(folder, earlier)
        findings = await investigate(target, resources, command, settings)
    files = draft_files(findings, folder.resolve())
    lines = findings.describe()
    _write(folder, files, {"key": key, "target": findings.target.text, "lines": lines})
    return TargetDraft(findings.target, folder, tuple(lines))


def _make_problem(target: Target) -> CodeProblem:
    """Return a problem with the target's project, for running its base."""
    return CodeProblem(
        target.problem_id,
        editable=(target.path,),
        import_roots=target.roots,
        check=(Check(command=PYTEST),),
        folder=target.project,
    )


async def investigate(
    target: Target, resources: ArenaResources, command: Sequence[str], settings: ArenaSettings
) -> Findings:
    """Record the calls of a target, choose a sample, and find larger inputs."""
    commands = choose_commands(target, resources, command)
    runs = await _record_all(target, resources, commands, settings)
    recording = join_recordings(runs, NUMBER)
    if not recording.total and not target.function.has_hints:
        _refuse_unreached(target, runs, resources)
    target = _with_imported_name(target, recording)
    if recording.calls:
        count = len(recording.calls)
        what = "1 recorded call" if count == 1 else f"{count} recorded calls"
        settings.emit(events.Remark(f"making {what} again"))
    sample = await choose_calls(resources, target.reference, recording)
    findings = Findings(
        target,
        runs,
        recording,
        sample,
        None,
        _choose_checks(target, runs, resources),
        str(resources.interpreter.executable),
        tuple(dict.fromkeys(_write_notes(runs))),
    )
    settings.emit(events.Remark("looking for larger inputs"))
    growth, why = await _find_inputs(resources, findings)
    if not sample.calls and growth is None:
        if not recording.total:
            _refuse_unreached(target, runs, resources, why)
        if not findings.checks:
            _refuse_unjudgeable(target, findings, why, resources)
    notes = [*findings.notes, *([f"no larger inputs: {why}"] if growth is None else [])]
    return replace(findings, growth=growth, notes=tuple(notes))


def choose_commands(
    target: Target, resources: ArenaResources, command: Sequence[str]
) -> list[TestCommand]:
    """Return the commands that are recorded: the given one, else the project's tests."""
    if command:
        return [as_test_command(command)]
    words = [target.function.name, target.function.name.rpartition(".")[2], target.module]
    words.append(target.module.rpartition(".")[2])
    project = resources.pool.base / target.cwd
    commands = find_commands(project, target.path, words, resources.interpreter)
    if commands or target.function.has_hints:
        return commands
    message = (
        f"no tests were found in {target.project}, and {target.path} calls nothing if it is run"
    )
    raise StudyError(Mistake((), message, record_hint(target, resources)), source=target.text)


def record_hint(target: Target, resources: ArenaResources) -> str:
    """Return how calls of a target can be recorded without tests."""
    project = resources.pool.base / target.cwd
    script = find_script(project, target.path, target.function.name.rpartition(".")[2])
    command = f"python {script or 'script.py'}"
    return f"record a command that calls it: --record -- {command}, or write a test"


async def _record_all(
    target: Target,
    resources: ArenaResources,
    commands: Sequence[TestCommand],
    settings: ArenaSettings,
) -> list[RecordedRun]:
    """Run the commands with a recorder; a script only if nothing has reached the function."""
    path = str(PurePosixPath(target.cwd, target.path))
    functions = {NUMBER: RecordedFunction(path, target.module, target.function)}
    runs: list[RecordedRun] = []
    for command in commands:
        has_calls = join_recordings(runs, NUMBER).total > 0
        if command.is_script and has_calls:
            continue
        settings.emit(events.Remark(f"recording {shorten(command)}"))
        runs.append(await record(resources, functions, command, LONGEST_S))
    return runs


def _refuse_unreached(
    target: Target, runs: Sequence[RecordedRun], resources: ArenaResources, why: str = ""
) -> None:
    hint = record_hint(target, resources)
    failed = [run for run in runs if run.ended]
    ran = sum(len(run.suite.tests) for run in runs if run.suite)
    passed = sum(run.passed for run in runs)
    if failed and not passed:
        what = "fails" if failed[0].command.is_script else "no test passes on the base"
        message = f"{shorten(failed[0].command)}: {what}: {failed[0].trouble}"
        hint = f"{_tell_installing(failed, resources) or _WORKS}; or {hint}"
        raise StudyError(Mistake((), message, hint), source=target.text)
    what = "no tests or scripts were found that call"
    if runs:
        what = f"none of {ran:,} tests reaches" if ran else "nothing that was run calls"
    message = f"{what} {target.function.name}"
    uncollected = [run for run in failed if run.uncollected]
    if uncollected:
        message += f", but {uncollected[0].trouble}"
        hint = f"{_tell_installing(uncollected, resources) or _WORKS}; or {hint}"
    message += f", and its type hints make no inputs: {why}" if why else ""
    raise StudyError(Mistake((), message, hint), source=target.text)


def _tell_installing(runs: Sequence[RecordedRun], resources: ArenaResources) -> str:
    """Return how to install a module that tests miss; empty if they miss none."""
    missing = _MISSING.search(" ".join(run.trouble for run in runs))
    python = resources.interpreter.executable
    return f"install {missing[1]} for {python}, which runs the tests" if missing else ""


def _refuse_unjudgeable(
    target: Target, findings: Findings, why: str, resources: ArenaResources
) -> None:
    reasons = [reason for reason, _ in findings.left_out()] or [why]
    message = f"no call of {target.function.name} can be repeated, and no test reaches it"
    message += f": {reasons[0]}"
    raise StudyError(Mistake((), message, record_hint(target, resources)), source=target.text)


def _with_imported_name(target: Target, recording: Recording) -> Target:
    """Return the target with the name by which the tests import its module, if it has another."""
    path = PurePosixPath(target.path)
    file = path.with_suffix("")
    parts = file.parent.parts if file.name == "__init__" else file.parts
    names = {name for name in recording.modules if name and name != "__main__"}
    for name in sorted(names, key=len, reverse=True):
        module = tuple(name.split("."))
        if parts[-len(module) :] == module and target.module not in names:
            root = "/".join(parts[: len(parts) - len(module)]) or "."
            roots = tuple(dict.fromkeys((root, *target.roots)))
            return replace(target, module=name, root=root, roots=roots)
    return target


def _choose_checks(
    target: Target, runs: Sequence[RecordedRun], resources: ArenaResources
) -> list[tuple[tuple[str, ...], str]]:
    """Return the commands that check candidates, each with the reason."""
    checks = []
    for run in runs:
        reaching = run.reaching(NUMBER)
        if run.suite is None:
            unittest = ("{python}", "-m", "unittest")
            if run.command.words[:3] == unittest and not run.ended:
                checks.append((run.command.words, f"{run.command.why}; they reach the function"))
            continue
        if not reaching or not run.passed:
            continue
        files = _list_reaching_files(reaching, run, resources.pool.base / target.cwd)
        total = len(run.suite.tests)
        is_short = run.wall_s <= SHORT_SUITE_S and not run.ended.startswith("was stopped")
        if is_short or not files:
            why = f"all {total} tests, as they take {rough_seconds(run.wall_s)}"
            words = tuple(word for word in run.command.words if word not in run.uncollected)
            checks.append((words, f"{why}; {len(reaching)} reach the function"))
        else:
            options = NO_OPTIONS if NO_OPTIONS[1] in run.command.words else ()
            words = (*PYTEST, *files, *options)
            why = f"the test files that reach the function ({len(reaching)} of {total} tests)"
            checks.append((words, f"{why}; the whole suite takes {rough_seconds(run.wall_s)}"))
    return checks


def _list_reaching_files(reaching: Sequence[str], run: RecordedRun, project: Path) -> list[str]:
    """Return the named test files with tests that reach the function."""
    reached = {test.partition("::")[0] for test in reaching}
    named = [
        file
        for file in run.command.files
        if any(
            file == path or file.endswith(f"/{path}") or path.endswith(f"/{file}")
            for path in reached
        )
    ]
    return [file for file in named if (project / file).is_file()]


def _write_notes(runs: Sequence[RecordedRun]) -> list[str]:
    notes: list[str] = []
    for run in runs:
        failing = [
            name
            for name, test in (run.suite.tests if run.suite else {}).items()
            if test.outcome in ("failed", "error")
        ]
        if NO_OPTIONS[1] in run.command.words:
            notes.append(
                "addopts of the pytest configuration are off: a plug-in for them is missing"
            )
        if run.uncollected:
            notes.append(run.trouble)
        if failing:
            notes.append(f"{len(failing)} tests fail on the base, such as {failing[0]}")
        elif run.ended and not run.uncollected:
            notes.append(f"{shorten(run.command)} {run.trouble}")
    return notes


async def _find_inputs(resources: ArenaResources, findings: Findings) -> tuple[Growth | None, str]:
    target, sample = findings.target, findings.sample

    def draft(growth: Growth) -> Mapping[str, str]:
        files = {MAKERS: write_makers(replace(findings, growth=growth))}
        return (
            {**files, CALLS: write_calls_file(sample, target.reference)} if sample.calls else files
        )

    if sample.calls:
        return await find_growth(resources, target, sample, draft)
    return await find_hinted(resources, target, draft)


def _make_key(target: Target, command: Sequence[str], tree: str, resources: ArenaResources) -> str:
    """Return what a draft depends on, as one text."""
    parts = [target.text, *command, tree, str(resources.interpreter.executable), "1"]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def is_draft(folder: Path) -> bool:
    """Return whether a folder holds a problem that was drafted for a target."""
    return bool(_read_state(folder))


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        state = json.loads((folder / STATE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _refuse_edited(folder: Path, state: Mapping[str, object]) -> None:
    """Raise `StudyError` if the folder holds files that would be lost."""
    digests = state.get("files")
    known = digests if isinstance(digests, dict) else {}
    for name in (PROBLEM, MAKERS, CALLS):
        file = folder / name
        if file.is_file() and known.get(name) != _digest(file.read_bytes()):
            hint = f"use it as a problem ({file.with_name(PROBLEM)}), or --force replaces it"
            raise StudyError(Mistake((), "was edited, or isn't a draft", hint), source=str(file))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(folder: Path, files: Mapping[str, str], state: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (PROBLEM, MAKERS, CALLS):
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    for name, text in files.items():
        with atomic_write(folder / name) as file:
            file.write(text)
    digests = {name: _digest(text.encode("utf-8")) for name, text in files.items()}
    with atomic_write(folder / STATE) as file:
        file.write(json.dumps({**state, "files": digests}, indent=1) + "\n")
