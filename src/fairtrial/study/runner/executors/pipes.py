"""The pipes between a study and one worker process."""

from __future__ import annotations

import fcntl
import os
from enum import Enum, auto


class Pipe(Enum):
    """The purpose of a pipe."""

    REQUEST = auto()
    REPLY = auto()
    STDOUT = auto()
    STDERR = auto()


class Pipes:
    """Four pipes: requests to the worker; replies, stdout and stderr from it.

    `request`, `reply`, `stdout` and `stderr` are the study's ends, which don't block;
    `request_out`, `reply_in`, `stdout_in` and `stderr_in` are those of the worker.
    """

    def __init__(self) -> None:
        self._numbers: set[int] = set()
        try:
            self.request_out, self.request = self._pipe()
            self.reply, self.reply_in = self._pipe()
            self.stdout, self.stdout_in = self._pipe()
            self.stderr, self.stderr_in = self._pipe()
        except OSError:
            self.close()
            raise
        for number in (self.request, self.reply, self.stdout, self.stderr):
            os.set_blocking(number, False)

    def _pipe(self) -> tuple[int, int]:
        first, second = os.pipe()
        self._numbers |= {first, second}
        if min(first, second) > 2:
            return first, second
        # Numbers 0 to 2 are free if this process has no stdin, stdout or stderr. Leave them to
        # the worker's standard streams.
        moved_first = fcntl.fcntl(first, fcntl.F_DUPFD_CLOEXEC, 3)
        self._numbers.add(moved_first)
        moved_second = fcntl.fcntl(second, fcntl.F_DUPFD_CLOEXEC, 3)
        self._numbers.add(moved_second)
        self.close(first, second)
        return moved_first, moved_second

    def readable(self) -> tuple[tuple[int, Pipe], ...]:
        """Return the ends that the study reads from."""
        return (
            (self.reply, Pipe.REPLY),
            (self.stdout, Pipe.STDOUT),
            (self.stderr, Pipe.STDERR),
        )

    def parents(self) -> tuple[int, ...]:
        """Return the ends that the worker must not hold."""
        return self.request, self.reply, self.stdout, self.stderr

    def all(self) -> tuple[int, ...]:
        """Return every end that is still open in this process."""
        return tuple(self._numbers)

    def close(self, *numbers: int) -> None:
        """Close these ends, or all if none are given."""
        for number in numbers or tuple(self._numbers):
            self._numbers.discard(number)
            os.close(number)
