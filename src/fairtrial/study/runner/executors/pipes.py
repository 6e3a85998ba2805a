"""The pipes between a study and one of its workers."""

from __future__ import annotations

import fcntl
import os
from enum import Enum, auto


class Pipe(Enum):
    """What a pipe is for."""

    REQUEST = auto()
    REPLY = auto()
    STDOUT = auto()
    STDERR = auto()


class Pipes:
    """Four pipes: requests down; replies, stdout and stderr up."""

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
        # This process has no stdin, stdout or stderr; the worker will have, at those numbers.
        moved = fcntl.fcntl(first, fcntl.F_DUPFD_CLOEXEC, 3)
        self._numbers.add(moved)
        also = fcntl.fcntl(second, fcntl.F_DUPFD_CLOEXEC, 3)
        self._numbers.add(also)
        self.close(first, second)
        return moved, also

    def readable(self) -> tuple[tuple[int, Pipe], ...]:
        """What the parent listens to."""
        return (
            (self.reply, Pipe.REPLY),
            (self.stdout, Pipe.STDOUT),
            (self.stderr, Pipe.STDERR),
        )

    def parents(self) -> tuple[int, ...]:
        """The ends that the worker must not hold."""
        return self.request, self.reply, self.stdout, self.stderr

    def all(self) -> tuple[int, ...]:
        """Every end that is still open here."""
        return tuple(self._numbers)

    def close(self, *numbers: int) -> None:
        """Close these, or all."""
        for number in numbers or tuple(self._numbers):
            self._numbers.discard(number)
            os.close(number)
