"""The bench: base and candidates, timed one at a time, alone on the machine."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from fairtrial.arena.build import build_base
from fairtrial.arena.checks.prepared_check import Trial
from fairtrial.arena.checks.pytest_check import SuiteTrial
from fairtrial.arena.disk_guard import Use
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.problem import Benchmark, CodeProblem
from fairtrial.arena.model.timings import Session
from fairtrial.arena.model.verdicts import Reason, Rejection
from fairtrial.arena.resources import Ground
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.command_benchmark import prepare_pairs
from fairtrial.arena.timing.function_benchmark import prepare_calls
from fairtrial.arena.timing.inputs import Supplier, open_supplier
from fairtrial.arena.timing.prepared_benchmark import Duel, Meter
from fairtrial.arena.timing.staging import put_in
from fairtrial.arena.timing.test_benchmark import prepare_slowest
from fairtrial.arena.timing.workers import keeping_away
from fairtrial.core import LabError, MisfitError, Mistake, StudyError

STRETCHES = (2.0, 4.0, 8.0)
"""How many times its budget a benchmark may get while others use the machine."""


@dataclass(slots=True)
class Heat:
    """Some sessions of one candidate, one after the other.

    replicates: each is one session of every benchmark
    seconds: how long the host was used
    stretch: how many of those seconds count as one of the budget's
    waited_s: how long it took until all others had left it
    rejection: what the candidate did wrong meanwhile
    """

    replicates: list[tuple[Session, ...]] = field(default_factory=list)
    seconds: float = 0.0
    stretch: float = 1.0
    waited_s: float = 0.0
    rejection: Rejection | None = None

    @property
    def charged_s(self) -> float:
        """What it took of the budget."""
        return self.seconds / self.stretch


@dataclass(frozen=True, slots=True)
class Placed:
    """A benchmark, and the cores that its processes use."""

    meter: Meter
    cores: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """What is ready to time candidates with.

    ground: what it shares with checks
    base: the slot with the base, read-only
    meters: the benchmarks
    cores: all that timed processes use
    stretch: how many times as long as on a machine at leisure sessions take
    secret: what all inputs and orders are drawn with; never told to candidates
    """

    ground: Ground
    base: WorktreeSlot
    meters: tuple[Placed, ...]
    cores: tuple[int, ...]
    stretch: float = 1.0
    secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know; more may turn out while candidates are timed."""
        told = (note for placed in self.meters for note in placed.meter.notes)
        return (*dict.fromkeys(told), *_tell_place(self))

    @property
    def replicate_s(self) -> float:
        """How long one session of every benchmark takes, about."""
        return sum(placed.meter.session_s for placed in self.meters)

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> Heat:
        """Sessions number `first` and on, `count` of them or as many as the budget holds.

        changes: the candidate; None for the base itself
        label: what keeps the inputs of these sessions apart from those of others
        """
        async with self.ground.pool.acquire() as slot:
            rejection = await self._put_in(slot, changes)
            if rejection is not None:
                return Heat(rejection=rejection)
            numbers = range(first, first + count)
            return await self._run_between((self.base, slot), label, numbers, budget_s)

    async def against(self, changes: Changes) -> Versus:
        """The same with another candidate in the base's place."""
        await self.ground.pool.grow(1)
        return Versus(self, changes)

    async def _run_between(
        self,
        slots: tuple[WorktreeSlot, WorktreeSlot],
        label: str,
        numbers: Sequence[int],
        budget_s: float,
    ) -> Heat:
        before = [await slot.fingerprint() for slot in slots]
        heat = await self._take_sessions(slots, label, numbers, budget_s)
        after = [await slot.fingerprint() for slot in slots]
        if before[0] != after[0]:
            await slots[0].restage()  # whoever comes next is timed against the base as it was
            raise LabError("the base's slot was changed while it was timed: nothing of it counts")
        if before[1] != after[1] and heat.rejection is None:
            message = "its own slot was changed while it was timed"
            heat.rejection = Rejection(Reason.TAMPERING, message)
        return heat

    async def _put_in(self, slot: WorktreeSlot, changes: Changes | None) -> Rejection | None:
        async def put(use: Use) -> Rejection | None:
            async with self.ground.lock.shared():
                self.ground.room.begin(use)
                return await put_in(self.ground, slot, changes)

        # Others are still being checked, and what was compiled on a full disk may be incomplete.
        return await self.ground.room.settle(put, _is_rejected, doubts_success=True)

    async def _take_sessions(
        self,
        slots: tuple[WorktreeSlot, WorktreeSlot],
        label: str,
        numbers: Sequence[int],
        budget_s: float,
    ) -> Heat:
        heat = Heat(stretch=self.stretch)
        base, candidate = (frozen_stage(self.ground, slot) for slot in slots)
        duel = Duel(base, candidate, self.cores, f"{self.secret}/{label}")
        async with self.ground.lock.exclusive() as lease:
            heat.waited_s = lease.waited_s
            began = time.monotonic()
            for number in numbers:
                sessions = await self._take_replicate(duel, number)
                heat.rejection = next((s.rejection for s in sessions if s.rejection), None)
                if heat.rejection is not None:
                    break
                heat.replicates.append(sessions)
                if time.monotonic() - began + self.replicate_s / 2 > budget_s * self.stretch:
                    break
            heat.seconds = time.monotonic() - began
        return heat

    async def _take_replicate(self, duel: Duel, number: int) -> tuple[Session, ...]:
        """One session of each benchmark."""
        sessions = []
        for placed in self.meters:
            sessions.append(await placed.meter.run(replace(duel, cores=placed.cores), number))
            if sessions[-1].rejection is not None:
                break
        return tuple(sessions)


@dataclass(frozen=True, slots=True)
class Versus:
    """Two candidates against each other: a bench with one of them in the base's place."""

    bench: Bench
    rival: Changes

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> Heat:
        """Like `Bench.run`."""
        pool = self.bench.ground.pool
        async with pool.acquire() as base, pool.acquire() as slot:
            for each, content in ((base, self.rival), (slot, changes)):
                rejection = await self.bench._put_in(each, content)
                if rejection is not None:
                    return Heat(rejection=rejection)
            numbers = range(first, first + count)
            return await self.bench._run_between((base, slot), label, numbers, budget_s)


def _is_rejected(found: Rejection | None) -> bool:
    return found is not None


def frozen_stage(ground: Ground, slot: WorktreeSlot) -> Stage:
    """A slot as it is while it is timed: cold, and nothing in it can be changed."""
    return replace(ground.stage(slot, may_be_warm=False), is_writable=False)


def choose_cores(count: int) -> tuple[int, ...]:
    """The last cores that we may use: the first one has the machine's own business to do."""
    if not hasattr(os, "sched_getaffinity"):
        return ()
    return tuple(sorted(os.sched_getaffinity(0))[-count:])


@asynccontextmanager
async def open_bench(ground: Ground, trials: Sequence[Trial]) -> AsyncIterator[Bench]:
    """A bench for one problem: the base is timed alone, benchmarks are ready.

    Raises a `StudyError` if there is nothing to time, or a benchmark can't be used.
    """
    problem = ground.problem
    makers = [each for each in problem.bench if each.call]
    await ground.pool.grow(2 + bool(makers))  # the base, a candidate, the input makers
    cores = choose_cores(max((each.cores for each in problem.bench), default=1))
    async with AsyncExitStack() as opened:
        base = await opened.enter_async_context(ground.pool.acquire())
        await _build(ground, base)
        suppliers: dict[str, Supplier] = {}
        if makers:
            trusted = await opened.enter_async_context(ground.pool.acquire(trusted=True))
            await _build(ground, trusted)
            stage = ground.stage(trusted, may_be_warm=False)
            with keeping_away(cores):  # what we start inherits that
                for each in makers:
                    entered = opened.enter_async_context(open_supplier(each, stage))
                    suppliers[each.name] = await entered
        bench = Bench(ground, base, (), cores)
        async with ground.lock.exclusive():
            bench = await _prepare(bench, trials, suppliers)
        yield bench


async def _build(ground: Ground, slot: WorktreeSlot) -> None:
    async with ground.lock.shared():
        await build_base(ground.stage(slot, may_be_warm=False), slot)


async def _prepare(bench: Bench, trials: Sequence[Trial], suppliers: dict[str, Supplier]) -> Bench:
    """The bench with its meters; on a machine that is busy, with more time for each."""
    began, budget_s = time.monotonic(), bench.ground.problem.budget_s
    try:
        return replace(bench, meters=await _find_meters(bench, trials, suppliers, 1.0))
    except MisfitError:
        for stretch in STRETCHES:
            # What doesn't come to an end isn't waited for again and again.
            if not is_busy() or time.monotonic() - began > STRETCHES[0] * budget_s:
                break
            with suppress(MisfitError):
                meters = await _find_meters(bench, trials, suppliers, stretch)
                return replace(bench, meters=meters, stretch=stretch)
        raise  # by the budget that somebody has written down


def is_busy() -> bool:
    """Whether more wants to run on this machine than there are cores."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


async def _find_meters(
    bench: Bench, trials: Sequence[Trial], suppliers: dict[str, Supplier], stretch: float
) -> tuple[Placed, ...]:
    problem = bench.ground.problem
    stage = frozen_stage(bench.ground, bench.base)
    duel = Duel(stage, stage, bench.cores, f"{bench.secret}/base")
    budget_s = problem.budget_s * stretch
    if not problem.bench:
        slowest = await prepare_slowest(_find_suite(trials), duel, budget_s=budget_s)
        return (Placed(slowest, duel.cores),)
    meters: list[Placed] = []
    for each in problem.bench:
        cores = choose_cores(each.cores)
        meter = await _prepare_one(each, replace(duel, cores=cores), suppliers, budget_s)
        meters.append(Placed(meter, cores))
    return tuple(meters)


async def _prepare_one(
    benchmark: Benchmark, duel: Duel, suppliers: dict[str, Supplier], budget_s: float
) -> Meter:
    if benchmark.call:
        supplier = suppliers[benchmark.name]
        return await prepare_calls(benchmark, supplier, duel, budget_s=budget_s)
    return await prepare_pairs(benchmark, duel, budget_s=budget_s)


def _find_suite(trials: Sequence[Trial]) -> SuiteTrial:
    for trial in trials:
        if isinstance(trial, SuiteTrial):
            return trial
    raise StudyError(
        Mistake(
            ("bench",),
            "is empty, and no check runs pytest: nothing can be timed",
            "name a call with inputs, or a command, under bench:",
        )
    )


def can_time(problem: CodeProblem) -> bool:
    """Whether there is anything to time."""
    return bool(problem.bench) or any(check.is_pytest for check in problem.check)


def _tell_place(bench: Bench) -> list[str]:
    notes = []
    if bench.stretch > 1:
        notes.append(
            f"the machine was so busy that timing may take {bench.stretch:g} times as long as "
            "budget_s says"
        )
    if not bench.cores:
        notes.append("timed processes can't be pinned to a core here: expect more noise")
    if not bench.ground.sandbox.relocates:
        notes.append(
            "without a sandbox that moves folders, base and candidate are timed at different paths"
        )
    return notes
