"""Checks that run pytest: compare the result of each test with the base's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending, tell_raising
from fairtrial.arena.checks.must_pass import find_tests, refuse_passing
from fairtrial.arena.checks.prepared_check import CheckRun, Stages
from fairtrial.arena.checks.pytest_judging import PytestBaseline, build_baseline, judge_run
from fairtrial.arena.checks.pytest_reports import PytestOutcome, SuiteRun, read_run
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Basis
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.core import Mistake, StudyError, run_all
from fairtrial.sandbox import Command, Completed, Ending

BASE_RUNS = 3
CHANNEL_BYTES = 32 * 1024 * 1024
MAX_NAMES = 10
ONLY_VARIABLE = "FAIRTRIAL_ONLY"
"""The variable with the descriptor from which the plug-in reads the names of the tests to run."""
_CAUSES = {
    2: ("pytest was interrupted", "the tests must be importable in a copy of your tree"),
    3: ("pytest had an internal error", "look for a plug-in or conftest that breaks"),
    4: ("pytest can't be called like that", "check the command's options and paths"),
    5: ("pytest collected no tests", "check the paths and the -k or -m of the command"),
}
"""The meaning of pytest's exit codes if no tests were run, with hints."""


@dataclass(frozen=True, slots=True)
class PreparedPytestCheck:
    """A pytest check with the results of the base's tests.

    label: its path in the problem
    check: the check
    baseline: the results of the base's tests
    notes: remarks for the user about the runs on the base
    loaded: files that the runs on the base imported
    durations: the seconds that each counted test takes on the base, in the order of execution
    base_s: the wall time of a run on the base
    """

    label: str
    check: Check
    baseline: PytestBaseline
    notes: tuple[str, ...]
    loaded: frozenset[str]
    basis: Basis = Basis.TESTS
    durations: Mapping[str, float] = field(default_factory=dict)
    base_s: float = 0.0

    async def run(self, stage: Stage) -> CheckRun:
        """Run pytest on a candidate, and compare the results with the base's."""
        command = pytest_command(stage, self.check)
        run = await read_in_thread(await stage.run(command))
        done = run.completed
        return CheckRun(
            judge_run(self.label, self.baseline, run, command),
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
    """Return the check's command with the reporting plug-in.

    only: the ids of the tests to run; by default all that the command selects
    """
    words = list(check.command)
    if Path(words[0]).name in ("pytest", "py.test"):
        words[:1] = ["{python}", "-m", "pytest"]
    words[3:3] = ["-p", "fairtrial_pytest"]
    if check.must_pass:  # they may use what only the fix adds, and must not stop the other tests
        words[5:5] = ["--continue-on-collection-errors"]
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
    """Run the check's tests once in a slot."""
    return await read_in_thread(await stage.run(pytest_command(stage, check)))


async def read_in_thread(completed: Completed) -> SuiteRun:
    """Parse the plug-in's reports of a pytest process, in a thread."""
    from anyio import to_thread

    # This may take seconds if a candidate floods the channel.
    return await to_thread.run_sync(read_run, completed)


async def prepare_tests(label: str, check: Check, stages: Stages) -> PreparedPytestCheck:
    """Run pytest on the base several times, and return the prepared check.

    Raises `StudyError` if pytest doesn't finish there, or if no test passes in every run.
    """

    async def run_inside() -> tuple[SuiteRun, Command, str]:
        async with stages() as stage:
            if not stage.interpreter.has_pytest:
                raise _no_pytest_error(label, stage)
            command = pytest_command(stage, check)
            run = await read_in_thread(await stage.run(command))
            return run, command, stage.sandbox.name

    inside = await run_all([run_inside] * BASE_RUNS)
    runs = [run for run, _, _ in inside]
    _, command, sandbox = inside[0]
    for run in runs:
        _refuse_stopped(label, run, command)
    refuse_passing(label, check.must_pass, runs)
    baseline = replace(build_baseline(runs), required=check.must_pass)
    only_outside: tuple[str, ...] = ()
    if baseline.failing or any(_list_collection_errors(run) for run in runs):
        only_outside = await _find_passing_outside(check, stages, baseline, sandbox)
    if not baseline.counted and not baseline.required:
        raise _no_tests_error(label, runs[0], command, only_outside, baseline.unstable)
    notes = tuple(f"{label}: {note}" for note in _write_notes(baseline, runs, only_outside))
    loaded = frozenset().union(*(run.loaded for run in runs))
    durations = {name: _median_seconds(runs, name) for name in baseline.counted}
    base_s = min(run.completed.wall_s for run in runs)
    return PreparedPytestCheck(
        label, check, baseline, notes, loaded, durations=durations, base_s=base_s
    )


def _median_seconds(runs: Sequence[SuiteRun], name: str) -> float:
    """Return the median of a test's durations."""
    return sorted(run.tests[name].seconds for run in runs)[len(runs) // 2]


async def _find_passing_outside(
    check: Check, stages: Stages, baseline: PytestBaseline, sandbox: str
) -> tuple[str, ...]:
    """Return the tests that pass only outside the sandbox."""
    async with stages(sandboxed=False) as stage:
        if stage.sandbox.name == sandbox:
            return ()
        run = await run_tests(stage, check)
    passed = [name for name, result in run.tests.items() if result.outcome == PytestOutcome.PASSED]
    return tuple(name for name in passed if name not in {*baseline.counted, *baseline.unstable})


def _write_notes(
    baseline: PytestBaseline, runs: Sequence[SuiteRun], only_outside: tuple[str, ...]
) -> list[str]:
    notes = []
    if baseline.unstable:
        notes.append(f"unstable on the base, not counted: {name_some(baseline.unstable)}")
    if only_outside:
        reason = _first_line(runs[0], only_outside[0])
        notes.append(
            f"pass only outside the sandbox, not counted: {name_some(only_outside)}{reason}"
        )
    if baseline.required:
        notes.append(f"fail on the base and must pass: {name_some(baseline.required)}")
    required = {name for entry in baseline.required for name in find_tests(entry, runs[0])}
    failing = [name for name in baseline.failing if name not in {*only_outside, *required}]
    if failing:
        reason = _first_line(runs[0], failing[0])
        notes.append(f"fail on the base, not counted: {name_some(failing)}{reason}")
    if runs[0].overrode:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in runs[0].overrode)
        notes.append(f"turned off, since it hides results: {options}")
    return notes


def _first_line(run: SuiteRun, name: str) -> str:
    """Return why a test failed, for the end of a note: the exception, if it is known."""
    result = run.tests.get(name)
    errors = _list_collection_errors(run)
    lines = result.message.splitlines() if result else [line for _, line in errors]
    raised = [line[1:].strip() for line in lines if line.startswith("E ")] or lines[:1]
    return f" (the first: {raised[0][:200]})" if raised else ""


def _list_collection_errors(run: SuiteRun) -> list[tuple[str, str]]:
    """Return the ids of nodes that could not be collected, with the last line of the error."""
    return [
        (node.what, (node.message.strip().splitlines() or [""])[-1])
        for node in run.uncollected
        if not node.is_skipped
    ]


def _no_pytest_error(label: str, stage: Stage) -> StudyError:
    python = stage.interpreter.executable
    return StudyError(
        Mistake(
            (label,),
            f"{python} has no pytest",
            f"install it there ({python} -m pip install pytest), or name another Python in python:",
        )
    )


def _refuse_stopped(label: str, run: SuiteRun, command: Command) -> None:
    """Raise `StudyError` if a run on the base was stopped or ended early."""
    done = run.completed
    if done.ending == Ending.EXITED and (run.exit_status is not None or not run.has_opened):
        return
    where = f" in {run.running[0]}" if run.running else ""
    message = f"on the unchanged base, pytest {tell_ending(done, command)}{where}"
    if done.ending == Ending.EXITED:
        message += " before it had finished"
    if done.ending == Ending.TIMEOUT and run.tests:
        slowest = max(run.tests, key=lambda name: run.tests[name].seconds)
        message += f" (of those that finished, {slowest} took longest)"
    output = in_one_line(tail_of(done))
    message += f": {output}" if output else ""
    raise StudyError(Mistake((label,), message, tell_raising(label, done.ending)))


def _no_tests_error(
    label: str,
    run: SuiteRun,
    command: Command,
    only_outside: tuple[str, ...],
    unstable: tuple[str, ...],
) -> StudyError:
    done = run.completed
    what, hint = "no test passes", "fix the tests first"
    if unstable:
        what = f"none passes each time, {name_some(unstable)} only in some runs"
    if not run.has_opened:
        what, hint = "pytest doesn't start", "try the command in your tree with the same Python"
    what, hint = _CAUSES.get(done.exit_code or 0, (what, hint))
    output = in_one_line(
        "\n".join(f"{node}: {error}" for node, error in _list_collection_errors(run))
    )
    output = output or in_one_line("\n".join(_list_failures(run))) or in_one_line(tail_of(done))
    message = f"on the unchanged base there is no test to count: {what} (exit code {done.exit_code}"
    message += f", ran {' '.join(command.argv)}): {output}"
    if only_outside:
        hint = (
            f"{len(only_outside):,} tests pass only outside the sandbox; see whether they need the "
            "network (limits.network), files that are ignored (include:) or variables (env:)"
        )
    return StudyError(Mistake((label,), message, hint))


def _list_failures(run: SuiteRun) -> list[str]:
    return [f"{name}{_first_line(run, name)}" for name in list(run.tests)[:3]]


def name_some(names: Sequence[str]) -> str:
    """Return the first names, and the number of further ones, as text."""
    shown = ", ".join(names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
