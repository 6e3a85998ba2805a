"""The order in which subjects of repeated measures had their treatments, compared with the plan.

Sequences balance carry-over from one treatment to the next. That holds only if the treatments of a
sequence run one after the other, in the planned order, and all of them run.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from fairtrial.core import canonical_json
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study

TOLERANCE_S = 0.002
"""Times are stored in milliseconds, so that shorter overlaps are not certain."""
SequenceKey = tuple[str, int, str | None, str | None]
"""The blocks (with the subject), replicate, agent and problem of a sequence of treatments."""


class _Treatment(NamedTuple):
    position: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """How many sequences of treatments were not executed as planned.

    sequences: number of sequences with at least one run
    out_of_order: number of those in which a treatment began before an earlier one of the sequence
    overlapping: number of others in which a treatment began before the one before it had ended
    incomplete: number of those in which a treatment has no finished run
    """

    sequences: int
    out_of_order: int
    overlapping: int
    incomplete: int

    @property
    def is_kept(self) -> bool:
        """Whether every sequence was executed completely and in its order."""
        return not (self.out_of_order or self.overlapping or self.incomplete)

    @property
    def text(self) -> str:
        """What was broken, in one clause; empty if nothing was."""
        kinds = (
            (self.out_of_order, "out of order"),
            (self.overlapping, "with treatments at the same time"),
            (self.incomplete, "incomplete"),
        )
        parts = ", ".join(f"{number:,} {kind}" for number, kind in kinds if number)
        if not parts:
            return ""
        return (
            f"the planned order within subjects was broken: of {self.sequences:,} sequences {parts}"
        )


class SubjectOrder:
    """Collects when each run of a repeated-measures study began and ended.

    Ignores all results of other designs, and runs without a recorded time.
    """

    def __init__(self, study: Study) -> None:
        self._is_repeated = study.design_spec.kind == DesignKind.REPEATED_MEASURES
        self._sequences: dict[SequenceKey, list[_Treatment]] = {}
        self._finished: Counter[SequenceKey] = Counter()

    def add(self, result: RunResult, condition: Condition) -> None:
        """Add the result of a run of a condition."""
        spec = result.run_spec
        if not self._is_repeated or spec is None:
            return
        positions = condition.metadata.get("within_subject_positions")
        if not positions or result.started_at is None or result.ended_at is None:
            return
        blocks = canonical_json(condition.block_assignments)
        key = (blocks, spec.replicate, spec.agent_spec_ref, spec.problem_spec_ref)
        start = datetime.fromisoformat(result.started_at).timestamp()
        end = datetime.fromisoformat(result.ended_at).timestamp()
        position = positions[(spec.replicate - 1) % len(positions)]
        self._sequences.setdefault(key, []).append(_Treatment(position, start, end))
        self._finished[key] += result.status in (RunStatus.SUCCESS, RunStatus.FAILED)

    def check(self, conditions: Sequence[Condition]) -> OrderCheck | None:
        """Return how many sequences were broken; None without repeated measures or times.

        conditions: all conditions of the study
        """
        if not self._sequences:
            return None
        lengths = Counter(canonical_json(c.block_assignments) for c in conditions if c.admissible)
        kinds: Counter[str] = Counter()
        for key, treatments in self._sequences.items():
            kinds[_find_violation(sorted(treatments))] += 1
            kinds["incomplete"] += self._finished[key] < lengths[key[0]]
        return OrderCheck(
            sequences=len(self._sequences),
            out_of_order=kinds["out of order"],
            overlapping=kinds["overlapping"],
            incomplete=kinds["incomplete"],
        )


def _find_violation(treatments: Sequence[_Treatment]) -> str:
    """Return how treatments, sorted by planned position, were not executed in that order."""
    pairs = list(itertools.pairwise(treatments))
    if any(second.start_s < first.start_s - TOLERANCE_S for first, second in pairs):
        return "out of order"
    if any(second.start_s < first.end_s - TOLERANCE_S for first, second in pairs):
        return "overlapping"
    return ""
