"""A program that opens a pool, and prints a line when it reaches a given stage.

Run as: pool_program.py REPOSITORY STAGE. SIGTERM cancels it, as SIGINT does by default.
"""

import functools
import signal
import sys
import threading
from pathlib import Path

import anyio

from fairtrial.arena import Changes, FileState
from fairtrial.arena.slots import pool as worktrees
from fairtrial.arena.slots.pool_folders import PoolFolder
from fairtrial.arena.slots.staging import Staging

REPOSITORY, STAGE = Path(sys.argv[1]), sys.argv[2]
signal.signal(
    signal.SIGINT, signal.default_int_handler
)  # shells start background jobs with it ignored


announced = threading.Lock()


def announce():
    if announced.acquire(blocking=False):  # never released
        print("reached", flush=True)


def announcing(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        announce()
        return function(*args, **kwargs)

    return wrapper


async def listen(scope):
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def work(pool):
    async with pool.acquire() as slot:
        await slot.write_candidate(Changes({f"new/{n}": FileState(b"x") for n in range(50)}))
        if STAGE == "lease":
            announce()
            await anyio.sleep_forever()
        if STAGE == "reset":
            Staging.restore = announcing(Staging.restore)
            while True:
                await slot.reset()
    if STAGE == "close":
        PoolFolder.remove = announcing(PoolFolder.remove)


async def main():
    if STAGE == "snapshot":
        worktrees.take_snapshot = announcing(worktrees.take_snapshot)
    if STAGE == "checkout":
        worktrees.prepare_base = announcing(worktrees.prepare_base)
    if STAGE == "slots":
        Staging.restore = announcing(Staging.restore)
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
                Staging.restore = announcing(Staging.restore)
                while True:
                    await slot.reset()

        anyio.run(alone)
    else:
        anyio.run(main)
