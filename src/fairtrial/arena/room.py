"""A full disk: whose doing it is, and what it means for those who are judged meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.arena.slots.offloading import ADVICE, NoRoomError, has_room

if TYPE_CHECKING:
    import anyio


class Room:
    """Knows who is being checked on a disk, and so who may be filling it.

    folder: a folder on that disk
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._busy = 0
        self._ended: anyio.Event | None = None

    @contextmanager
    def used(self) -> Iterator[None]:
        """For as long as somebody may write there."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            if self._ended is not None:
                self._ended.set()
                self._ended = None

    def mind(self) -> None:
        """Raise if the disk is full though nobody uses it: nothing else would do better."""
        if not self._busy and not has_room(self.folder):
            raise NoRoomError(
                f"there is no room left for working copies in {self.folder}; {ADVICE}"
            )

    async def comes_back(self) -> bool:
        """Whether to try again what failed: wait for one who may have filled the disk.

        False if there is room: that was not it. Raises if it is full and nobody else uses it.
        """
        import anyio

        self.mind()
        if has_room(self.folder):
            return False
        self._ended = self._ended or anyio.Event()
        await self._ended.wait()
        return True
