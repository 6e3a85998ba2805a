"""The adequacy of a problem's checks: which null candidates and mutants they reject."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class NullKind(StrEnum):
    """A function that does no work, put in the place of the one that is checked or timed."""

    RAISE = "raise"
    """raises an exception"""
    CONSTANT = "constant"
    """returns the base's first result, whatever it is called with"""
    EMPTY = "empty"
    """returns an empty value of the type of the base's first result"""
    NONE = "none"
    """returns None"""
    FIRST_ARGUMENT = "first_argument"
    """returns its first argument"""
    LAST_RESULT = "last_result"
    """returns the result of the call before"""


@dataclass(frozen=True, slots=True)
class NullResult:
    """The judgement of one null candidate.

    function: the function that it replaces, as the problem names it
    kind: what it does instead
    passed: whether every check accepts it; None if it was not judged
    check: the check that rejected it
    why: why it was rejected, or not judged, in one line
    answer: what it returns, as text, where that is known
    judge: the accept function that takes it for right, though the base has several answers
    """

    function: str
    kind: NullKind
    passed: bool | None
    check: str = ""
    why: str = ""
    answer: str = ""
    judge: str = ""

    @property
    def outcome(self) -> str:
        """Whether the checks accept it: `ACCEPTED`, `rejected by CHECK` or `not judged`."""
        if self.passed is None:
            return "not judged"
        by = f" by {self.check}" if self.check else ""
        return "ACCEPTED" if self.passed else f"rejected{by}"

    @property
    def what(self) -> str:
        """What it does, to follow "a function that"."""
        always = f"always returns {self.answer or 'its first result'}"
        return {
            NullKind.RAISE: "raises whenever it is called",
            NullKind.CONSTANT: always,
            NullKind.EMPTY: "always returns an empty value"
            + (f" ({self.answer})" if self.answer else ""),
            NullKind.NONE: "always returns None",
            NullKind.FIRST_ARGUMENT: "returns its first argument",
            NullKind.LAST_RESULT: "returns the result of the call before",
        }[self.kind]


_CAUSES = {
    NullKind.RAISE: ("no check calls it", "add a function check, or tests that call it"),
    NullKind.FIRST_ARGUMENT: (
        "every input is its own answer",
        "draw inputs that the function changes",
    ),
    NullKind.LAST_RESULT: (
        "inputs that follow each other have the same answer",
        "draw inputs with different answers",
    ),
}
_ONE_ANSWER = (
    "every input that the checks use has that answer",
    "draw inputs with different answers, or add cases that have others",
)


@dataclass(frozen=True, slots=True)
class MutantResult:
    """The judgement of one mutant: the base with one small change.

    path: the changed file
    line: the changed line
    function: the function that it is in
    change: what was changed
    diff: the change as a unified diff
    survived: whether every check accepts it; None if it was not judged
    check: the check that rejected it
    """

    path: str
    line: int
    function: str
    change: str
    diff: str
    survived: bool | None
    check: str = ""

    @property
    def text(self) -> str:
        """Where it is and what it changes, in one line."""
        return f"{self.path}:{self.line} ({self.function}): {self.change}"


@dataclass(frozen=True, slots=True)
class Adequacy:
    """What the checks of a problem reject, found by candidates that are wrong on purpose.

    functions: the functions that were replaced by null candidates
    nulls: the null candidates
    mutants: the mutants that were judged
    left: how many chosen mutants and null candidates were not judged, for want of time
    seconds: how long it took
    notes: what was not audited, and why
    """

    functions: tuple[str, ...] = ()
    nulls: tuple[NullResult, ...] = ()
    mutants: tuple[MutantResult, ...] = ()
    left: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[NullResult, ...]:
        """The null candidates that every check accepts, the most telling first."""
        order = list(NullKind)
        passed = (null for null in self.nulls if null.passed)
        return tuple(sorted(passed, key=lambda null: order.index(null.kind)))

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """The mutants that every check accepts. Some may behave as the base does."""
        return tuple(mutant for mutant in self.mutants if mutant.survived)

    @property
    def killed(self) -> int:
        """How many mutants some check rejected."""
        return sum(mutant.survived is False for mutant in self.mutants)

    @property
    def score(self) -> float | None:
        """The share of judged mutants that was rejected; None if there were none."""
        judged = self.killed + len(self.survivors)
        return self.killed / judged if judged else None

    @property
    def summary(self) -> str:
        """How many null candidates and mutants were rejected; empty if none were judged."""
        if not self.nulls and not self.mutants:
            return ""
        rejected = sum(null.passed is False for null in self.nulls)
        unjudged = sum(null.passed is None for null in self.nulls)
        text = f"{rejected} of {len(self.nulls)} null candidates rejected"
        text += f" and {unjudged} not judged" if unjudged else ""
        judged = self.killed + len(self.survivors)
        text += f", {self.killed} of {judged} mutants rejected" if judged else ""
        if not self.left:
            return text
        return f"{text}; {self.left} not judged for want of time, mutants included"

    @property
    def veto(self) -> str:
        """Why no candidate may be adopted; empty if every null candidate was rejected."""
        if not self.accepted:
            return ""
        first = self.accepted[0]
        cause, remedy = _CAUSES.get(first.kind, _ONE_ANSWER)
        if first.judge:
            cause, remedy = f"{first.judge} accepts its results", "let it refuse wrong ones"
        return (
            f"the checks accept a function that {first.what} in place of {first.function}: "
            f"{cause}; {remedy}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--json`` prints it."""
        return {
            "functions": list(self.functions),
            "nulls": [
                {
                    "function": null.function,
                    "kind": null.kind.value,
                    "what": null.what,
                    "passed": null.passed,
                    "check": null.check,
                    "why": null.why,
                }
                for null in self.nulls
            ],
            "mutants": len(self.mutants),
            "killed": self.killed,
            "score": self.score,
            "survivors": [
                {
                    "file": mutant.path,
                    "line": mutant.line,
                    "function": mutant.function,
                    "change": mutant.change,
                    "diff": mutant.diff,
                }
                for mutant in self.survivors
            ],
            "left": self.left,
            "seconds": round(self.seconds, 3),
            "veto": self.veto or None,
            "notes": list(self.notes),
        }
