"""Must-pass tests, which fail on the base and must pass in candidates: so fixes can be judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.arena.checks.pytest_reports import PytestOutcome, SuiteRun
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.core import Mistake, StudyError, did_you_mean

MAX_NAMES = 5
MAX_FAILURES = 20
MAX_MESSAGE = 4_000


def find_tests(name: str, run: SuiteRun) -> list[str]:
    """Return the reported tests that a name stands for: itself, its parameters, what it holds."""
    return [
        test for test in run.tests if test == name or test.startswith((f"{name}[", f"{name}::"))
    ]


def refuse_passing(label: str, names: Sequence[str], runs: Sequence[SuiteRun]) -> None:
    """Raise `StudyError` unless each of these tests fails in every run on the base.

    A test whose file can't be collected fails, too.
    """
    mistakes = []
    for index, name in enumerate(names):
        for run in runs:
            problem = _find_problem(name, run)
            if problem is not None:
                mistakes.append(Mistake((label, "must_pass", index), *problem))
                break
    if mistakes:
        raise StudyError(mistakes)


def _find_problem(name: str, run: SuiteRun) -> tuple[str, str] | None:
    """Return what is wrong with a must-pass test, and a hint; None if it fails in this run."""
    tests = find_tests(name, run)
    outcomes = [run.tests[test].outcome for test in tests]
    if PytestOutcome.FAILED in outcomes or PytestOutcome.ERROR in outcomes:
        return None
    if not tests:
        if _find_collection_error(name, run):
            return None
        return f"the command runs no test '{name}'", did_you_mean(name, run.tests)
    if PytestOutcome.PASSED in outcomes:
        hint = "take it out: tests that the base passes must pass anyway"
        return f"{name} passes on the unchanged base already", hint
    message = f"{name} is {outcomes[0].value} on the unchanged base, and doesn't fail"
    return message, "it must fail there without the fix"


def _find_collection_error(name: str, run: SuiteRun) -> str:
    """Return why the file of a test can't be collected; empty if it can."""
    for node in run.uncollected:
        if not node.is_skipped and (name == node.what or name.startswith(f"{node.what}::")):
            return node.message or "it can't be collected"
    return ""


def judge_required(label: str, names: Sequence[str], run: SuiteRun) -> Rejection | None:
    """Return a rejection if a must-pass test doesn't pass; None if all do."""
    failures = [failure for name in names for failure in _find_failures(label, name, run)]
    if not failures:
        return None
    shown = ", ".join(failure.what for failure in failures[:MAX_NAMES])
    more = len(failures) - MAX_NAMES
    shown += f" and {more:,} more" if more > 0 else ""
    message = f"must-pass tests don't pass: {shown}"
    listed = tuple(failures[:MAX_FAILURES])
    return Rejection(Reason.TESTS, message, listed, more=len(failures) - len(listed))


def _find_failures(label: str, name: str, run: SuiteRun) -> Iterator[Failure]:
    tests = find_tests(name, run)
    if not tests:
        error = _find_collection_error(name, run)
        message = f"can't be collected:\n{error[:MAX_MESSAGE]}" if error else "was not reported"
        yield Failure(label, name, message)
    for test in tests:
        result = run.tests[test]
        if result.outcome != PytestOutcome.PASSED:
            message = f"{result.outcome.value}, and must pass:\n{result.message[:MAX_MESSAGE]}"
            yield Failure(label, test, message.rstrip(":\n"), result.differences)
