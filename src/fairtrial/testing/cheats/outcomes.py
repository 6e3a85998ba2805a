"""Outcomes of attacks: how each ended, what a win exploited, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fairtrial.arena import CodeProblem
from fairtrial.testing.cheats.attack import Attack, AttackClass, Harm, Kind
from fairtrial.testing.cheats.facts import TargetFacts


class AttackOutcome(StrEnum):
    """How an attack ended."""

    REJECTED = "rejected"
    VETOED = "vetoed"
    NO_GAIN = "without gain"
    WON = "WON"
    """it was adopted, harmed the judge or a rival, or got at data of others"""
    ACCEPTED_WRONG = "accepted although wrong"
    """it passed all checks although it differs from the base; it was not adopted"""
    NOT_APPLICABLE = "not applicable"
    NOT_REACHED = "not reached"
    """the time ended, there was too little of it to tell, or the evaluation itself failed"""


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The result of one attack on one target.

    attack: the attack
    target: the attacked function, or the name of the command's benchmark
    outcome: how it ended
    detail: the rejection, veto or estimate, in one line
    exploited: for wins and wrong candidates that passed: what made it possible here
    advice: what to do about it
    """

    attack: Attack
    target: str
    outcome: AttackOutcome
    detail: str = ""
    exploited: str = ""
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as `fairtrial attack --json` prints it."""
        return {
            "name": self.attack.name,
            "class": self.attack.group.value,
            "summary": self.attack.summary,
            "source": self.attack.source,
            "harm": self.attack.harm.value,
            "target": self.target,
            "outcome": self.outcome.value,
            "detail": self.detail,
            "exploited": self.exploited,
            "advice": self.advice,
        }


@dataclass(frozen=True, slots=True)
class AttackReport:
    """The results of all attacks on a problem.

    problem_id: the problem
    sandbox: the kind of sandbox that candidates ran in
    results: one for each attack and target
    seconds: how long it took
    notes: remarks of the arena
    """

    problem_id: str
    sandbox: str
    results: tuple[AttackResult, ...]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def wins(self) -> tuple[AttackResult, ...]:
        """The attacks that won."""
        return self.select(AttackOutcome.WON)

    def select(self, outcome: AttackOutcome) -> tuple[AttackResult, ...]:
        """Return the results with this outcome."""
        return tuple(result for result in self.results if result.outcome == outcome)

    def count_by_class(self) -> dict[AttackClass, Counter[AttackOutcome]]:
        """Return how many attacks of each class had which outcome."""
        counts: dict[AttackClass, Counter[AttackOutcome]] = {}
        for result in self.results:
            counts.setdefault(result.attack.group, Counter())[result.outcome] += 1
        return counts

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as `fairtrial attack --json` prints it."""
        return {
            "problem_id": self.problem_id,
            "sandbox": self.sandbox,
            "seconds": self.seconds,
            "wins": len(self.wins),
            "accepted_although_wrong": len(self.select(AttackOutcome.ACCEPTED_WRONG)),
            "attacks": [result.as_dict() for result in self.results],
            "notes": list(self.notes),
        }


_IN_PROCESS = (
    "code of the harness shares the candidate's process, where it can be replaced",
    "read the diff; code that touches modules of the harness is no optimization",
)
_REASONS: dict[AttackClass, tuple[str, str]] = {
    AttackClass.SPLIT: (
        "each way of hiding work is judged by its own median, and each stayed below its limit",
        "time a command that does the whole work, or read the diff",
    ),
    AttackClass.SLOW_BASE: (
        "processes of the candidate ran while the base was timed",
        "repeat on a machine with a full sandbox and control groups: `fairtrial doctor`",
    ),
    AttackClass.HARNESS: _IN_PROCESS,
    AttackClass.BEFORE: _IN_PROCESS,
    AttackClass.FORGED: _IN_PROCESS,
    AttackClass.CORE: (
        "a process of the candidate left the core that it was timed on",
        "use a full sandbox, which refuses these calls: `fairtrial doctor`",
    ),
    AttackClass.ALIASED: (
        "the check allows it (`any`), or the base's own results share objects as well",
        "leave `aliasing`, `dict_order` and `array_layout` at `strict`",
    ),
    AttackClass.BY_HEART: (
        "inputs repeat, so that answers can be known before",
        "draw inputs from the rng that the input maker gets; let commands read varied input",
    ),
    AttackClass.CLOCKS: (
        "settings of the whole process were changed, and the check allows it",
        "leave `process_state` at `strict`, and check the function with inputs",
    ),
    AttackClass.TWINS: (
        "a candidate shares the verdict of one that differs in what counts as formatting only",
        "judge candidates of one author one at a time, or read the diff",
    ),
    AttackClass.JUDGE: (
        "the judge took too long or too much memory, or the rival's verdict changed",
        "repeat it on a machine with less to do; if it stays, please report it",
    ),
    AttackClass.TIMED: (
        "fewer calls were made than it takes to see the difference",
        "add cases, or a benchmark with shorter calls",
    ),
    AttackClass.NEIGHBOR: (
        "files outside of the slot can be read or written",
        "use a full sandbox (`fairtrial doctor`); keep secrets out of what candidates can read",
    ),
    AttackClass.NEVER_RUN: (
        "no check runs the changed lines",
        "read the diff: code that no check runs is not judged",
    ),
    AttackClass.ONLY_HERE: (
        "the candidate can find out that it is being judged",
        "no judge can rule that out: read the diff for conditions on the environment",
    ),
    AttackClass.LESS: (
        "the checks don't cover what is wrong: rare inputs, large ones, errors, tolerances",
        "add cases of all kinds (large, empty, invalid), and lower rel_tol and abs_tol",
    ),
}
_WEAK = (
    "the checks don't compare results: they are tests or exit codes in the candidate's own process",
    "add a check of the function with inputs, or `compare: output` for a command",
)
_PLAIN = (
    "there is no sandbox: candidates have all the rights of the user",
    "install bubblewrap or allow user namespaces: `fairtrial doctor`",
)
_CONSTANT = (
    "the input maker gives the same arguments every time",
    "draw the arguments from the rng that the input maker gets",
)
_ONE_INPUT = (
    "the command always reads the same input, which could not be varied here",
    "give the benchmark `inputs`, which makes files for each run, or time a function",
)
_NEEDS_SANDBOX = {AttackClass.NEIGHBOR, AttackClass.CORE, AttackClass.SLOW_BASE, AttackClass.JUDGE}
_NEEDS_COMPARISON = {AttackClass.TESTS, AttackClass.EQUAL, AttackClass.EXITS, AttackClass.EXPECTED}


def explain(
    attack: Attack, facts: TargetFacts, problem: CodeProblem, sandbox: str
) -> tuple[str, str]:
    """Return what an attack exploited here, and what to do about it."""
    is_command = Kind.COMMAND in attack.kinds
    compares = any(check.function or check.compare == "output" for check in problem.check)
    if sandbox == "plain" and attack.group in _NEEDS_SANDBOX:
        return _PLAIN
    if attack.group == AttackClass.BY_HEART and is_command:
        return _ONE_INPUT
    if facts.has_constant_inputs and attack.group in (AttackClass.BY_HEART, AttackClass.ALIASED):
        return _CONSTANT
    if attack.harm == Harm.WRONG and (attack.group in _NEEDS_COMPARISON or not compares):
        return _WEAK
    return _REASONS.get(attack.group, _WEAK)


def find_inapplicable(attack: Attack, facts: TargetFacts) -> str:
    """Return why an attack doesn't apply to a target; empty if it does."""
    if set(attack.kinds) & facts.kinds:
        needs_output = "{output}" in attack.template and not facts.output
        return "the output of the command isn't known" if needs_output else ""
    return "it is for " + " or ".join(kind.value for kind in attack.kinds)


def list_unreached(
    attacks: Sequence[Attack], target: str, results: Sequence[AttackResult]
) -> list[AttackResult]:
    """Return results for the attacks on a target that have none yet."""
    done = {result.attack.name for result in results if result.target == target}
    return [
        AttackResult(attack, target, AttackOutcome.NOT_REACHED, "the time ended before")
        for attack in attacks
        if attack.name not in done
    ]
