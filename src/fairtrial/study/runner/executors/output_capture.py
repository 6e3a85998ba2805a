"""What a run prints: kept up to a limit, and out of the terminal."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any, TextIO

KEPT_FIRST = 48 * 1024
KEPT_LAST = 16 * 1024
"""How many bytes of a stream are kept; the last ones, too, since that is where a crash is told."""


class Kept:
    """The beginning and the end of what was printed, and how much there was in between."""

    __slots__ = ("_dropped", "_first", "_last")

    def __init__(self) -> None:
        self._first, self._last = bytearray(), bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        room = KEPT_FIRST - len(self._first)
        if room > 0:
            self._first += data[:room]
            data = data[room:]
        if data:
            self._last += data
            excess = len(self._last) - KEPT_LAST
            if excess > 0:
                del self._last[:excess]
                self._dropped += excess

    def take(self) -> bytes:
        """What was kept, with a note where something is missing; then begins anew."""
        if not self._first:
            return b""
        note = b"\n[... %s more bytes]\n" % f"{self._dropped:,}".encode() if self._dropped else b""
        taken = bytes(self._first) + note + bytes(self._last)
        self._first.clear()
        self._last.clear()
        self._dropped = 0
        return taken


class _Sink(io.BufferedIOBase):
    """Takes the bytes of a text stream; says the number of the file that it stands in for."""

    def __init__(self, kept: Kept, stands_for: TextIO | None) -> None:
        self._kept, self._stands_for = kept, stands_for

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        data = bytes(data)
        self._kept.add(data)
        return len(data)

    def fileno(self) -> int:
        # Programs that an agent starts with `stdout=sys.stdout` need a real file.
        if self._stands_for is None:
            raise io.UnsupportedOperation("fileno")
        return self._stands_for.fileno()


def is_open(stream: TextIO | None) -> bool:
    """Whether a stream can be written to: agents close and detach what they print to."""
    try:
        return stream is not None and not stream.closed
    except ValueError:
        return False


class Capture:
    """Keeps what Python code prints while the capture is entered; what C code prints passes."""

    def __init__(self, stand_for: tuple[TextIO, TextIO] | None = None) -> None:
        self.stdout, self.stderr = Kept(), Kept()
        self._stand_for = stand_for or (sys.stdout, sys.stderr)
        self._out: TextIO | None = None
        self._err: TextIO | None = None
        self._before: tuple[TextIO, TextIO] | None = None

    def streams(self) -> tuple[TextIO, TextIO]:
        """The streams to print to; the same every time, unless an agent closed them."""
        if not is_open(self._out):
            self._out = _text_stream(self.stdout, self._stand_for[0])
        if not is_open(self._err):
            self._err = _text_stream(self.stderr, self._stand_for[1])
        assert self._out is not None
        assert self._err is not None
        return self._out, self._err

    def __enter__(self) -> Capture:
        streams = self.streams()
        self._before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = streams
        return self

    def __exit__(self, *_: object) -> None:
        assert self._before is not None
        sys.stdout, sys.stderr = self._before


def _text_stream(kept: Kept, stands_for: TextIO | None) -> TextIO:
    sink: Any = _Sink(kept, stands_for)
    return io.TextIOWrapper(sink, "utf-8", errors="backslashreplace", write_through=True)


class _Target(threading.local):
    stream: TextIO | None = None


class ThreadOutput:
    """Stands in for `sys.stdout` or `sys.stderr`: each thread's text goes where it belongs.

    Threads that were not sent anywhere print where they would have printed.
    """

    def __init__(self, original: TextIO | None) -> None:
        self._original = original or _text_stream(Kept(), None)  # there may be no terminal
        self._target = _Target()

    def send_to(self, stream: TextIO) -> None:
        """From now on, what this thread prints goes to `stream`."""
        self._target.stream = stream

    def write(self, text: str) -> int:
        return (self._target.stream or self._original).write(text)

    def flush(self) -> None:
        (self._target.stream or self._original).flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target.stream or self._original, name)


class ThreadCapture:
    """Both streams of this process, told apart by thread while the capture is entered.

    is_needed: whether they are to be told apart ever after
    """

    is_needed = False

    def __enter__(self) -> ThreadCapture:
        self.before = sys.stdout, sys.stderr
        self._out, self._err = ThreadOutput(sys.stdout), ThreadOutput(sys.stderr)
        sys.stdout, sys.stderr = self._out, self._err
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_needed:  # by threads that go on, unheard
            return
        # Somebody may have put another stream in their place meanwhile: that one stays.
        if sys.stdout is self._out:
            sys.stdout = self.before[0]
        if sys.stderr is self._err:
            sys.stderr = self.before[1]

    def send_to(self, capture: Capture) -> None:
        """From now on, what this thread prints goes to `capture`."""
        out, err = capture.streams()
        self._out.send_to(out)
        self._err.send_to(err)
