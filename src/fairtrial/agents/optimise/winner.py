"""The winner: measured again in fresh sessions, and handed over as a patch."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.agents.optimise.selection import rank
from fairtrial.agents.optimise.stream import Stream
from fairtrial.agents.optimise.watching import Watcher
from fairtrial.arena.arena import Arena
from fairtrial.arena.bench.bench import Bench
from fairtrial.arena.bench.deciding import race
from fairtrial.arena.contest import rules_of
from fairtrial.model.judgements import Judgement
from fairtrial.model.timings import Estimate, Measurement

CONTENDERS = 3
"""How many of the best are measured against each other again."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The best candidate.

    id: its place in the tree
    name: what it is called
    patch: its change against the base
    judgement: what its checks and its first timing said
    measurement: what fresh sessions said: only this counts
    """

    id: str
    name: str
    patch: str
    judgement: Judgement
    measurement: Measurement

    @property
    def estimate(self) -> Estimate:
        """How fast it is."""
        assert self.measurement.estimate is not None
        return self.measurement.estimate


async def crown(stream: Stream, arena: Arena, bench: Bench, watcher: Watcher) -> Winner | None:
    """The best of those that looked worth taking, by fresh sessions; None if none holds."""
    ranked = rank(stream.entries, arena.problem.min_effect)[:CONTENDERS]
    if not ranked:
        return None
    entries = {entry.digest: entry for entry in ranked}

    def watch(digest: str, sessions: int, estimate: Estimate | None) -> None:
        watcher.timing(entries[digest], sessions, estimate)

    contenders = {digest: stream.changes[entry.id] for digest, entry in entries.items()}
    found = await race(bench, contenders, rules_of(arena.problem), watcher=watch)
    adopted = [
        (result.estimate.low, digest, result)
        for digest, result in found.items()
        if isinstance(result, Measurement) and result.adopt and result.estimate
        if result.is_confirmed or len(found) == 1
    ]
    if not adopted:
        return None
    _, digest, measured = max(adopted, key=lambda each: each[0])
    entry = entries[digest]
    judgement = stream.judgements[digest]
    patch = await arena.render(stream.changes[entry.id])
    return Winner(entry.id, judgement.name, patch, judgement, measured)
