"""Benchmarks of whole commands: each sample is a fresh process, each session one pair of them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Protocol

from fairtrial.arena.checks.command_check import COMPARED_BYTES, find_difference, judge_ending
from fairtrial.arena.checks.exit_text import in_one_line, tell_raising
from fairtrial.arena.model.problem import Benchmark
from fairtrial.arena.model.timings import Arm, Pair, Sample, Session
from fairtrial.arena.model.verdicts import Difference, Failure, Reason, Rejection
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.calibration import MOST_NOISE, TRIES, spell_above
from fairtrial.arena.timing.prepared_benchmark import Duel
from fairtrial.core import LabError, MisfitError, Mistake, StudyError
from fairtrial.sandbox import Captured, Command, Completed, Ending

FEWEST_PAIRS = 6
"""What a budget must hold: with fewer nothing is ever decided."""
HASH_SEED = "PYTHONHASHSEED"
HEADROOM = 1.1
REHEARSALS = 2
SECOND_THOUGHTS = 2
"""How often the base is run again before a candidate is said to print something else."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One process that was timed.

    command: what was run
    done: what came of it
    slot: where it saw its slot
    seconds: how long it took with all that we do around it
    """

    command: Command
    done: Completed
    slot: Path
    seconds: float


class Subject(Protocol):
    """What is run in each sample, and how its results are judged."""

    @property
    def name(self) -> str:
        """The benchmark's."""
        ...

    def command(self, stage: Stage, *, env: Mapping[str, str], cores: tuple[int, ...]) -> Command:
        """What to run on a slot."""
        ...

    async def find_fault(self, taken: Taken) -> Rejection | None:
        """What is wrong with a run, whoever's it is; None if it came to a good end."""
        ...

    def find_difference(self, base: Taken, other: Taken) -> Difference | None:
        """Where the results of two runs that came to a good end differ, as far as is compared."""
        ...


@dataclass(frozen=True, slots=True)
class PairMeter:
    """A benchmark whose samples are processes: AB or BA, and that is a session.

    name: the benchmark's
    subject: what is run
    session_s: how long a pair takes, about
    known: what people should know of how it went with the base
    found: what turned out later
    """

    name: str
    subject: Subject
    session_s: float
    known: tuple[str, ...] = ()
    found: list[str] = field(default_factory=list)

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know, as of now."""
        return (*self.known, *self.found)

    async def run(self, duel: Duel, number: int) -> Session:
        """One pair; never raises for what a candidate does: the session says so."""
        began = time.monotonic()
        rng = Random(f"{duel.seed}/{self.name}/{number}")
        arms: list[Arm] = ["base", "candidate"]
        rng.shuffle(arms)
        env = draw_variables(duel.base, rng)
        taken: dict[Arm, Taken] = {}
        for arm in arms:
            stage = duel.base if arm == "base" else duel.candidate
            taken[arm] = await take(self.subject, stage, duel, env)
        base, candidate = taken["base"], taken["candidate"]
        fault = await self.subject.find_fault(base)
        if fault is not None:
            raise LabError(
                f"benchmark {self.name}: the unchanged base, which had no trouble before, fails "
                f"while it is timed: {_tell_fault(fault)}"
            )
        rejection = await self.subject.find_fault(candidate)
        if rejection is None:
            rejection = await self._compare(duel, env, base, candidate)
        return Session(
            benchmark=self.name,
            number=number,
            samples=tuple(
                Sample(0, place, arm, 1, taken[arm].done.wall_s, taken[arm].done.cpu_s)
                for place, arm in enumerate(arms)
            ),
            seconds=time.monotonic() - began,
            peak_rss_mb=Pair(base.done.peak_rss_mb, candidate.done.peak_rss_mb),
            rejection=rejection and self._name(rejection),
        )

    async def _compare(
        self, duel: Duel, env: Mapping[str, str], base: Taken, candidate: Taken
    ) -> Rejection | None:
        """Whether both gave the same; only where the base would give the same once more."""
        difference = None if self.found else self.subject.find_difference(base, candidate)
        if difference is None:
            return None
        for _ in range(SECOND_THOUGHTS):
            again = await take(self.subject, duel.base, duel, env)
            varying = self.subject.find_difference(base, again)
            if varying is not None:
                self.found.append(_tell_varying(varying))
                return None
        message = f"its output is not the base's, in {difference.where}"
        failure = Failure(label_of(self.name), "command", message, (difference,))
        return Rejection(Reason.DIFFERENT, message, (failure,))

    def _name(self, rejection: Rejection) -> Rejection:
        message = f"while it was timed, in benchmark {self.name}: {rejection.message}"
        return replace(rejection, message=message)


def label_of(name: str) -> str:
    """A benchmark's place in its problem, as verdicts name it."""
    return f"bench.{name}"


def draw_variables(stage: Stage, rng: Random) -> dict[str, str]:
    """What both processes of a session have in their environment, and no other session has."""
    seed = str(rng.randrange(1, 2**32))
    return {} if HASH_SEED in stage.problem.env else {HASH_SEED: seed}


async def take(subject: Subject, stage: Stage, duel: Duel, env: Mapping[str, str]) -> Taken:
    """One sample: the process is started, and has ended."""
    command = subject.command(stage, env=env, cores=duel.cores)
    began = time.monotonic()
    done = await stage.run(command)
    return Taken(command, done, stage.seen, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class CommandSubject:
    """A command of the problem's.

    name: the benchmark's
    argv: the command
    timeout_s: how long it may take
    compares: whether its output must be the base's
    """

    name: str
    argv: tuple[str, ...]
    timeout_s: float
    compares: bool = True

    def command(self, stage: Stage, *, env: Mapping[str, str], cores: tuple[int, ...]) -> Command:
        """What to run on a slot."""
        return stage.command(
            self.argv,
            timeout_s=self.timeout_s,
            env=env,
            output_bytes=COMPARED_BYTES,
            cores=cores,
        )

    async def find_fault(self, taken: Taken) -> Rejection | None:
        """It must exit with 0."""
        return judge_ending(label_of(self.name), taken.done, taken.command)

    def find_difference(self, base: Taken, other: Taken) -> Difference | None:
        """The first place where they don't print the same."""
        return compare_outputs(_said(base, other), _said(other, base)) if self.compares else None


def _said(taken: Taken, other: Taken) -> Captured:
    """What it printed; where slots can't be mounted at one place, without the slot's own path."""
    out = taken.done.stdout
    if taken.slot == other.slot:
        return out
    path = os.fsencode(taken.slot)
    head, tail = (part.replace(path, b"{slot}") for part in (out.head, out.tail))
    return Captured(head, tail, out.dropped)


def compare_outputs(expected: Captured, actual: Captured) -> Difference | None:
    """The first place where two outputs differ, as far as they were kept; None if none does."""
    if not expected.dropped and not actual.dropped:
        return find_difference(expected.head + expected.tail, actual.head + actual.tail)
    difference = find_difference(expected.head, actual.head)
    if difference is not None:
        return difference
    if expected.dropped != actual.dropped:
        sizes = (len(each.head) + each.dropped + len(each.tail) for each in (expected, actual))
        return Difference("the length of the output", *(f"{size:,} bytes" for size in sizes))
    difference = find_difference(expected.tail, actual.tail)
    return difference and replace(difference, where="the end of the output")


async def prepare_pairs(
    benchmark: Benchmark, duel: Duel, *, budget_s: float, timeout_s: float = 120
) -> PairMeter:
    """Run the base's command a few times: does it work, how long does it take, does it vary?

    budget_s: what a comparison may take; refused if it can't hold six pairs
    timeout_s: how long one run may take
    """
    subject = CommandSubject(benchmark.name, benchmark.command, timeout_s)
    env = draw_variables(duel.base, Random(f"{duel.seed}/{benchmark.name}/before"))
    # The first run is for what is on disk to come into memory.
    runs = [await _rehearse(subject, duel, env)]
    for number in range(TRIES):
        if number >= REHEARSALS and needed_s(runs[1:]) <= budget_s:
            break
        runs.append(await _rehearse(subject, duel, env))
        if needed_s(runs[1:]) > MOST_NOISE * budget_s:
            break
    _refuse_longer(subject, runs[1:], budget_s)
    notes = []
    varying = next(filter(None, (subject.find_difference(runs[0], run) for run in runs[1:])), None)
    if varying is not None:
        subject = replace(subject, compares=False)
        notes.append(_tell_varying(varying))
    elif not runs[0].done.stdout.head:
        notes.append("it prints nothing: while it is timed, only its exit status is looked at")
    session_s = 2 * average_s(runs[1:])
    return PairMeter(benchmark.name, subject, session_s, tuple(notes))


async def _rehearse(subject: CommandSubject, duel: Duel, env: Mapping[str, str]) -> Taken:
    """Run it on the base, where it must not fail."""
    taken = await take(subject, duel.base, duel, env)
    fault = await subject.find_fault(taken)
    if fault is None:
        return taken
    hint = tell_raising(label_of(subject.name), taken.done.ending)
    if taken.done.ending == Ending.EXITED:
        hint = "it must exit with 0 there; it runs in a read-only copy of your tree, with a clean "
        hint += "environment"
    elif taken.done.ending == Ending.TIMEOUT:
        hint = "let it do less: many runs of it have to be compared"
    message = f"on the unchanged base, {_tell_fault(fault)}"
    raise StudyError(Mistake(("bench", subject.name, "command"), message, hint))


def average_s(runs: Sequence[Taken]) -> float:
    """How long one takes, with all that we do around it."""
    return sum(run.seconds for run in runs) / len(runs)


def needed_s(runs: Sequence[Taken]) -> float:
    """What the fewest pairs take: by the fastest run, since noise only ever adds to one."""
    return 2 * FEWEST_PAIRS * min(run.seconds for run in runs)


def _refuse_longer(subject: Subject, runs: Sequence[Taken], budget_s: float) -> None:
    """Refuse what takes so long that the budget can't hold the fewest pairs."""
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


def _tell_fault(fault: Rejection) -> str:
    """A failure in one line: how it ended, and what it said last."""
    return in_one_line(fault.failures[0].message) if fault.failures else fault.message


def _tell_varying(difference: Difference) -> str:
    return (
        f"the base's output differs from run to run, in {difference.where} "
        f"({difference.expected.strip()!r}, then {difference.actual.strip()!r}): while it is "
        "timed, only its exit status is looked at"
    )
