"""Events that agents emit while they run: building, reading and streaming them."""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from fairtrial.study.ledger.packing import EventData, UnwritableError, pack

LEVELS = ("study", "run", "trial", "step", "tool-call", "evaluation")
STEPS = frozenset(("step", "tool_call", "assistant_output"))
"""The types of events that count as steps."""
_COLUMNS = frozenset(EventData.__annotations__) - {"event_type", "text", "actor_id", "meta"}
_RUN_IDS = frozenset(("study_id", "run_id", "condition_id"))
"""Fields of returned events that are ignored, since the run is known."""


def now() -> str:
    """Return the wall clock time: ISO 8601 in UTC, with milliseconds."""
    second, part = divmod(time.time(), 1.0)
    return f"{_spell_second(second)}.{int(part * 1000):03}+00:00"


@functools.lru_cache(4)
def _spell_second(second: float) -> str:
    # Cached: formatting a date dominates the clock costs of a run that does nothing.
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def make_event(event_type: str, text: Any, actor_id: str, facts: Mapping[str, Any]) -> EventData:
    """Return an event: facts that have a column of their own go there, the others into `meta`.

    Raises TypeError or ValueError for a timestamp or level of the wrong form.
    """
    event: dict[str, Any] = {
        "timestamp": now(),
        "event_type": str(event_type),
        "text": text if type(text) is str else str(text),
        "actor_id": str(actor_id),
        "meta": facts,
    }
    if not _COLUMNS.isdisjoint(facts):
        event["meta"] = {key: value for key, value in facts.items() if key not in _COLUMNS}
        columns = {key: facts[key] for key in facts if key in _COLUMNS}
        event |= {key: _cell(key, value) for key, value in columns.items() if value is not None}
    return cast("EventData", event)


def _cell(column: str, value: Any) -> str:
    if column == "timestamp" and isinstance(value, datetime):
        return value.isoformat()
    if column == "timestamp" and not isinstance(value, str):
        raise TypeError(f"an event's timestamp is text or a datetime, not {type(value).__name__}")
    if column == "level" and value not in LEVELS:
        raise ValueError(f"an event's level is one of {', '.join(LEVELS)}; not {value!r}")
    return str(value)


def read_event(raw: Any, label: str) -> EventData:
    """Return an event that an agent returned as a mapping or a dataclass with the same fields.

    Raises TypeError for other values; `label` names the event in the message.
    """
    if dataclasses.is_dataclass(raw) and not isinstance(raw, type):
        raw = {field.name: getattr(raw, field.name) for field in dataclasses.fields(raw)}
    if not isinstance(raw, Mapping):
        raise TypeError(f"{label} must be a mapping, not {type(raw).__name__}")
    facts = {str(key): value for key, value in raw.items() if key not in _RUN_IDS}
    meta: dict[str, Any] = {}
    for name in ("meta_json", "meta"):
        part = facts.pop(name, None)
        if part is not None and not isinstance(part, Mapping):
            raise TypeError(f"{label}.{name} must be a mapping, not {type(part).__name__}")
        meta |= part or {}
    event_type = facts.pop("event_type", "event")
    text, actor_id = facts.pop("text", ""), facts.pop("actor_id", "agent")
    return make_event(event_type, "" if text is None else text, actor_id, meta | facts)


class EventStream:
    """Sends the events of one run and counts them; several threads may use it at once.

    tool_calls: the number of tool calls so far
    steps: the number of events so far that count as steps
    actors: the ids of all actors so far
    """

    __slots__ = ("_lock", "_send", "actors", "steps", "tool_calls")

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send: Callable[[bytes], None] | None = send
        self._lock = threading.Lock()
        self.tool_calls = 0
        self.steps = 0
        self.actors: set[str] = set()

    def add(self, event: EventData) -> None:
        """Send an event.

        Raises `UnwritableError` for data without a plain form, RuntimeError once the run is over.
        """
        try:
            data = pack(event)
        except UnwritableError as error:
            raise UnwritableError(f"event '{event['event_type']}': {error}") from None
        kind = event["event_type"]
        with self._lock:
            if self._send is None:
                raise RuntimeError(f"event '{kind}' comes too late: the run is over")
            self._send(data)
            self.tool_calls += kind == "tool_call"
            self.steps += kind in STEPS
            self.actors.add(event["actor_id"])

    def close(self) -> None:
        """Refuse further events."""
        with self._lock:
            self._send = None
