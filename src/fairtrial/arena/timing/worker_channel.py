"""Our end of the line to a process that is timed: who asks, holds the clock.

Everything here blocks, and belongs in a thread of its own: what waits for a reply must do nothing
else.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field

from fairtrial.sandbox import HEADER_BYTES, pack, unpack_header

LARGEST_REPLY = 64 * 2**20
_CREDENTIALS = struct.Struct("3i")
_PASS_CREDENTIALS = getattr(socket, "SO_PASSCRED", None)


class LineError(Exception):
    """The other side is gone, or says something else than was asked for."""


class LateError(LineError):
    """The other side didn't reply in time."""


@dataclass(slots=True)
class Reply:
    """What came back, and what it took.

    payload: what was said
    wall_s: from the request to the reply, by our clock
    cpu_s: CPU time of the other side's process meanwhile; None where the kernel doesn't tell
    """

    payload: bytes
    wall_s: float
    cpu_s: float | None


@dataclass(slots=True)
class Line:
    """Our end, and the other one until the process that it is for has it.

    far: the descriptor to hand over
    """

    far: int = field(init=False)
    _near: socket.socket = field(init=False, repr=False)
    _other: socket.socket | None = field(init=False, repr=False)
    _clock: int | None = None
    _number: int = 0

    def __post_init__(self) -> None:
        self._near, self._other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.far = self._other.fileno()
        if _PASS_CREDENTIALS is not None:
            self._near.setsockopt(socket.SOL_SOCKET, _PASS_CREDENTIALS, 1)

    def handed_over(self) -> None:
        """The process has its end; ours of that one would keep the line open for ever."""
        if self._other is not None:
            self._other.close()
            self._other = None

    def hang_up(self) -> None:
        """End the talk; whoever waits for a reply in another thread is told."""
        self.handed_over()
        with suppress(OSError):
            self._near.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the descriptors back."""
        self.handed_over()
        self._near.close()

    def greet(self, timeout_s: float) -> None:
        """Wait until the process is there, and learn which it is from the kernel."""
        self._near.settimeout(timeout_s)
        try:
            data, ancillary, _, _ = self._near.recvmsg(
                HEADER_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size)
            )
        except TimeoutError:
            raise LateError("it didn't start in time") from None
        except OSError as error:
            raise LineError(f"the line broke: {error}") from None
        if not data or data != pack(b"H", 0):
            raise LineError("it was gone before it could be asked anything")
        for level, kind, content in ancillary:
            if sys.platform == "linux" and (level, kind) == (
                socket.SOL_SOCKET,
                socket.SCM_CREDENTIALS,
            ):
                self._clock = _cpu_clock(_CREDENTIALS.unpack(content)[0])
        if _PASS_CREDENTIALS is not None:
            self._near.setsockopt(socket.SOL_SOCKET, _PASS_CREDENTIALS, 0)

    def cpu_s(self) -> float | None:
        """CPU time of the other side's process so far, all its threads together."""
        if self._clock is None:
            return None
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # it is gone
            return None

    def ask(self, letter: bytes, payload: bytes = b"", *, timeout_s: float) -> Reply:
        """Ask, and wait for the reply."""
        self._number += 1
        message = pack(letter, self._number, payload)
        self._near.settimeout(timeout_s)
        cpu_before = self.cpu_s()
        began = time.perf_counter()
        try:
            self._near.sendall(message)
            header = self._take(HEADER_BYTES)
            wall_s = time.perf_counter() - began
            cpu_after = self.cpu_s()
            got_letter, got_number, size = unpack_header(header)
            if (got_letter, got_number) != (letter, self._number) or size > LARGEST_REPLY:
                raise LineError("it said something that it wasn't asked for")
            content = self._take(size)
        except TimeoutError:
            raise LateError(f"no reply within {timeout_s:g} s") from None
        except OSError as error:
            raise LineError(f"the line broke: {error}") from None
        if size:  # a long reply is there when its end is
            wall_s = time.perf_counter() - began
        used = None if cpu_before is None or cpu_after is None else cpu_after - cpu_before
        return Reply(content, wall_s, used)

    def _take(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._near.recv(min(size, 1 << 20))
            if not part:
                raise LineError("it left before it was done")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _cpu_clock(pid: int) -> int | None:
    """The kernel's clock of a process's CPU time, as clock_getcpuclockid numbers it."""
    if sys.platform != "linux" or pid <= 0:
        return None
    clock = (~pid << 3) | 2
    try:
        time.clock_gettime(clock)
    except OSError:
        return None
    return clock
