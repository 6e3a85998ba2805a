"""The gate: whether verdicts are to fail a build. It fails only for what was shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fairtrial.arena.delivery.markdown_quoting import cells, code, plain
from fairtrial.arena.model.figures import percent_text
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.memory import MemoryVerdict
from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.model.verdicts import Reason, Verdict
from fairtrial.arena.timing.stats.detectable_effect import largest_spread, visible_effect
from fairtrial.arena.timing.stats.sequential import LOOKS
from fairtrial.arena.timing.summary import session_statistics
from fairtrial.core import Mistake, StudyError, did_you_mean, on_one_line

POWER = 0.95
"""The chance with which a regression of the size that a gate states would have been found."""
LONGEST_COMMENT = 60_000
"""GitHub refuses comments of more than 65,536 characters."""
LONGEST_CELL = 400


class GateCondition(StrEnum):
    """A result that fails a gate."""

    SLOWER = "slower"
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"
    LARGER = "larger"
    """it needs more memory, by a benchmark that measures it"""


@dataclass(frozen=True, slots=True)
class GateFinding:
    """One candidate at the gate.

    name: the candidate's name
    verdict: its verdict, with the interval if it was timed
    failure: why it fails the gate; empty if it passes
    sensitivity: the regression that would have been found, in words; empty if it was not timed
    """

    name: str
    verdict: str
    failure: str = ""
    sensitivity: str = ""

    def row(self) -> str:
        """Return a row of a Markdown table."""
        texts = (self.verdict, self.failure or "passed", self.sensitivity)
        return cells(code(self.name), *(plain(on_one_line(text, LONGEST_CELL)) for text in texts))


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate says of all candidates.

    findings: one for each candidate
    """

    findings: tuple[GateFinding, ...]

    @property
    def has_failed(self) -> bool:
        """Whether one of the candidates fails the gate."""
        return any(finding.failure for finding in self.findings)

    def lines(self) -> list[str]:
        """Return a line of text for each candidate."""
        return [
            f"gate: {finding.name}: {'FAILED: ' + finding.failure if finding.failure else 'passed'}"
            + (f" ({finding.sensitivity})" if finding.sensitivity else "")
            for finding in self.findings
        ]

    def markdown(self) -> str:
        """Return a comment for a pull request; nothing in it can mention, link or inject.

        It fits into a comment on GitHub: those that failed come first, the rest is counted.
        """
        state = "failed" if self.has_failed else "passed"
        columns = cells("candidate", "verdict", "gate", "sensitivity")
        lines = [f"### fairtrial: {state}", "", columns, "|---|---|---|---|"]
        room = LONGEST_COMMENT - sum(map(len, lines))
        ordered = sorted(self.findings, key=lambda finding: not finding.failure)
        for number, finding in enumerate(ordered):
            row = finding.row()
            room -= len(row) + 1
            if room < 0:
                lines += ["", f"{len(ordered) - number} more are left out."]
                break
            lines.append(row)
        return "\n".join([*lines, ""])

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--json`` prints it."""
        return {
            "has_failed": self.has_failed,
            "candidates": [
                {
                    "name": finding.name,
                    "failure": finding.failure or None,
                    "sensitivity": finding.sensitivity or None,
                }
                for finding in self.findings
            ],
        }


@dataclass(frozen=True, slots=True)
class Gate:
    """What fails a build.

    Raises `StudyError` if `max_regression` is no share.

    fail_on: results that fail it
    max_regression: how much longer than the base a candidate may take, as a share: with 0.02 it
        fails only if the whole interval lies beyond 2 %, whatever the verdict; 0 leaves it to the
        verdict. It holds for memory as well, if `fail_on` names `larger`
    min_effect: that of the problem; smaller regressions may be called equivalent
    """

    fail_on: frozenset[GateCondition] = field(default_factory=frozenset)
    max_regression: float = 0.0
    min_effect: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.max_regression < math.inf:
            message = f"must be 0 or more, e.g. 0.02 for 2 %; got {self.max_regression:g}"
            raise StudyError(Mistake(("max_regression",), message))

    def judge(self, judgements: Sequence[Judgement]) -> GateResult:
        """Return what the gate says of these candidates."""
        return GateResult(tuple(map(self._find, judgements)))

    def _find(self, judgement: Judgement) -> GateFinding:
        measured = judgement.measurement
        return GateFinding(
            judgement.name,
            judgement.verdict_text,
            self._explain(judgement),
            "" if measured is None else self._describe_sensitivity(measured),
        )

    def _explain(self, judgement: Judgement) -> str:
        """Return why a candidate fails the gate; empty if it passes."""
        measured, rejection = judgement.measurement, judgement.rejection
        if rejection is not None and rejection.reason != Reason.EVALUATOR:
            return (
                f"rejected: {rejection.message}" if GateCondition.REJECTED in self.fail_on else ""
            )
        if judgement.verdict == Verdict.INCONCLUSIVE and GateCondition.INCONCLUSIVE in self.fail_on:
            return "inconclusive: raise budget_s, or use a quieter machine"
        if measured is not None and GateCondition.LARGER in self.fail_on:
            larger = self._explain_memory(measured)
            if larger:
                return larger
        if measured is None or GateCondition.SLOWER not in self.fail_on:
            return ""
        estimate = measured.estimate
        if estimate is None or (self.max_regression == 0 and measured.verdict != Verdict.SLOWER):
            return ""
        least = 1 / estimate.high - 1  # how much longer it takes at least
        if least <= self.max_regression:
            return ""
        return f"slower: it takes at least {percent_text(least)} longer"

    def _explain_memory(self, measured: Measurement) -> str:
        """Return which benchmarks are shown to need more memory; empty if none is."""
        results = {
            timing.benchmark: timing.memory.low - 1
            for timing in measured.timings
            if timing.memory is not None and timing.memory.verdict == MemoryVerdict.LARGER
        }
        shown = [
            f"{name} needs at least {percent_text(least)} more memory"
            for name, least in results.items()
            if least > self.max_regression
        ]
        return f"larger: {'; '.join(shown)}" if shown else ""

    def _describe_sensitivity(self, measured: Measurement) -> str:
        statistics = session_statistics(measured)
        if measured.estimate is None:
            return "too few sessions to find any regression"
        if len(statistics) < LOOKS[0]:  # the early look has found one
            return ""
        alpha = 1 - measured.estimate.confidence
        # Other looks may end the comparison with the wrong result, in half of alpha at most.
        power = POWER + alpha / 2
        visible = visible_effect(largest_spread(statistics), len(statistics), alpha, power)
        assert visible is not None
        regression = (1 + self.max_regression) * (1 + visible) - 1
        if self.max_regression == 0:
            regression = max(regression, self.min_effect)
        return (
            f"a regression above {percent_text(regression)} would have been found with {POWER:.0%}"
        )


def parse_conditions(text: str) -> frozenset[GateCondition]:
    """Read the conditions of a gate, separated by commas; raise `StudyError` about unknown ones."""
    names = [word.strip() for word in text.split(",") if word.strip()]
    known = [condition.value for condition in GateCondition]
    mistakes = [
        Mistake((), f"--fail-on: there is no result '{name}'", did_you_mean(name, known))
        for name in names
        if name not in known
    ]
    if mistakes:
        raise StudyError(mistakes)
    return frozenset(map(GateCondition, names))
