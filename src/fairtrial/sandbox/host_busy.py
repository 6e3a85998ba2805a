"""Notices for people that another fairtrial is timing, so that code problems have to wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fairtrial.sandbox.host_lock import HostLock

POLL_S = 1.0


@dataclass(slots=True)
class HostBusy:
    """Returns a notice while another fairtrial is timing; checks the lock once a second at most.

    lock: the host lock
    clock: a monotonic clock
    """

    lock: HostLock = field(default_factory=HostLock)
    clock: Callable[[], float] = time.monotonic
    _checked_s: float = float("-inf")
    _notice: str = ""

    def __call__(self) -> str:
        """Return the notice; empty if no other fairtrial is timing."""
        now = self.clock()
        if now - self._checked_s >= POLL_S:
            self._checked_s, self._notice = now, self.lock.describe_timing_process()
        return self._notice
