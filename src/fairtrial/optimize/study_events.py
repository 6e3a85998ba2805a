"""The events of an optimization in its study's ledger, and notes for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from fairtrial.arena import Judgement, events as arena_events
from fairtrial.core import events
from fairtrial.optimize.events import ProposalReceived
from fairtrial.optimize.scheduler import Scheduler

RecordEvent = Callable[..., None]
"""`Task.emit`: stores an event of the run, given its type, its text and further facts."""
MOST_PATHS = 5
MOST_FAILURES, MOST_DIFFERENCES = 3, 3
"""How many failures of a candidate are stored, and of each how many differences."""


def record_events(record: RecordEvent) -> events.Emit:
    """Return a function that stores replies and verdicts as events `reply` and `verdict`."""

    def receive(event: events.Event) -> None:
        if isinstance(event, ProposalReceived):
            usage = event.usage
            record(
                "reply",
                text=event.refusal,
                key=event.key,
                kind=event.kind.value,
                lineage=event.lineage,
                model=usage.model,
                tokens=usage.tokens,
                cost_usd=usage.cost_usd,
            )
        elif isinstance(event, arena_events.CandidateJudged):
            record("verdict", text=event.candidate_id, **_describe_verdict(event.judgement))

    return receive


def record_tree(record: RecordEvent, scheduler: Scheduler) -> None:
    """Store an event `candidate` for each candidate in the tree: the rows of `candidates.csv`.

    They are stored at the end, since duplicates must not depend on the order of arrival.
    """
    for entry in scheduler.entries:
        judgement, usage = scheduler.judgements.get(entry.digest), scheduler.usages[entry.id]
        facts = {
            "candidate_id": entry.id,
            "parent_id": entry.parent,
            "lineage": entry.lineage,
            "step": entry.step,
            "kind": entry.kind.value,
            "duplicate_of": entry.duplicate_of,
            "note": scheduler.candidates[entry.id].note,
            "tokens": usage.tokens,
            "cost_usd": usage.cost_usd,
            "diff_bytes": len((entry.diff or "").encode()),
            "min_effect": scheduler.min_effect,
            "failures": _describe_failures(judgement),
        }
        verdict = _describe_verdict(judgement) if judgement else {}
        # The judgement may be that of an equal candidate with another name.
        record("candidate", text=entry.diff or "", **facts, **{**verdict, "name": entry.name})


def _describe_failures(judgement: Judgement | None) -> list[dict[str, Any]]:
    """Return the first failures of a rejected candidate, with expected and actual values."""
    failures = judgement.failures[:MOST_FAILURES] if judgement else ()
    return [
        failure.as_dict()
        | {"differences": [asdict(one) for one in failure.differences[:MOST_DIFFERENCES]]}
        for failure in failures
    ]


def _describe_verdict(judgement: Judgement) -> dict[str, Any]:
    measured = judgement.measurement
    estimate = measured.estimate if measured else None
    return {
        **judgement.headline(),
        "ratio": estimate.ratio if estimate else None,
        "low": estimate.low if estimate else None,
        "high": estimate.high if estimate else None,
        "sessions": estimate.sessions if estimate else None,
        "adopt": measured.adopt if measured else None,
    }


def describe_unjudged(judgements: Iterable[Judgement]) -> list[str]:
    """Return a note on candidates that the evaluator failed to judge; empty if there are none."""
    all_judgements = list(judgements)
    reasons = [
        judgement.rejection.message
        for judgement in all_judgements
        if judgement.is_unjudged and judgement.rejection
    ]
    if not reasons:
        return []
    further = len(set(reasons)) - 1
    more = f" (and {further} other reason{'s' if further > 1 else ''})" if further else ""
    total = len(all_judgements)
    count = f"{len(reasons)} of {total} candidate{'s' if total > 1 else ''}"
    text = f"{count} could not be judged, through no fault of theirs"
    return [f"{text}; of the first one: {reasons[0]}{more}"]


def describe_unread(paths: Sequence[str]) -> list[str]:
    """Return a note on editable files that proposers aren't shown; empty if there are none."""
    if not paths:
        return []
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    return [
        f"not shown to the proposer, since it isn't UTF-8: {', '.join(paths[:MOST_PATHS])}{more}"
    ]
