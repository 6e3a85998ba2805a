"""A candidate into the slot that it is timed in."""

from __future__ import annotations

from contextlib import AsyncExitStack

from fairtrial.arena.build import run_build
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.resources import Ground
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import Stage

COMPILE_S = 60.0
_COMPILING = ("-q", "-q", "-f", "--invalidation-mode", "checked-hash")


async def put_in(ground: Ground, slot: WorktreeSlot, changes: Changes | None) -> Rejection | None:
    """Stage and build it anew, as for its checks; who calls it holds the host's shared lock."""
    async with AsyncExitStack() as failing:
        failing.push_async_callback(ground.room.clear, slot)
        if changes is not None:
            await slot.write_candidate(changes)
        stage = ground.stage(slot, may_be_warm=False)
        rejection, _ = await run_build(stage, slot)
        if rejection is None and changes is not None:
            await _compile(stage, slot, changes)
        if rejection is None:
            ground.room.look()
            failing.pop_all()
    return rejection


async def _compile(stage: Stage, slot: WorktreeSlot, changes: Changes) -> None:
    """Bytecode for what the candidate changed: the base has its own already.

    Done by its own command in its own sandbox; a file that can't be compiled has none.
    """
    changed = sorted(path for path, state in changes.files.items() if state is not None)
    sources = [str(stage.seen / path) for path in changed if path.endswith(".py")]
    if sources:
        argv = ["{python}", "-I", "-m", "compileall", *_COMPILING, *sources]
        await stage.run(stage.command(argv, timeout_s=COMPILE_S))
        await slot.keep()
