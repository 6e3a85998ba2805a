"""Take the changes that carry no part of the gain out of a winner's patch, and confirm the rest."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fairtrial.arena.arena import Arena
from fairtrial.arena.delivery.edits import FileEdit, FileEdits, find_differing, find_edits
from fairtrial.arena.model.candidates import Candidate, Changes, FileState
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.timing.decision import Timer
from fairtrial.arena.timing_phase import time_candidate
from fairtrial.core import events

MOST_TRIALS = 6
"""How many smaller changes are tried."""
_OUTDATED = "(Some of this was taken out again, as it carried no part of the gain: see the patch.)"


@dataclass(frozen=True, slots=True)
class CheckedChange:
    """A change that passed its checks, and was measured.

    candidate: what was proposed
    changes: its effect on the base
    judgement: the result of its checks
    measurement: its last measurement
    """

    candidate: Candidate
    changes: Changes
    judgement: Judgement
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """A part of a change: lines of a file that are replaced, or a file that is added.

    path: the file
    old: the lines before, counted from 0; empty for a file that is added
    new: their replacement
    """

    path: str
    old: range
    new: tuple[bytes, ...]


def list_places(edits: FileEdits) -> list[ChangedPlace]:
    """Return the parts of a change that may be left out; none if a file isn't text, or goes."""
    places = []
    for path, edit in edits.files.items():
        before, after = edit.before, edit.after
        if after is None or after.is_link or (before is not None and before.is_link):
            return []
        if any(b"\0" in side.content for side in (before, after) if side):
            return []
        if before is None:
            places.append(ChangedPlace(path, range(0), (after.content,)))
            continue
        old, new = before.content.splitlines(True), after.content.splitlines(True)
        for lines, replacement in find_differing(old, new):
            text = tuple(new[replacement.start : replacement.stop])
            places.append(ChangedPlace(path, lines, text))
    return places


def apply_places(edits: FileEdits, places: Iterable[ChangedPlace]) -> dict[str, FileState]:
    """Return the changed files with some of the changed places only."""
    kept: dict[str, list[ChangedPlace]] = {}
    for place in places:
        kept.setdefault(place.path, []).append(place)
    return {path: _apply(edits.files[path], group) for path, group in kept.items()}


def _apply(edit: FileEdit, places: Sequence[ChangedPlace]) -> FileState:
    assert edit.after is not None, "files that are deleted have no places"
    if edit.before is None:
        return edit.after
    lines = edit.before.content.splitlines(True)
    for place in sorted(places, key=lambda item: -item.old.start):
        lines[place.old.start : place.old.stop] = place.new
    return replace(edit.after, content=b"".join(lines))


async def minimize_changes(
    arena: Arena, timer: Timer, winner: CheckedChange, *, name: str, emit: events.Emit
) -> CheckedChange | None:
    """Return a part of a change that is as fast as the whole; None if there is none.

    Each file and each changed place is left out in turn. A part stays out if the rest passes the
    checks and its speed can't be told from that of the whole. What is left is measured in fresh
    sessions, and is returned only if they say the same.

    timer: what `arena.bench()` yields
    winner: the change, as it was measured last
    name: its id for people
    """
    edits = await find_edits(arena, winner.changes)
    places = list_places(edits)
    if len(places) < 2:
        return None
    emit(events.PhaseStarted(events.Phase.MINIMIZATION, name))
    kept, digest = places, winner.changes.digest
    end = time.monotonic() + arena.problem.timing_budget_s
    for number, group in enumerate(_list_groups(places)):
        left = [place for place in kept if place not in group]
        if not left or len(left) == len(kept):
            continue
        if number >= MOST_TRIALS or time.monotonic() > end:
            break
        smaller = await _check(arena, winner, edits, left)
        if smaller is None:
            continue
        is_alike = smaller.changes.digest == digest  # only comments or formatting differ
        if is_alike or await _is_as_fast(
            arena, timer, winner, smaller, name, f"less-{number}", emit
        ):
            kept, digest = left, smaller.changes.digest
    if len(kept) == len(places):
        return None
    smaller = await _check(arena, winner, edits, kept)
    return smaller and await _confirm(arena, timer, winner, smaller, name, emit)


def _list_groups(places: Sequence[ChangedPlace]) -> Iterator[list[ChangedPlace]]:
    """Yield what may be left out together: files, then single places, the largest first."""
    paths = dict.fromkeys(place.path for place in places)
    groups = [[place for place in places if place.path == path] for path in paths]
    if len(groups) > 1:
        yield from groups
    for place in sorted(places, key=lambda item: -len(item.new) - len(item.old)):
        yield [place]


async def _check(
    arena: Arena, winner: CheckedChange, edits: FileEdits, places: Sequence[ChangedPlace]
) -> CheckedChange | None:
    """Return a part of the winner's change if it passes the checks."""
    note = winner.candidate.note
    candidate = replace(
        winner.candidate,
        diff=None,
        revision="",
        files=apply_places(edits, places),
        note=f"{_OUTDATED}\n{note}" if note else "",
    )
    changes = await arena.resolve(candidate)
    if isinstance(changes, Rejection) or not changes.files:
        return None
    if changes.digest == winner.changes.digest:
        return replace(winner, candidate=candidate, changes=changes)
    judgement = await arena.judge(candidate, changes)
    if judgement.rejection is not None:
        return None
    return CheckedChange(candidate, changes, judgement, winner.measurement)


async def _is_as_fast(
    arena: Arena,
    timer: Timer,
    winner: CheckedChange,
    smaller: CheckedChange,
    name: str,
    label: str,
    emit: events.Emit,
) -> bool:
    result = await time_candidate(
        arena, timer, name, smaller.changes, label=label, is_final=False, emit=emit
    )
    return isinstance(result, Measurement) and _is_tied(arena, winner.measurement, result)


async def _confirm(
    arena: Arena,
    timer: Timer,
    winner: CheckedChange,
    smaller: CheckedChange,
    name: str,
    emit: events.Emit,
) -> CheckedChange | None:
    """Return the smaller change with fresh measurements, if they confirm it."""
    emit(events.PhaseStarted(events.Phase.CONFIRMATION, name))
    result = await time_candidate(arena, timer, name, smaller.changes, label="least", emit=emit)
    if not isinstance(result, Measurement) or not result.adopt:
        return None
    if not _is_tied(arena, winner.measurement, result):
        return None
    return replace(smaller, measurement=replace(result, is_confirmed=True))


def _is_tied(arena: Arena, whole: Measurement, part: Measurement) -> bool:
    if whole.estimate is None or part.estimate is None:
        return False
    return part.estimate.is_tied(whole.estimate, arena.problem.min_effect)
