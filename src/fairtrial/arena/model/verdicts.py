"""What came of judging a candidate, and what that rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Verdict(StrEnum):
    """What a candidate is, compared with the base."""

    PASSED = "passed"
    """every check holds; it was not timed"""
    REJECTED = "rejected"
    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


class Reason(StrEnum):
    """Why a candidate was rejected."""

    TESTS = "tests"
    """tests that the base passes fail"""
    DIFFERENT = "different results"
    """a function or command gives something else than the base"""
    TIMEOUT = "timeout"
    CRASH = "crash"
    """a process died, or left before it was done"""
    MEMORY = "memory"
    PROCESSES = "processes"
    MISSING = "missing results"
    """tests that the base passes, or calls, were not reported"""
    TAMPERING = "tampering"
    """files that it may not change were changed while it ran"""
    OUTSIDE = "outside editable"
    UNUSABLE = "unusable"
    """the diff doesn't apply, the path leads out of the tree, ..."""
    BUILD = "build"
    EVALUATOR = "evaluator"
    """judging it failed for a reason of ours"""


class Basis(StrEnum):
    """What a verdict rests on, the weakest first."""

    NOTHING = "nothing"
    EXIT_STATUS = "exit status only"
    """a command of the candidate's own said that all is well"""
    TESTS = "tests only"
    """tests that run in the candidate's own process: they guard against mistakes, not cheats"""
    COMPARED = "compared results"
    """results were compared with the base's, or with recorded ones, outside of its reach"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where a value is not what it should be.

    where: the place in the value: ``result[3].name``
    expected: what the base gives there
    actual: what the candidate gives there
    """

    where: str
    expected: str
    actual: str

    def cleaned(self) -> Difference:
        """The same in texts that can be stored and printed."""
        return Difference(*map(_clean, (self.where, self.expected, self.actual)))


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that went wrong in a check.

    check: the check, as the problem has it: ``check[0]``
    what: the test's id, or the call: ``toposort:sort, case 7``
    message: what is to be said of it
    differences: expected and actual values, where they are known
    """

    check: str
    what: str
    message: str
    differences: tuple[Difference, ...] = ()

    def cleaned(self) -> Failure:
        """The same in texts that can be stored and printed."""
        differences = tuple(each.cleaned() for each in self.differences)
        return Failure(self.check, _clean(self.what), _clean(self.message), differences)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a candidate is out: ready for whoever is to mend it.

    reason: the kind
    message: one line for people
    failures: what failed, in the order of the checks
    more: how many further failures are not listed
    """

    reason: Reason
    message: str
    failures: tuple[Failure, ...] = ()
    more: int = 0

    def cleaned(self) -> Rejection:
        """The same in texts that can be stored and printed, whatever a candidate put in them."""
        failures = tuple(each.cleaned() for each in self.failures)
        return replace(self, message=_clean(self.message), failures=failures)


def _clean(text: str) -> str:
    """Half a surrogate pair is no text: spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
