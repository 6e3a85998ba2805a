"""The pace of requests to an endpoint, shared by everything in this process that asks it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

CHARS_PER_TOKEN = 4
"""Roughly how many characters of a request make one token."""


@dataclass(slots=True)
class RateLimit:
    """Spaces requests evenly, and holds all of them back when the server asks for a pause.

    Safe for threads and event loops: `reserve` says how long to wait, and the caller waits.

    requests_per_minute, tokens_per_minute: the limits; None for none
    clock: returns the time in seconds
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    clock: Callable[[], float] = time.monotonic
    _next_request: float = 0.0
    _next_token: float = 0.0
    _held_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, tokens: int) -> float:
        """Take the next turn, and return how many seconds to wait for it.

        tokens: how many tokens the request is likely to take; `correct` mends the guess
        """
        with self._lock:
            now = self.clock()
            start = max(now, self._held_until)
            if self.requests_per_minute is not None:
                start = max(start, self._next_request)
            if self.tokens_per_minute is not None:
                start = max(start, self._next_token)
                self._next_token = start + 60.0 * tokens / self.tokens_per_minute
            if self.requests_per_minute is not None:
                self._next_request = start + 60.0 / self.requests_per_minute
            return start - now

    def correct(self, tokens: int) -> None:
        """Add tokens that a request took beyond the guess; fewer than 0 if it took less."""
        if self.tokens_per_minute is not None:
            with self._lock:
                self._next_token += 60.0 * tokens / self.tokens_per_minute

    def hold(self, seconds: float) -> None:
        """Let no request start for some seconds: the server asked for that."""
        with self._lock:
            self._held_until = max(self._held_until, self.clock() + seconds)


_limits: dict[tuple[str, str], RateLimit] = {}
_limits_lock = threading.Lock()


def shared_limit(
    base_url: str,
    key_variable: str,
    requests_per_minute: float | None,
    tokens_per_minute: float | None,
) -> RateLimit:
    """Return the limit that all requests with this address and key share in this process.

    Of different limits for one endpoint, the lowest counts.
    """
    with _limits_lock:
        limit = _limits.setdefault((base_url, key_variable), RateLimit())
        limit.requests_per_minute = _lower(limit.requests_per_minute, requests_per_minute)
        limit.tokens_per_minute = _lower(limit.tokens_per_minute, tokens_per_minute)
        return limit


def _lower(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)
