"""Capture what runs print, up to a limit, instead of showing it on the terminal."""

from __future__ import annotations

import io
import sys
import threading
from contextvars import ContextVar
from typing import Any, TextIO

HEAD_BYTES = 48 * 1024
TAIL_BYTES = 16 * 1024
"""How many bytes of a stream are kept: the first ones, and the last ones, which explain a crash."""


class BoundedOutput:
    """The beginning and the end of a stream, and how many bytes between them were dropped."""

    __slots__ = ("_dropped", "_first", "_last")

    def __init__(self) -> None:
        self._first, self._last = bytearray(), bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Add output; drop what exceeds the limits."""
        free = HEAD_BYTES - len(self._first)
        if free > 0:
            self._first += data[:free]
            data = data[free:]
        if data:
            self._last += data
            excess = len(self._last) - TAIL_BYTES
            if excess > 0:
                del self._last[:excess]
                self._dropped += excess

    def take(self) -> bytes:
        """Return what was kept, with a note where bytes are missing, and start over."""
        if not self._first:
            return b""
        note = b"\n[... %s more bytes]\n" % f"{self._dropped:,}".encode() if self._dropped else b""
        taken = bytes(self._first) + note + bytes(self._last)
        self._first.clear()
        self._last.clear()
        self._dropped = 0
        return taken


class _ByteSink(io.BufferedIOBase):
    """Receives the bytes of a text stream; reports the file number of the stream it replaces."""

    def __init__(self, output: BoundedOutput, replaced: TextIO | None) -> None:
        self._output, self._replaced = output, replaced

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        data = bytes(data)
        self._output.add(data)
        return len(data)

    def fileno(self) -> int:
        # Programs that an agent starts with `stdout=sys.stdout` need a real file.
        if self._replaced is None:
            raise io.UnsupportedOperation("fileno")
        return self._replaced.fileno()


def is_open(stream: TextIO | None) -> bool:
    """Return whether a stream can be written to: agents may close or detach it."""
    try:
        return stream is not None and not stream.closed
    except ValueError:
        return False


class OutputCapture:
    """Captures what Python code prints while it is entered, but not what C code prints."""

    def __init__(self, replaced: tuple[TextIO, TextIO] | None = None) -> None:
        self.stdout, self.stderr = BoundedOutput(), BoundedOutput()
        self._replaced = replaced or (sys.stdout, sys.stderr)
        self._out: TextIO | None = None
        self._err: TextIO | None = None

    def streams(self) -> tuple[TextIO, TextIO]:
        """Return the streams to print to; always the same, unless an agent closed them."""
        if not is_open(self._out):
            self._out = _text_stream(self.stdout, self._replaced[0])
        if not is_open(self._err):
            self._err = _text_stream(self.stderr, self._replaced[1])
        assert self._out is not None
        assert self._err is not None
        return self._out, self._err

    def __enter__(self) -> OutputCapture:
        _captures.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _captures.remove(self)


class _Captures:
    """The captures that are entered; several threads may run studies, and end in any order."""

    def __init__(self) -> None:
        self._entered: list[OutputCapture] = []
        self._before: tuple[TextIO, TextIO] = sys.stdout, sys.stderr
        self._lock = threading.Lock()

    def add(self, capture: OutputCapture) -> None:
        """Send what is printed to a capture."""
        with self._lock:
            if not self._entered:
                self._before = sys.stdout, sys.stderr
            self._entered.append(capture)
            sys.stdout, sys.stderr = capture.streams()

    def remove(self, capture: OutputCapture) -> None:
        """Send what is printed to another capture that is entered, or else to where it went."""
        with self._lock:
            self._entered.remove(capture)
            if self._entered:
                sys.stdout, sys.stderr = self._entered[-1].streams()
            else:
                out, err = self._before
                sys.stdout, sys.stderr = _skip_ended(out), _skip_ended(err)


_captures = _Captures()


def _text_stream(output: BoundedOutput, replaced: TextIO | None) -> TextIO:
    sink: Any = _ByteSink(output, replaced)
    return io.TextIOWrapper(sink, "utf-8", errors="backslashreplace", write_through=True)


_capture_here: ContextVar[OutputCapture | None] = ContextVar("capture", default=None)
"""What captures the output of this thread or task, and of what it awaits in the shared loop."""


class ThreadOutput:
    """Replaces `sys.stdout` or `sys.stderr`: sends each thread's or task's text to its capture.

    Those without a capture of their own print to the original stream.
    """

    def __init__(self, original: TextIO | None, number: int) -> None:
        self._original = original or _text_stream(BoundedOutput(), None)  # there may be no terminal
        self._number = number
        self.replaced = original
        self.has_ended = False

    @property
    def _target(self) -> TextIO:
        capture = _capture_here.get()
        return self._original if capture is None else capture.streams()[self._number]

    def write(self, text: str) -> int:
        return self._target.write(text)

    def flush(self) -> None:
        self._target.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def _skip_ended(stream: Any) -> Any:
    """Return a stream, or the one that it replaced if it is no longer needed."""
    while isinstance(stream, ThreadOutput) and stream.has_ended:
        stream = stream.replaced
    return stream


class ThreadCapture:
    """Separates the standard streams of this process by thread while it is entered.

    stays: whether they stay separated after that
    """

    stays = False

    def __enter__(self) -> ThreadCapture:
        self.before = sys.stdout, sys.stderr
        self._out, self._err = ThreadOutput(sys.stdout, 0), ThreadOutput(sys.stderr, 1)
        sys.stdout, sys.stderr = self._out, self._err
        return self

    def __exit__(self, *_: object) -> None:
        if self.stays:  # abandoned threads may still print
            return
        # A stream that was replaced again meanwhile is left alone: its replacement skips this one.
        self._out.has_ended = self._err.has_ended = True
        sys.stdout, sys.stderr = _skip_ended(sys.stdout), _skip_ended(sys.stderr)

    def send_to(self, capture: OutputCapture) -> None:
        """Send what this thread or task prints to `capture` from now on."""
        _capture_here.set(capture)
