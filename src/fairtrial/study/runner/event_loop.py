"""Awaitables in a synchronous world: one event loop for each worker thread."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class _Loop:
    """An event loop that lasts as long as its thread: agents may keep connections on it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        weakref.finalize(self, _close, self.loop, self.pid)

    def run(self, awaitable: Awaitable[Any]) -> Any:
        try:
            return self.loop.run_until_complete(_wait_for(awaitable))
        finally:
            self._end_tasks()

    def _end_tasks(self) -> None:
        """End what the agent left running: it would go on within the next run."""
        left = asyncio.all_tasks(self.loop)
        if not left:
            return
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


async def _wait_for(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _close(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    # A forked child has a copy of the loop that shares its descriptors: not the child's to close.
    # And one that still runs, in a thread that the study was stopped without, can't be closed.
    if pid == os.getpid() and not loop.is_running():
        loop.close()


class _Own(threading.local):
    """What each thread has of its own."""

    loop: _Loop | None = None
    helper: ThreadPoolExecutor | None = None


_own = _Own()


def settle(value: Any) -> Any:
    """What an awaitable comes to; any other value as it is."""
    return _settle(value) if hasattr(type(value), "__await__") else value


def _settle(awaitable: Awaitable[Any]) -> Any:
    if _is_looping():
        # A notebook's own loop runs in this thread, and no second one can: go next door.
        if _own.helper is None:
            _own.helper = ThreadPoolExecutor(1, "fairtrial-async")
        return _own.helper.submit(_settle, awaitable).result()
    if _own.loop is None or _own.loop.pid != os.getpid():
        _own.loop = _Loop()
    return _own.loop.run(awaitable)


def _is_looping() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
