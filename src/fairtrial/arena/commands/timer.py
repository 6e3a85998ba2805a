"""Times two commands against each other: sessions of runs that take turns.

All times come from the two runners, which measure each run from its start to its end.
"""

from __future__ import annotations

import errno
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from fairtrial.arena.checks.exit_text import in_one_line, name_signal
from fairtrial.arena.commands.places import CommandPlace
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.timings import Arm, Pair, Sample, Session
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.arena.timing.session import ARMS, ArmError
from fairtrial.arena.timing.stats.sequential import LOOKS
from fairtrial.arena.timing.worker_channel import ChannelError, WorkerChannel
from fairtrial.arena.timing.workers import WorkResult, run_workers
from fairtrial.core import LabError
from fairtrial.sandbox import Command, HostLock

SESSION_S, MOST_ROUNDS = 0.3, 50
"""How long a session should take, and the most pairs of runs that it may have."""
TOLD = 1.1
"""How many times as much memory as its runner a command must need for its peak to be told."""
LONGEST_S = 24 * 3600.0
OUTPUT_BYTES = 2_000
MOST_OUTPUT = 256 * 2**20
"""How much a command may print in its first run."""
SLOWEST, LEAST_TIMEOUT_S = 20.0, 10.0
"""How many times as long as in the rehearsal a run may take before it is stopped."""


@dataclass(frozen=True, slots=True)
class TimedCommand:
    """One of two commands that are compared.

    name: its name in reports
    argv: the program and its arguments
    place: where it runs
    prepare: a command that runs before each of its runs; None for none
    """

    name: str
    argv: tuple[str, ...]
    place: CommandPlace
    prepare: tuple[str, ...] | None = None

    @property
    def job(self) -> bytes:
        """What its runner loads."""
        job = {"argv": self.argv, "prepare": self.prepare, "output_bytes": OUTPUT_BYTES}
        return json.dumps(job).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run; see `command_runner`.

    report: the runner's report
    lasted_s: how long it took, with what prepares it
    """

    report: Mapping[str, Any]
    lasted_s: float

    @property
    def has_succeeded(self) -> bool:
        """Whether it exited with 0."""
        return bool(self.report.get("exit_code") == 0 and not self.report["stopped"])

    @property
    def is_missing(self) -> bool:
        """Whether there is no such program."""
        return self.report.get("error") in (errno.ENOENT, errno.ENOTDIR)

    def describe_failure(self) -> str:
        """Return how it failed, as the end of a sentence."""
        report = self.report
        if report["start_error"]:
            return f"can't be started: {report['start_error']}"
        if report["stopped"] == "time":
            return f"was still running after {self.lasted_s:.3g} s"
        if report["stopped"] == "output":
            return f"printed more than {MOST_OUTPUT // 2**20} MB"
        code = report["exit_code"]
        ending = (
            f"died of {name_signal(report['signal'])}" if code is None else f"exits with {code}"
        )
        tail = in_one_line(report["tail"])
        return f"{ending}: {tail}" if tail else ending


@dataclass(slots=True)
class CommandTimer:
    """Runs sessions of two commands.

    base, candidate: the commands
    lock: the host lock
    ignores_failure: whether runs may fail
    rounds: the pairs of runs of a session
    usual_s: how long a run of each takes
    own_mb: what the runners need themselves: no lower peak can be told
    judges_memory: whether one of them needs more than that
    """

    base: TimedCommand
    candidate: TimedCommand
    lock: HostLock
    ignores_failure: bool = False
    rounds: int = 1
    usual_s: dict[Arm, float] = field(default_factory=dict)
    own_mb: float = 0.0
    judges_memory: bool = False

    async def rehearse(self, budget_s: float) -> dict[Arm, Run]:
        """Run each command up to three times; return the last run of each, or one that failed.

        It is timed how long they take, so that sessions get a fitting number of rounds.
        """

        def work(channels: Mapping[Arm, WorkerChannel]) -> dict[Arm, list[Run]]:
            taken: dict[Arm, list[Run]] = {}
            for arm in ARMS:
                self._load(arm, channels[arm])
                taken[arm] = []
                for _ in range(3):
                    taken[arm].append(self._run(arm, channels[arm], budget_s, MOST_OUTPUT))
                    last = taken[arm][-1]
                    if not (last.has_succeeded or self._may_fail(last)) or last.lasted_s > 1:
                        break
            return taken

        async with self.lock.shared():
            outcome = await self._with_runners(work)
        if outcome.result is None:
            assert outcome.failure is not None
            raise LabError(f"{self._of(outcome.failure.arm).name}: {outcome.failure}")
        for arm, runs in outcome.result.items():
            self.usual_s[arm] = min(run.lasted_s for run in runs)
        pair_s = sum(self.usual_s.values())
        peaks = (run.report.get("peak_mb", 0.0) for runs in outcome.result.values() for run in runs)
        self.judges_memory = max(peaks) > TOLD * self.own_mb
        session_s = min(SESSION_S, budget_s / (2 * LOOKS[0]))  # so that six sessions fit in easily
        self.rounds = max(1, min(MOST_ROUNDS, round(session_s / max(pair_s, 1e-6))))
        return {arm: runs[-1] for arm, runs in outcome.result.items()}

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> SessionBatch:
        """Run `count` sessions, numbered from `first`, or as many as the budget allows.

        changes: not used
        label: seeds the order of runs
        """
        batch = SessionBatch()
        began = time.monotonic()

        def work(channels: Mapping[Arm, WorkerChannel]) -> None:
            for arm in ARMS:
                self._load(arm, channels[arm])
            for number in range(first, first + count):
                session = self._run_session(channels, number, random.Random(f"{label}/{number}"))
                batch.rejection = session.rejection
                if session.rejection is not None:
                    break
                batch.replicates.append((session,))
                spent_s = time.monotonic() - began
                if spent_s + session.seconds / 2 > budget_s:
                    break

        async with self.lock.exclusive() as lease:
            batch.waited_s, began = lease.waited_s, time.monotonic()
            outcome = await self._with_runners(work)
        if outcome.failure is not None:
            batch.rejection = self._reject(outcome.failure.arm, str(outcome.failure))
        batch.seconds = time.monotonic() - began
        return batch

    async def _with_runners(self, work: Any) -> WorkResult[Any]:
        places: dict[Arm, CommandPlace] = {
            "base": self.base.place,
            "candidate": self.candidate.place,
        }
        return await run_workers(places, _start_runner, work)

    def _run_session(
        self, channels: Mapping[Arm, WorkerChannel], number: int, rng: random.Random
    ) -> Session:
        began = time.monotonic()
        order = list(ARMS)
        rng.shuffle(order)
        samples: list[Sample] = []
        peaks: dict[Arm, list[float]] = {arm: [] for arm in ARMS}
        rejection: Rejection | None = None
        for in_round in range(self.rounds):
            for position, arm in enumerate(order):
                run = self._run(arm, channels[arm], None, None)
                report = run.report
                if not (run.has_succeeded or self._may_fail(run)):
                    rejection = self._reject(arm, run.describe_failure())
                    break
                sample = Sample(in_round, position, arm, 1, report["wall_s"], report["cpu_s"])
                samples.append(sample)
                peaks[arm].append(report["peak_mb"])
            if rejection is not None:
                break
            order.reverse()
        pair = None if rejection else Pair(*(median(peaks[arm]) for arm in ARMS))
        return Session(
            benchmark=self.candidate.name,
            number=number,
            samples=tuple(samples),
            seconds=time.monotonic() - began,
            peak_rss_mb=pair,
            judged_mb=pair if self.judges_memory else None,
            rejection=rejection,
        )

    def _may_fail(self, run: Run) -> bool:
        report = run.report
        is_own = report.get("prepared", True) and not report["start_error"]
        return self.ignores_failure and is_own and not report["stopped"]

    def _of(self, arm: Arm) -> TimedCommand:
        return self.base if arm == "base" else self.candidate

    def _load(self, arm: Arm, channel: WorkerChannel) -> None:
        reply = self._ask(arm, channel, b"L", self._of(arm).job, LEAST_TIMEOUT_S)
        self.own_mb = max(self.own_mb, reply[0]["own_mb"])

    def _run(
        self, arm: Arm, channel: WorkerChannel, limit_s: float | None, most_bytes: int | None
    ) -> Run:
        order = json.dumps({"limit_s": limit_s, "most_bytes": most_bytes}).encode("ascii")
        usual_s = self.usual_s.get(arm, 0.0) if limit_s is None else 2 * limit_s
        timeout_s = LEAST_TIMEOUT_S + SLOWEST * usual_s
        return Run(*self._ask(arm, channel, b"R", order, timeout_s))

    @staticmethod
    def _ask(
        arm: Arm, channel: WorkerChannel, letter: bytes, payload: bytes, timeout_s: float
    ) -> tuple[dict[str, Any], float]:
        """Return the runner's reply, and how long it took."""
        try:
            reply = channel.ask(letter, payload, timeout_s=timeout_s)
        except ChannelError as error:
            raise ArmError(arm, f"the process that runs it failed: {error}", error) from None
        return json.loads(reply.payload), reply.wall_s

    def _reject(self, arm: Arm, why: str) -> Rejection:
        """Return the rejection of a candidate that failed; raise `LabError` for the base."""
        name = self._of(arm).name
        if arm == "base":
            raise LabError(f"{name}, which succeeded before, failed while it was timed: {why}")
        message = f"while it was timed, it failed, though it had succeeded before: {why}"
        return Rejection(Reason.CRASH, message, (Failure("command", name, why),))


def _start_runner(place: CommandPlace, channel: int) -> Command:
    return place.command(channel, LONGEST_S)
