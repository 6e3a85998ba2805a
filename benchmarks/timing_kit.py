"""What the live measurements share: pairs of known ratio, a file of results, the machine's load.

The unit of a pair is one of the built-in workloads on a small input. The base does it 273 times, a
candidate that is 5 % faster 260 times, with the same result: how much faster it is, is known by
construction, up to the one call and the loop around them (less than 0.1 %).
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial import Candidate
from fairtrial.arena import (
    ArenaSettings,
    Bench,
    Benchmark,
    Changes,
    Check,
    CodeProblem,
    FileState,
    Measurement,
    Rejection,
    Session,
    open_arena,
    self_test,
)
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.arena.timing.decision import DecisionRules
from fairtrial.arena.timing.stats.detectable_effect import false_positive_rate
from fairtrial.arena.timing.stats.sequential import Claim
from fairtrial.arena.timing.summary import replicate_statistics
from fairtrial.arena.timing_phase import timing_rules

WORKLOADS = ("words", "paths", "floats")
BASE_PIECES = 273
PIECES = {"equal": 273, "2 %": 268, "3 %": 265, "5 %": 260}
"""How many pieces a candidate does: ratios of 1, 1.019, 1.030 and 1.05."""
QUICK_S = 4.0
"""How long a comparison of a smoke run may take."""
MODULE = "src/workloads/pieces.py"
INPUTS = "pieces_inputs.py"
_SOURCE = '''"""The same work so many times."""

from workloads import count_words, shortest_paths, smooth

PIECES = {pieces}


def repeat_words(text):
    for _ in range(PIECES):
        counts = count_words(text)
    return counts


def repeat_paths(roads):
    for _ in range(PIECES):
        distances = shortest_paths(roads)
    return distances


def repeat_floats(values):
    for _ in range(PIECES):
        smoothed = smooth(values)
    return smoothed
'''
_MAKERS = '''"""Inputs of a few microseconds."""


def words(rng):
    return (" ".join(f"word{rng.randrange(120)}," for _ in range(20)),), {}


def paths(rng):
    return ([[[rng.randrange(8), rng.randrange(1, 9)] for _ in range(3)] for _ in range(8)],), {}


def floats(rng):
    return ([rng.random() for _ in range(60)],), {}
'''


# -- pairs of known ratio --


def write_pieces(top: Path, pieces: int) -> None:
    """The module and its inputs, beside the built-in workloads."""
    (top / MODULE).write_text(_SOURCE.format(pieces=pieces))
    (top / INPUTS).write_text(_MAKERS)


@contextmanager
def pieces_problem(workload: str) -> Iterator[CodeProblem]:
    """A problem whose base does `BASE_PIECES` pieces of a workload."""
    with self_test.builtin_problem() as problem:
        write_pieces(problem.folder, BASE_PIECES)
        function, inputs = f"workloads.pieces:repeat_{workload}", f"{INPUTS}:{workload}"
        yield replace(
            problem,
            problem_id=f"pieces-{workload}",
            check=(Check(function=function, inputs=inputs, cases=5),),
            bench=(Benchmark(name=workload, call=function, inputs=inputs),),
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """A bench for pairs of one workload.

    bench: what takes sessions
    rules: what decides
    entries: candidates by the number of pieces they do; None stands for the base itself
    """

    bench: Bench
    rules: DecisionRules
    entries: dict[int, Changes | None]


@asynccontextmanager
async def open_pairs(
    workload: str, pieces: Sequence[int], *, quick: bool = False
) -> AsyncIterator[Pairs]:
    """A bench, and a candidate for each number of pieces."""
    with pieces_problem(workload) as problem:
        if quick:
            problem = replace(problem, budget_s=QUICK_S)
        async with open_arena(problem) as arena, arena.bench() as bench:
            entries: dict[int, Changes | None] = {}
            for count in dict.fromkeys(pieces):
                content = FileState(_SOURCE.format(pieces=count).encode())
                resolved = await arena.resolve(Candidate(f"{count}", files={MODULE: content}))
                if isinstance(resolved, Rejection):
                    raise RuntimeError(resolved.message)
                entries[count] = resolved if count != BASE_PIECES else None
            yield Pairs(bench, timing_rules(arena.problem), entries)


@asynccontextmanager
async def open_builtin(workload: str, *, plain: bool) -> AsyncIterator[Bench]:
    """A bench for one of the built-in workloads, in a sandbox or without."""
    with self_test.builtin_problem(workload) as problem:
        settings = ArenaSettings(unsandboxed=plain)
        chosen = replace(problem, sandbox="plain" if plain else problem.sandbox)
        async with open_arena(chosen, settings=settings) as arena, arena.bench() as bench:
            yield bench


def true_log(pieces: int) -> float:
    """log(candidate/base) by construction."""
    return math.log(pieces / BASE_PIECES)


def checked(found: Measurement | Rejection) -> Measurement:
    """A measurement; what can't be timed here is a fault of ours."""
    if isinstance(found, Rejection):
        raise RuntimeError(found.message)
    return found


def values_of(sessions: Sequence[Session]) -> list[float]:
    """The statistic of each session of a single benchmark."""
    return replicate_statistics([(session,) for session in sessions])


@dataclass(slots=True)
class Watched:
    """A bench, with how long it was used for what.

    heats: label, sessions, and seconds from asking to having, staging included
    """

    bench: Bench
    heats: list[tuple[str, int, float]] = field(default_factory=list)

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> SessionBatch:
        began = time.monotonic()
        batch = await self.bench.run(changes, label, first, count, budget_s)
        self.heats.append((label, len(batch.replicates), time.monotonic() - began))
        return batch

    def seconds(self, prefix: str = "") -> float:
        return sum(seconds for label, _, seconds in self.heats if label.startswith(prefix))

    def sessions(self, prefix: str = "") -> int:
        return sum(count for label, count, _ in self.heats if label.startswith(prefix))


# -- results --


@dataclass(frozen=True, slots=True)
class Ledger:
    """Results as JSON lines, written as they come, so that an interrupted run can continue."""

    path: Path

    def add(self, row: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        row = {**row, "at": time.strftime("%Y-%m-%d %H:%M:%S"), "load_after": load()}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def rows(self, **match: Any) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        # A line that was cut off when the machine went down is no result.
        lines = [line for line in self.path.read_text().splitlines() if line.endswith("}")]
        read = [json.loads(line) for line in lines]
        return [row for row in read if all(row.get(key) == value for key, value in match.items())]

    def count(self, **match: Any) -> int:
        return len(self.rows(**match))


def load() -> float:
    """The machine's load, averaged over a minute."""
    return round(os.getloadavg()[0], 2)


@dataclass(frozen=True, slots=True)
class Given:
    """What was asked for on the command line.

    ledger: where results go
    quick: whether this is a smoke run
    comparisons: how many of each kind; None for as many as the part usually takes
    peer: a Python that has the peers; one is made if empty
    ends_at: when no more measurements are begun, by the monotonic clock
    """

    ledger: Ledger
    quick: bool
    comparisons: int | None
    peer: str
    ends_at: float = math.inf

    @property
    def left_s(self) -> float:
        """The seconds that are left."""
        return max(0.0, self.ends_at - time.monotonic())

    @property
    def is_late(self) -> bool:
        """Whether no more measurements should be begun."""
        return not self.left_s

    @property
    def workloads(self) -> tuple[str, ...]:
        return WORKLOADS[:1] if self.quick else WORKLOADS

    def count(self, usual: int, quick: int) -> int:
        return self.comparisons or (quick if self.quick else usual)


# -- how things are told --


def tell_rate(count: int, total: int) -> str:
    """A share with its exact 95 % interval."""
    claims = [Claim.FASTER] * count + [Claim.EQUIVALENT] * (total - count)
    found = false_positive_rate(claims)
    return f"{count}/{total} = {found.share:.1%} ({found.low:.1%} to {found.high:.1%})"


def tell_load(rows: Sequence[dict[str, Any]]) -> str:
    """The load before the first and after the last, and the most between."""
    most = max(max(row["load_before"], row["load_after"]) for row in rows)
    return f"{rows[0]['load_before']:.1f} / {rows[-1]['load_after']:.1f} (most {most:.1f})"


def tell_table(title: str, head: Sequence[str], body: Sequence[Sequence[object]]) -> None:
    """A Markdown table."""
    print(f"\n**{title}**\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in body:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()


def tell_progress(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
