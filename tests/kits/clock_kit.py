"""Simulated workers, sessions and timers for the bench; and a tiny project that is really timed."""

import json
import math
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

from anyio.from_thread import start_blocking_portal
from arena_fault_kit import WORKING, list_below
from repository_kit import make_repository

from fairtrial.arena import (
    Arena,
    ArenaSettings,
    Benchmark,
    Candidate,
    Changes,
    Check,
    CodeProblem,
    FileState,
    Sample,
    Session,
    open_arena,
)
from fairtrial.arena.timing import function_benchmark as calls
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.arena.timing.function_benchmark import FunctionBenchmark
from fairtrial.arena.timing.session import Schedule
from fairtrial.arena.timing.worker_channel import WorkerReply
from fairtrial.optimize import optimizer
from fairtrial.sandbox import host_lock
from fairtrial.sandbox.harness import packing

PATIENCE_S = 180.0
ARMS = ("base", "candidate")


# -- workers without a process --


def make_inputs(count, first=0):
    """Inputs as a supplier writes them, each different."""
    return [b'{"args":[%d],"kwargs":{}}' % number for number in range(first, first + count)]


def double(case):
    """What simulated workers do."""
    return {"result": 2 * case["args"][0], "after": None}


@dataclass
class SimWorker:
    """A `TurnChannel` whose clock is a sum: nothing takes longer than the test says.

    log: what it was asked, as (arm, letter, payload); both workers of a session share one
    function: what a call reports
    call_s: how long a call takes; the first `cold` turns that have calls, ten times as long
    reply_s: how long asking and replying take
    boot_s: CPU time of its interpreter before it is asked anything
    decode_s, encode_s: for one input, for one result
    late_s: CPU time that it uses after each of its turns, when nobody has asked it
    stall_s: how long it lets us wait for results without using CPU time
    cpu_share: CPU time of a call as a share of its time
    going_through: what it says of that, in seconds
    answers: what it says instead, by letter
    errors: what happens instead, by (letter, how many times it was asked that before)
    """

    arm: str = "base"
    log: list = field(default_factory=list)
    function: Callable = double
    call_s: float = 1e-3
    reply_s: float = 2**-16
    load_s: float = 0.25
    boot_s: float = 0.125
    decode_s: float = 2**-20
    encode_s: float = 2**-20
    late_s: float = 0.0
    stall_s: float = 0.0
    cold: int = 0
    spread: float = 0.0
    cpu_share: float = 1.0
    going_through: float = 0.0
    answers: dict = field(default_factory=dict)
    errors: dict = field(default_factory=dict)
    rng: random.Random = field(default_factory=lambda: random.Random(5))
    knows_cpu: bool = True
    largest: int = 0
    _cases: list = field(default_factory=list)
    _asked: dict = field(default_factory=dict)
    _used_s: float = 0.0
    _owed: int = 0

    def ask(self, letter, payload=b"", *, timeout_s):
        self.log.append((self.arm, letter, payload))
        before = self._asked[letter] = self._asked.get(letter, -1) + 1
        if (letter, before) in self.errors:
            raise self.errors[letter, before]
        wall_s, cpu_s, answer = self._do(letter, payload)
        self._used_s += cpu_s
        return WorkerReply(
            self.answers.get(letter, answer), wall_s, cpu_s if self.knows_cpu else None
        )

    def _do(self, letter, payload):
        count = len(self._cases)
        if letter == b"L":
            return self.load_s, self.load_s, b'{"files":["/project/mod.py"]}'
        if letter == b"I":
            self._cases = payload.split(b"\n") if payload else []
            self.largest = max(self.largest, len(self._cases))
            wall_s = self.reply_s + len(self._cases) * self.decode_s
            return wall_s, wall_s, b""
        if letter == b"G":
            self.cold -= bool(count)
            factor = (10 if self.cold >= 0 else 1) * math.exp(self.rng.gauss(0, self.spread))
            work_s = count * self.call_s * factor
            return self.reply_s + work_s, self.reply_s + self.cpu_share * work_s, b""
        told = [json.dumps(self.function(json.loads(case))) for case in self._cases]
        cpu_s = self.reply_s + count * self.encode_s
        if letter == b"V":
            return 0.0, 0.0, "\n".join([*told, "{}"]).encode()
        self._owed = 2
        digest = packing.digest("\n".join(told).encode())
        summary = packing.pack_summary(digest, count, self.going_through)
        return cpu_s + self.stall_s, cpu_s, summary

    def cpu_s(self):
        """Right after its turn, what it has used; asked again, late work is in it."""
        self._owed -= 1
        if self._owed == 0:
            self._used_s += self.late_s
        return self.boot_s + self._used_s if self.knows_cpu else None


def make_pair(base=None, **candidate):
    """Both workers of a session, with one log."""
    log = []
    return log, {
        "base": SimWorker("base", log, **(base or {})),
        "candidate": SimWorker("candidate", log, **candidate),
    }


def never_differs(place, base, candidate):
    raise AssertionError(f"asked about {place}: {base!r} and {candidate!r}")


# -- sessions that were never taken --


def make_session(ratio, *, benchmark="b", number=0, rounds=5, cpu_ratio=None, **more):
    """A session whose candidate takes `ratio` times as long as the base; the first round lies."""
    samples = [Sample(-1, 0, "base", 0, 1e-4, 1e-4, is_kept=False) for _ in range(3)]
    cpu_ratio = ratio if cpu_ratio is None else cpu_ratio
    for round_number in range(rounds + 1):
        lies = 50.0 if round_number == 0 else 1.0
        drift = 1 + round_number / 10
        for place, arm in enumerate(ARMS if round_number % 2 else reversed(ARMS)):
            wall_s, cpu_s = (
                drift * 2e-3 * (factor * lies if arm == "candidate" else 1.0) + 1e-4
                for factor in (ratio, cpu_ratio)
            )
            samples.append(
                Sample(round_number, place, arm, 4, wall_s, cpu_s, is_kept=round_number > 0)
            )
    return Session(benchmark, number, tuple(samples), 0.25, **more)


def make_replicates(logs, **more):
    """Sessions of one benchmark with these logarithms of candidate/base."""
    return [(make_session(math.exp(log), number=at, **more),) for at, log in enumerate(logs)]


def changes_of(name):
    """A candidate that a simulated timer knows by its digest."""
    return Changes({}, name)


@dataclass
class SimTimer:
    """A `Timer` with seeded noise: candidates by digest, each so many times as fast as the base.

    speeds: how many times as fast; with several, one for each benchmark
    deeds: what happens in session number n of a candidate: an error, or a rejection
    more: what else all sessions of a candidate say
    log: (digest, label, first session, how many were asked for, how many there were)
    """

    speeds: dict
    spread: float = 0.01
    session_s: float = 0.5
    seed: int = 1
    deeds: dict = field(default_factory=dict)
    more: dict = field(default_factory=dict)
    log: list = field(default_factory=list)

    async def run(self, changes, label, first, count, budget_s):
        name = changes.digest
        batch, numbers = SessionBatch(waited_s=0.125), range(first, first + count)
        for number in numbers:
            deed = self.deeds.get((name, number))
            if isinstance(deed, Exception):
                raise deed
            batch.rejection = deed
            if deed is not None:
                break
            batch.replicates.append(self._replicate(name, label, number))
            batch.seconds += self.session_s
            if batch.seconds + self.session_s / 2 > budget_s:
                break
        self.log.append((name, label, first, count, len(batch.replicates)))
        return batch

    def _replicate(self, name, label, number):
        speeds = self.speeds[name]
        rng = random.Random(f"{self.seed}/{label}/{number}")
        return tuple(
            make_session(
                math.exp(rng.gauss(-math.log(speed), self.spread)),
                benchmark=f"b{place}",
                number=number,
                **self.more.get(name, {}),
            )
            for place, speed in enumerate(speeds if isinstance(speeds, tuple) else (speeds,))
        )


# -- a tiny project --

MODULE = '''
def squares(numbers):
    """Takes about as long as it is told to."""
    for _ in range(40):
        total = 0
        for number in numbers:
            total += number * number
    return total
'''
FASTER, SLOWER = (MODULE.replace("range(40)", f"range({times})") for times in (10, 120))
FILES = {
    "src/few.py": MODULE,
    "tools/make.py": (
        "def numbers(rng):\n    return ([rng.randrange(99) for _ in range(400)],), {}\n"
    ),
    ".gitignore": "__pycache__/\n",
}


def few(name, text):
    """A candidate that is a whole file."""
    return Candidate(name, files={"src/few.py": FileState(text.encode())})


def few_changes(text):
    """The same, as the bench gets it."""
    return Changes({"src/few.py": FileState(text.encode())}, f"{hash(text):x}")


def few_problem(top, **changes):
    given = {
        "editable": ("src/*.py",),
        "check": (
            Check(function="few:squares", inputs="tools/make.py:numbers", cases=2, timeout_s=60),
        ),
        "bench": (Benchmark("squares", "few:squares", "tools/make.py:numbers"),),
        "python": sys.executable,
        "budget_s": 60.0,
    }
    return CodeProblem("few", folder=top, **(given | changes))


class Site:
    """A bench on the tiny project, in an event loop of its own; `call` runs things there."""

    def __init__(self, portal, arena, bench, locks):
        self.portal, self.arena, self.locks = portal, arena, locks
        has_calls = any(benchmark.call for benchmark in arena.problem.bench)
        schedule = {"calls": 2, "rounds": 3, "timeout_s": PATIENCE_S}
        self.bench = with_schedule(bench, **schedule) if has_calls else bench
        self.call = portal.call

    def run(self, text=MODULE, *, count=1, label="test", bench=None, budget_s=PATIENCE_S):
        """Sessions of one candidate."""
        changes = None if text is None else few_changes(text)
        return self.call((bench or self.bench).run, changes, label, 0, count, budget_s)


def with_schedule(bench, **changes):
    """The same bench with other sessions."""
    benchmarks = [
        replace(
            benchmark,
            benchmark=replace(
                benchmark.benchmark, schedule=replace(benchmark.benchmark.schedule, **changes)
            ),
        )
        for benchmark in bench.benchmarks
    ]
    return replace(bench, benchmarks=tuple(benchmarks))


@contextmanager
def open_site(folder, files=None, *, slots=1, locks=None, **problem):
    """Open an arena and a bench on a tiny repository, with a private lock."""
    if locks is None:
        locks = folder / "locks"
        locks.mkdir()
    top = make_repository(folder / "repo", {**FILES, **(files or {})})
    is_plain = problem.get("sandbox") == "plain"
    settings = ArenaSettings(unsandboxed=is_plain or not WORKING, lock_folder=locks, warm=False)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_arena(few_problem(top, **problem), slots=slots, settings=settings)
        ) as arena,
        portal.wrap_async_context_manager(arena.bench()) as bench,
    ):
        yield Site(portal, arena, bench, locks)


@dataclass
class Meddler:
    """A channel to a real worker that calls a function right before a request.

    at: the letter, and how many times it was asked that before
    within_s: how long we wait for that reply; as long as for all others if it is 0
    """

    arm: str
    line: object
    log: list
    deed: Callable
    at: tuple
    within_s: float = 0.0
    _asked: dict = field(default_factory=dict)

    def ask(self, letter, payload=b"", *, timeout_s):
        before = self._asked[letter] = self._asked.get(letter, -1) + 1
        if (letter, before) == self.at:
            self.deed(self.line)
            timeout_s = self.within_s or timeout_s
        reply = self.line.ask(letter, payload, timeout_s=timeout_s)
        self.log.append((self.arm, letter, payload, reply))
        return reply

    def cpu_s(self):
        return self.line.cpu_s()


def meddle(monkeypatch, *, arm="candidate", at=(b"G", 3), deed=lambda line: None, within_s=0.0):
    """Record and disturb all sessions from now on; return what both workers said, by session."""
    sessions = []
    take_turns = calls.take_turns

    def take(lines, *rest):
        log = []
        sessions.append(log)
        channels = {
            each: Meddler(each, line, log, deed, at if each == arm else (b"", 0), within_s)
            for each, line in lines.items()
        }
        return take_turns(channels, *rest)

    monkeypatch.setattr(calls, "take_turns", take)
    return sessions


def record_sessions(setattr=setattr):
    """Record when each session begins and ends, by the clock that all processes share."""
    records = []
    run = FunctionBenchmark.run

    async def recorded(self, setup, number):
        began = time.monotonic()
        session = await run(self, setup, number)
        records.append((began, time.monotonic()))
        return session

    setattr(FunctionBenchmark, "run", recorded)
    return records


def pid_of(line):
    """Return the worker's process id, from the kernel's clock."""
    return ~(line._clock >> 3)


def find_workers(program="timed_worker.py"):
    """Return the processes below this one that run a program of the harness."""
    return [pid for pid, argv in list_below(os.getpid()) if program in argv]


SCHEDULE = Schedule(b"{}", calls=3, rounds=4)


class TwiceAsFast:
    """A bench by which every candidate takes half of the base's time."""

    notes = ()

    async def run(self, changes, label, first, count, budget_s):
        batch = SessionBatch(seconds=0.01)
        for number in range(first, first + count):
            ratio = math.exp(random.Random(f"{label}/{number}").gauss(math.log(0.5), 0.001))
            batch.replicates.append((make_session(ratio, number=number),))
        return batch


def simulate_clock(monkeypatch, lock_folder):
    """Let arenas of this process have simulated benches, and a host lock of their own.

    Optimizations don't audit their checks, which would take most of the time.
    """

    @asynccontextmanager
    async def bench(arena):
        yield TwiceAsFast()

    async def audit_nothing(arena, settings):
        return ()

    monkeypatch.setattr(Arena, "bench", bench)
    monkeypatch.setattr(optimizer, "audit_checks", audit_nothing)
    monkeypatch.setattr(host_lock, "HOST_FOLDER", lock_folder)
