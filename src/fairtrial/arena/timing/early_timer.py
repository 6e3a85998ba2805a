"""A timer that can end a batch of sessions early."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.timings import Session

if TYPE_CHECKING:
    from fairtrial.arena.timing.bench import SessionBatch

IsEnough = Callable[[Sequence[tuple[Session, ...]]], bool]
"""Whether the sessions of a batch so far, one of each benchmark, are enough."""


def never_enough(replicates: Sequence[tuple[Session, ...]]) -> bool:
    """Return False."""
    return False


class EarlyTimer(ABC):
    """A timer that looks at its sessions while a batch of them runs.

    Simulated ones need not, nor those that compare two candidates, whose loser is of interest, too.
    """

    @abstractmethod
    async def run_until(
        self,
        changes: Changes | None,
        label: str,
        first: int,
        count: int,
        budget_s: float,
        is_enough: IsEnough,
    ) -> SessionBatch:
        """Run sessions like `Timer.run`, but no more of them once those so far are enough."""
