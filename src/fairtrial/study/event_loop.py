"""Run awaitables from synchronous code: one event loop for each worker thread."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class _ThreadEventLoop:
    """An event loop that lives as long as its thread, so that agents can keep connections on it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        weakref.finalize(self, _close_loop, self.loop, self.pid)

    def run(self, awaitable: Awaitable[Any]) -> Any:
        try:
            return self.loop.run_until_complete(_await(awaitable))
        finally:
            self._cancel_tasks()

    def _cancel_tasks(self) -> None:
        """Cancel tasks that the agent left running: they would still run during the next run."""
        tasks = asyncio.all_tasks(self.loop)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _close_loop(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    # A forked child has a copy of the loop with shared descriptors, and must not close it. A loop
    # that still runs, in an abandoned thread, can't be closed.
    if pid == os.getpid() and not loop.is_running():
        loop.close()


class _ThreadLocals(threading.local):
    """The event loop of each thread, and its helper thread."""

    loop: _ThreadEventLoop | None = None
    helper: ThreadPoolExecutor | None = None


_locals = _ThreadLocals()


def resolve(value: Any) -> Any:
    """Return the result of an awaitable; any other value is returned unchanged."""
    return _resolve_awaitable(value) if hasattr(type(value), "__await__") else value


def _resolve_awaitable(awaitable: Awaitable[Any]) -> Any:
    if _has_running_loop():
        # A notebook runs its own loop in this thread, which can't run a second one.
        if _locals.helper is None:
            _locals.helper = ThreadPoolExecutor(1, "fairtrial-async")
        return _locals.helper.submit(_resolve_awaitable, awaitable).result()
    if _locals.loop is None or _locals.loop.pid != os.getpid():
        _locals.loop = _ThreadEventLoop()
    return _locals.loop.run(awaitable)


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
