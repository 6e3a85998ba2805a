"""What a command writes, kept within bounds; what doesn't fit is read and counted, not kept."""

from __future__ import annotations

from fairtrial.sandbox.commands import Captured


class HeadAndTail:
    """Keeps the beginning and the end of a stream."""

    def __init__(self, limit: int) -> None:
        self._head_bytes = limit - limit // 2
        self._tail_bytes = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = self._head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Cut rarely: each time moves all that is kept.
        if len(self._tail) > 2 * self._tail_bytes + (1 << 16):
            self._cut()

    def _cut(self) -> None:
        surplus = max(0, len(self._tail) - self._tail_bytes)
        del self._tail[:surplus]
        self._dropped += surplus

    def captured(self) -> Captured:
        self._cut()
        if not self._dropped:
            return Captured(bytes(self._head + self._tail))
        return Captured(bytes(self._head), bytes(self._tail), self._dropped)


class Head:
    """Keeps the beginning of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.overflowed = False

    def add(self, data: bytes) -> None:
        room = self._limit - len(self._kept)
        self._kept += data[:room]
        self.overflowed = self.overflowed or len(data) > room

    @property
    def kept(self) -> bytes:
        return bytes(self._kept)
