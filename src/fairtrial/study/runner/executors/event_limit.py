"""A limit on the events that one run may emit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from fairtrial.study.ledger.packing import EventData, pack

MAX_EVENTS = 10_000
MAX_EVENT_BYTES = 16 * 1024 * 1024


class LimitedEmitter:
    """Forwards one run's events up to a limit; the last event says how many were dropped."""

    __slots__ = ("_bytes", "_count", "_dropped", "_is_closed", "_lock", "_send")

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._count = self._bytes = self._dropped = 0
        self._is_closed = False
        self._lock = threading.Lock()

    def __call__(self, data: bytes) -> None:
        """Forward an event; one that comes after the end of the run is ignored."""
        with self._lock:
            if self._is_closed:
                return
            size = self._bytes + len(data)
            if self._count >= MAX_EVENTS or size > MAX_EVENT_BYTES:
                self._dropped += 1
                return
            self._count += 1
            self._bytes = size
            self._send(data)

    def close(self) -> None:
        """Stop forwarding; send a last event with the number of dropped events, if any."""
        with self._lock:
            self._is_closed = True
            if self._dropped:
                self._send(pack(_drop_notice(self._dropped)))


def _drop_notice(dropped: int) -> EventData:
    return {
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event_type": "events_dropped",
        "text": f"{dropped:,} more events were not kept: a run may emit {MAX_EVENTS:,} events, "
        f"and {MAX_EVENT_BYTES // 1024**2} MB of them",
        "actor_id": "fairtrial",
        "meta": {"dropped": dropped},
    }
