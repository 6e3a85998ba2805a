"""What an optimisation tells its study: an event for each thing that happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairtrial.agents.optimise.lines import Entry
from fairtrial.model.candidates import Candidate
from fairtrial.model.judgements import Judgement
from fairtrial.model.proposals import Request
from fairtrial.model.timings import Estimate

Emit = Callable[..., None]


@dataclass(slots=True)
class Telling:
    """A watcher that emits events: `request`, and `candidate` when there is a verdict."""

    emit: Emit
    notes: dict[str, str] = field(default_factory=dict)

    def asked(self, request: Request) -> None:
        """Something is asked for."""
        self.emit("request", text=request.key, kind=request.kind.value, line=request.line)

    def entered(self, entry: Entry, candidate: Candidate) -> None:
        """A candidate came; one that equals another has its verdict already."""
        self.notes[entry.id] = candidate.note
        if entry.duplicate_of is not None:
            self.emit("candidate", **_place(entry, candidate.note))

    def checking(self, entry: Entry) -> None:
        """Nothing worth keeping."""

    def timing(self, entry: Entry, sessions: int, estimate: Estimate | None) -> None:
        """Nothing worth keeping."""

    def judged(self, entry: Entry, judgement: Judgement, diff: str) -> None:
        """A candidate has its verdict."""
        note = self.notes.get(entry.id, "")
        fields = {**_place(entry, note), **_verdict(judgement), "diff_bytes": len(diff.encode())}
        self.emit("candidate", text=diff, **fields)


def _place(entry: Entry, note: str) -> dict[str, Any]:
    return {
        "candidate_id": entry.id,
        "parent_id": entry.parent,
        "line": entry.line,
        "step": entry.step,
        "kind": entry.kind.value,
        "duplicate_of": entry.duplicate_of,
        "note": note,
    }


def _verdict(judgement: Judgement) -> dict[str, Any]:
    rejection, measured = judgement.rejection, judgement.measurement
    estimate = measured.estimate if measured else None
    return {
        "name": judgement.name,
        "digest": judgement.digest,
        "verdict": judgement.verdict.value,
        "basis": judgement.basis.value,
        "reason": f"{rejection.reason.value}: {rejection.message}" if rejection else None,
        "ratio": estimate.ratio if estimate else None,
        "low": estimate.low if estimate else None,
        "high": estimate.high if estimate else None,
        "sessions": estimate.sessions if estimate else None,
        "adopt": measured.adopt if measured else None,
    }
