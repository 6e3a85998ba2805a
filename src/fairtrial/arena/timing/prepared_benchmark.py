"""Prepared benchmarks: those whose base has been timed alone.

There are several kinds. A function `prepare_...(benchmark, setup)` times the base alone and returns
a `PreparedBenchmark`; its method `run` runs one session of base and candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairtrial.arena.model.timings import Session
from fairtrial.arena.stage import Stage


@dataclass(frozen=True, slots=True)
class TimingSetup:
    """Two slots that are timed against each other.

    base: the slot with the base, read-only
    candidate: the slot with the candidate, read-only; the base's own while a benchmark is prepared
    cores: the cores that the timed processes are pinned to
    seed: secret; with the session's number it seeds all that is drawn in a session
    """

    base: Stage
    candidate: Stage
    cores: tuple[int, ...]
    seed: str


class PreparedBenchmark(Protocol):
    """A benchmark that is ready to time candidates."""

    @property
    def name(self) -> str:
        """The benchmark's name."""
        ...

    @property
    def session_s(self) -> float:
        """About how long a session takes."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for people on the base and its timing."""
        ...

    async def run(self, setup: TimingSetup, number: int) -> Session:
        """Run one session; the caller holds the host lock exclusively.

        A failure of the candidate becomes the session's `rejection`. Raises `LabError` if the base
        fails.
        """
        ...
