"""The winner: measured again in fresh sessions, checked on fresh inputs, looked at, handed over."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.arena import (
    Arena,
    Bench,
    Edit,
    Edits,
    Estimate,
    FileState,
    Finding,
    Measurement,
    Reason,
    coverage,
    estimate_text,
    explain,
    find_edits,
    profile,
    recheck,
    time_candidate,
)
from fairtrial.core import LabError
from fairtrial.optimize.lineage import Entry
from fairtrial.optimize.scheduler import Stream
from fairtrial.optimize.selection import rank
from fairtrial.optimize.watching import Watcher

CONTENDERS = 3
"""How many of the best are tried before it is said that none is worth taking."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The best candidate.

    id: its place in the tree
    finding: all that is known of it
    """

    id: str
    finding: Finding

    @property
    def estimate(self) -> Estimate:
        """How fast it is, by fresh sessions alone."""
        assert self.finding.measurement.estimate is not None
        return self.finding.measurement.estimate

    @property
    def patch(self) -> str:
        """Its change against the base, as text."""
        return self.finding.edits.patch.decode("utf-8", "replace")

    @property
    def explanation(self) -> str:
        """What to say of it in a pull request."""
        return explain(self.finding)


@dataclass(frozen=True, slots=True)
class Crowning:
    """Who is the best in the end.

    winner: the best; None if none holds
    out: those that looked better, and why they aren't: what fresh sessions or fresh inputs said
    """

    winner: Winner | None
    out: Mapping[str, str]


async def crown(stream: Stream, arena: Arena, bench: Bench, watcher: Watcher) -> Crowning:
    """The best of those that looked worth taking, if fresh sessions say so.

    Who is the best was decided before; it is measured again since it was picked for doing well.
    One that doesn't hold, or fails on inputs that nobody has seen, is out, and the next is tried.
    """
    out: dict[str, str] = {}
    ranked = rank(stream.entries, arena.problem.min_effect)
    if told := _tell_choice(ranked):
        watcher.say(told)
    for entry in ranked[:CONTENDERS]:
        measured = await _measure_again(stream, arena, bench, watcher, entry)
        if isinstance(measured, Measurement):
            watcher.say("checking the best on inputs that nobody has seen")
            rejection = await recheck(arena, stream.changes[entry.id])
            if rejection is None or rejection.reason == Reason.EVALUATOR:
                doubts = () if rejection is None else (rejection.message,)
                return Crowning(
                    await _look_at(stream, arena, watcher, entry, measured, doubts, out), out
                )
            out[entry.id] = f"on inputs that nobody has seen, {rejection.message}"
        else:
            out[entry.id] = measured
        watcher.say(f"{entry.id} is out: {out[entry.id]}.")
    return Crowning(None, out)


def _tell_choice(ranked: Sequence[Entry]) -> str:
    """Why the first isn't the one that looks fastest, where that is so."""
    bounds = {
        each.id: estimate.low
        for each in ranked
        if each.tried is not None and (estimate := each.tried.estimate) is not None
    }
    leader = max(bounds, key=bounds.__getitem__, default="")
    if not leader or ranked[0].id == leader:
        return ""
    return f"{ranked[0].id} can't be told from {leader}, and is the smaller change."


async def _measure_again(
    stream: Stream, arena: Arena, bench: Bench, watcher: Watcher, entry: Entry
) -> Measurement | str:
    """What fresh sessions say of it; in words if it isn't worth taking after all.

    Raises a `LabError` if they can't be taken: that says nothing against it, or for the next one.
    """
    watcher.say(f"measuring {entry.id} again")

    def watch(label: str, sessions: int, estimate: Estimate | None) -> None:
        watcher.timing(entry, sessions, estimate)

    changes = stream.changes[entry.id]
    found = await time_candidate(arena, bench, entry.id, changes, label="final", watcher=watch)
    if isinstance(found, Measurement):
        return replace(found, is_confirmed=True) if found.adopt else _tell_fresh(found)
    if found.reason == Reason.EVALUATOR:
        raise LabError(f"{entry.id} looks best, and measuring it again failed: {found.message}")
    return f"measured again, {found.message}"


def _tell_fresh(measured: Measurement) -> str:
    """Why it isn't worth taking, by fresh sessions."""
    figures = estimate_text(measured.estimate) or "not measured long enough to say"
    doubts = f", but: {'; '.join(measured.vetoes)}" if measured.vetoes else ""
    return f"measured again, in fresh sessions, it is {measured.verdict.value}, {figures}{doubts}"


async def _look_at(
    stream: Stream,
    arena: Arena,
    watcher: Watcher,
    entry: Entry,
    measured: Measurement,
    doubts: tuple[str, ...],
    out: Mapping[str, str],
) -> Winner:
    """Which lines are run by the checks, where the time goes; neither can cost the verdict."""
    changes = stream.changes[entry.id]
    judgement = stream.judgements[entry.digest]
    watcher.say("looking at where the time goes")
    finding = Finding(
        problem=arena.problem,
        name=entry.name,
        edits=await find_edits(arena, changes),
        judgement=judgement,
        measurement=measured,
        note=stream.candidates[entry.id].note,
        origin=stream.candidates[entry.id].origin,
        is_rechecked=not doubts,
        coverage=await coverage(arena, changes),
        profile=await profile(arena, changes),
        notes=(*doubts, *(f"{id} looked better, and is out: {why}" for id, why in out.items())),
    )
    return Winner(entry.id, finding)


def edits_record(edits: Edits) -> dict[str, Any]:
    """Edits as plain data: with what was there before, so that they can be merged later."""
    files = {
        path: {"before": _plain(edit.before), "after": _plain(edit.after)}
        for path, edit in edits.files.items()
    }
    return {"files": files, "patch": base64.b64encode(edits.patch).decode("ascii")}


def _plain(state: FileState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    content = base64.b64encode(state.content).decode("ascii")
    return {"content": content, "executable": state.executable, "is_link": state.is_link}


def edits_of(record: Mapping[str, Any]) -> Edits:
    """The edits that were recorded."""
    files = {
        path: Edit(_state(each["before"]), _state(each["after"]))
        for path, each in record["files"].items()
    }
    return Edits(files, base64.b64decode(record["patch"]))


def _state(record: Mapping[str, Any] | None) -> FileState | None:
    if record is None:
        return None
    content = base64.b64decode(record["content"])
    return FileState(content, record["executable"], bool(record["is_link"]))
