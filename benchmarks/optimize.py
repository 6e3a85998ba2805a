"""What it gains that proposals, checks and timing overlap: wall time of an optimization.

    python benchmarks/optimize.py [--candidates 24] [--at-once 1,4] [--rounds 1] [--unsandboxed]

The same candidates come from a proposer that sleeps 0.2 to 2 s for each, as long in every run:
sleeping is what waiting for a model comes to. They are judged and timed for real, in four ways:

- streaming: as the optimizer does it
- only checks overlap: each is checked as soon as it comes; when all are checked, all are timed
- check all, then time all: first all are asked for, then all checked, then all timed
- one at a time: each is asked for, checked and timed before the next

Opening the arena and timing the base for the first time is the same for all, and left out.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from fairtrial import Benchmark, Candidate, Check, CodeProblem
from fairtrial.arena import (
    Arena,
    ArenaSettings,
    Bench,
    Changes,
    FileState,
    Judgement,
    Verdict,
    open_arena,
)
from fairtrial.arena.evaluation import judge_all
from fairtrial.arena.timing.decision import measure
from fairtrial.arena.timing_phase import timing_rules
from fairtrial.core.events import ignore_event
from fairtrial.optimize import Brief, Proposer, Reply, Request, RequestKind
from fairtrial.optimize.journal import JournalState
from fairtrial.optimize.lineage import LoopRules
from fairtrial.optimize.loop import OptimizeLoop
from fairtrial.optimize.preparation import make_brief
from fairtrial.optimize.requests import ProposerClient
from fairtrial.optimize.scheduler import Scheduler
from fairtrial.study.agents.journal import Journal

SLOTS = 4
SHORTEST_S, LONGEST_S = 0.2, 2.0
MODULE = """\
NUMBER = {number}


def total(values):
    result = 0
    for _ in range({rounds}):
        result = sum(value * value for value in values)
    return result
"""
TESTS = """\
import pytest
from sums import total


@pytest.mark.parametrize("size", range(20))
def test_total(size):
    assert total(range(size)) == sum(value**2 for value in range(size))
"""
INPUTS = """\
def values(rng):
    return ([rng.randrange(1000) for _ in range(1000)],), {}
"""


def make_project(folder: Path) -> CodeProblem:
    """A git repository with a slow function and its tests, and what is to be done with it."""
    files = {
        "src/sums.py": MODULE.format(number=-1, rounds=10),
        "tests/test_sums.py": TESTS,
        "inputs.py": INPUTS,
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return CodeProblem(
        "sums",
        editable=("src/*.py",),
        import_roots=("src",),
        python=sys.executable,
        check=(
            Check(command=("{python}", "-m", "pytest", "-q", "tests/")),
            Check(function="sums:total", inputs="inputs.py:values", cases=10),
        ),
        bench=(Benchmark("sums", "sums:total", "inputs.py:values"),),
        budget_s=4.0,
        folder=folder,
    )


@dataclass(frozen=True)
class Sleeper(Proposer):
    """Gives prepared candidates, after a while that depends on the candidate alone.

    most_at_once: how many it works on at the same time
    """

    most_at_once: int = 1

    name = "sleeper"

    def can(self, kind: RequestKind) -> bool:
        return kind is RequestKind.INITIAL

    async def propose(self, brief: Brief, request: Request) -> Reply:
        await anyio.sleep(random.Random(request.lineage).uniform(SHORTEST_S, LONGEST_S))
        return Reply((prepare(request.lineage),))


def prepare(number: int) -> Candidate:
    """A candidate that is right, unlike any other, and so much faster that six sessions do."""
    text = MODULE.format(number=number, rounds=4)
    return Candidate(f"candidate-{number}", files={"src/sums.py": FileState(text.encode())})


@dataclass(frozen=True)
class Place:
    """Where candidates are judged, and whom they come from."""

    arena: Arena
    bench: Bench
    brief: Brief
    sleeper: Sleeper
    count: int

    async def ask(self, number: int) -> Candidate:
        (candidate,) = (await self.sleeper.propose(self.brief, _request(number))).candidates
        assert candidate is not None
        return candidate

    async def ask_each(self, then: Callable[[int, Candidate], Awaitable[None]]) -> None:
        """Ask for all, as many at once as the proposer can."""
        seats = anyio.Semaphore(self.sleeper.most_at_once)

        async def ask(number: int) -> None:
            async with seats:
                candidate = await self.ask(number)
            await then(number, candidate)

        async with anyio.create_task_group() as tasks:
            for number in range(self.count):
                tasks.start_soon(ask, number)

    async def time(self, candidate: Candidate, judgement: Judgement) -> Judgement:
        changes = await self.arena.resolve(candidate)
        assert isinstance(changes, Changes), judgement
        rules = timing_rules(self.arena.problem)
        return judgement.with_timing(await measure(self.bench, candidate.name, changes, rules))

    async def time_all(
        self, candidates: Sequence[Candidate], judgements: Sequence[Judgement]
    ) -> list[Judgement]:
        pairs = zip(candidates, judgements, strict=True)
        return [await self.time(*each) for each in pairs]


def _request(number: int) -> Request:
    return Request(RequestKind.INITIAL, number, 0)


# -- the four ways --


async def stream(place: Place) -> list[Judgement]:
    rules = LoopRules(
        lineages=place.count, max_candidates=place.count, kinds=frozenset({RequestKind.INITIAL})
    )
    client = ProposerClient(place.sleeper, place.brief, Journal(), JournalState())
    running = Scheduler(place.arena, place.bench, OptimizeLoop(rules), client, ignore_event)
    await running.run()
    return list(running.judgements.values())


async def overlap_checks(place: Place) -> list[Judgement]:
    candidates: dict[int, Candidate] = {}
    judgements: dict[int, Judgement] = {}

    async def check(number: int, candidate: Candidate) -> None:
        resolved = await place.arena.resolve(candidate)
        judgements[number] = await place.arena.judge(candidate, resolved)
        candidates[number] = candidate

    await place.ask_each(check)
    order = range(place.count)
    return await place.time_all([candidates[n] for n in order], [judgements[n] for n in order])


async def do_phases(place: Place) -> list[Judgement]:
    candidates: dict[int, Candidate] = {}

    async def keep(number: int, candidate: Candidate) -> None:
        candidates[number] = candidate

    await place.ask_each(keep)
    ordered = [candidates[number] for number in range(place.count)]
    return await place.time_all(ordered, await judge_all(place.arena, ordered))


async def one_at_a_time(place: Place) -> list[Judgement]:
    done = []
    for number in range(place.count):
        candidate = await place.ask(number)
        (judgement,) = await judge_all(place.arena, [candidate])
        done.append(await place.time(candidate, judgement))
    return done


WAYS: dict[str, Callable[[Place], Awaitable[list[Judgement]]]] = {
    "streaming": stream,
    "only checks overlap": overlap_checks,
    "check all, then time all": do_phases,
    "one at a time": one_at_a_time,
}


@dataclass(frozen=True)
class Took:
    """What one optimization took: wall time, and sessions of the clock."""

    seconds: float
    sessions: int


def run(way: str, problem: CodeProblem, sleeper: Sleeper, count: int, unsandboxed: bool) -> Took:
    """One optimization in an arena of its own: none remembers another's verdicts."""

    async def work() -> Took:
        settings = ArenaSettings(unsandboxed=unsandboxed)
        async with (
            open_arena(problem, slots=SLOTS, settings=settings) as arena,
            arena.bench() as bench,
        ):
            place = Place(arena, bench, await make_brief(arena), sleeper, count)
            began = time.perf_counter()
            judgements = await WAYS[way](place)
            seconds = time.perf_counter() - began
        assert len(judgements) == count, judgements
        assert {each.verdict for each in judgements} == {Verdict.FASTER}, judgements
        return Took(seconds, sum(_sessions(each) for each in judgements))

    return anyio.run(work)


def _sessions(judgement: Judgement) -> int:
    measured = judgement.measurement
    assert measured is not None
    assert measured.estimate is not None
    return measured.estimate.sessions


def print_row(at_once: int, count: int, rounds: Sequence[dict[str, Took]]) -> None:
    """A row for `benchmarks/README.md`; and a word if the work was not the same."""
    took = {way: statistics.median(each[way].seconds for each in rounds) for way in WAYS}
    first = took["streaming"]
    ratios = {way: first / seconds for way, seconds in took.items() if way != "streaming"}
    words = [f"{ratio:.2f} ({way}: {took[way]:.1f} s)" for way, ratio in ratios.items()]
    whole = f"streaming {first:.1f} s: {', '.join(words)}"
    what = f"{count} candidates, a proposer of 0.2-2 s, {at_once} at once, against other orders"
    print(f"| {what} (wall) | `python benchmarks/optimize.py` | {whole} | <= 0.8 |")
    counts = {way: [each[way].sessions for each in rounds] for way in WAYS}
    if len({number for numbers in counts.values() for number in numbers}) > 1:
        print(f"not the same work: sessions of the clock differ: {counts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=24)
    parser.add_argument("--at-once", default="1,4", help="how many the proposer works on at once")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--unsandboxed", action="store_true")
    given = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="fairtrial-bench-") as folder:
        problem = make_project(Path(folder, "project"))
        for at_once in map(int, given.at_once.split(",")):
            rounds = [
                {
                    way: run(way, problem, Sleeper(at_once), given.candidates, given.unsandboxed)
                    for way in WAYS
                }
                for _ in range(given.rounds)
            ]
            print_row(at_once, given.candidates, rounds)


if __name__ == "__main__":
    main()
