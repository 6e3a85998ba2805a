"""Staging a candidate in the slot that it is timed in."""

from __future__ import annotations

from contextlib import AsyncExitStack

from fairtrial.arena.build import run_build
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import Stage

COMPILE_S = 60.0
_COMPILING = ("-q", "-q", "-f", "--invalidation-mode", "checked-hash")


async def stage_candidate(
    resources: ArenaResources, slot: WorktreeSlot, changes: Changes | None
) -> Rejection | None:
    """Write, build and compile a candidate in a slot, as for its checks.

    The caller holds the shared side of the host lock.

    changes: the candidate; None for the base

    Returns a rejection if its build fails.
    """
    async with AsyncExitStack() as failing:
        failing.push_async_callback(resources.disk_guard.reset_if_full, slot)
        if changes is not None:
            await slot.write_candidate(changes)
        stage = resources.stage(slot, may_be_warm=False)
        rejection, _ = await run_build(stage, slot)
        if rejection is None and changes is not None:
            await _compile(stage, slot, changes)
        if rejection is None:
            resources.disk_guard.check()
            failing.pop_all()
    return rejection


async def _compile(stage: Stage, slot: WorktreeSlot, changes: Changes) -> None:
    """Compile bytecode for the files that the candidate changed, in its sandbox.

    The base's bytecode exists already. A file that can't be compiled stays without.
    """
    changed = sorted(path for path, state in changes.files.items() if state is not None)
    sources = [str(stage.seen / path) for path in changed if path.endswith(".py")]
    if sources:
        argv = ["{python}", "-I", "-m", "compileall", *_COMPILING, *sources]
        await stage.run(stage.command(argv, timeout_s=COMPILE_S))
        await slot.keep()
