"""Buffers of limited size for a command's output; bytes beyond the limit are counted only."""

from __future__ import annotations

from fairtrial.sandbox.commands import Captured


class OutputHeadAndTail:
    """Keeps the beginning and the end of a stream, `limit` bytes in all."""

    def __init__(self, limit: int) -> None:
        self._head_bytes = limit - limit // 2
        self._tail_bytes = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Add the next bytes of the stream."""
        free = self._head_bytes - len(self._head)
        self._head += data[:free]
        self._tail += data[free:]
        # Cut rarely, since each cut moves all of the tail.
        if len(self._tail) > 2 * self._tail_bytes + (1 << 16):
            self._cut()

    def _cut(self) -> None:
        surplus = max(0, len(self._tail) - self._tail_bytes)
        del self._tail[:surplus]
        self._dropped += surplus

    def captured(self) -> Captured:
        """Return what is kept."""
        self._cut()
        if not self._dropped:
            return Captured(bytes(self._head + self._tail))
        return Captured(bytes(self._head), bytes(self._tail), self._dropped)


class OutputHead:
    """Keeps the first `limit` bytes of a stream.

    overflowed: whether there were more
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.overflowed = False

    def add(self, data: bytes) -> None:
        """Add the next bytes of the stream."""
        free = self._limit - len(self._kept)
        self._kept += data[:free]
        self.overflowed = self.overflowed or len(data) > free

    @property
    def kept(self) -> bytes:
        """The bytes that are kept."""
        return bytes(self._kept)
