"""Checks that run pytest: what the base's tests do, and what a candidate's do then."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending, tell_raising
from fairtrial.arena.checks.prepared_check import CheckRun, Stages
from fairtrial.arena.checks.pytest_judging import Standard, judge_run, set_standard
from fairtrial.arena.checks.pytest_reports import Outcome, SuiteRun, read_run
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Basis
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.task_groups import run_all
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Command, Completed, Ending

BASE_RUNS = 3
CHANNEL_BYTES = 32 * 1024 * 1024
MOST_NAMES = 10
ONLY_VARIABLE = "FAIRTRIAL_ONLY"
"""Tells our plug-in which descriptor holds the names of the tests to run."""
_CAUSES = {
    2: ("pytest was interrupted", "the tests must be importable in a copy of your tree"),
    3: ("pytest had an internal error", "look for a plug-in or conftest that breaks"),
    4: ("pytest can't be called like that", "check the command's options and paths"),
    5: ("pytest collected no tests", "check the paths and the -k or -m of the command"),
}
"""What pytest's exit statuses mean when nothing was run, and what to do."""


@dataclass(frozen=True, slots=True)
class SuiteTrial:
    """A check whose tests are read one by one.

    label: its place in the problem
    check: the check
    standard: what the base does
    notes: what people should know of the base's runs
    loaded: files that the base's runs imported
    durations: how long each counted test takes on the base, in the order in which they finish
    """

    label: str
    check: Check
    standard: Standard
    notes: tuple[str, ...]
    loaded: frozenset[str]
    basis: Basis = Basis.TESTS
    durations: Mapping[str, float] = field(default_factory=dict)

    async def run(self, stage: Stage) -> CheckRun:
        """Hold a candidate to what the base does."""
        command = pytest_command(stage, self.check)
        run = await read_in_thread(await stage.run(command))
        done = run.completed
        return CheckRun(
            judge_run(self.label, self.standard, run, command),
            run.loaded,
            wall_s=done.wall_s,
            cpu_s=done.cpu_s,
            peak_rss_mb=done.peak_rss_mb,
        )


def pytest_command(
    stage: Stage,
    check: Check,
    *,
    only: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    cores: tuple[int, ...] = (),
) -> Command:
    """The check's command with our plug-in in it.

    only: the tests to run, by name; all that the command names if there are none here
    """
    words = list(check.command)
    if Path(words[0]).name in ("pytest", "py.test"):
        words[:1] = ["{python}", "-m", "pytest"]
    words[3:3] = ["-p", "fairtrial_pytest"]
    return stage.command(
        words,
        timeout_s=check.timeout_s,
        stdin=json.dumps(only).encode() if only else b"",
        channel_bytes=CHANNEL_BYTES,
        env={**(env or {}), **({ONLY_VARIABLE: "0"} if only else {})},
        path_tail=[HARNESS / "plugin"],
        cores=cores,
    )


async def run_tests(stage: Stage, check: Check) -> SuiteRun:
    """Run the check's tests once, on what is in the slot."""
    return await read_in_thread(await stage.run(pytest_command(stage, check)))


async def read_in_thread(completed: Completed) -> SuiteRun:
    """What a process has reported of its tests."""
    from anyio import to_thread

    # This may take seconds where somebody floods the channel.
    return await to_thread.run_sync(read_run, completed)


async def prepare_tests(label: str, check: Check, stages: Stages) -> SuiteTrial:
    """Run the base several times and settle which tests count; refuse if none does."""

    async def run_inside() -> tuple[SuiteRun, Command, str]:
        async with stages() as stage:
            if not stage.interpreter.has_pytest:
                raise _refuse_python(label, stage)
            command = pytest_command(stage, check)
            run = await read_in_thread(await stage.run(command))
            return run, command, stage.sandbox.name

    inside = await run_all([run_inside] * BASE_RUNS)
    runs = [run for run, _, _ in inside]
    _, command, sandbox = inside[0]
    for run in runs:
        _refuse_stopped(label, run, command)
    standard = set_standard(runs)
    only_outside: tuple[str, ...] = ()
    if standard.failing or any(_errors(run) for run in runs):
        only_outside = await _pass_only_outside(check, stages, standard, sandbox)
    if not standard.counted:
        raise _refuse_empty(label, runs[0], command, only_outside, standard.unstable)
    notes = tuple(f"{label}: {note}" for note in _notes(standard, runs, only_outside))
    loaded = frozenset().union(*(run.loaded for run in runs))
    durations = {name: _middle(runs, name) for name in standard.counted}
    return SuiteTrial(label, check, standard, notes, loaded, durations=durations)


def _middle(runs: Sequence[SuiteRun], name: str) -> float:
    """The median of a test's times."""
    return sorted(run.tests[name].seconds for run in runs)[len(runs) // 2]


async def _pass_only_outside(
    check: Check, stages: Stages, standard: Standard, sandbox: str
) -> tuple[str, ...]:
    async with stages(sandboxed=False) as stage:
        if stage.sandbox.name == sandbox:
            return ()
        run = await run_tests(stage, check)
    passed = [name for name, told in run.tests.items() if told.outcome == Outcome.PASSED]
    return tuple(name for name in passed if name not in {*standard.counted, *standard.unstable})


def _notes(
    standard: Standard, runs: Sequence[SuiteRun], only_outside: tuple[str, ...]
) -> list[str]:
    notes = []
    if standard.unstable:
        notes.append(f"unstable on the base, not counted: {name_some(standard.unstable)}")
    if only_outside:
        why = _first_line(runs[0], only_outside[0])
        notes.append(f"pass only outside the sandbox, not counted: {name_some(only_outside)}{why}")
    failing = [name for name in standard.failing if name not in only_outside]
    if failing:
        why = _first_line(runs[0], failing[0])
        notes.append(f"fail on the base, not counted: {name_some(failing)}{why}")
    if runs[0].overrode:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in runs[0].overrode)
        notes.append(f"turned off, since it hides results: {options}")
    return notes


def _first_line(run: SuiteRun, name: str) -> str:
    """Why a test failed, for the end of a note: what was raised, if that is known."""
    told = run.tests.get(name)
    lines = told.message.splitlines() if told else [line for _, line in _errors(run)]
    raised = [line[1:].strip() for line in lines if line.startswith("E ")] or lines[:1]
    return f" (the first: {raised[0][:200]})" if raised else ""


def _errors(run: SuiteRun) -> list[tuple[str, str]]:
    """What could not be collected, and the last line of why."""
    return [
        (one.what, (one.message.strip().splitlines() or [""])[-1])
        for one in run.uncollected
        if not one.is_skipped
    ]


def _refuse_python(label: str, stage: Stage) -> StudyError:
    python = stage.interpreter.executable
    return StudyError(
        Mistake(
            (label,),
            f"{python} has no pytest",
            f"install it there ({python} -m pip install pytest), or name another Python in python:",
        )
    )


def _refuse_stopped(label: str, run: SuiteRun, command: Command) -> None:
    """The base must come to its end."""
    done = run.completed
    if done.ending == Ending.EXITED and (run.exit_status is not None or not run.has_opened):
        return
    where = f" in {run.running[0]}" if run.running else ""
    message = f"on the unchanged base, pytest {tell_ending(done, command)}{where}"
    if done.ending == Ending.EXITED:
        message += " before it was done"
    if done.ending == Ending.TIMEOUT and run.tests:
        slowest = max(run.tests, key=lambda name: run.tests[name].seconds)
        message += f" (of those that were done, {slowest} took longest)"
    said = in_one_line(tail_of(done))
    message += f": {said}" if said else ""
    raise StudyError(Mistake((label,), message, tell_raising(label, done.ending)))


def _refuse_empty(
    label: str,
    run: SuiteRun,
    command: Command,
    only_outside: tuple[str, ...],
    unstable: tuple[str, ...],
) -> StudyError:
    done = run.completed
    what, hint = "no test passes", "fix the tests first"
    if unstable:
        what = f"none passes each time, {name_some(unstable)} only now and then"
    if not run.has_opened:
        what, hint = "pytest doesn't start", "try the command in your tree with the same Python"
    what, hint = _CAUSES.get(done.exit_code or 0, (what, hint))
    said = in_one_line("\n".join(f"{one}: {why}" for one, why in _errors(run)))
    said = said or in_one_line("\n".join(_failures(run))) or in_one_line(tail_of(done))
    message = f"on the unchanged base there is no test to count: {what} (exit code {done.exit_code}"
    message += f", ran {' '.join(command.argv)}): {said}"
    if only_outside:
        hint = (
            f"{len(only_outside):,} tests pass only outside the sandbox; see whether they need the "
            "network (limits.network), files that are ignored (include:) or variables (env:)"
        )
    return StudyError(Mistake((label,), message, hint))


def _failures(run: SuiteRun) -> list[str]:
    return [f"{name}{_first_line(run, name)}" for name in list(run.tests)[:3]]


def name_some(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    shown = ", ".join(names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
