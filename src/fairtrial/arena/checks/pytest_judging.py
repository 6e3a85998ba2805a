"""Compare a candidate's pytest run with the base's runs, and build the rejection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairtrial.arena.checks.exit_text import stop_reason, tail_of, tell_ending
from fairtrial.arena.checks.must_pass import judge_required
from fairtrial.arena.checks.pytest_reports import PytestOutcome, PytestResult, SuiteRun
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.sandbox import Command

MAX_FAILURES = 20
MAX_NAMES = 5
MAX_MESSAGE = 4_000
_VERBS = {
    PytestOutcome.FAILED: "fails",
    PytestOutcome.ERROR: "has an error",
    PytestOutcome.SKIPPED: "is skipped",
    PytestOutcome.XFAILED: "fails as pytest was told to expect",
    PytestOutcome.XPASSED: "passes although pytest was told to expect a failure",
    PytestOutcome.INCOMPLETE: "did not finish",
}
INTERNAL_ERROR = 3
"""pytest's exit status if it, or a plug-in, fails."""


@dataclass(frozen=True, slots=True)
class PytestBaseline:
    """The results of the base's tests, which candidates are compared with.

    counted: tests that pass in every run, with the number of times that each is reported
    unstable: tests that pass in some runs only
    failing: tests that pass in no run
    exit_codes: accepted exit codes of pytest
    required: tests that fail on the base and must pass in candidates
    """

    counted: dict[str, int]
    unstable: tuple[str, ...]
    failing: tuple[str, ...]
    exit_codes: frozenset[int]
    required: tuple[str, ...] = ()

    def find_files(self) -> set[str]:
        """Return the files that hold these tests, by pytest's names.

        Files of doctests (``src/mod.py::mod.function``) are left out: they hold the tested code.
        """
        files = set()
        for test in (*self.counted, *self.unstable, *self.failing, *self.required):
            file, _, name = test.partition("[")[0].partition("::")
            stem = file.rpartition("/")[2].partition(".")[0]
            if name and "." not in name and name != stem:
                files.add(file)
        return files


def build_baseline(runs: Sequence[SuiteRun]) -> PytestBaseline:
    """Return the common results of several runs on the base."""
    names = list(dict.fromkeys(name for run in runs for name in run.tests))
    counted: dict[str, int] = {}
    unstable, failing = [], []
    for name in names:
        results = [result for run in runs if (result := run.tests.get(name)) is not None]
        outcomes = [result.outcome for result in results]
        passes = outcomes.count(PytestOutcome.PASSED)
        if passes == len(runs):
            counted[name] = min(result.times for result in results)
        elif passes:
            unstable.append(name)
        elif PytestOutcome.FAILED in outcomes or PytestOutcome.ERROR in outcomes:
            failing.append(name)
    codes = {code for run in runs if (code := run.completed.exit_code) is not None}
    # 1 means that some tests failed, which may be tests that don't count.
    return PytestBaseline(counted, tuple(unstable), tuple(failing), frozenset({0, 1} | codes))


def judge_run(
    label: str, baseline: PytestBaseline, run: SuiteRun, command: Command
) -> Rejection | None:
    """Return why a candidate is rejected; None if pytest finished and all tests
    that count pass."""
    failed = list(_find_failed(label, baseline, run))
    missing = list(_find_missing(baseline, run))
    stopped = stop_reason(run.completed)
    if stopped is None and _ended_early(baseline, run, missing):
        stopped = Reason.CRASH
    if stopped is not None:
        return _reject_stopped(label, stopped, run, command, failed, missing)
    if not failed and not missing and run.exit_status is not None:
        return judge_required(label, baseline.required, run)
    return _reject_results(label, baseline, run, failed, missing)


def _find_failed(label: str, baseline: PytestBaseline, run: SuiteRun) -> Iterator[Failure]:
    for name in baseline.counted:
        result = run.tests.get(name)
        if result is not None and result.outcome != PytestOutcome.PASSED:
            yield Failure(label, name, _describe_result(result), result.differences)


def _describe_result(result: PytestResult) -> str:
    verb = _VERBS[result.outcome]
    return f"{verb}:\n{result.message[:MAX_MESSAGE]}" if result.message else verb


def _find_missing(baseline: PytestBaseline, run: SuiteRun) -> Iterator[str]:
    """Yield tests that were not reported, or less often than on the base."""
    for name, times in baseline.counted.items():
        result = run.tests.get(name)
        if result is None or (result.outcome == PytestOutcome.PASSED and result.times < times):
            yield name


def _ended_early(baseline: PytestBaseline, run: SuiteRun, missing: Sequence[str]) -> bool:
    """Return whether the process exited before pytest had finished, or pytest failed."""
    if run.exit_status is None:
        return not run.completed.channel_overflowed
    code = run.completed.exit_code
    if code == run.exit_status and missing:
        return code == INTERNAL_ERROR  # otherwise pytest finished, and tests are missing
    return code not in baseline.exit_codes


def _reject_stopped(
    label: str,
    reason: Reason,
    run: SuiteRun,
    command: Command,
    failed: list[Failure],
    missing: list[str],
) -> Rejection:
    ending = f"pytest {tell_ending(run.completed, command)}"
    if reason == Reason.CRASH and run.exit_status is None:
        ending += " before it had finished"
    where = _name_some(run.running) if run.running else _describe_stage(run)
    output = tail_of(run.completed)
    message = f"{ending}\n{output}" if output else ending
    first = Failure(label, run.running[0] if run.running else "pytest", message)
    failures = [first, *failed]
    unreported = [name for name in missing if name != first.what]
    return Rejection(
        reason,
        f"{ending}, {'in ' if run.running else ''}{where}",
        tuple(failures[:MAX_FAILURES]),
        more=max(len(failures) - MAX_FAILURES, 0) + len(unreported),
    )


def _describe_stage(run: SuiteRun) -> str:
    """Describe how far pytest came, if no test was running."""
    if run.exit_status == INTERNAL_ERROR:
        return "which is an internal error"
    if run.exit_status is not None:
        return "after the tests"
    if run.tests:
        return f"after {list(run.tests)[-1]}"
    return "while collecting tests" if run.has_opened else "before it looked for tests"


def _reject_results(
    label: str, baseline: PytestBaseline, run: SuiteRun, failed: list[Failure], missing: list[str]
) -> Rejection:
    """Return the rejection of a run that finished, but with failed or missing tests."""
    uncollected = [
        Failure(label, node.what or "pytest", f"can't be collected:\n{node.message[:MAX_MESSAGE]}")
        for node in run.uncollected
        if missing and not node.is_skipped
    ]
    unreported = [Failure(label, name, _describe_missing(name, run)) for name in missing]
    listed = [*uncollected, *failed, *([] if uncollected else unreported)]
    reason = Reason.TESTS if uncollected or failed else Reason.MISSING
    count = len(failed) + len(missing)
    total = f"{count:,} of the {len(baseline.counted):,} tests that the base passes"
    fails = f"{total} {'fails' if count == 1 else 'fail'}"
    if uncollected:
        message = f"{_name_some([failure.what for failure in uncollected])} can't be collected"
        message += f"; {fails}"
    elif failed:
        names = _name_some([failure.what for failure in failed])
        message = f"{fails}: {names}"
    elif missing:
        was = "was" if count == 1 else "were"
        message = f"{total} {was} not reported: {_name_some(missing)}"
    else:
        message = "all tests pass as far as was reported"
    if run.completed.channel_overflowed:
        message += "; it reported more than can be read"
    count += len(uncollected)
    shown = tuple(listed[:MAX_FAILURES])
    return Rejection(reason, message, shown, more=count - len(shown))


def _describe_missing(name: str, run: SuiteRun) -> str:
    if name in run.tests:
        return "was reported less often than on the base"
    if name in run.collected:
        return "was collected, but not run to completion"
    module = name.split("::")[0]
    for node in run.uncollected:
        if node.what == module:
            return f"was not run: its module is skipped: {node.message[:MAX_MESSAGE]}"
    return "was not reported: it doesn't exist any more, or was not run"


def _name_some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
