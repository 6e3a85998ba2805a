"""One session: two workers take turns with samples, driven over their channels.

All of it blocks and runs in a thread. Times come from the channels alone, so that tests can
simulate them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Protocol

from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.model.timings import Arm, Pair, Sample
from fairtrial.arena.timing.worker_channel import ChannelError, WorkerReply
from fairtrial.sandbox import wire

EMPTY_TURNS = 7
USUAL = 1.1
"""How many times the median turn all turns may take on average; time beyond that was spent once,
and counts as start-up."""
MOST_LOADED_BYTES = 4 * 2**20
"""How long the list of imported files may be."""
MOST_SHOWN_CHARS = 1_000
"""How much of a reply is shown in messages."""
ARMS: tuple[Arm, Arm] = ("base", "candidate")
Differ = Callable[[int, bytes, bytes], bool]
"""Whether two results of one call differ: the index of its input, and both as JSON lines."""
AUDITED = 1
"""How many rounds of a session, drawn by chance, have their results compared in full."""


class TurnChannel(Protocol):
    """What a session needs of a worker channel."""

    def ask(self, letter: bytes, payload: bytes = b"", *, timeout_s: float) -> WorkerReply:
        """Send a request and wait for the reply."""
        ...

    def cpu_s(self) -> float | None:
        """Return the CPU time of the worker so far."""
        ...


class Meter(Protocol):
    """What a session needs to measure something during its first calls, and in all of it."""

    def begin(self) -> None:
        """Begin, right before a worker's first call."""
        ...

    def end(self) -> None:
        """End, right after it."""
        ...

    def finish(self) -> None:
        """Called after the worker's last call."""
        ...


class ArmError(Exception):
    """A worker can't go on.

    arm: whose worker
    why: what happened
    error: the channel's error, if that was the cause
    """

    def __init__(self, arm: Arm, why: str, error: ChannelError | None = None) -> None:
        super().__init__(why)
        self.arm, self.why, self.error = arm, why, error


ENOUGH_ROUNDS = 11
"""How many rounds that count a session has before it may be cut short."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The size of a session.

    job: what a worker loads
    calls: calls per sample
    rounds: number of rounds, with the discarded ones
    discarded: how many rounds at the beginning don't count
    timeout_s: how long a single reply may take
    counts_all: whether the clock runs from the first byte of inputs to the last byte of results
    most_s: after how much time in samples no further round begins, if there are `ENOUGH_ROUNDS`:
        a candidate that is far slower than the base would use up the budget in one session
    """

    job: bytes
    calls: int
    rounds: int
    discarded: int = 1
    timeout_s: float = 60.0
    counts_all: bool = False
    most_s: float = math.inf


@dataclass(slots=True)
class _ArmState:
    """One worker during a session.

    arm: whose worker
    channel: the channel to it
    timeout_s: how long a single reply may take
    counts_all: see `Schedule`
    startup_s: CPU time of its start and its imports
    files: the files that it has imported
    cpu_at_rest: its CPU time at the end of its last turn
    spent: CPU time of each turn, with the time since the one before
    outside: time of each turn that was not in its sample
    stalled: time of each turn in which its replies were waited for though it used no CPU
    stalled_at_first_s: the same while it was loaded
    going_through: share of each sample that was spent iterating over results
    """

    arm: Arm
    channel: TurnChannel
    timeout_s: float
    counts_all: bool = False
    startup_s: float = 0.0
    files: tuple[str, ...] = ()
    cpu_at_rest: float | None = None
    spent: list[float] = field(default_factory=list)
    outside: list[float] = field(default_factory=list)
    stalled: list[float] = field(default_factory=list)
    stalled_at_first_s: float = 0.0
    going_through: list[float] = field(default_factory=list)

    def ask(self, letter: bytes, payload: bytes = b"") -> WorkerReply:
        try:
            return self.channel.ask(letter, payload, timeout_s=self.timeout_s)
        except ChannelError as error:
            raise ArmError(self.arm, str(error), error) from None

    def load(self, job: bytes) -> None:
        """Import the function; start-up is the interpreter's start and this."""
        before_s = self.channel.cpu_s() or 0.0
        reply = self.ask(b"L", job)
        used_s = reply.wall_s if reply.cpu_s is None else reply.cpu_s
        self.startup_s = before_s + used_s
        self.stalled_at_first_s = max(0.0, reply.wall_s - used_s)
        self._rest()
        report = read_line(reply.payload) if len(reply.payload) <= MOST_LOADED_BYTES else {}
        files = report.get("files")
        if not isinstance(files, list):
            why = repr(report.get("failed"))[:MOST_SHOWN_CHARS]
            raise ArmError(self.arm, f"it can't be loaded: {why}")
        self.files = tuple(file for file in files if isinstance(file, str))

    def take_turn(
        self, inputs: Sequence[bytes], meter: Meter | None = None
    ) -> tuple[WorkerReply, bytes]:
        """Run one sample: send inputs, call, close; return the timed reply and results' digest.

        meter: runs while the calls do
        """
        idle_s = self._rest()
        ready = self.ask(b"I", wire.join_inputs(inputs))
        if meter is not None:
            meter.begin()
        called = self.ask(b"G")
        if meter is not None:
            meter.end()
        closed = self.ask(b"C")
        busy_s = self._rest()
        if self.counts_all:
            called = _join(ready, called, closed)
        try:
            digest, count, through_s = wire.unpack_summary(closed.payload)
        except ValueError:
            raise ArmError(self.arm, "the summary of its results can't be read") from None
        if count != len(inputs):
            raise ArmError(self.arm, f"{count} results of {len(inputs)} calls were reported")
        if self.counts_all:  # nothing of a turn is outside of its sample
            self.spent.append((idle_s or 0.0) + (busy_s or 0.0))
            self.outside.append(idle_s or 0.0)
        elif idle_s is None or busy_s is None or called.cpu_s is None:
            self.outside.append(ready.wall_s + closed.wall_s)
        else:  # other programs on the machine don't add to CPU time
            self.spent.append(idle_s + busy_s)
            self.outside.append(max(0.0, idle_s + busy_s - called.cpu_s))
            used_s = (ready.cpu_s or 0.0) + (closed.cpu_s or 0.0)
            self.stalled.append(max(0.0, ready.wall_s + closed.wall_s - used_s))
        share = through_s / called.wall_s if math.isfinite(through_s) and called.wall_s else 0.0
        self.going_through.append(min(max(share, 0.0), 1.0))
        return called, digest

    def fetch_values(self, count: int) -> list[bytes]:
        """Return the results of the last turn in full, one JSON line each.

        What the worker does meanwhile counts as time outside of the sample.
        """
        reply = self.ask(b"V")
        lines = reply.payload.count(b"\n")  # before a forged reply is split
        if lines != count:
            raise ArmError(self.arm, f"{lines} results of {count} calls were reported")
        used_s = self._rest()
        self.outside[-1] += reply.wall_s if used_s is None else used_s
        if self.spent and used_s is not None:
            self.spent[-1] += used_s
        return reply.payload.split(b"\n")[:-1]

    def take_empty_turn(self) -> tuple[float, float | None]:
        """Return wall and CPU time of a request and its reply without any call."""
        ready, called = self.ask(b"I"), self.ask(b"G")
        if self.counts_all:
            called = _join(ready, called, self.ask(b"C"))
        self.startup_s += self._rest() or 0.0  # or a candidate could work in these turns for free
        return called.wall_s, called.cpu_s

    def settling_s(self, skipped: int) -> float:
        """Return the CPU time of single turns beyond the usual one, e.g. of the first call.

        The median over rounds doesn't show it, whichever turns it falls into.
        """
        return max(0.0, sum(self.spent) - USUAL * _median(self.spent[skipped:]) * len(self.spent))

    def stalled_s(self, skipped: int) -> float:
        """Return how long its replies were waited for per round, with a share of the loading."""
        share_s = self.stalled_at_first_s / max(len(self.stalled), 1)
        return _median(self.stalled[skipped:]) + share_s

    def _rest(self) -> float | None:
        """Return the CPU time that it has used since the last call of this method."""
        before, self.cpu_at_rest = self.cpu_at_rest, self.channel.cpu_s()
        if before is None or self.cpu_at_rest is None:
            return None
        return max(0.0, self.cpu_at_rest - before)


@dataclass(frozen=True, slots=True)
class SessionTurns:
    """The result of one session.

    samples: all samples, in order
    startup_s, outside_s, stalled_s, going_through: see `Session`
    files: the files that each worker imported
    cpu_s: CPU time of each worker until the end of its last turn; None if it isn't known
    differing: index of the first input with different results, and both results
    """

    samples: tuple[Sample, ...]
    startup_s: Pair
    outside_s: Pair
    stalled_s: Pair
    going_through: Pair
    files: Mapping[Arm, tuple[str, ...]]
    cpu_s: Mapping[Arm, float | None]
    differing: tuple[int, bytes, bytes] | None = None


def take_turns(
    channels: Mapping[Arm, TurnChannel],
    schedule: Schedule,
    inputs: Sequence[bytes],
    rng: random.Random,
    differ: Differ,
    meters: Mapping[Arm, Meter] = MappingProxyType({}),
) -> SessionTurns:
    """Run a whole session: load, warm up, then rounds in the order ABBA, from a random start.

    Results are compared by digest, and in full where digests differ: after the warm-up, and in
    rounds drawn by chance.

    inputs: one per call: one for the warm-up, then those of each round
    differ: compares results that are not equal as bytes
    meters: run during the warm-up, the first call of each worker

    Raises `ArmError` if a worker can't go on.
    """
    arms = {
        arm: _ArmState(arm, channels[arm], schedule.timeout_s, schedule.counts_all) for arm in ARMS
    }
    first = rng.choice(ARMS)
    order = [first, *(arm for arm in ARMS if arm != first)]
    for arm in order:
        arms[arm].load(schedule.job)
    warm_up, rest = inputs[:1], inputs[1:]
    audited = rng.sample(range(schedule.rounds), min(AUDITED, schedule.rounds))
    digests = {arm: arms[arm].take_turn(warm_up, meters.get(arm))[1] for arm in order}
    differing = _compare(0, arms, warm_up, differ)
    samples = []
    for _ in range(EMPTY_TURNS):  # by both, so that both have the same history
        empty = {arm: arms[arm].take_empty_turn() for arm in order}
        samples.append(Sample(-1, 0, "base", 0, *empty["base"], is_kept=False))
    spent_s = 0.0
    for number in range(schedule.rounds):
        is_enough = number >= schedule.discarded + ENOUGH_ROUNDS
        if differing is not None or (is_enough and spent_s > schedule.most_s):
            break
        portion = rest[number * schedule.calls : (number + 1) * schedule.calls]
        for position, arm in enumerate(order):
            reply, digests[arm] = arms[arm].take_turn(portion)
            spent_s += reply.wall_s
            is_kept = number >= schedule.discarded
            samples.append(
                Sample(number, position, arm, len(portion), reply.wall_s, reply.cpu_s, is_kept)
            )
        order.reverse()
        if number in audited or digests["base"] != digests["candidate"]:
            differing = _compare(1 + number * schedule.calls, arms, portion, differ)
    for meter in meters.values():
        meter.finish()
    skipped = 1 + schedule.discarded
    return SessionTurns(
        samples=tuple(samples),
        startup_s=_pair(arms, lambda arm: arm.startup_s + arm.settling_s(skipped)),
        outside_s=_pair(arms, lambda arm: _median(arm.outside[skipped:])),
        stalled_s=_pair(arms, lambda arm: arm.stalled_s(skipped)),
        going_through=_pair(arms, lambda arm: _median(arm.going_through[skipped:])),
        files={arm: arms[arm].files for arm in ARMS},
        cpu_s={arm: arms[arm].cpu_at_rest for arm in ARMS},
        differing=differing,
    )


def _join(*replies: WorkerReply) -> WorkerReply:
    """Return the replies of a turn as one, without content."""
    used = [reply.cpu_s for reply in replies if reply.cpu_s is not None]
    cpu_s = sum(used) if len(used) == len(replies) else None
    return WorkerReply(b"", sum(reply.wall_s for reply in replies), cpu_s)


def _compare(
    first: int, arms: Mapping[Arm, _ArmState], inputs: Sequence[bytes], differ: Differ
) -> tuple[int, bytes, bytes] | None:
    """Compare the results of a round in full; return the first that differ.

    first: the index of its first input
    """
    results = [arms[arm].fetch_values(len(inputs)) for arm in ARMS]
    pairs = zip(*results, strict=True)
    for index, (base, candidate) in enumerate(pairs, first):
        if base != candidate and differ(index, base, candidate):
            return index, base, candidate
    return None


def _pair(arms: Mapping[Arm, _ArmState], figure: Callable[[_ArmState], float]) -> Pair:
    return Pair(*(figure(arms[arm]) for arm in ARMS))


def _median(values: Sequence[float]) -> float:
    return median(values) if values else 0.0
