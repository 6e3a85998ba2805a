"""Whether the machine is taken: code problems wait while another fairtrial times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fairtrial.core import LabError
from fairtrial.sandbox.host_lock import WAITING, HostLock

LOOK_S = 1.0


@dataclass(slots=True)
class HostBusy:
    """Says that the machine is taken; looks once a second at most."""

    lock: HostLock = field(default_factory=HostLock)
    clock: Callable[[], float] = time.monotonic
    _looked: float = float("-inf")
    _said: str = ""

    def __call__(self) -> str:
        """A remark for people; empty if the machine is free, or ours."""
        now = self.clock()
        if now - self._looked >= LOOK_S:
            self._looked, self._said = now, say_who_times(self.lock)
        return self._said


def say_who_times(lock: HostLock, ours: int | None = None) -> str:
    """That another fairtrial times, and which; empty if none does, or nobody can tell.

    ours: the process that is meant by this one, if it isn't the one that asks
    """
    try:
        pid = lock.who_times(ours)
    except LabError:
        return ""  # whoever needs the lock says what is wrong with it
    return "" if pid is None else WAITING.format(pid)
