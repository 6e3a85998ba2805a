"""What a process has around a run, put back after it: an agent's `chdir` is no other run's.

Only what would harm other runs or ourselves; what an agent keeps in variables, modules or the
environment is its own, and documented as such.
"""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress

STANDARD_FILES = (0, 1, 2)
FIRST_SPARE = 3


class Surroundings:
    """The working directory and the file mode mask; of a worker, also its timer and files 0 to 2.

    `restore` asks no questions: six system calls are quicker than finding out what has changed.
    """

    def __init__(self, *, of_worker: bool) -> None:
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._folder = -1
        self._files: list[tuple[int, int]] = []
        with suppress(OSError):  # there may be no more files to be had, or no such directory
            for number in STANDARD_FILES if of_worker else ():
                copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FIRST_SPARE)
                self._files.append((copy, number))
            self._folder = os.open(os.curdir, os.O_RDONLY | os.O_CLOEXEC)

    def restore(self) -> None:
        """Put everything back."""
        os.umask(self._mask)
        if self._folder >= 0:
            with suppress(OSError):
                os.fchdir(self._folder)
        if self._files:
            signal.setitimer(signal.ITIMER_REAL, 0.0)  # or it would go off in another run
            for copy, number in self._files:
                os.dup2(copy, number)

    def close(self) -> None:
        """Let go of what was kept."""
        if self._folder >= 0:
            os.close(self._folder)
        for copy, _ in self._files:
            os.close(copy)
