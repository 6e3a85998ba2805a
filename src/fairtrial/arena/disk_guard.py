"""A full disk: whose doing it is, and what it means for those who are judged meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.slots.threads import ADVICE, NoRoomError, has_room
from fairtrial.core import LabError

if TYPE_CHECKING:
    from anyio import Event, Lock

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Use:
    """Somebody who may write on the disk.

    was_full: whether it was full meanwhile
    """

    was_full: bool = False


class Room:
    """Knows who is at work on a disk, and so whose failures say nothing.

    folder: a folder on that disk
    """

    def __init__(self, folder: Path) -> None:
        import anyio

        self.folder = folder
        self._uses: list[Use] = []
        self._door: Lock = anyio.Lock()
        self._left: Event = anyio.Event()

    def look(self) -> bool:
        """Whether the disk is full now; all who are at work may fail for that, then or later."""
        is_full = not has_room(self.folder)
        for use in self._uses:
            use.was_full = use.was_full or is_full
        return is_full

    def begin(self, use: Use) -> None:
        """Count from now on: while it waited for its turn, a full disk did it no harm."""
        use.was_full = False
        self.look()

    def mind(self) -> None:
        """Raise if the disk is full though nobody is at work: nothing else would do better."""
        if not self._uses:
            self._demand()

    def _demand(self) -> None:
        if self.look():
            raise NoRoomError(
                f"there is no room left for working copies in {self.folder}; {ADVICE}"
            )

    async def clear(self, slot: WorktreeSlot) -> None:
        """Empty a slot at once if the disk is full: what was left there may be why."""
        import anyio

        if self.look():
            with anyio.CancelScope(shield=True), suppress(LabError):
                await slot.reset()

    async def settle(
        self,
        work: Callable[[Use], Awaitable[T]],
        has_failed: Callable[[T], bool],
        *,
        doubts_success: bool = False,
    ) -> T:
        """What `work` comes to; what fails on a full disk is done again, with nobody beside it.

        What fails then, too, is no neighbour's doing, and stands. Raises `NoRoomError` if the disk
        is full before that, or stays so afterwards: then it is not the work's own doing, either.
        Who calls it holds neither a core nor the host's lock: others may need them to be done.

        doubts_success: whether what succeeds on a full disk is done again, too
        """
        async with self._beside_others() as use:
            try:
                result = await work(use)
            except Exception as error:
                self.look()
                if not (use.was_full or isinstance(error, NoRoomError)):
                    raise
            else:
                if not (use.was_full and (doubts_success or has_failed(result))):
                    return result
        async with self._alone() as use:
            self._demand()
            try:
                result = await work(use)
            except Exception as error:
                self._demand()
                if isinstance(error, NoRoomError):  # there is room again: it needs too much
                    raise LabError(str(error)) from error
                raise
            if has_failed(result):
                self._demand()
            return result

    @asynccontextmanager
    async def _beside_others(self) -> AsyncIterator[Use]:
        async with self._door:
            pass
        with self._at_work() as use:
            yield use

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Use]:
        """When all who are at work have left; nobody comes in until this is over."""
        import anyio

        async with self._door:
            while self._uses:
                self._left = anyio.Event()
                await self._left.wait()
            with self._at_work() as use:
                yield use

    @contextmanager
    def _at_work(self) -> Iterator[Use]:
        use = Use()
        self._uses.append(use)
        try:
            yield use
        finally:
            self._uses.remove(use)
            self._left.set()
