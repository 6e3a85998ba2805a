"""Taking turns: one session of two workers, as our side of the two lines sees it.

All of it blocks and runs in a thread. Time comes from the lines alone, so that tests can give it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.model.timings import Arm, Pair, Sample
from fairtrial.arena.timing.worker_channel import LineError, Reply

EMPTY_TURNS = 7
USUAL = 1.1
"""How many times what a turn usually takes all turns may take on average; what is beyond that was
done once, and belongs to start-up."""
ARMS: tuple[Arm, Arm] = ("base", "candidate")
Differ = Callable[[int, bytes, bytes], bool]
"""Whether two reports of one call say different things: which input, and both as JSON lines."""


class Talk(Protocol):
    """A line to a worker, as far as turns need one."""

    def ask(self, letter: bytes, payload: bytes = b"", *, timeout_s: float) -> Reply:
        """Ask, and wait for the reply."""
        ...

    def cpu_s(self) -> float | None:
        """CPU time of the worker so far."""
        ...


class ArmError(Exception):
    """One of the two can't go on: whose fault, and what there is to say."""

    def __init__(self, arm: Arm, why: str, error: LineError | None = None) -> None:
        super().__init__(why)
        self.arm, self.why, self.error = arm, why, error


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a session goes.

    job: what a worker loads
    calls: how many calls a sample is
    rounds: how many rounds there are, the first of which may not count
    discarded: how many rounds at the beginning don't count
    timeout_s: how long a single reply may take
    """

    job: bytes
    calls: int
    rounds: int
    discarded: int = 1
    timeout_s: float = 60.0


@dataclass(slots=True)
class _Arm:
    """One worker while the session lasts."""

    arm: Arm
    talk: Talk
    timeout_s: float
    startup_s: float = 0.0
    files: tuple[str, ...] = ()
    cpu_at_rest: float | None = None
    spent: list[float] = field(default_factory=list)
    outside: list[float] = field(default_factory=list)
    stalled: list[float] = field(default_factory=list)
    stalled_at_first_s: float = 0.0
    going_through: list[float] = field(default_factory=list)

    def ask(self, letter: bytes, payload: bytes = b"") -> Reply:
        try:
            return self.talk.ask(letter, payload, timeout_s=self.timeout_s)
        except LineError as error:
            raise ArmError(self.arm, str(error), error) from None

    def load(self, job: bytes) -> None:
        """Import the function; start-up is what the interpreter took, and this."""
        before_s = self.talk.cpu_s() or 0.0
        reply = self.ask(b"L", job)
        used_s = reply.wall_s if reply.cpu_s is None else reply.cpu_s
        self.startup_s = before_s + used_s
        self.stalled_at_first_s = max(0.0, reply.wall_s - used_s)
        self._rest()
        told = read_line(reply.payload)
        files = told.get("files")
        if not isinstance(files, list):
            raise ArmError(self.arm, f"it can't be loaded: {told.get('failed')!r}")
        self.files = tuple(file for file in files if isinstance(file, str))

    def take_turn(self, inputs: Sequence[bytes]) -> tuple[Reply, list[bytes]]:
        """One sample: get the inputs ready, go, tell what came of it."""
        idle_s = self._rest()
        ready = self.ask(b"I", b"\n".join(inputs))
        gone = self.ask(b"G")
        told = self.ask(b"C")
        busy_s = self._rest()
        *lines, closing = told.payload.split(b"\n")
        if len(lines) != len(inputs):
            raise ArmError(self.arm, f"{len(lines)} results of {len(inputs)} calls were reported")
        if idle_s is None or busy_s is None or gone.cpu_s is None:
            self.outside.append(ready.wall_s + told.wall_s)
        else:  # what others do on the machine doesn't make CPU time longer
            self.spent.append(idle_s + busy_s)
            self.outside.append(max(0.0, idle_s + busy_s - gone.cpu_s))
            used_s = (ready.cpu_s or 0.0) + (told.cpu_s or 0.0)
            self.stalled.append(max(0.0, ready.wall_s + told.wall_s - used_s))
        through_s = read_line(closing).get("going_through_s", 0.0)
        share = through_s / gone.wall_s if isinstance(through_s, float) and gone.wall_s else 0.0
        self.going_through.append(min(max(share, 0.0), 1.0))
        return gone, lines

    def take_empty_turn(self) -> tuple[float, float | None]:
        """What it takes to ask and to reply, when there is nothing to do between."""
        self.ask(b"I")
        gone = self.ask(b"G")
        self._rest()
        return gone.wall_s, gone.cpu_s

    def settling_s(self, skipped: int) -> float:
        """CPU time of single turns beyond what the others take: work of the first call, say.

        The median over rounds doesn't show it, whichever turns it falls into.
        """
        return max(0.0, sum(self.spent) - USUAL * _median(self.spent[skipped:]) * len(self.spent))

    def stalled_s(self, skipped: int) -> float:
        """How long it let us wait per round, with what it took to be loaded."""
        share_s = self.stalled_at_first_s / max(len(self.stalled), 1)
        return _median(self.stalled[skipped:]) + share_s

    def _rest(self) -> float | None:
        """CPU time that it has used since it rested last: in its turn, or while it was not."""
        before, self.cpu_at_rest = self.cpu_at_rest, self.talk.cpu_s()
        if before is None or self.cpu_at_rest is None:
            return None
        return max(0.0, self.cpu_at_rest - before)


@dataclass(frozen=True, slots=True)
class Turns:
    """What a session came to.

    samples: all of them, in order
    startup_s, outside_s, stalled_s, going_through: see `Session`
    files: what each loaded
    cpu_s: CPU time of each worker until its last turn's end; None where the kernel doesn't tell
    differing: the first input for which the candidate gave something else, with both lines
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
    talks: Mapping[Arm, Talk],
    schedule: Schedule,
    inputs: Sequence[bytes],
    rng: random.Random,
    differ: Differ,
) -> Turns:
    """A whole session: load, warm up, then round after round in the order ABBA, from either end.

    inputs: one JSON line per call: one for the warm-up, then those of each round
    differ: looks closer at results that are not the same to the letter
    """
    arms = {arm: _Arm(arm, talks[arm], schedule.timeout_s) for arm in ARMS}
    first = rng.choice(ARMS)
    order = [first, *(arm for arm in ARMS if arm != first)]
    for arm in order:
        arms[arm].load(schedule.job)
    warm_up, rest = inputs[:1], inputs[1:]
    results = {arm: arms[arm].take_turn(warm_up)[1] for arm in order}
    differing = _compare(0, results, differ)
    samples = [
        Sample(-1, 0, "base", 0, *arms["base"].take_empty_turn(), is_kept=False)
        for _ in range(EMPTY_TURNS)
    ]
    for number in range(schedule.rounds):
        if differing is not None:
            break
        share = rest[number * schedule.calls : (number + 1) * schedule.calls]
        for position, arm in enumerate(order):
            reply, results[arm] = arms[arm].take_turn(share)
            is_kept = number >= schedule.discarded
            samples.append(
                Sample(number, position, arm, len(share), reply.wall_s, reply.cpu_s, is_kept)
            )
        order.reverse()
        differing = _compare(1 + number * schedule.calls, results, differ)
    skipped = 1 + schedule.discarded
    return Turns(
        samples=tuple(samples),
        startup_s=_pair(arms, lambda arm: arm.startup_s + arm.settling_s(skipped)),
        outside_s=_pair(arms, lambda arm: _median(arm.outside[skipped:])),
        stalled_s=_pair(arms, lambda arm: arm.stalled_s(skipped)),
        going_through=_pair(arms, lambda arm: _median(arm.going_through[skipped:])),
        files={arm: arms[arm].files for arm in ARMS},
        cpu_s={arm: arms[arm].cpu_at_rest for arm in ARMS},
        differing=differing,
    )


def _compare(
    first: int, results: Mapping[Arm, list[bytes]], differ: Differ
) -> tuple[int, bytes, bytes] | None:
    pairs = zip(results["base"], results["candidate"], strict=True)
    for place, (base, candidate) in enumerate(pairs, first):
        if base != candidate and differ(place, base, candidate):
            return place, base, candidate
    return None


def _pair(arms: Mapping[Arm, _Arm], figure: Callable[[_Arm], float]) -> Pair:
    return Pair(*(figure(arms[arm]) for arm in ARMS))


def _median(values: Sequence[float]) -> float:
    return median(values) if values else 0.0
