"""Judging a run of pytest against the base's own runs: data in, a verdict out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairtrial.arena.checks.exit_text import stop_reason, tail_of, tell_ending
from fairtrial.arena.checks.pytest_reports import Outcome, SuiteRun, Told
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.sandbox import Command

MOST_FAILURES = 20
MOST_NAMES = 5
LONGEST_MESSAGE = 4_000
_VERBS = {
    Outcome.FAILED: "fails",
    Outcome.ERROR: "has an error",
    Outcome.SKIPPED: "is skipped",
    Outcome.XFAILED: "fails as pytest was told to expect",
    Outcome.XPASSED: "passes although pytest was told to expect a failure",
    Outcome.INCOMPLETE: "was not run to its end",
}
INTERNAL_ERROR = 3
"""pytest's exit status when it, or a plug-in, breaks."""


@dataclass(frozen=True, slots=True)
class Standard:
    """What the base does, which is what candidates are held to.

    counted: tests that pass in every run, and how often each is reported
    unstable: tests that pass in some runs only
    failing: tests that pass in none
    exit_codes: what pytest may exit with
    """

    counted: dict[str, int]
    unstable: tuple[str, ...]
    failing: tuple[str, ...]
    exit_codes: frozenset[int]

    def find_files(self) -> set[str]:
        """The files that hold these tests, as pytest names them.

        Not those of doctests (``src/mod.py::mod.function``): what they are about is there, too.
        """
        found = set()
        for test in (*self.counted, *self.unstable, *self.failing):
            file, _, name = test.partition("[")[0].partition("::")
            stem = file.rpartition("/")[2].partition(".")[0]
            if name and "." not in name and name != stem:
                found.add(file)
        return found


def set_standard(runs: Sequence[SuiteRun]) -> Standard:
    """What several runs of the base have in common."""
    names = list(dict.fromkeys(name for run in runs for name in run.tests))
    counted: dict[str, int] = {}
    unstable, failing = [], []
    for name in names:
        told = [run.tests.get(name) for run in runs]
        passes = [one is not None and one.outcome == Outcome.PASSED for one in told]
        if all(passes):
            counted[name] = min(one.times for one in told if one is not None)
        elif any(passes):
            unstable.append(name)
        elif any(
            one is not None and one.outcome in (Outcome.FAILED, Outcome.ERROR) for one in told
        ):
            failing.append(name)
    codes = {code for run in runs if (code := run.completed.exit_code) is not None}
    # 1 means that some tests failed; which of them count is for us to say.
    return Standard(counted, tuple(unstable), tuple(failing), frozenset({0, 1} | codes))


def judge_run(label: str, standard: Standard, run: SuiteRun, command: Command) -> Rejection | None:
    """Why a candidate is out; None if every counted test passes and pytest came to its end."""
    failed = list(_failed(label, standard, run))
    missing = list(_missing(standard, run))
    stopped = stop_reason(run.completed)
    if stopped is None and _left_early(standard, run, missing):
        stopped = Reason.CRASH
    if stopped is not None:
        return _stopped(label, stopped, run, command, failed, missing)
    if not failed and not missing and run.exit_status is not None:
        return None
    return _fallen_short(label, standard, run, failed, missing)


def _failed(label: str, standard: Standard, run: SuiteRun) -> Iterator[Failure]:
    for name in standard.counted:
        told = run.tests.get(name)
        if told is not None and told.outcome != Outcome.PASSED:
            yield Failure(label, name, _tell(told), told.differences)


def _tell(told: Told) -> str:
    verb = _VERBS[told.outcome]
    return f"{verb}:\n{told.message[:LONGEST_MESSAGE]}" if told.message else verb


def _missing(standard: Standard, run: SuiteRun) -> Iterator[str]:
    """Tests that were not reported, or not as often as the base does."""
    for name, times in standard.counted.items():
        told = run.tests.get(name)
        if told is None or (told.outcome == Outcome.PASSED and told.times < times):
            yield name


def _left_early(standard: Standard, run: SuiteRun, missing: Sequence[str]) -> bool:
    """Whether the process went away by itself before pytest was done, or pytest broke."""
    if run.exit_status is None:
        return not run.completed.channel_overflowed
    code = run.completed.exit_code
    if code == run.exit_status and missing:
        return code == INTERNAL_ERROR  # else something was missed in good order
    return code not in standard.exit_codes


def _stopped(
    label: str,
    reason: Reason,
    run: SuiteRun,
    command: Command,
    failed: list[Failure],
    missing: list[str],
) -> Rejection:
    ending = f"pytest {tell_ending(run.completed, command)}"
    if reason == Reason.CRASH and run.exit_status is None:
        ending += " before it was done"
    where = _name_some(run.running) if run.running else _where_without(run)
    said = tail_of(run.completed)
    message = f"{ending}\n{said}" if said else ending
    first = Failure(label, run.running[0] if run.running else "pytest", message)
    failures = [first, *failed]
    others = [name for name in missing if name != first.what]
    return Rejection(
        reason,
        f"{ending}, {'in ' if run.running else ''}{where}",
        tuple(failures[:MOST_FAILURES]),
        more=max(len(failures) - MOST_FAILURES, 0) + len(others),
    )


def _where_without(run: SuiteRun) -> str:
    if run.exit_status == INTERNAL_ERROR:
        return "which is an internal error"
    if run.exit_status is not None:
        return "after the tests"
    if run.tests:
        return f"after {list(run.tests)[-1]}"
    return "while collecting tests" if run.has_opened else "before it looked for tests"


def _fallen_short(
    label: str, standard: Standard, run: SuiteRun, failed: list[Failure], missing: list[str]
) -> Rejection:
    """pytest came to its end, but not all is well."""
    uncollected = [
        Failure(
            label, one.what or "pytest", f"can't be collected:\n{one.message[:LONGEST_MESSAGE]}"
        )
        for one in run.uncollected
        if missing and not one.is_skipped
    ]
    unreported = [Failure(label, name, _tell_missing(name, run)) for name in missing]
    listed = [*uncollected, *failed, *([] if uncollected else unreported)]
    reason = Reason.TESTS if uncollected or failed else Reason.MISSING
    total = f"{len(standard.counted):,} tests that the base passes"
    if uncollected:
        message = f"{_name_some([one.what for one in uncollected])} can't be collected"
        message += f"; {len(missing) + len(failed):,} of {total} don't pass"
    elif failed:
        names = _name_some([one.what for one in failed])
        message = f"{len(failed) + len(missing):,} of {total} don't pass: {names}"
    elif missing:
        message = f"{len(missing):,} of {total} were not reported: {_name_some(missing)}"
    else:
        message = "all tests pass as far as was reported"
    if run.completed.channel_overflowed:
        message += "; it reported more than can be read"
    count = len(uncollected) + len(failed) + len(missing)
    shown = tuple(listed[:MOST_FAILURES])
    return Rejection(reason, message, shown, more=count - len(shown))


def _tell_missing(name: str, run: SuiteRun) -> str:
    if name in run.tests:
        return "was reported less often than on the base"
    if name in run.collected:
        return "was collected, but not run to its end"
    module = name.split("::")[0]
    for one in run.uncollected:
        if one.what == module:
            return f"was not run: its module is skipped: {one.message[:LONGEST_MESSAGE]}"
    return "was not reported: it doesn't exist any more, or was not run"


def _name_some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
