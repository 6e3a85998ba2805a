"""Frames of the worker channel: requests and replies with a letter, a number and a payload.

Used on both sides. Frames from the other side may be forged: a reply counts only if it has the
letter and the number of the request, and only an agreed number of bytes is read.
"""

from __future__ import annotations

import builtins
import os
import struct

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own

_HEADER = struct.Struct(">cIQ")
_CHUNK = 1 << 20

# Bound early, before candidates can replace them.
_read, _write, _getpid, _exit = os.read, os.write, os.getpid, os._exit


def pack(letter: bytes, number: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a request or a reply."""
    return _HEADER.pack(letter, number, len(payload)) + payload


class RequestChannel:
    """The worker's side of the channel: reads requests and sends replies, in this process only."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.owner = os.getpid()
        os.set_inheritable(descriptor, False)

    def receive(self) -> tuple[bytes, int, bytes]:
        """Return letter, number and payload of the next request; exits when the channel closes."""
        letter, number, size = _HEADER.unpack(self._read_exactly(_HEADER.size))
        return letter, number, self._read_exactly(size)

    def reply(self, letter: bytes, number: int, payload: bytes = b"") -> None:
        """Send a reply to the request with this letter and number."""
        if _getpid() != self.owner:
            _exit(0)  # a fork must not reply in the worker's place
        data = memoryview(pack(letter, number, payload))
        try:
            while data:
                data = data[_write(self.descriptor, data) :]
        except OSError:
            _exit(1)

    def _read_exactly(self, size: int) -> bytes:
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
