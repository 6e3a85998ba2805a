"""Several things at once, with one error if one of them fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar, cast

from fairtrial.core import FairtrialError

T = TypeVar("T")


async def run_all(works: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """The results of all, in their order; the first failure ends the others and is raised bare."""
    import anyio

    results: list[T | None] = [None] * len(works)

    async def run(place: int) -> None:
        results[place] = await works[place]()

    try:
        async with anyio.create_task_group() as tasks:
            for place in range(len(works)):
                tasks.start_soon(run, place)
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    return cast("list[T]", results)


def single_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What to tell people of a group: an error that was raised on purpose, if there is one."""
    leaves = list(_leaves(group))
    return next((leaf for leaf in leaves if isinstance(leaf, FairtrialError)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
