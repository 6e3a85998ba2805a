"""Run asynchronous work from code that isn't async, and leave the calling program alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from fairtrial.core import events

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


def run_blocking(work: Callable[[events.Emit], Awaitable[T]], emit: events.Emit) -> T:
    """Run asynchronous work in a thread with an event loop of its own; return its result.

    It can be called anywhere: in any thread, also while an event loop runs in it (a notebook).
    No signal handler is installed. `emit` is called in the calling thread. What it raises, and a
    KeyboardInterrupt, cancels the work and is raised again once the work has cleaned up.

    work: called with the function that takes its events
    """
    from anyio.from_thread import start_blocking_portal

    received: SimpleQueue[events.Event | None] = SimpleQueue()

    def end(future: Future[T]) -> None:
        received.put(None)

    with start_blocking_portal() as portal:  # it cancels the work if the block is left by an error
        future = portal.start_task_soon(work, received.put)
        future.add_done_callback(end)
        while (event := received.get()) is not None:
            emit(event)
        return future.result()
