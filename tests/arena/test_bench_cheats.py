"""Real sessions in real sandboxes: cheats don't win, and honest candidates are not accused."""

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import cheats_kit
import pytest
from anyio.from_thread import start_blocking_portal
from arena_kit import whole
from cheats_kit import written
from trees import make_repo

from fairtrial.arena.bench.summary import statistics_of, summarise
from fairtrial.arena.opening import open_arena
from fairtrial.arena.settings import ArenaSettings
from fairtrial.model.code import Benchmark, Check, CodeProblem
from fairtrial.model.verdicts import Reason
from fairtrial.sandbox.choosing import FULL, try_sandbox

pytestmark = pytest.mark.skipif(
    all(try_sandbox(sandbox) for sandbox in FULL), reason="no full sandbox works here"
)
BUDGET_S = 600.0


@dataclass(frozen=True)
class Laboratory:
    """One bench for all candidates; each is timed alone."""

    portal: object
    arena: object
    bench: object

    def run(self, text, *, sessions=3, benchmark="work"):
        """What came of these sessions."""
        meters = tuple(each for each in self.bench.meters if each.meter.name == benchmark)
        bench = replace(self.bench, meters=meters)
        changes = self.portal.call(self.arena.resolve, whole("it", text, "src/lab.py"))
        return self.portal.call(bench.run, changes, text, 0, sessions, BUDGET_S)

    def measure(self, text, **options):
        """What is said of it."""
        heat = self.run(text, **options)
        assert heat.rejection is None, heat.rejection
        return summarise(heat.replicates, alpha=0.05, min_effect=0.02)


@asynccontextmanager
async def opened(problem, settings):
    async with open_arena(problem, settings=settings) as arena, arena.bench() as bench:
        yield arena, bench


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    names = ("work", "squares", "settle", "refuse", "answer", "fill")
    problem = CodeProblem(
        "lab",
        folder=make_repo(tmp_path_factory.mktemp("lab") / "repo", cheats_kit.FILES),
        python=sys.executable,
        check=(Check(function="lab:work", inputs="inputs.py:numbers", cases=2),),
        bench=tuple(Benchmark(each, f"lab:{each}", "inputs.py:numbers") for each in names),
    )
    settings = ArenaSettings(lock_folder=tmp_path_factory.mktemp("lock"))
    with start_blocking_portal() as portal:
        context = opened(problem, settings)
        with portal.wrap_async_context_manager(context) as (arena, bench):
            yield Laboratory(portal, arena, bench)
