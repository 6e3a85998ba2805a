"""Instruction counts of base and candidate under valgrind; they never change a verdict.

Other programs don't disturb counts, so counting holds only the shared side of the host lock.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.slots.removal import empty_folder, enter_folder
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.timing.bench import Bench, frozen_stage
from fairtrial.arena.timing.calibration import MOST_BYTES, Pace
from fairtrial.arena.timing.candidate_staging import stage_candidate
from fairtrial.arena.timing.command_benchmark import HASH_SEED, CommandSubject, ProcessBenchmark
from fairtrial.arena.timing.function_benchmark import FunctionBenchmark, benchmark_job
from fairtrial.arena.timing.prepared_benchmark import PreparedBenchmark
from fairtrial.arena.timing.valgrind import (
    LOG_TOO_LARGE,
    UNKNOWN,
    CountError,
    Valgrind,
    read_logs,
    read_total,
    read_totals,
)
from fairtrial.core import FairtrialError
from fairtrial.sandbox import Command, Completed, Ending, wire

SAMPLE_S = 0.05
"""How long the counted calls should take without valgrind: some 200 million instructions."""
MOST_CALLS = 20_000
SLOWER = 40.0
"""How many times as long a process takes under valgrind, at most."""
BUDGETS = 3.0
"""How many times `budget_s` one process may take."""
MOST_TRIES = 5
"""How often timing may interrupt one process before it is given up."""
SAID_CHARS = 200


@dataclass(frozen=True, slots=True)
class InstructionCount:
    """The count of one benchmark and one version.

    instructions: for one call, or for the command with all programs that it starts
    why_not: why there is no count
    """

    instructions: float | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class _CountedCalls:
    """A function's benchmark, prepared for counting.

    job: what the worker loads
    inputs: one for each call, the same for every version
    """

    job: Mapping[str, object]
    inputs: tuple[bytes, ...] = field(repr=False)

    @property
    def calls(self) -> int:
        return len(self.inputs) // 2

    def text(self, calls: int) -> bytes:
        job = wire.dump_encoded({**self.job, "calls": calls}).encode("ascii")
        return b"\n".join((job, wire.join_inputs(self.inputs)))


@dataclass(frozen=True, slots=True)
class InstructionCounter:
    """Counts the instructions of versions.

    bench: the bench with the benchmarks
    valgrind: the installed valgrind
    prepared: the benchmarks of functions; a reason for one that can't be counted
    """

    bench: Bench
    valgrind: Valgrind
    prepared: Mapping[str, _CountedCalls | str]

    @property
    def most_s(self) -> float:
        """How long one process may take."""
        return BUDGETS * self.bench.resources.problem.budget_s

    async def count(self, changes: Changes | None) -> dict[str, InstructionCount]:
        """Return the counts of a version by benchmark, or why there are none.

        changes: the candidate; None for the base
        """
        version = _VersionCount(self)
        try:
            return await self.bench.resources.run_undisturbed(partial(version.count, changes))
        except (CountError, FairtrialError, OSError) as error:
            return self.without_counts(in_one_line(str(error)))

    def without_counts(self, why: str) -> dict[str, InstructionCount]:
        """Return a missing count for each benchmark."""
        return {
            pinned.benchmark.name: InstructionCount(why_not=why) for pinned in self.bench.benchmarks
        }


@dataclass(slots=True)
class _VersionCount:
    """One version while it is counted.

    counter: the counter
    totals: instructions of finished processes; kept if timing interrupts a later one
    tries: how often it was begun
    """

    counter: InstructionCounter
    totals: dict[tuple[str, int], int] = field(default_factory=dict)
    tries: int = 0

    async def count(
        self, changes: Changes | None, slot: WorktreeSlot
    ) -> dict[str, InstructionCount]:
        """Return the counts of all benchmarks on a slot."""
        self.tries += 1
        if self.tries > MOST_TRIES:
            raise CountError("it was interrupted too often by something that is timed here")
        bench = self.counter.bench
        rejection = await stage_candidate(bench.resources, slot, changes)
        if rejection is not None:
            return self.counter.without_counts(rejection.message)
        stage = frozen_stage(bench.resources, slot)
        benchmarks = [pinned.benchmark for pinned in bench.benchmarks]
        return {benchmark.name: await self._try(benchmark, stage) for benchmark in benchmarks}

    async def _try(self, benchmark: PreparedBenchmark, stage: Stage) -> InstructionCount:
        try:
            return InstructionCount(await self._count(benchmark, stage))
        except (CountError, FairtrialError, OSError) as error:
            return InstructionCount(why_not=in_one_line(str(error)))

    async def _count(self, benchmark: PreparedBenchmark, stage: Stage) -> float:
        if isinstance(benchmark, ProcessBenchmark):
            return await self._total(
                benchmark.name, 1, partial(self._run_command, benchmark, stage)
            )
        prepared = self.counter.prepared[benchmark.name]
        if isinstance(prepared, str):
            raise CountError(prepared)
        # Two processes with the same hash seed and, under valgrind, the same addresses execute
        # exactly the same instructions. Both start, import and read all 2n inputs; one makes n
        # calls, the other 2n. The difference of their totals is n calls that were already warm.
        half, full = [
            await self._total(
                benchmark.name, calls, partial(self._run_calls, prepared.text(calls), stage)
            )
            for calls in (prepared.calls, 2 * prepared.calls)
        ]
        if full <= half:
            raise CountError("the counts contradict each other: more calls, no more instructions")
        return (full - half) / prepared.calls

    async def _total(self, name: str, calls: int, run: Callable[[], Awaitable[int]]) -> int:
        if (name, calls) not in self.totals:
            self.totals[name, calls] = await run()
            self.tries = 0
        return self.totals[name, calls]

    async def _run_calls(self, job: bytes, stage: Stage) -> int:
        plain = stage.command(
            ["{python}", str(HARNESS / "counted_worker.py")],
            timeout_s=self.counter.most_s,
            env=_fixed_seed(stage),
            stdin=job,
        )
        command = self.counter.valgrind.wrap(plain, self.counter.most_s)
        done = await stage.run(command)
        if done.channel_overflowed:
            raise CountError(LOG_TOO_LARGE)
        _raise_failure(done, command, done.channel)
        return read_total(done.channel)

    async def _run_command(self, benchmark: ProcessBenchmark, stage: Stage) -> int:
        from anyio import to_thread

        most_s = self.counter.most_s
        if not isinstance(benchmark.subject, CommandSubject):
            raise CountError("only calls and commands under bench: are counted")
        if benchmark.files is not None:
            raise CountError("commands whose input files are made for each run are not counted")
        time_s = SLOWER * benchmark.session_s / 2
        if time_s > most_s:
            raise CountError(
                _explain_long(f"it takes {benchmark.session_s / 2:.2g} s", time_s, most_s)
            )
        plain = benchmark.subject.command(stage, env=_fixed_seed(stage), cores=())
        async with _log_folder(stage.slot.parent) as logs:
            command = self.counter.valgrind.wrap_with_children(plain, most_s, logs)
            done = await stage.run(command)
            contents = await to_thread.run_sync(read_logs, logs)
            _raise_failure(done, command, b"".join(contents.values()))
            return read_totals(contents)


@asynccontextmanager
async def _log_folder(parent: Path) -> AsyncIterator[Path]:
    """Make a temporary folder for valgrind's logs, which candidates can write to as well."""
    import anyio

    folder = Path(tempfile.mkdtemp(prefix="counts-", dir=parent))
    try:
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_remove, folder)


def _remove(folder: Path) -> None:
    """Remove a folder with any content; remaining files are removed with the arena."""
    with suppress(OSError):
        handle = enter_folder(folder)
        try:
            empty_folder(handle)
        finally:
            os.close(handle)
        folder.rmdir()


def _fixed_seed(stage: Stage) -> dict[str, str]:
    """Return the hash seed, the same for every process; the problem's own, if it has one."""
    own = stage.problem.env.get(HASH_SEED, "0")
    return {HASH_SEED: own if own.isdecimal() else "0"}


def _raise_failure(done: Completed, command: Command, log: bytes) -> None:
    """Raise `CountError` if a process under valgrind failed."""
    if done.ending == Ending.EXITED and done.exit_code == 0:
        return
    if done.ending == Ending.TIMEOUT:
        raise CountError(f"it took longer than {command.timeout_s:g} s under valgrind")
    if UNKNOWN in log:
        raise CountError("valgrind doesn't know an instruction that it uses")
    output = in_one_line(tail_of(done) or log.decode("ascii", "replace"), SAID_CHARS)
    raise CountError(f"under valgrind it {tell_ending(done, command)}: {output}")


async def prepare_counter(
    bench: Bench, valgrind: Valgrind, seconds: Mapping[str, float]
) -> InstructionCounter:
    """Choose how many calls are counted, and make their inputs, as secret as those of timing.

    A benchmark that can't be prepared is not counted, without an error.

    seconds: how long a call of the base takes, by benchmark
    """
    prepared: dict[str, _CountedCalls | str] = {}
    for pinned in bench.benchmarks:
        benchmark = pinned.benchmark
        if not isinstance(benchmark, FunctionBenchmark):
            continue
        pace = benchmark.pace
        pace = replace(pace, call_s=seconds.get(benchmark.name) or pace.call_s)
        try:
            async with bench.resources.lock.shared():
                prepared[benchmark.name] = await _prepare(bench, benchmark, pace)
        except (CountError, FairtrialError, OSError) as error:
            prepared[benchmark.name] = in_one_line(str(error))
    return InstructionCounter(bench, valgrind, prepared)


async def _prepare(bench: Bench, benchmark: FunctionBenchmark, pace: Pace) -> _CountedCalls:
    most_s = BUDGETS * bench.resources.problem.budget_s
    calls = choose_calls(pace, most_s)
    if calls == 0:
        cause = f"one call takes {pace.call_s:.2g} s"
        raise CountError(_explain_long(cause, needed_s(pace, 1), most_s))
    seed = f"{bench.secret}/instructions/{benchmark.name}"
    inputs = await benchmark.supplier.make(seed, 2 * calls)
    check = benchmark.check
    job = benchmark_job(benchmark.benchmark, check)
    return _CountedCalls(job, tuple(inputs))


def choose_calls(pace: Pace, most_s: float) -> int:
    """Return how many calls are counted; 0 if not even one fits into `most_s`."""
    wanted = min(MOST_CALLS, math.ceil(SAMPLE_S / pace.call_s))
    wanted = min(wanted, int(MOST_BYTES / (2 * max(pace.input_bytes, 1))))
    per_call_s = needed_s(pace, 1) - needed_s(pace, 0)
    return max(0, min(max(1, wanted), int((most_s - needed_s(pace, 0)) / per_call_s)))


def needed_s(pace: Pace, calls: int) -> float:
    """Return about how long the longer one of two processes takes."""
    started_s = pace.start_s + pace.load_s
    return SLOWER * (started_s + 2 * calls * (pace.call_s + pace.turn_s))


def _explain_long(cause: str, time_s: float, most_s: float) -> str:
    return (
        f"{cause}, which is about {time_s:.0f} s under valgrind, and {most_s:g} s "
        f"({BUDGETS:g} times budget_s) are allowed"
    )
