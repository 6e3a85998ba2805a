"""A check that is ready for candidates: it knows what the base does.

Three kinds of check, one shape: `prepare_...(label, check, stages)` runs the base and returns a
`Trial`; `Trial.run` runs a candidate and says whether it holds.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from fairtrial.arena.model.verdicts import Basis, Rejection
from fairtrial.arena.stage import Stage


@dataclass(frozen=True, slots=True)
class CheckRun:
    """What one check came to on one candidate.

    rejection: why the candidate is out; None if the check holds
    loaded: files that were imported, as the command saw them
    wall_s: how long it took
    cpu_s: the CPU time of all its processes
    peak_rss_mb: the most memory they held together
    """

    rejection: Rejection | None
    loaded: frozenset[str] = frozenset()
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0


class Stages(Protocol):
    """Gives out slots with the base in them, while a check is prepared."""

    def __call__(
        self, *, sandboxed: bool = True, trusted: bool = False
    ) -> AbstractAsyncContextManager[Stage]:
        """A slot of its own with the unchanged base, until the block ends.

        sandboxed: False runs its commands as the user would
        trusted: whether input makers and recorded calls lie in it; never so for candidates
        """
        ...


class Trial(Protocol):
    """A prepared check."""

    @property
    def label(self) -> str:
        """The check's place in the problem: ``check[0]``."""
        ...

    @property
    def basis(self) -> Basis:
        """What a verdict of this check rests on."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of how it went with the base."""
        ...

    @property
    def loaded(self) -> frozenset[str]:
        """Files that the base's own run imported, as the command saw them."""
        ...

    async def run(self, stage: Stage) -> CheckRun:
        """Run it on a candidate's slot; never raises for what a candidate does."""
        ...
