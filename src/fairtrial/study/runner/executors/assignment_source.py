"""The queue from which an executor takes its assignments."""

from __future__ import annotations

import math
import time
from collections import deque

from fairtrial.study.model.runs import Assignment
from fairtrial.study.protocols import Feed

SHORTEST_WAIT_S = 0.001


class AssignmentSource:
    """Polls a feed no more often than the feed asks for, and takes assignments back."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._returned: deque[Assignment] = deque()
        self._poll_at = 0.0

    def take(self) -> Assignment | None:
        """Return the next assignment; None if there is none right now."""
        if self._returned:
            return self._returned.popleft()
        if self._poll_at and time.monotonic() < self._poll_at:
            return None
        answer = self._feed()
        if isinstance(answer, Assignment):
            return answer
        if answer is None:
            self._poll_at = math.inf
        else:
            self._poll_at = time.monotonic() + max(answer, SHORTEST_WAIT_S)
        return None

    def give_back(self, assignment: Assignment) -> None:
        """Return an assignment that was not started; it is taken again before all others."""
        self._returned.appendleft(assignment)

    def poll_again(self) -> None:
        """Poll the feed at the next `take`: after a report it may have another answer."""
        self._poll_at = 0.0

    @property
    def is_exhausted(self) -> bool:
        """Whether there are no more assignments unless something is reported."""
        return self._poll_at == math.inf and not self._returned

    def wait_s(self, most_s: float) -> float:
        """Return for how many seconds there is no assignment, up to `most_s`."""
        if self._returned:
            return 0.0
        return min(most_s, max(0.0, self._poll_at - time.monotonic()))
