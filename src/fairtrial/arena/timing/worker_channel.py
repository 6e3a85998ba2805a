"""The worker channel: a socket to a timed process, which is measured from this side.

All calls block, and belong in a thread of their own: a thread that waits for a reply must do
nothing else.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field

from fairtrial.sandbox import wire

LARGEST_REPLY = 64 * 2**20
_CREDENTIALS = struct.Struct("3i")
_PASS_CREDENTIALS = getattr(socket, "SO_PASSCRED", None)


class ChannelError(Exception):
    """The worker is gone, or sent something else than the requested reply."""


class ChannelTimeoutError(ChannelError):
    """The worker didn't reply in time."""


@dataclass(slots=True)
class WorkerReply:
    """A worker's reply, and how long it took.

    payload: the content
    wall_s: time from the request to the reply, by this side's clock
    cpu_s: CPU time that the worker used meanwhile; None where the kernel doesn't report it
    """

    payload: bytes
    wall_s: float
    cpu_s: float | None


@dataclass(slots=True)
class WorkerChannel:
    """A pair of connected sockets: one for this process, one for the worker to inherit.

    remote: the descriptor that the worker inherits
    pid: the worker's process id, once it has started; 0 where the kernel doesn't tell
    """

    remote: int = field(init=False)
    pid: int = field(init=False, default=0)
    _near: socket.socket = field(init=False, repr=False)
    _far: socket.socket | None = field(init=False, repr=False)
    _clock: int | None = None
    _number: int = 0

    def __post_init__(self) -> None:
        self._near, self._far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.remote = self._far.fileno()
        if _PASS_CREDENTIALS is not None:
            self._near.setsockopt(socket.SOL_SOCKET, _PASS_CREDENTIALS, 1)

    def close_remote(self) -> None:
        """Close this process's copy of the worker's end, once the worker has inherited it.

        With that copy open, the end of the worker would go unnoticed.
        """
        if self._far is not None:
            self._far.close()
            self._far = None

    def shut_down(self) -> None:
        """End the connection; a thread that waits for a reply gets a `ChannelError`."""
        self.close_remote()
        with suppress(OSError):
            self._near.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all descriptors."""
        self.close_remote()
        self._near.close()

    def wait_for_start(self, timeout_s: float) -> None:
        """Wait until the worker has started, and learn its process id from the kernel."""
        self._near.settimeout(timeout_s)
        try:
            data, ancillary, _, _ = self._near.recvmsg(
                wire.HEADER_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size)
            )
        except TimeoutError:
            raise ChannelTimeoutError("it didn't start in time") from None
        except OSError as error:
            raise ChannelError(f"the connection broke: {error}") from None
        if not data or data != wire.pack(b"H", 0):
            raise ChannelError("it ended before the first request")
        for level, kind, content in ancillary:
            if sys.platform == "linux" and (level, kind) == (
                socket.SOL_SOCKET,
                socket.SCM_CREDENTIALS,
            ):
                self.pid = _CREDENTIALS.unpack(content)[0]
                self._clock = _cpu_clock(self.pid)
        if _PASS_CREDENTIALS is not None:
            self._near.setsockopt(socket.SOL_SOCKET, _PASS_CREDENTIALS, 0)

    def cpu_s(self) -> float | None:
        """Return the CPU time of all of the worker's threads so far; None if it isn't known."""
        if self._clock is None:
            return None
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # it is gone
            return None

    def ask(self, letter: bytes, payload: bytes = b"", *, timeout_s: float) -> WorkerReply:
        """Send a request and wait for the reply.

        Raises `ChannelTimeoutError` if there is none in time, `ChannelError` if the worker is gone.
        """
        self._number += 1
        message = wire.pack(letter, self._number, payload)
        self._near.settimeout(timeout_s)
        cpu_before = self.cpu_s()
        began = time.perf_counter()
        try:
            self._near.sendall(message)
            header = self._receive(wire.HEADER_BYTES)
            wall_s = time.perf_counter() - began
            cpu_after = self.cpu_s()
            got_letter, got_number, size = wire.unpack_header(header)
            if (got_letter, got_number) != (letter, self._number) or size > LARGEST_REPLY:
                raise ChannelError("it sent something else than the requested reply")
            content = self._receive(size)
        except TimeoutError:
            raise ChannelTimeoutError(f"no reply within {timeout_s:g} s") from None
        except OSError as error:
            raise ChannelError(f"the connection broke: {error}") from None
        if size:  # a long reply counts until its last byte
            wall_s = time.perf_counter() - began
        used = None if cpu_before is None or cpu_after is None else cpu_after - cpu_before
        return WorkerReply(content, wall_s, used)

    def _receive(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._near.recv(min(size, 1 << 20))
            if not part:
                raise ChannelError("it ended before it was done")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _cpu_clock(pid: int) -> int | None:
    """Return the kernel's clock of a process's CPU time, numbered like clock_getcpuclockid."""
    if sys.platform != "linux" or pid <= 0:
        return None
    clock = (~pid << 3) | 2
    try:
        time.clock_gettime(clock)
    except OSError:
        return None
    return clock
