"""Prepared checks: checks whose results on the base are known, ready to be run on candidates.

There are three kinds with one interface: `prepare_...(label, check, stages)` runs the check on the
base and returns a `PreparedCheck`; `PreparedCheck.run` runs it on a candidate and judges it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from fairtrial.arena.model.verdicts import Basis, Rejection
from fairtrial.arena.stage import Stage


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The result of one check on one candidate.

    rejection: why the candidate is rejected; None if the check passed
    loaded: files that were imported, by their paths inside the sandbox
    wall_s: wall time
    cpu_s: CPU time of all processes
    peak_rss_mb: peak memory of all processes together
    """

    rejection: Rejection | None
    loaded: frozenset[str] = frozenset()
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0


class Stages(Protocol):
    """Provides slots that hold the base, while a check is prepared."""

    def __call__(
        self, *, sandboxed: bool = True, trusted: bool = False
    ) -> AbstractAsyncContextManager[Stage]:
        """Lease a slot with the unchanged base for the duration of the block.

        sandboxed: False runs commands without a sandbox, as the user would
        trusted: whether the slot holds input generators and recorded calls, which candidates
            never see
        """
        ...


class PreparedCheck(Protocol):
    """A check whose results on the base are known."""

    @property
    def label(self) -> str:
        """The check's path in the problem: ``check[0]``."""
        ...

    @property
    def basis(self) -> Basis:
        """The kind of evidence that this check provides."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user about the runs on the base."""
        ...

    @property
    def loaded(self) -> frozenset[str]:
        """Files that the runs on the base imported, by their paths inside the sandbox."""
        ...

    @property
    def base_s(self) -> float:
        """The wall time of a run on the base, in seconds."""
        ...

    async def run(self, stage: Stage) -> CheckRun:
        """Run the check on a candidate's slot; never raises because of a candidate's behavior."""
        ...
