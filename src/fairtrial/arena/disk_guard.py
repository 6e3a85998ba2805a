"""The disk guard: recognize failures that a full disk caused, and repeat that work alone.

All slots of an arena lie on one disk. When it is full, every command that runs at that moment may
fail, whichever of them filled it. Such a failure says nothing about a candidate.
"""

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
class DiskUse:
    """A piece of work that may write to the disk.

    was_full: whether the disk was full at any time since the work started
    """

    was_full: bool = False


class DiskGuard:
    """Track the work that uses a disk, and repeat what failed while the disk was full.

    folder: a folder on that disk
    """

    def __init__(self, folder: Path) -> None:
        import anyio

        self.folder = folder
        self._uses: list[DiskUse] = []
        self._entrance: Lock = anyio.Lock()
        self._use_ended: Event = anyio.Event()

    def check(self) -> bool:
        """Return whether the disk is full now; if so, mark all work that is under way."""
        is_full = not has_room(self.folder)
        for use in self._uses:
            use.was_full = use.was_full or is_full
        return is_full

    def start(self, use: DiskUse) -> None:
        """Watch the disk for `use` from now on: a full disk did no harm while it waited."""
        use.was_full = False
        self.check()

    def require_space_if_idle(self) -> None:
        """Raise `NoRoomError` if the disk is full and no work is under way that could free it."""
        if not self._uses:
            self._require_space()

    def _require_space(self) -> None:
        if self.check():
            raise NoRoomError(
                f"there is no room left for working copies in {self.folder}; {ADVICE}"
            )

    async def reset_if_full(self, slot: WorktreeSlot) -> None:
        """Reset a slot at once if the disk is full: its files may be the cause."""
        import anyio

        if self.check():
            with anyio.CancelScope(shield=True), suppress(LabError):
                await slot.reset()

    async def run(
        self,
        work: Callable[[DiskUse], Awaitable[T]],
        has_failed: Callable[[T], bool],
        *,
        repeats_success: bool = False,
    ) -> T:
        """Run `work` and return its result; repeat it alone if it failed while the disk was full.

        A second failure was not caused by other work, and is returned or raised as it is. The
        caller must hold neither a core nor the host lock: other work may need them to finish.

        has_failed: whether a result is a failure
        repeats_success: whether a success on a full disk is repeated, too

        Raises `NoRoomError` if the disk is full before the repetition, or still full after it.
        """
        async with self._use_beside_others() as use:
            try:
                result = await work(use)
            except Exception as error:
                self.check()
                if not (use.was_full or isinstance(error, NoRoomError)):
                    raise
            else:
                if not (use.was_full and (repeats_success or has_failed(result))):
                    return result
        async with self._use_alone() as use:
            self._require_space()
            try:
                result = await work(use)
            except Exception as error:
                self._require_space()
                if isinstance(error, NoRoomError):  # there is room again: it needs too much
                    raise LabError(str(error)) from error
                raise
            if has_failed(result):
                self._require_space()
            return result

    @asynccontextmanager
    async def _use_beside_others(self) -> AsyncIterator[DiskUse]:
        async with self._entrance:
            pass
        with self._registered_use() as use:
            yield use

    @asynccontextmanager
    async def _use_alone(self) -> AsyncIterator[DiskUse]:
        """Wait until all other work has ended, and let none start before this one ends."""
        import anyio

        async with self._entrance:
            while self._uses:
                self._use_ended = anyio.Event()
                await self._use_ended.wait()
            with self._registered_use() as use:
                yield use

    @contextmanager
    def _registered_use(self) -> Iterator[DiskUse]:
        use = DiskUse()
        self._uses.append(use)
        try:
            yield use
        finally:
            self._uses.remove(use)
            self._use_ended.set()
