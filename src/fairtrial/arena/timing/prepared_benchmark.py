"""A benchmark that is ready: it knows how long the base takes.

Two kinds, one shape: `prepare_...(benchmark, duel)` times the base alone and returns a `Meter`;
`Meter.run` runs one session of base and candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairtrial.arena.model.timings import Session
from fairtrial.arena.stage import Stage


@dataclass(frozen=True, slots=True)
class Duel:
    """Two slots that are to be timed against each other, and where.

    base: the slot with the base, read-only
    candidate: the slot with the candidate, read-only; the base's own while a meter is prepared
    cores: which cores the timed processes use
    seed: secret; all that is drawn in a session comes of it and of the session's number
    """

    base: Stage
    candidate: Stage
    cores: tuple[int, ...]
    seed: str


class Meter(Protocol):
    """A prepared benchmark."""

    @property
    def name(self) -> str:
        """The benchmark's."""
        ...

    @property
    def session_s(self) -> float:
        """How long a session takes, about."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of how it went with the base."""
        ...

    async def run(self, duel: Duel, number: int) -> Session:
        """One session; never raises for what a candidate does: the session says so.

        Who calls it holds the host's exclusive lock.
        """
        ...
