"""How often ledgers are read: at little cost, and hardly at all while something is timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fairtrial.sandbox import HostLock

SHORTEST_S, QUIET_READ_S = 1.0, 30.0
"""The shortest pause between two readings; the pause while something is timed on this machine."""
PAUSE_RATIO, CATCHING_UP_RATIO = 20, 1
"""A pause is this many times as long as the reading before it: at most 5% of a core is used, and
half of one while results that were there before are read."""
CHECK_S = 0.5


@dataclass(slots=True)
class ReadingPace:
    """Decides when to read; asks the host lock whether something is timed, without taking it.

    lock: the host lock
    clock: a monotonic clock
    """

    lock: HostLock = field(default_factory=HostLock)
    clock: Callable[[], float] = time.monotonic
    _checked_s: float = float("-inf")
    _notice: str = ""

    def notice(self) -> str:
        """Return a text while something is timed on this machine; empty if nothing is."""
        now = self.clock()
        if now - self._checked_s >= CHECK_S:
            self._checked_s = now
            is_timing = bool(self.lock.describe_timing_process())
            self._notice = "something is being timed: this page waits" if is_timing else ""
        return self._notice

    def pause_s(self, took_s: float, *, is_unfinished: bool = False) -> float:
        """Return how long to wait before the next reading.

        took_s: how long the last one took
        is_unfinished: whether more is there to be read
        """
        if is_unfinished:
            return CATCHING_UP_RATIO * took_s
        return max(SHORTEST_S, PAUSE_RATIO * took_s)
