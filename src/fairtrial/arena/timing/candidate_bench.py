"""A bench that times two candidates against each other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.timing.bench import Bench, SessionBatch
from fairtrial.arena.timing.stats.reconciliation import SavingClaim
from fairtrial.arena.timing.total_checks import TotalBatch, TotalTimer


@dataclass(frozen=True, slots=True)
class CandidateBench(TotalTimer):
    """A bench with a candidate in the base's place, to time two candidates against each other.

    bench: the bench whose benchmarks are used
    rival: the candidate in the base's place
    """

    bench: Bench
    rival: Changes

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> SessionBatch:
        """Run sessions like `Bench.run`."""
        async with self._acquire_slots() as slots:
            rejection = await self._stage(slots, changes)
            if rejection is not None:
                return SessionBatch(rejection=rejection)
            numbers = range(first, first + count)
            return await self.bench.run_between(slots, label, numbers, budget_s)

    async def check_totals(
        self, changes: Changes, label: str, claims: Mapping[str, SavingClaim], limit_s: float
    ) -> TotalBatch:
        """Compare claimed savings with whole processes of both candidates."""
        async with self._acquire_slots() as slots:
            rejection = await self._stage(slots, changes)
            if rejection is not None:
                return TotalBatch(rejection=rejection)
            return await self.bench.check_between(slots, label, claims, limit_s)

    @asynccontextmanager
    async def _acquire_slots(self) -> AsyncIterator[tuple[WorktreeSlot, WorktreeSlot]]:
        pool = self.bench.resources.pool
        async with pool.acquire() as base, pool.acquire() as slot:
            yield base, slot

    async def _stage(
        self, slots: tuple[WorktreeSlot, WorktreeSlot], changes: Changes | None
    ) -> Rejection | None:
        """Write and build the rival and the candidate; return a rejection if a build fails."""
        for slot, version in zip(slots, (self.rival, changes), strict=True):
            rejection = await self.bench.stage_version(slot, version)
            if rejection is not None:
                return rejection
        return None


async def open_candidate_bench(bench: Bench, rival: Changes) -> CandidateBench:
    """Return a bench that times candidates against this one instead of the base."""
    await bench.resources.pool.grow(1)
    return CandidateBench(bench, rival)
