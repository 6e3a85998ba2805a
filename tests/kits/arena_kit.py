"""An arena around checks that are functions of the test."""

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from fairtrial.arena import Arena, Basis, Candidate, Check, CodeProblem, FileState
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.checks.prepared_check import CheckRun
from fairtrial.arena.disk_guard import DiskGuard
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.slots.pool import WorktreePool
from fairtrial.sandbox import HostLock, Plain

PYTHON = Interpreter(Path("/usr/bin/python3"), (3, 11, 0), (), False)


def whole(name, text, path="src/mod.py", **more):
    """Return a candidate that is one whole file."""
    return Candidate(name, files={path: FileState(text.encode())}, **more)


@dataclass
class Watched:
    """A prepared check that calls a function with the slot's module; counts concurrent runs."""

    judge: object
    label: str = "check[0]"
    basis: Basis = Basis.COMPARED
    notes: tuple = ()
    loaded: frozenset = frozenset()
    base_s: float = 0.0
    peak_rss_mb: float = 10.0
    at_once: int = 0
    most_at_once: int = 0
    seen: list = field(default_factory=list)

    async def run(self, stage):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            text = (stage.slot / "src" / "mod.py").read_text()
            self.seen.append((str(stage.slot), text))
            found = await self.judge(text, stage)
        finally:
            self.at_once -= 1
        loaded = frozenset({f"{stage.seen}/src/mod.py"})
        return CheckRun(found, loaded, 0.5, 0.25, self.peak_rss_mb)


@asynccontextmanager
async def arena_of(top, *checks, slots=2, cores=2, lock_folder=None, base=(), build=()):
    """Open an arena with these checks and a host lock of its own."""
    problem = CodeProblem(
        "kit", editable=("src/**/*.py",), check=(Check(command=("true",)),), build=build, folder=top
    )
    async with WorktreePool(top, slots) as pool:
        resources = ArenaResources(
            problem=problem,
            interpreter=PYTHON,
            sandbox=Plain(),
            outside=Plain(),
            pool=pool,
            import_roots=("src",),
            included=(),
            cores=anyio.Semaphore(cores),
            lock=HostLock(lock_folder or top.parent),
            disk_guard=DiskGuard(pool.snapshot.repo.parent),
        )
        yield Arena(resources, checks, PathRules.from_problem(problem), base), resources
