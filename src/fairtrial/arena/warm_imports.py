"""A warm start for checks: what to import beforehand, and whether the base takes it well."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from fairtrial.arena.build import build_base
from fairtrial.arena.checks.prepared_check import Trial
from fairtrial.arena.resources import Ground
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import common_variables
from fairtrial.arena.task_groups import run_all
from fairtrial.sandbox import Warm, WarmServer, can_be_warm


@asynccontextmanager
async def warming(
    ground: Ground, trials: Sequence[Trial], *, is_wanted: bool
) -> AsyncIterator[tuple[Ground, list[str]]]:
    """The ground with warm starts for its commands, where that is possible; and what to know.

    A base that doesn't pass warm as it does cold is judged cold, and so are all candidates.
    """
    from anyio import to_thread

    files = find_third_party(ground, trials)
    if not (is_wanted and files and await to_thread.run_sync(can_be_warm, ground.sandbox)):
        yield ground, []
        return
    variables = common_variables(ground.problem, ground.interpreter)
    async with WarmServer.starting(
        ground.interpreter.executable,
        files=files,
        folders=ground.interpreter.folders,
        never=find_own_names(ground),
        env=variables,
        place=ground.pool.base.parent,  # goes with the pool, however we end
    ) as server:
        if server is None:
            yield ground, ["checks start cold: the packages they import can't be imported before"]
            return
        warm = Warm(ground.sandbox, server, variables)
        warmed = replace(ground, sandbox=warm, cold=ground.sandbox)
        failing = await find_failing(warmed, trials)
        if failing:
            yield ground, [await _tell_failing(ground, trials, failing[0])]
        else:
            yield warmed, []


async def _tell_failing(ground: Ground, trials: Sequence[Trial], failing: str) -> str:
    """Whether it is the warm start that the base doesn't take, or a check that comes and goes."""
    cold = await find_failing(ground, trials)
    if not cold:
        return f"checks start cold: forked from a warm process, the base fails {failing}"
    return (
        f"checks come and go: the unchanged base passed them at first, and then failed {cold[0]}; "
        "a candidate may be rejected for that, so leave out what isn't stable"
    )


def find_third_party(ground: Ground, trials: Sequence[Trial]) -> list[str]:
    """Files that the base's checks imported from the interpreter's own folders."""
    folders = [f"{folder}/" for folder in ground.interpreter.folders]
    loaded = {file for trial in trials for file in trial.loaded}
    return sorted(file for file in loaded if any(file.startswith(each) for each in folders))


def find_own_names(ground: Ground) -> list[str]:
    """Top-level names that are the project's: never imported beforehand, wherever they lie."""
    folders = [ground.pool.base / root for root in ground.import_roots]
    entries = [entry for folder in folders if folder.is_dir() for entry in folder.iterdir()]
    return sorted({entry.name.partition(".")[0] for entry in entries} - {""})


async def find_failing(ground: Ground, trials: Sequence[Trial]) -> list[str]:
    """The checks that don't hold for the unchanged base on this ground, and why."""

    def trying(trial: Trial) -> Callable[[], Awaitable[str]]:
        async def work(slot: WorktreeSlot) -> str:
            stage = ground.stage(slot)
            await build_base(stage, slot)
            run = await trial.run(stage)
            return f"{trial.label} ({run.rejection.message})" if run.rejection else ""

        return lambda: ground.undisturbed(work)

    return [text for text in await run_all([trying(trial) for trial in trials]) if text]
