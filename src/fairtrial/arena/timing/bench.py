"""The bench: times candidates against the base, one at a time, alone on the machine."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from fairtrial.arena.build import build_base
from fairtrial.arena.checks.function_check import PreparedFunctionCheck
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.checks.pytest_check import PreparedPytestCheck
from fairtrial.arena.disk_guard import DiskUse
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.problem import Benchmark
from fairtrial.arena.model.timings import Session, TotalCheck
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.benchmark_suites import prepare_suite
from fairtrial.arena.timing.candidate_staging import stage_candidate
from fairtrial.arena.timing.command_benchmark import ProcessBenchmark, prepare_command_benchmark
from fairtrial.arena.timing.early_timer import EarlyTimer, IsEnough, never_enough
from fairtrial.arena.timing.function_benchmark import FunctionBenchmark, prepare_function_benchmark
from fairtrial.arena.timing.input_files import InputFiles
from fairtrial.arena.timing.inputs import InputSupplier, open_supplier
from fairtrial.arena.timing.prepared_benchmark import PreparedBenchmark, TimingSetup
from fairtrial.arena.timing.repeated_inputs import describe_repeats
from fairtrial.arena.timing.slot_guard import guard_slots
from fairtrial.arena.timing.stats.reconciliation import SavingClaim
from fairtrial.arena.timing.suite_benchmark import prepare_slowest
from fairtrial.arena.timing.total_checks import TotalBatch, TotalTimer
from fairtrial.arena.timing.varied_files import check_variations
from fairtrial.arena.timing.whole_process import check_total, check_unseen
from fairtrial.arena.timing.workers import keeping_away
from fairtrial.core import MisfitError, Mistake, StudyError

STRETCHES = (2.0, 4.0, 8.0)
"""Factors by which a benchmark's budget is extended while other programs use the machine."""


@dataclass(slots=True)
class SessionBatch:
    """Consecutive sessions of one candidate.

    replicates: each is one session of every benchmark
    seconds: how long they took
    stretch: how many of those seconds count as one second of the budget
    waited_s: how long the exclusive host lock was waited for
    rejection: set if the candidate failed meanwhile
    """

    replicates: list[tuple[Session, ...]] = field(default_factory=list)
    seconds: float = 0.0
    stretch: float = 1.0
    waited_s: float = 0.0
    rejection: Rejection | None = None

    @property
    def charged_s(self) -> float:
        """The part of the budget that was used."""
        return self.seconds / self.stretch


@dataclass(frozen=True, slots=True)
class PinnedBenchmark:
    """A prepared benchmark with its cores.

    benchmark: the benchmark
    cores: the cores that its processes are pinned to
    """

    benchmark: PreparedBenchmark
    cores: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bench(TotalTimer, EarlyTimer):
    """The prepared benchmarks of a problem, and the slot with the base.

    resources: the arena's, shared with its checks
    base: the slot with the base, read-only
    benchmarks: the prepared benchmarks
    cores: all cores that timed processes use
    stretch: how many times as long as on an idle machine sessions take
    secret: seeds all inputs and orders; candidates never see it
    """

    resources: ArenaResources
    base: WorktreeSlot
    benchmarks: tuple[PinnedBenchmark, ...]
    cores: tuple[int, ...]
    stretch: float = 1.0
    secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for people; benchmarks may add some while candidates are timed."""
        notes = (note for pinned in self.benchmarks for note in pinned.benchmark.notes)
        return (*dict.fromkeys(notes), *_describe_conditions(self))

    @property
    def replicate_s(self) -> float:
        """About how long one session of every benchmark takes."""
        return sum(pinned.benchmark.session_s for pinned in self.benchmarks)

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> SessionBatch:
        """Run `count` sessions, numbered from `first`, or as many as the budget allows.

        changes: the candidate; None for the base itself
        label: seeds the inputs of these sessions
        """
        return await self.run_until(changes, label, first, count, budget_s, never_enough)

    async def run_until(
        self,
        changes: Changes | None,
        label: str,
        first: int,
        count: int,
        budget_s: float,
        is_enough: IsEnough,
    ) -> SessionBatch:
        """Run sessions like `run`, but no more of them once those so far are enough."""
        async with self.resources.pool.acquire() as slot:
            rejection = await self.stage_version(slot, changes)
            if rejection is not None:
                return SessionBatch(rejection=rejection)
            numbers = range(first, first + count)
            return await self.run_between((self.base, slot), label, numbers, budget_s, is_enough)

    async def run_between(
        self,
        slots: tuple[WorktreeSlot, WorktreeSlot],
        label: str,
        numbers: Sequence[int],
        budget_s: float,
        is_enough: IsEnough = never_enough,
    ) -> SessionBatch:
        """Run sessions of the versions in two slots, the base's first.

        A candidate that changes its own slot is rejected. Raises `LabError` if the base's slot was
        changed.
        """
        run = partial(self._run_sessions, slots, label, numbers, budget_s, is_enough)
        return await guard_slots(slots, run)

    async def check_totals(
        self, changes: Changes, label: str, claims: Mapping[str, SavingClaim], limit_s: float
    ) -> TotalBatch:
        """Compare claimed savings with whole processes; see `TotalTimer`."""
        async with self.resources.pool.acquire() as slot:
            rejection = await self.stage_version(slot, changes)
            if rejection is not None:
                return TotalBatch(rejection=rejection)
            return await self.check_between((self.base, slot), label, claims, limit_s)

    async def check_between(
        self,
        slots: tuple[WorktreeSlot, WorktreeSlot],
        label: str,
        claims: Mapping[str, SavingClaim],
        limit_s: float,
    ) -> TotalBatch:
        """Run whole processes of the versions in two slots, the base's first."""
        run = partial(self._run_whole, slots, label, claims, limit_s)
        return await guard_slots(slots, run)

    async def stage_version(self, slot: WorktreeSlot, changes: Changes | None) -> Rejection | None:
        """Write and build a version in a slot; return a rejection if its build fails."""

        async def stage(use: DiskUse) -> Rejection | None:
            async with self.resources.lock.shared():
                self.resources.disk_guard.start(use)
                return await stage_candidate(self.resources, slot, changes)

        # Checks may run at the same time, and files compiled on a full disk may be incomplete.
        return await self.resources.disk_guard.run(stage, _is_rejected, repeats_success=True)

    async def _run_sessions(
        self,
        slots: tuple[WorktreeSlot, WorktreeSlot],
        label: str,
        numbers: Sequence[int],
        budget_s: float,
        is_enough: IsEnough,
    ) -> SessionBatch:
        batch = SessionBatch(stretch=self.stretch)
        setup = self._set_up(slots, label)
        async with self.resources.lock.exclusive() as lease:
            batch.waited_s = lease.waited_s
            began = time.monotonic()
            for number in numbers:
                sessions = await self._run_replicate(setup, number)
                rejections = (session.rejection for session in sessions)
                batch.rejection = next(filter(None, rejections), None)
                if batch.rejection is not None:
                    break
                batch.replicates.append(sessions)
                if is_enough(batch.replicates):
                    break
                if time.monotonic() - began + self.replicate_s / 2 > budget_s * self.stretch:
                    break
            batch.seconds = time.monotonic() - began
        return batch

    async def _run_whole(
        self,
        slots: tuple[WorktreeSlot, WorktreeSlot],
        label: str,
        claims: Mapping[str, SavingClaim],
        limit_s: float,
    ) -> TotalBatch:
        batch = TotalBatch()
        setup = self._set_up(slots, label)
        async with self.resources.lock.exclusive() as lease:
            batch.waited_s = lease.waited_s
            began = time.monotonic()
            for pinned in self.benchmarks:
                benchmark, claim = pinned.benchmark, claims.get(pinned.benchmark.name)
                if claim is None:
                    continue
                own, check = replace(setup, cores=pinned.cores), None
                if isinstance(benchmark, FunctionBenchmark):
                    is_vetoed = benchmark.same_inputs and benchmark.benchmark.trust != "all"
                    batch.vetoes += (benchmark.same_inputs,) if is_vetoed else ()
                    check = await check_total(benchmark, own, claim, limit_s * self.stretch)
                    if benchmark.repeats and isinstance(check, TotalCheck):
                        batch.checks += (check,)
                        check = await check_unseen(benchmark, own, claim, limit_s * self.stretch)
                        if not isinstance(check, Rejection):
                            others = [item.benchmark for item in self.benchmarks]
                            batch.repeats += (describe_repeats(benchmark, check, others),)
                elif isinstance(benchmark, ProcessBenchmark):
                    check = await check_variations(benchmark, own, claim, limit_s * self.stretch)
                if isinstance(check, Rejection):
                    batch.rejection = check
                    break
                batch.checks += () if check is None else (check,)
            batch.seconds = time.monotonic() - began
        return batch

    def _set_up(self, slots: tuple[WorktreeSlot, WorktreeSlot], label: str) -> TimingSetup:
        base, candidate = (frozen_stage(self.resources, slot) for slot in slots)
        return TimingSetup(base, candidate, self.cores, f"{self.secret}/{label}")

    async def _run_replicate(self, setup: TimingSetup, number: int) -> tuple[Session, ...]:
        """Run one session of each benchmark."""
        sessions = []
        for pinned in self.benchmarks:
            own = replace(setup, cores=pinned.cores)
            sessions.append(await pinned.benchmark.run(own, number))
            if sessions[-1].rejection is not None:
                break
        return tuple(sessions)


def _is_rejected(rejection: Rejection | None) -> bool:
    return rejection is not None


def frozen_stage(resources: ArenaResources, slot: WorktreeSlot) -> Stage:
    """Return a read-only stage without warm starts, as timed commands need it."""
    return replace(resources.stage(slot, may_be_warm=False), is_writable=False)


def choose_cores(count: int) -> tuple[int, ...]:
    """Return the last `count` cores of this process; the system often uses the first one."""
    if not hasattr(os, "sched_getaffinity"):
        return ()
    return tuple(sorted(os.sched_getaffinity(0))[-count:])


@asynccontextmanager
async def open_bench(
    resources: ArenaResources, checks: Sequence[PreparedCheck]
) -> AsyncIterator[Bench]:
    """Open a bench for the arena's problem: time the base alone, and prepare the benchmarks.

    checks: the arena's prepared checks; without a benchmark, the slowest tests of one are timed

    Raises `StudyError` if there is nothing to time, or a benchmark can't be used.
    """
    problem = resources.problem
    with_inputs = [benchmark for benchmark in problem.bench if benchmark.inputs]
    await resources.pool.grow(2 + bool(with_inputs))  # the base, a candidate, the input makers
    cores = choose_cores(max((benchmark.cores for benchmark in problem.bench), default=1))
    async with AsyncExitStack() as opened:
        base = await opened.enter_async_context(resources.pool.acquire())
        await _build(resources, base)
        suppliers: dict[str, InputSupplier] = {}
        if with_inputs:
            trusted = await opened.enter_async_context(resources.pool.acquire(trusted=True))
            await _build(resources, trusted)
            stage = resources.stage(trusted, may_be_warm=False)
            with keeping_away(cores):  # the started processes inherit the affinity
                for benchmark in with_inputs:
                    supplier = open_supplier(benchmark, stage)
                    suppliers[benchmark.name] = await opened.enter_async_context(supplier)
        bench = Bench(resources, base, (), cores)
        async with resources.lock.exclusive():
            bench = await _prepare(bench, checks, suppliers)
        yield bench


async def _build(resources: ArenaResources, slot: WorktreeSlot) -> None:
    async with resources.lock.shared():
        await build_base(resources.stage(slot, may_be_warm=False), slot)


async def _prepare(
    bench: Bench, checks: Sequence[PreparedCheck], suppliers: dict[str, InputSupplier]
) -> Bench:
    """Return the bench with prepared benchmarks; on a busy machine each gets more time."""
    began, budget_s = time.monotonic(), bench.resources.problem.budget_s
    try:
        benchmarks = await _prepare_benchmarks(bench, checks, suppliers, 1.0)
        return replace(bench, benchmarks=benchmarks)
    except MisfitError:
        for stretch in STRETCHES:
            # A benchmark that doesn't end must not be waited for several times.
            if not is_busy() or time.monotonic() - began > STRETCHES[0] * budget_s:
                break
            with suppress(MisfitError):
                benchmarks = await _prepare_benchmarks(bench, checks, suppliers, stretch)
                return replace(bench, benchmarks=benchmarks, stretch=stretch)
        raise  # the first error, which names the problem's own budget


def is_busy() -> bool:
    """Return whether the machine's load average is above its number of cores."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


async def _prepare_benchmarks(
    bench: Bench,
    checks: Sequence[PreparedCheck],
    suppliers: dict[str, InputSupplier],
    stretch: float,
) -> tuple[PinnedBenchmark, ...]:
    problem = bench.resources.problem
    stage = frozen_stage(bench.resources, bench.base)
    setup = TimingSetup(stage, stage, bench.cores, f"{bench.secret}/base")
    budget_s = problem.budget_s * stretch
    if not problem.bench:
        slowest = await prepare_slowest(_find_suite(checks), setup, budget_s=budget_s)
        return (PinnedBenchmark(slowest, setup.cores),)
    prepared: list[PinnedBenchmark] = []
    for benchmark in problem.bench:
        cores = choose_cores(benchmark.cores)
        own = replace(setup, cores=cores)
        if benchmark.suite:
            suite = await prepare_suite(benchmark, own, budget_s=budget_s)
            prepared += [PinnedBenchmark(unit, cores) for unit in suite]
            continue
        ready = await _prepare_one(benchmark, own, suppliers, budget_s)
        if isinstance(ready, FunctionBenchmark):
            ready = _compare_like_check(ready, checks)
        prepared.append(PinnedBenchmark(ready, cores))
    return tuple(prepared)


async def _prepare_one(
    benchmark: Benchmark, setup: TimingSetup, suppliers: dict[str, InputSupplier], budget_s: float
) -> PreparedBenchmark:
    if benchmark.call:
        supplier = suppliers[benchmark.name]
        return await prepare_function_benchmark(benchmark, supplier, setup, budget_s=budget_s)
    files = InputFiles(suppliers[benchmark.name]) if benchmark.inputs else None
    return await prepare_command_benchmark(benchmark, setup, budget_s=budget_s, files=files)


def _compare_like_check(
    benchmark: FunctionBenchmark, checks: Sequence[PreparedCheck]
) -> FunctionBenchmark:
    """Return a benchmark whose results are compared as the check of its function does."""
    for check in checks:
        if isinstance(check, PreparedFunctionCheck) and check.calls(benchmark.benchmark.call):
            rules = check.expectation.check
            return replace(benchmark, check=rules, acceptor=check.acceptor, has_check=True)
    return benchmark


def _find_suite(checks: Sequence[PreparedCheck]) -> PreparedPytestCheck:
    for check in checks:
        if isinstance(check, PreparedPytestCheck) and check.baseline.counted:
            return check
    raise StudyError(
        Mistake(
            ("bench",),
            "is empty, and no check has tests that the base passes: nothing can be timed",
            "name a call with inputs, or a command, under bench:",
        )
    )


def has_timed_tests(checks: Sequence[PreparedCheck]) -> bool:
    """Return whether a check has tests that the base passes, which can be timed."""
    suites = (check for check in checks if isinstance(check, PreparedPytestCheck))
    return any(check.baseline.counted for check in suites)


def _describe_conditions(bench: Bench) -> list[str]:
    notes = []
    if bench.stretch > 1:
        notes.append(
            f"the machine was so busy that timing may take {bench.stretch:g} times as long as "
            "budget_s says"
        )
    if not bench.cores:
        notes.append("timed processes can't be pinned to a core here: expect more noise")
    if not bench.resources.sandbox.relocates:
        notes.append(
            "without a sandbox that moves folders, base and candidate are timed at different paths"
        )
    return notes
