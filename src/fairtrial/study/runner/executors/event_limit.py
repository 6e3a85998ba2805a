"""A run's events on their way out, up to a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from fairtrial.study.ledger.packing import EventData, pack

MOST_EVENTS = 10_000
MOST_EVENT_BYTES = 16 * 1024 * 1024


class Emitter:
    """Passes one run's events on; counts those beyond the limit instead, and says so at the end."""

    __slots__ = ("_bytes", "_count", "_dropped", "_is_closed", "_lock", "_send")

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._count = self._bytes = self._dropped = 0
        self._is_closed = False
        self._lock = threading.Lock()

    def __call__(self, data: bytes) -> None:
        """Pass an event on. One that comes after the end of its run belongs nowhere."""
        with self._lock:
            if self._is_closed:
                return
            size = self._bytes + len(data)
            if self._count >= MOST_EVENTS or size > MOST_EVENT_BYTES:
                self._dropped += 1
                return
            self._count += 1
            self._bytes = size
            self._send(data)

    def close(self) -> None:
        """The run has ended; the last event says how many were dropped, if any were."""
        with self._lock:
            self._is_closed = True
            if self._dropped:
                self._send(pack(_drop_notice(self._dropped)))


def _drop_notice(dropped: int) -> EventData:
    return {
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event_type": "events_dropped",
        "text": f"{dropped:,} more events were not kept: a run may emit {MOST_EVENTS:,} events, "
        f"and {MOST_EVENT_BYTES // 1024**2} MB of them",
        "actor_id": "fairtrial",
        "meta": {"dropped": dropped},
    }
