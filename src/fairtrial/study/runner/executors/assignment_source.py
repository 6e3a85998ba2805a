"""Where an executor takes its assignments from."""

from __future__ import annotations

import math
import time
from collections import deque

from fairtrial.study.model.runs import Assignment
from fairtrial.study.protocols import Feed

SHORTEST_WAIT_S = 0.001


class Source:
    """A feed that is asked no more often than it wants to be, and takes things back."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._returned: deque[Assignment] = deque()
        self._ask_at = 0.0

    def take(self) -> Assignment | None:
        """The next assignment; None if there is none right now."""
        if self._returned:
            return self._returned.popleft()
        if self._ask_at and time.monotonic() < self._ask_at:
            return None
        given = self._feed()
        if isinstance(given, Assignment):
            return given
        if given is None:
            self._ask_at = math.inf
        else:
            self._ask_at = time.monotonic() + max(given, SHORTEST_WAIT_S)
        return None

    def give_back(self, assignment: Assignment) -> None:
        """Let an assignment that nobody has begun be taken again, before all others."""
        self._returned.appendleft(assignment)

    def ask_again(self) -> None:
        """Something was reported: the feed may have another answer now."""
        self._ask_at = 0.0

    @property
    def is_dry(self) -> bool:
        """Whether there will be no more unless something is reported."""
        return self._ask_at == math.inf and not self._returned

    def wait_s(self, most_s: float) -> float:
        """For how long there is nothing, up to `most_s`."""
        if self._returned:
            return 0.0
        return min(most_s, max(0.0, self._ask_at - time.monotonic()))
