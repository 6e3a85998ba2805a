"""The progress event of a planned look, and its line for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fairtrial.core import events
from fairtrial.study.ledger.planned_looks import CONTINUES, PlannedLook


@dataclass(frozen=True, slots=True)
class LookFinished(events.Event):
    """A planned look at a study was made, and its decisions are stored.

    look: what it saw and decided
    looks: the number of planned looks
    unit: what looks add: problems or replicates
    undecided: how many claims are still undecided
    """

    look: PlannedLook
    looks: int
    unit: str
    undecided: int

    def __str__(self) -> str:
        look = self.look
        decisions = Counter(claim.decision for claim in look.claims if claim.is_decided)
        if len(look.claims) <= 3:
            lines = [f"{claim.hypothesis_id} {claim.decision}" for claim in look.claims]
        else:
            lines = [f"{number} {decision}" for decision, number in decisions.items()]
            lines += [f"{self.undecided} {CONTINUES}"] if self.undecided else []
        saved = f"; {look.skipped:,} runs are not needed any more" if look.skipped else ""
        seen = f"{look.units:,} {self.unit}, {look.runs:,} runs"
        return f"look {look.number} of {self.looks} ({seen}): {', '.join(lines)}{saved}"
