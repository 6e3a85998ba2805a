"""A second opinion: how many instructions base and candidate execute. It never decides anything.

Counts don't mind company, so that all of it happens on the shared side of the host's lock.
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
from fairtrial.arena.timing.command_benchmark import HASH_SEED, CommandSubject, PairMeter
from fairtrial.arena.timing.function_benchmark import CallMeter
from fairtrial.arena.timing.prepared_benchmark import Meter
from fairtrial.arena.timing.staging import put_in
from fairtrial.arena.timing.valgrind import (
    LOUD,
    UNKNOWN,
    CountError,
    Valgrind,
    read_logs,
    read_total,
    read_totals,
)
from fairtrial.core import FairtrialError
from fairtrial.sandbox import Caps, Command, Completed, Ending, dump

SAMPLE_S = 0.05
"""How long the counted calls should take without valgrind: some 200 million instructions."""
MOST_CALLS = 20_000
SLOWER = 40.0
"""How many times as long as without it a process takes under valgrind, to be on the safe side."""
BUDGETS = 3.0
"""How many times `budget_s` one process may take."""
MOST_TRIES = 5
"""How often timing may stop one process until it is given up."""
SAID_CHARS = 200


@dataclass(frozen=True, slots=True)
class Count:
    """What there is of one benchmark and one version.

    instructions: for one call, or for the command with all programs that it starts
    why_not: why there is no count
    """

    instructions: float | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class _Sum:
    """A function's benchmark, ready to be counted: the same inputs for every version."""

    job: Mapping[str, object]
    inputs: tuple[bytes, ...] = field(repr=False)

    @property
    def calls(self) -> int:
        return len(self.inputs) // 2

    def text(self, calls: int) -> bytes:
        job = dump({**self.job, "calls": calls}).encode("ascii")
        return b"\n".join((job, *self.inputs))


@dataclass(frozen=True, slots=True)
class Counting:
    """What is ready to count versions with.

    bench: whose benchmarks
    valgrind: what counts
    sums: the benchmarks that are calls; for one that can't be counted, why
    """

    bench: Bench
    valgrind: Valgrind
    sums: Mapping[str, _Sum | str]

    @property
    def most_s(self) -> float:
        """How long one process may take."""
        return BUDGETS * self.bench.ground.problem.budget_s

    async def count(self, changes: Changes | None) -> dict[str, Count]:
        """The counts of a version, by benchmark; never raises for what it does.

        changes: the candidate; None for the base
        """
        version = _Version(self)
        try:
            return await self.bench.ground.undisturbed(partial(version.count, changes))
        except (CountError, FairtrialError, OSError) as error:
            return self.nothing(in_one_line(str(error)))

    def nothing(self, why: str) -> dict[str, Count]:
        """No count of any benchmark."""
        return {placed.meter.name: Count(why_not=why) for placed in self.bench.meters}


@dataclass(slots=True)
class _Version:
    """One version while it is counted.

    totals: of processes that have ended; they stay if somebody's timing stops what comes next
    tries: how often it was begun
    """

    counting: Counting
    totals: dict[tuple[str, int], int] = field(default_factory=dict)
    tries: int = 0

    async def count(self, changes: Changes | None, slot: WorktreeSlot) -> dict[str, Count]:
        """The counts of all benchmarks, on a slot of its own."""
        self.tries += 1
        if self.tries > MOST_TRIES:
            raise CountError("it was stopped again and again, since others time something here")
        counting = self.counting
        ground, meters = counting.bench.ground, [each.meter for each in counting.bench.meters]
        rejection = await put_in(ground, slot, changes)
        if rejection is not None:
            return counting.nothing(rejection.message)
        stage = frozen_stage(ground, slot)
        return {meter.name: await self._try(meter, stage) for meter in meters}

    async def _try(self, meter: Meter, stage: Stage) -> Count:
        try:
            return Count(await self._count(meter, stage))
        except (CountError, FairtrialError, OSError) as error:
            return Count(why_not=in_one_line(str(error)))

    async def _count(self, meter: Meter, stage: Stage) -> float:
        if isinstance(meter, PairMeter):
            return await self._total(meter.name, 1, partial(self._run_command, meter, stage))
        ready = self.counting.sums[meter.name]
        if isinstance(ready, str):
            raise CountError(ready)
        # Two processes with the same hash seed and, under valgrind, the same addresses do the same
        # to the instruction. Both start, import and read all 2n inputs; one makes n calls, the
        # other 2n. What is between their totals is n calls that were already warm, and no more.
        some, all_of_them = [
            await self._total(meter.name, calls, partial(self._run_calls, ready.text(calls), stage))
            for calls in (ready.calls, 2 * ready.calls)
        ]
        if all_of_them <= some:
            raise CountError("the counts contradict each other: more calls, no more instructions")
        return (all_of_them - some) / ready.calls

    async def _total(self, name: str, calls: int, run: Callable[[], Awaitable[int]]) -> int:
        if (name, calls) not in self.totals:
            self.totals[name, calls] = await run()
            self.tries = 0
        return self.totals[name, calls]

    async def _run_calls(self, job: bytes, stage: Stage) -> int:
        plain = stage.command(
            ["{python}", str(HARNESS / "counted_worker.py")],
            timeout_s=self.counting.most_s,
            env=_fixed(stage),
            stdin=job,
        )
        command = self.counting.valgrind.around(plain, self.counting.most_s)
        done = await stage.run(command)
        if done.channel_overflowed:
            raise CountError(LOUD)
        _refuse_failure(done, command, done.channel)
        return read_total(done.channel)

    async def _run_command(self, meter: PairMeter, stage: Stage) -> int:
        from anyio import to_thread

        most_s = self.counting.most_s
        if not isinstance(meter.subject, CommandSubject):
            raise CountError("only calls and commands under bench: are counted")
        needed_s = SLOWER * meter.session_s / 2
        if needed_s > most_s:
            raise CountError(_tell_long(f"it takes {meter.session_s / 2:.2g} s", needed_s, most_s))
        plain = meter.subject.command(stage, env=_fixed(stage), cores=())
        async with _log_folder(stage.slot.parent) as logs:
            command = self.counting.valgrind.around_all(plain, most_s, logs)
            done = await stage.run(command)
            said = await to_thread.run_sync(read_logs, logs)
            _refuse_failure(done, command, b"".join(said.values()))
            return read_totals(said)


@asynccontextmanager
async def _log_folder(parent: Path) -> AsyncIterator[Path]:
    """A folder for valgrind's logs, which candidates can write to as well."""
    import anyio

    folder = Path(tempfile.mkdtemp(prefix="counts-", dir=parent))
    try:
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_remove, folder)


def _remove(folder: Path) -> None:
    """Remove a folder, whatever is in it; what can't be removed goes with the arena."""
    with suppress(OSError):
        handle = enter_folder(folder)
        try:
            empty_folder(handle)
        finally:
            os.close(handle)
        folder.rmdir()


def _fixed(stage: Stage) -> dict[str, str]:
    """The hash seed, the same for every process; the problem's own, if it has one."""
    own = stage.problem.env.get(HASH_SEED, "0")
    return {HASH_SEED: own if own.isdecimal() else "0"}


def _refuse_failure(done: Completed, command: Command, log: bytes) -> None:
    if done.ending == Ending.EXITED and done.exit_code == 0:
        return
    if done.ending == Ending.TIMEOUT:
        raise CountError(f"it took longer than {command.timeout_s:g} s under valgrind")
    if UNKNOWN in log:
        raise CountError("valgrind doesn't know an instruction that it uses")
    said = in_one_line(tail_of(done) or log.decode("ascii", "replace"), SAID_CHARS)
    raise CountError(f"under valgrind it {tell_ending(done, command)}: {said}")


async def prepare_counting(
    bench: Bench, valgrind: Valgrind, seconds: Mapping[str, float]
) -> Counting:
    """Choose how many calls are counted, and make the inputs, as secret as those of timing.

    What can't be made ready is not counted, and all else is as it would be.

    seconds: how long a call of the base takes, by benchmark
    """
    sums: dict[str, _Sum | str] = {}
    for placed in bench.meters:
        meter = placed.meter
        if not isinstance(meter, CallMeter):
            continue
        pace = replace(meter.pace, call_s=seconds.get(meter.name) or meter.pace.call_s)
        try:
            async with bench.ground.lock.shared():
                sums[meter.name] = await _prepare(bench, meter, pace)
        except (CountError, FairtrialError, OSError) as error:
            sums[meter.name] = in_one_line(str(error))
    return Counting(bench, valgrind, sums)


async def _prepare(bench: Bench, meter: CallMeter, pace: Pace) -> _Sum:
    most_s = BUDGETS * bench.ground.problem.budget_s
    calls = choose_calls(pace, most_s)
    if calls == 0:
        told = f"one call takes {pace.call_s:.2g} s"
        raise CountError(_tell_long(told, needed(pace, 1), most_s))
    inputs = await meter.supplier.make(f"{bench.secret}/instructions/{meter.name}", 2 * calls)
    job = {"function": meter.benchmark.call, "view": meter.check.view, "caps": list(Caps())}
    return _Sum(job, tuple(inputs))


def choose_calls(pace: Pace, most_s: float) -> int:
    """How many calls are counted; 0 if not even one fits into `most_s`."""
    wanted = min(MOST_CALLS, math.ceil(SAMPLE_S / pace.call_s))
    wanted = min(wanted, int(MOST_BYTES / (2 * max(pace.input_bytes, 1))))
    each_s = needed(pace, 1) - needed(pace, 0)
    return max(0, min(max(1, wanted), int((most_s - needed(pace, 0)) / each_s)))


def needed(pace: Pace, calls: int) -> float:
    """How long the longer one of two processes takes, about."""
    started_s = pace.start_s + pace.load_s
    return SLOWER * (started_s + 2 * calls * (pace.call_s + pace.turn_s))


def _tell_long(what: str, needed_s: float, most_s: float) -> str:
    return (
        f"{what}, which is about {needed_s:.0f} s under valgrind, and {most_s:g} s "
        f"({BUDGETS:g} times budget_s) are allowed"
    )
