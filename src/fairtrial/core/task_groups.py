"""Concurrent tasks with one plain exception, instead of a group, if one of them fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar, cast

from fairtrial.core.errors import FairtrialError

T = TypeVar("T")


async def run_all(functions: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Run functions concurrently; return their results in order.

    The first failure cancels the others and is raised by itself.
    """
    import anyio

    results: list[T | None] = [None] * len(functions)

    async def run(index: int) -> None:
        results[index] = await functions[index]()

    try:
        async with anyio.create_task_group() as tasks:
            for index in range(len(functions)):
                tasks.start_soon(run, index)
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    return cast("list[T]", results)


def single_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first `FairtrialError` of an exception group, else its first exception."""
    leaves = list(_leaves(group))
    return next((leaf for leaf in leaves if isinstance(leaf, FairtrialError)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
