"""Restore process-wide state after each run, so that an agent's `chdir` doesn't affect others.

Only state that would harm other runs or the study itself is restored. Variables, modules and the
environment are left to the agent, as documented.
"""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress

STANDARD_FILES = (0, 1, 2)
FIRST_SPARE = 3


class ProcessState:
    """The working directory and the umask; of a worker, also its timer and files 0 to 2.

    `restore` always restores everything: six system calls are quicker than comparing.
    """

    def __init__(self, *, of_worker: bool) -> None:
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._folder = -1
        self._files: list[tuple[int, int]] = []
        with suppress(OSError):  # the file limit may be reached, or the directory removed
            for number in STANDARD_FILES if of_worker else ():
                copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FIRST_SPARE)
                self._files.append((copy, number))
            self._folder = os.open(os.curdir, os.O_RDONLY | os.O_CLOEXEC)

    def restore(self) -> None:
        """Restore the saved state."""
        os.umask(self._mask)
        if self._folder >= 0:
            try:  # noqa: SIM105  # `suppress` takes longer than the call
                os.fchdir(self._folder)
            except OSError:
                pass
        if self._files:
            signal.setitimer(signal.ITIMER_REAL, 0.0)  # or it would fire during another run
            for copy, number in self._files:
                os.dup2(copy, number)

    def close(self) -> None:
        """Close the saved file descriptors."""
        if self._folder >= 0:
            os.close(self._folder)
        for copy, _ in self._files:
            os.close(copy)
