"""What an optimisation tells its study: an event for each thing that happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.arena import Candidate, Judgement
from fairtrial.optimize.lineage import Entry
from fairtrial.optimize.proposals import Reply, Request, Usage
from fairtrial.optimize.watching import Watcher

Emit = Callable[..., None]
MOST_PATHS = 5


@dataclass(frozen=True, slots=True)
class Telling(Watcher):
    """A watcher that emits events as things happen: `reply`, `verdict`."""

    emit: Emit

    def replied(self, request: Request, reply: Reply) -> None:
        """What was asked for, and what the answer took."""
        usage = reply.usage
        self.emit(
            "reply",
            text=reply.refusal,
            key=request.key,
            kind=request.kind.value,
            line=request.line,
            model=usage.model,
            tokens=usage.tokens,
            cost_usd=usage.cost_usd,
        )

    def judged(self, entry: Entry, judgement: Judgement, diff: str) -> None:
        """A candidate has its verdict."""
        self.emit("verdict", text=entry.id, **_verdict(judgement))


def tell_tree(
    emit: Emit,
    entries: Sequence[Entry],
    judgements: Mapping[str, Judgement],
    candidates: Mapping[str, Candidate],
    usages: Mapping[str, Usage],
) -> None:
    """A `candidate` event for each in the tree, in its order: what `candidates.csv` is made of.

    At the end, since who is a duplicate of whom must not depend on who came first.
    """
    for entry in entries:
        judgement, usage = judgements.get(entry.digest), usages[entry.id]
        fields = {
            "candidate_id": entry.id,
            "parent_id": entry.parent,
            "line": entry.line,
            "step": entry.step,
            "kind": entry.kind.value,
            "duplicate_of": entry.duplicate_of,
            "note": candidates[entry.id].note,
            "tokens": usage.tokens,
            "cost_usd": usage.cost_usd,
            "diff_bytes": len((entry.diff or "").encode()),
        }
        known = _verdict(judgement) if judgement else {}
        # The verdict may be that of an equal, which came first.
        emit("candidate", text=entry.diff or "", **fields, **{**known, "name": entry.name})


def tell_unjudged(judgements: Iterable[Judgement]) -> list[str]:
    """A line on candidates that nobody could judge, for reasons of ours."""
    known = list(judgements)
    reasons = [each.rejection.message for each in known if each.is_unjudged and each.rejection]
    if not reasons:
        return []
    others = len(set(reasons)) - 1
    more = f" (and {others} other reason{'s' if others > 1 else ''})" if others else ""
    count = f"{len(reasons)} of {len(known)} candidate{'s' if len(known) > 1 else ''}"
    told = f"{count} could not be judged, through no fault of theirs"
    return [f"{told}; of the first one: {reasons[0]}{more}"]


def tell_unread(paths: Sequence[str]) -> list[str]:
    """A line on editable files that nobody who proposes is shown."""
    if not paths:
        return []
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    return [
        f"not shown to who proposes, since it isn't UTF-8: {', '.join(paths[:MOST_PATHS])}{more}"
    ]


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
