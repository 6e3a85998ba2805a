"""Run awaitables from synchronous code.

Each thread has an event loop of its own, but for those that run a study's agents beside each other:
these share one, so that a client that a module keeps works in all of them.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
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
    is_shared = False


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
    if _locals.is_shared:
        succeeded, value = asyncio.run_coroutine_threadsafe(
            run_guarded(awaitable), shared_loop()
        ).result()
        if not succeeded:
            raise value
        return value
    if _locals.loop is None or _locals.loop.pid != os.getpid():
        _locals.loop = _ThreadEventLoop()
    return _locals.loop.run(awaitable)


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# -- the shared loop --


_scope: ContextVar[weakref.WeakSet[asyncio.Task[Any]] | None] = ContextVar("scope", default=None)
"""The tasks that the awaitable under way has started."""
_shared: tuple[int, asyncio.AbstractEventLoop] | None = None
_shared_lock = threading.Lock()


def use_shared_loop() -> None:
    """Let this thread run its awaitables in the event loop that such threads share."""
    _locals.is_shared = True


def shared_loop() -> asyncio.AbstractEventLoop:
    """Return the shared event loop, which runs in a thread of its own until the process ends."""
    global _shared
    with _shared_lock:
        if _shared is None or _shared[0] != os.getpid():
            loop = asyncio.new_event_loop()
            loop.set_task_factory(_make_task)
            threading.Thread(
                target=_serve, args=(loop,), name="fairtrial-loop", daemon=True
            ).start()
            _shared = os.getpid(), loop
        return _shared[1]


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    while True:
        # Raised by a task that an agent left to itself; the others have nothing to do with it.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()


def _make_task(loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
    task = asyncio.Task(coro, loop=loop, **more)
    scope = _scope.get()
    if scope is not None:
        scope.add(task)
    return task


async def run_guarded(awaitable: Awaitable[Any]) -> tuple[bool, Any]:
    """Return whether an awaitable succeeds, and its result or exception.

    Tasks that it left running are cancelled. `SystemExit` would end the loop if it were raised.
    """
    scope: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
    token = _scope.set(scope)
    try:
        return True, await awaitable
    except BaseException as error:
        return False, error
    finally:
        _scope.reset(token)
        left = [task for task in scope if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.gather(*left, return_exceptions=True)
