"""Work that ends with nothing left behind, however it is told to."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from fairtrial.arena import single_cause

if TYPE_CHECKING:
    import anyio

T = TypeVar("T")


def run_until_told(work: Callable[[], Awaitable[T]]) -> T:
    """Run it to its end; Ctrl-C, SIGTERM and a closed terminal end it with nothing left behind.

    Further ones change nothing: clearing up takes a moment, and `timeout` sends its own twice.
    """
    import anyio

    async def run() -> list[T]:
        found: list[T] = []
        stops = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup has it
            stops.append(signal.SIGHUP)
        with anyio.open_signal_receiver(*stops) as told:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_end_when_told, told, tasks.cancel_scope)
                found.append(await work())
                tasks.cancel_scope.cancel()
        return found

    try:
        found = anyio.run(run)
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    if not found:
        raise KeyboardInterrupt
    return found[0]


async def _end_when_told(told: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    async for _ in told:
        scope.cancel()
