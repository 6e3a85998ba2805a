"""Run asynchronous work that signals can cancel, so that it can clean up."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from fairtrial.core import single_cause

if TYPE_CHECKING:
    import anyio

T = TypeVar("T")


def run_interruptible(work: Callable[[], Awaitable[T]]) -> T:
    """Run asynchronous work and return its result; SIGINT, SIGTERM and SIGHUP cancel it.

    Raises KeyboardInterrupt if a signal cancelled it. Further signals are ignored, since cleaning
    up takes a moment, and `timeout` sends its signal twice.
    """
    import anyio

    async def run() -> list[T]:
        results: list[T] = []
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it on purpose
            numbers.append(signal.SIGHUP)
        with anyio.open_signal_receiver(*numbers) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_on_signal, signals, tasks.cancel_scope)
                results.append(await work())
                tasks.cancel_scope.cancel()
        return results

    try:
        results = anyio.run(run)
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    if not results:
        raise KeyboardInterrupt
    return results[0]


async def _cancel_on_signal(
    signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope
) -> None:
    async for _ in signals:
        scope.cancel()
