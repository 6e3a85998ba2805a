"""Confirmation of the winner: measured in fresh sessions, checked on fresh inputs, profiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fairtrial.arena import (
    Arena,
    Bench,
    Estimate,
    Judgement,
    Measurement,
    Reason,
    delivery,
    time_candidate,
)
from fairtrial.core import LabError, events
from fairtrial.optimize.events import CandidateDropped
from fairtrial.optimize.lineage import CandidateEntry
from fairtrial.optimize.result import OptimizationResult
from fairtrial.optimize.scheduler import Scheduler
from fairtrial.optimize.selection import rank
from fairtrial.optimize.study_events import describe_unjudged

MOST_CONTENDERS = 3
"""How many of the best candidates are measured again before none is adopted."""
MINIMIZING_BUDGETS = 3
"""How often the budget of timing is spent at most to take changes out of the best candidate."""
_SMALLER = "changes that carry no part of the gain were taken out, and the rest was measured again"


@dataclass(frozen=True, slots=True)
class Winner:
    """The confirmed best candidate.

    id: its id in the tree
    edits: its changes
    estimate: its speed relative to the base, by fresh sessions alone
    explanation: its description for a pull request, in Markdown
    """

    id: str
    edits: delivery.FileEdits
    estimate: Estimate
    explanation: str


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The outcome of confirming the best candidates.

    winner: the best; None if none is confirmed
    dropped: the candidates that looked better and weren't confirmed, by id, with the reason
    """

    winner: Winner | None
    dropped: Mapping[str, str]


async def confirm_winner(
    scheduler: Scheduler, arena: Arena, bench: Bench, emit: events.Emit, *, minimize: bool = True
) -> Confirmation:
    """Return the best of the candidates that look worth adopting, if fresh sessions confirm it.

    The ranking is decided before; the best is measured again because it was selected for its
    measurements. One that isn't confirmed, or fails on fresh inputs, is dropped, and the next is
    tried. With `minimize`, changes that carry no part of its gain are taken out.
    """
    dropped: dict[str, str] = {}
    ranked = rank(scheduler.entries, arena.problem.min_effect)
    if remark := _explain_choice(ranked):
        emit(events.Remark(remark))
    for entry in ranked[:MOST_CONTENDERS]:
        measured = await _measure_again(scheduler, arena, bench, emit, entry)
        why = measured if isinstance(measured, str) else ""
        if isinstance(measured, Measurement):
            whole = delivery.CheckedChange(
                scheduler.candidates[entry.id],
                scheduler.changes[entry.id],
                scheduler.judgements[entry.digest],
                measured,
            )
            smaller = None
            if minimize:
                smaller = await delivery.minimize_changes(
                    arena, bench, whole, name=entry.id, emit=emit
                )
            losers = tuple(f"{id} looked better, and is out: {x}" for id, x in dropped.items())
            for change in filter(None, (smaller, whole)):
                notes = (*losers, _SMALLER) if change is smaller else losers
                winner = await _check_and_explain(arena, emit, entry, change, notes)
                if isinstance(winner, Winner):
                    if change is smaller:
                        emit(events.Remark(f"{entry.id}: {_SMALLER}"))
                    scheduler.measured_again[entry.id] = change.measurement
                    return Confirmation(winner, dropped)
                why = winner
        dropped[entry.id] = why
        emit(CandidateDropped(entry.id, why))
    return Confirmation(None, dropped)


async def _check_and_explain(
    arena: Arena,
    emit: events.Emit,
    entry: CandidateEntry,
    change: delivery.CheckedChange,
    notes: tuple[str, ...],
) -> Winner | str:
    """Check a change on new inputs; return the winner with its explanation, or why it is none."""
    emit(events.PhaseStarted(events.Phase.RECHECK, entry.id))
    rejection = await delivery.check_again(arena, change.changes)
    if rejection is not None and rejection.reason != Reason.EVALUATOR:
        return f"on inputs that nobody has seen, {rejection.message}"
    doubts = () if rejection is None else (rejection.message,)
    emit(events.PhaseStarted(events.Phase.PROFILE, entry.id))
    measured = change.measurement
    evidence = await delivery.gather_evidence(
        arena,
        change.candidate,
        change.changes,
        change.judgement,
        measured,
        name=entry.name,
        is_rechecked=not doubts,
        notes=(*doubts, *_describe_audit(arena), *notes),
    )
    assert measured.estimate is not None, "only a candidate with an estimate is adopted"
    return Winner(entry.id, evidence.edits, measured.estimate, evidence.explain())


def _describe_audit(arena: Arena) -> tuple[str, ...]:
    """Return what the audit says of the checks, and where a mutant survived."""
    adequacy = arena.adequacy
    if adequacy is None:
        return ("The checks were not audited.",)
    places = ", ".join(f"{mutant.path}:{mutant.line}" for mutant in adequacy.survivors)
    unnoticed = f"; no check noticed the changes of {places}" if places else ""
    return (f"Checks audited: {adequacy.summary}{unnoticed}.",) if adequacy.summary else ()


def _explain_choice(ranked: Sequence[CandidateEntry]) -> str:
    """Return why the first isn't the one that looks fastest; empty if it is."""
    bounds = {
        entry.id: estimate.low
        for entry in ranked
        if entry.tried is not None and (estimate := entry.tried.estimate) is not None
    }
    leader = max(bounds, key=bounds.__getitem__, default="")
    if not leader or ranked[0].id == leader:
        return ""
    return f"{ranked[0].id} can't be told from {leader}, and is the smaller change."


async def _measure_again(
    scheduler: Scheduler, arena: Arena, bench: Bench, emit: events.Emit, entry: CandidateEntry
) -> Measurement | str:
    """Return the measurement in fresh sessions, or why the candidate isn't worth adopting.

    Raise a `LabError` if it can't be measured: that says nothing about this candidate or the next.
    """
    emit(events.PhaseStarted(events.Phase.CONFIRMATION, entry.id))
    changes = scheduler.changes[entry.id]
    result = await time_candidate(arena, bench, entry.id, changes, label="final", emit=emit)
    if isinstance(result, Measurement):
        scheduler.measured_again[entry.id] = result
        return replace(result, is_confirmed=True) if result.adopt else _describe_fresh(result)
    if result.reason == Reason.EVALUATOR:
        raise LabError(f"{entry.id} looks best, and measuring it again failed: {result.message}")
    return f"measured again, {result.message}"


def _describe_fresh(measured: Measurement) -> str:
    """Return why fresh sessions don't confirm a candidate."""
    figures = measured.speed_text or "not measured long enough to say"
    doubts = f", but: {'; '.join(measured.vetoes)}" if measured.vetoes else ""
    return f"measured again, in fresh sessions, it is {measured.verdict.value}, {figures}{doubts}"


def make_result(scheduler: Scheduler, confirmation: Confirmation) -> OptimizationResult:
    """Return the result of an optimization, without what it says about problem and base."""
    judgements, winner = scheduler.judgements.values(), confirmation.winner
    unjudged = sum(judgement.is_unjudged for judgement in judgements)
    result = OptimizationResult(
        candidates=len(judgements) - unjudged,
        passed=sum(judgement.rejection is None for judgement in judgements),
        unjudged=unjudged,
        tokens=scheduler.spent.tokens,
        cost_usd=scheduler.spent.cost_usd if scheduler.spent.is_cost_known else None,
        why_over=scheduler.why_over,
        dropped=confirmation.dropped,
    )
    if winner is None:
        return result
    return replace(
        result,
        best=winner.id,
        estimate=winner.estimate,
        edits=winner.edits,
        explanation=winner.explanation,
    )


def refuse_unfounded(result: OptimizationResult, judgements: Iterable[Judgement]) -> None:
    """Raise a `LabError` if there is no winner and some candidates couldn't be judged.

    Otherwise the base would count as the best result because the evaluator failed.
    """
    if result.best is None:
        for note in describe_unjudged(judgements):
            raise LabError(f"none that was judged is worth taking, and {note}")
