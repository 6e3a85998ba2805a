"""Gathering the evidence for a winner: its edits, coverage and profile."""

from __future__ import annotations

from fairtrial.arena.arena import Arena
from fairtrial.arena.delivery.coverage import measure_coverage
from fairtrial.arena.delivery.edits import find_edits
from fairtrial.arena.delivery.explanation import WinnerEvidence
from fairtrial.arena.delivery.profile import profile_winner
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.timings import Measurement


async def gather_evidence(
    arena: Arena,
    candidate: Candidate,
    changes: Changes,
    judgement: Judgement,
    measurement: Measurement,
    *,
    name: str = "",
    is_rechecked: bool = False,
    notes: tuple[str, ...] = (),
) -> WinnerEvidence:
    """Return all that the explanation of a winner is made from; call it while the arena is open.

    candidate: the winner
    changes: its changes to the base
    judgement: the result of its checks
    measurement: its last measurement
    name: its name for people, if it isn't the candidate's
    is_rechecked: whether its checks were repeated alone, with other inputs
    notes: further remarks for people
    """
    return WinnerEvidence(
        problem=arena.problem,
        name=name or candidate.name,
        edits=await find_edits(arena, changes),
        judgement=judgement,
        measurement=measurement,
        note=candidate.note,
        origin=candidate.origin,
        is_rechecked=is_rechecked,
        coverage=await measure_coverage(arena, changes),
        profile=await profile_winner(arena, changes),
        notes=notes,
    )
