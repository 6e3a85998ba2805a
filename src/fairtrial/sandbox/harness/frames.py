"""Requests and replies on one descriptor: a letter, a number, and what belongs to it.

Used on both sides. What the other side sends may be forged: a reply counts only if it has the
letter and the number of the request, and nobody reads more than was agreed on.
"""

from __future__ import annotations

import os
import struct

_HEADER = struct.Struct(">cIQ")
_CHUNK = 1 << 20

# Kept before candidates can replace them.
_read, _write, _getpid, _exit = os.read, os.write, os.getpid, os._exit


def pack(letter: bytes, number: int, payload: bytes = b"") -> bytes:
    """A request or a reply, as it is sent."""
    return _HEADER.pack(letter, number, len(payload)) + payload


class Requests:
    """The side that is asked: reads requests, sends replies, in this process alone."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.owner = os.getpid()
        os.set_inheritable(descriptor, False)

    def receive(self) -> tuple[bytes, int, bytes]:
        """The next request; leaves the process when nobody will ask any more."""
        letter, number, size = _HEADER.unpack(self._take(_HEADER.size))
        return letter, number, self._take(size)

    def reply(self, letter: bytes, number: int, payload: bytes = b"") -> None:
        if _getpid() != self.owner:
            _exit(0)  # a fork of it must not speak for it
        data = memoryview(pack(letter, number, payload))
        try:
            while data:
                data = data[_write(self.descriptor, data) :]
        except OSError:
            _exit(1)

    def _take(self, size: int) -> bytes:
        parts = []
        while size:
            part = _read(self.descriptor, min(size, _CHUNK))
            if not part:
                _exit(0)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


HEADER_BYTES = _HEADER.size
unpack_header = _HEADER.unpack
