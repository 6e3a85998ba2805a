"""A program with a pool that tells when it comes to a stage, and then goes on.

Run as: pool_program.py REPOSITORY STAGE. SIGTERM cancels it; SIGINT does so by itself.
"""

import functools
import signal
import sys
import threading
from pathlib import Path

import anyio

from fairtrial.arena import Changes, FileState
from fairtrial.arena.slots import pool as worktrees
from fairtrial.arena.slots.pool_folders import Home
from fairtrial.arena.slots.staging import Staging

REPOSITORY, STAGE = Path(sys.argv[1]), sys.argv[2]
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start some that are deaf to it


telling_once = threading.Lock()


def tell():
    if telling_once.acquire(blocking=False):  # and never released
        print("there", flush=True)


def telling(function):
    @functools.wraps(function)
    def and_tell(*args, **kwargs):
        tell()
        return function(*args, **kwargs)

    return and_tell


async def listen(scope):
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def work(pool):
    async with pool.acquire() as slot:
        await slot.write_candidate(Changes({f"new/{n}": FileState(b"x") for n in range(50)}))
        if STAGE == "lease":
            tell()
            await anyio.sleep_forever()
        if STAGE == "reset":
            Staging.mend = telling(Staging.mend)
            while True:
                await slot.reset()
    if STAGE == "close":
        Home.remove = telling(Home.remove)


async def main():
    if STAGE == "snapshot":
        worktrees.take_snapshot = telling(worktrees.take_snapshot)
    if STAGE == "checkout":
        worktrees.prepare_base = telling(worktrees.prepare_base)
    if STAGE == "slots":
        Staging.mend = telling(Staging.mend)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen, scope)
            async with worktrees.WorktreePool(REPOSITORY, 3, python=Path(sys.executable)) as pool:
                await work(pool)
            scope.cancel()


if __name__ == "__main__":
    if STAGE == "main task":  # no other task that could be cancelled in its place

        async def alone():
            async with worktrees.WorktreePool(REPOSITORY, 3) as pool, pool.acquire() as slot:
                Staging.mend = telling(Staging.mend)
                while True:
                    await slot.reset()

        anyio.run(alone)
    else:
        anyio.run(main)
