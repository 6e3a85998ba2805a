"""Verdicts on candidates, the evidence behind them, and reasons for rejection."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """How a candidate compares with the base."""

    PASSED = "passed"
    """every check passed; the candidate was not timed"""
    REJECTED = "rejected"
    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


class Reason(StrEnum):
    """Why a candidate was rejected."""

    TESTS = "tests"
    """tests fail that the base passes"""
    DIFFERENT = "different results"
    """a function or command gives other results than on the base"""
    TIMEOUT = "timeout"
    CRASH = "crash"
    """a process died, or exited before it had finished"""
    MEMORY = "memory"
    PROCESSES = "processes"
    MISSING = "missing results"
    """results of calls, or of tests that the base passes, were not reported"""
    TAMPERING = "tampering"
    """protected files were changed while the candidate ran"""
    OUTSIDE = "outside editable"
    UNUSABLE = "unusable"
    """the diff doesn't apply, a path leads out of the tree, ..."""
    BUILD = "build"
    EVALUATOR = "evaluator"
    """the evaluation itself failed; the candidate is not to blame"""


class Basis(StrEnum):
    """The kind of evidence behind a verdict, weakest first."""

    NOTHING = "nothing"
    EXIT_STATUS = "exit status only"
    """a command that runs the candidate's code exited successfully"""
    TESTS = "tests only"
    """tests in the candidate's own process: a guard against mistakes, not against cheats"""
    COMPARED = "compared results"
    """results were compared with the base's, or with recorded ones, out of the candidate's reach"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One position in a result where the candidate's value differs from the base's.

    where: the position: ``result[3].name``
    expected: the base's value, as text
    actual: the candidate's value, as text
    """

    where: str
    expected: str
    actual: str

    def cleaned(self) -> Difference:
        """Return a copy whose texts can be encoded as UTF-8."""
        return Difference(*map(_clean, (self.where, self.expected, self.actual)))


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed test, call or command of a check.

    check: the check's path in the problem: ``check[0]``
    what: the test's id, or the call: ``toposort:sort, case 7``
    message: a description of the failure
    differences: expected and actual values, where they are known
    """

    check: str
    what: str
    message: str
    differences: tuple[Difference, ...] = ()

    def cleaned(self) -> Failure:
        """Return a copy whose texts can be encoded as UTF-8."""
        differences = tuple(difference.cleaned() for difference in self.differences)
        return Failure(self.check, _clean(self.what), _clean(self.message), differences)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--json`` prints it."""
        return asdict(self) | {"differences": [asdict(item) for item in self.differences]}


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a candidate was rejected, in enough detail to repair it.

    reason: the kind of rejection
    message: one line for the user
    failures: the first failures, in the order of the checks
    more: the number of further failures that are not listed
    """

    reason: Reason
    message: str
    failures: tuple[Failure, ...] = ()
    more: int = 0

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.message}"

    def cleaned(self) -> Rejection:
        """Return a copy whose texts can be encoded as UTF-8, whatever the candidate printed."""
        failures = tuple(failure.cleaned() for failure in self.failures)
        return replace(self, message=_clean(self.message), failures=failures)


def _clean(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode, by escape sequences."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
