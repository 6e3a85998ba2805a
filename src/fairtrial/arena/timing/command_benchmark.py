"""Benchmarks of commands: each sample is a fresh process, each session one pair of processes."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Protocol

from fairtrial.arena.checks.command_check import COMPARED_BYTES, find_difference, judge_ending
from fairtrial.arena.checks.exit_text import in_one_line, tell_raising
from fairtrial.arena.model.problem import INPUTS_FOLDER, Benchmark
from fairtrial.arena.model.timings import Arm, Pair, Sample, Session
from fairtrial.arena.model.verdicts import Difference, Failure, Reason, Rejection
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.calibration import MOST_NOISE, TRIES, spell_above
from fairtrial.arena.timing.input_files import InputFiles
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.core import LabError, MisfitError, Mistake, StudyError
from fairtrial.sandbox import Captured, Command, Completed, Ending, Mount

FEWEST_PAIRS = 6
"""How many pairs a budget must allow: with fewer nothing is ever decided."""
HASH_SEED = "PYTHONHASHSEED"
HEADROOM = 1.1
REHEARSALS = 2
RERUNS = 2
"""How often the base is run again before a candidate is rejected for another output."""


@dataclass(frozen=True, slots=True)
class TimedProcess:
    """A process that was timed.

    command: the command
    done: its output and how it ended
    slot: the path at which it saw its slot
    seconds: how long it took, with the sandbox around it
    """

    command: Command
    done: Completed
    slot: Path
    seconds: float


class Subject(Protocol):
    """What is run in each sample, and how its results are judged."""

    @property
    def name(self) -> str:
        """The benchmark's name."""
        ...

    def command(self, stage: Stage, *, env: Mapping[str, str], cores: tuple[int, ...]) -> Command:
        """Return the command to run on a slot."""
        ...

    async def find_fault(self, process: TimedProcess) -> Rejection | None:
        """Return what is wrong with a run, of base or candidate; None if it succeeded."""
        ...

    def find_difference(self, base: TimedProcess, other: TimedProcess) -> Difference | None:
        """Return the first difference between the results of two successful runs."""
        ...


@dataclass(frozen=True, slots=True)
class ProcessBenchmark:
    """A prepared benchmark whose samples are processes; a session is one pair, AB or BA.

    name: the benchmark's name
    subject: what is run
    session_s: about how long a pair takes
    base_notes: remarks for people on the base
    later_notes: remarks that were added while candidates were timed
    files: makes new input files for each pair, if the benchmark has some
    measures_memory: whether peak memory is judged, too
    """

    name: str
    subject: Subject
    session_s: float
    base_notes: tuple[str, ...] = ()
    later_notes: list[str] = field(default_factory=list)
    files: InputFiles | None = None
    measures_memory: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """All remarks for people so far."""
        return (*self.base_notes, *self.later_notes)

    async def run(self, setup: TimingSetup, number: int) -> Session:
        """Run one pair; a failure of the candidate becomes the session's `rejection`."""
        seed = f"{setup.seed}/{self.name}/{number}"
        async with _open_subject(self.subject, self.files, setup, seed) as subject:
            return await replace(self, subject=subject)._run_pair(setup, number, Random(seed))

    async def _run_pair(self, setup: TimingSetup, number: int, rng: Random) -> Session:
        began = time.monotonic()
        arms: list[Arm] = ["base", "candidate"]
        rng.shuffle(arms)
        env = draw_variables(setup.base, rng)
        processes: dict[Arm, TimedProcess] = {}
        for arm in arms:
            stage = setup.base if arm == "base" else setup.candidate
            processes[arm] = await take_sample(self.subject, stage, setup, env)
        base, candidate = processes["base"], processes["candidate"]
        fault = await self.subject.find_fault(base)
        if fault is not None:
            raise LabError(
                f"benchmark {self.name}: the unchanged base, which succeeded before, fails "
                f"while it is timed: {_describe_fault(fault)}"
            )
        rejection = await self.subject.find_fault(candidate)
        if rejection is None:
            rejection = await self._compare(setup, env, base, candidate)
        peaks = Pair(base.done.peak_rss_mb, candidate.done.peak_rss_mb)
        return Session(
            benchmark=self.name,
            number=number,
            samples=tuple(
                Sample(0, position, arm, 1, processes[arm].done.wall_s, processes[arm].done.cpu_s)
                for position, arm in enumerate(arms)
            ),
            seconds=time.monotonic() - began,
            peak_rss_mb=peaks,
            judged_mb=peaks if self.measures_memory else None,
            host=socket.gethostname(),
            rejection=rejection and self._with_benchmark(rejection),
        )

    async def _compare(
        self,
        setup: TimingSetup,
        env: Mapping[str, str],
        base: TimedProcess,
        candidate: TimedProcess,
    ) -> Rejection | None:
        """Reject a candidate with another output than the base, unless the base's own varies."""
        difference = None if self.later_notes else self.subject.find_difference(base, candidate)
        if difference is None:
            return None
        for _ in range(RERUNS):
            again = await take_sample(self.subject, setup.base, setup, env)
            varying = self.subject.find_difference(base, again)
            if varying is not None:
                self.later_notes.append(_describe_varying(varying))
                return None
        message = f"its output is not the base's, in {difference.where}"
        failure = Failure(benchmark_label(self.name), "command", message, (difference,))
        return Rejection(Reason.DIFFERENT, message, (failure,))

    def _with_benchmark(self, rejection: Rejection) -> Rejection:
        message = f"while it was timed, in benchmark {self.name}: {rejection.message}"
        return replace(rejection, message=message)


def benchmark_label(name: str) -> str:
    """Return a benchmark's path in its problem, as verdicts name it."""
    return f"bench.{name}"


def draw_variables(stage: Stage, rng: Random) -> dict[str, str]:
    """Draw the environment variables that both processes of a session share: the hash seed."""
    seed = str(rng.randrange(1, 2**32))
    return {} if HASH_SEED in stage.problem.env else {HASH_SEED: seed}


async def take_sample(
    subject: Subject, stage: Stage, setup: TimingSetup, env: Mapping[str, str]
) -> TimedProcess:
    """Run one process and time it."""
    command = subject.command(stage, env=env, cores=setup.cores)
    began = time.monotonic()
    done = await stage.run(command)
    return TimedProcess(command, done, stage.seen, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class CommandSubject:
    """A command of the problem.

    name: the benchmark's name
    argv: the command
    timeout_s: how long it may take
    compares: whether its output must equal the base's
    folder: the folder with its input files, which it can only read; None if it has none
    """

    name: str
    argv: tuple[str, ...]
    timeout_s: float
    compares: bool = True
    folder: Path | None = None

    def command(self, stage: Stage, *, env: Mapping[str, str], cores: tuple[int, ...]) -> Command:
        """Return the command to run on a slot."""
        folder = self.folder
        argv = [word.replace(INPUTS_FOLDER, str(folder)) if folder else word for word in self.argv]
        command = stage.command(
            argv,
            timeout_s=self.timeout_s,
            env=env,
            output_bytes=COMPARED_BYTES,
            cores=cores,
        )
        if folder is None:
            return command
        view = command.view
        readable = (Mount(folder, folder), *view.readable)
        return replace(command, view=replace(view, readable=readable))

    async def find_fault(self, process: TimedProcess) -> Rejection | None:
        """Return a rejection unless the process exited with status 0."""
        return judge_ending(benchmark_label(self.name), process.done, process.command)

    def find_difference(self, base: TimedProcess, other: TimedProcess) -> Difference | None:
        """Return the first difference between their outputs."""
        if not self.compares:
            return None
        return compare_outputs(_portable_output(base, other), _portable_output(other, base))


def _portable_output(process: TimedProcess, other: TimedProcess) -> Captured:
    """Return a process's output; without its slot's path if both saw different paths."""
    out = process.done.stdout
    if process.slot == other.slot:
        return out
    path = os.fsencode(process.slot)
    head, tail = (part.replace(path, b"{slot}") for part in (out.head, out.tail))
    return Captured(head, tail, out.dropped)


def compare_outputs(expected: Captured, actual: Captured) -> Difference | None:
    """Return the first difference between the kept parts of two outputs; None if they agree."""
    if not expected.dropped and not actual.dropped:
        return find_difference(expected.head + expected.tail, actual.head + actual.tail)
    difference = find_difference(expected.head, actual.head)
    if difference is not None:
        return difference
    if expected.dropped != actual.dropped:
        outputs = (expected, actual)
        sizes = (len(output.head) + output.dropped + len(output.tail) for output in outputs)
        return Difference("the length of the output", *(f"{size:,} bytes" for size in sizes))
    difference = find_difference(expected.tail, actual.tail)
    return difference and replace(difference, where="the end of the output")


@asynccontextmanager
async def _open_subject(
    subject: Subject, files: InputFiles | None, setup: TimingSetup, seed: str
) -> AsyncIterator[Subject]:
    """Yield the subject with new input files, if it has some."""
    if files is None or not isinstance(subject, CommandSubject):
        yield subject
        return
    async with files.write(seed, setup.base.slot.parent) as folder:
        yield replace(subject, folder=folder)


async def prepare_command_benchmark(
    benchmark: Benchmark,
    setup: TimingSetup,
    *,
    budget_s: float,
    timeout_s: float = 120,
    files: InputFiles | None = None,
) -> ProcessBenchmark:
    """Run a benchmark's command on the base a few times, to time it and to see whether it varies.

    budget_s: how long a comparison may take
    timeout_s: how long one run may take
    files: makes the input files, if the benchmark has some

    Raises `StudyError` if the command fails, `MisfitError` if the budget can't hold six pairs.
    """
    subject = CommandSubject(benchmark.name, benchmark.command, timeout_s)
    if files is None:
        prepared = await _prepare(subject, setup, budget_s)
        notes = (*prepared.base_notes, describe_same_input(benchmark))
        return replace(prepared, base_notes=notes, measures_memory=benchmark.measures_memory)
    async with files.write(
        f"{setup.seed}/{benchmark.name}/before", setup.base.slot.parent
    ) as folder:
        prepared = await _prepare(replace(subject, folder=folder), setup, budget_s)
    return replace(prepared, files=files, measures_memory=benchmark.measures_memory)


def describe_same_input(benchmark: Benchmark) -> str:
    """Return the note on a command whose input is the same in every run."""
    return (
        f"{benchmark.name}: the command reads the same input in every run; inputs that never "
        "change can be known by heart, so a gain may hold for this one alone (`inputs` makes "
        "files for each run)"
    )


async def _prepare(
    subject: CommandSubject, setup: TimingSetup, budget_s: float
) -> ProcessBenchmark:
    env = draw_variables(setup.base, Random(f"{setup.seed}/{subject.name}/before"))
    # The first run only fills the file cache.
    runs = [await _rehearse(subject, setup, env)]
    for number in range(TRIES):
        if number >= REHEARSALS and needed_s(runs[1:]) <= budget_s:
            break
        runs.append(await _rehearse(subject, setup, env))
        if needed_s(runs[1:]) > MOST_NOISE * budget_s:
            break
    _require_budget(subject, runs[1:], budget_s)
    notes = []
    varying = next(filter(None, (subject.find_difference(runs[0], run) for run in runs[1:])), None)
    if varying is not None:
        subject = replace(subject, compares=False)
        notes.append(_describe_varying(varying))
    elif not runs[0].done.stdout.head:
        notes.append("it prints nothing: while it is timed, only its exit status is checked")
    session_s = 2 * average_s(runs[1:])
    return ProcessBenchmark(subject.name, subject, session_s, tuple(notes))


async def _rehearse(
    subject: CommandSubject, setup: TimingSetup, env: Mapping[str, str]
) -> TimedProcess:
    """Run a command on the base; raise `StudyError` if it fails."""
    process = await take_sample(subject, setup.base, setup, env)
    fault = await subject.find_fault(process)
    if fault is None:
        return process
    hint = tell_raising(benchmark_label(subject.name), process.done.ending)
    if process.done.ending == Ending.EXITED:
        hint = "it must exit with 0 there; it runs in a read-only copy of your tree, with a clean "
        hint += "environment"
    elif process.done.ending == Ending.TIMEOUT:
        hint = "let it do less: many runs of it have to be compared"
    message = f"on the unchanged base, {_describe_fault(fault)}"
    raise StudyError(Mistake(("bench", subject.name, "command"), message, hint))


def average_s(runs: Sequence[TimedProcess]) -> float:
    """Return how long a run takes on average, with the sandbox around it."""
    return sum(run.seconds for run in runs) / len(runs)


def needed_s(runs: Sequence[TimedProcess]) -> float:
    """Return how long the fewest pairs take, judging by the fastest run: noise only adds time."""
    return 2 * FEWEST_PAIRS * min(run.seconds for run in runs)


def _require_budget(subject: Subject, runs: Sequence[TimedProcess], budget_s: float) -> None:
    """Raise `MisfitError` if the budget can't hold the fewest pairs."""
    need_s = needed_s(runs)
    if need_s <= budget_s:
        return
    message = (
        f"one run takes {min(run.seconds for run in runs):.3g} s on the base; {FEWEST_PAIRS} "
        "pairs, the fewest that can decide anything, would need about "
        f"{spell_above(need_s, budget_s)} s, and budget_s is {budget_s:g}"
    )
    enough_s = math.ceil(HEADROOM * need_s)
    hint = f"raise budget_s to {enough_s} or more, or let the command do less"
    raise MisfitError(Mistake(("bench", subject.name, "command"), message, hint))


def _describe_fault(fault: Rejection) -> str:
    """Return a failure in one line: how the process ended, and its last output."""
    return in_one_line(fault.failures[0].message) if fault.failures else fault.message


def _describe_varying(difference: Difference) -> str:
    return (
        f"the base's output differs from run to run, in {difference.where} "
        f"({difference.expected.strip()!r}, then {difference.actual.strip()!r}): while it is "
        "timed, only its exit status is checked"
    )
