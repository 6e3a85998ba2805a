"""How results are laid down: msgpack, read back as it was, numbers as numbers.

numpy's scalars and arrays become plain numbers and lists, paths text, tuples and sets lists.
Anything else that has no plain form is refused, never turned into its text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, TypedDict


class Body(TypedDict):
    """What a packed outcome holds (`Outcome.body`).

    outputs: what the agent returned
    metrics: its own and those of its process, in the order in which tables show them
    evaluations: rows with evaluator_id, metric_name, metric_value, metric_unit, aggregation_level,
        notes_json
    execution_metadata: what is added to that of the run's spec: problem_family, agent_kind,
        pattern_name, model_name, ...
    started_at: by the wall clock, ISO 8601 in UTC with milliseconds
    """

    outputs: Any
    metrics: Mapping[str, Any]
    evaluations: list[Mapping[str, Any]]
    trace_refs: list[str]
    artifact_refs: list[str]
    error_info: str | None
    traceback: str | None
    provenance: Mapping[str, Any]
    execution_metadata: Mapping[str, Any]
    started_at: str


class EventData(TypedDict, total=False):
    """What a packed event holds (`Emitted.data`); the first five are always there."""

    timestamp: str
    event_type: str
    text: str
    actor_id: str
    meta: Mapping[str, Any]
    level: str
    record_id: str
    session_id: str
    trial_id: str
    step_id: str
    tool_name: str
    evaluation_id: str


BIG_INT = 1
"""The msgpack extension that holds a whole number beyond 64 bits, as text."""


class UnwritableError(Exception):
    """A value has no plain form."""


@functools.cache
def _coders() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    import msgspec

    return (
        msgspec.msgpack.Encoder(enc_hook=_plain).encode,
        msgspec.msgpack.Decoder(ext_hook=_extension).decode,
    )


def pack(value: Any) -> bytes:
    """`value` as bytes; raises `UnwritableError` for what has no plain form."""
    encode = _coders()[0]
    try:
        return encode(value)
    except OverflowError:
        return _refusing(lambda: encode(_mark_big(value)))
    except UnwritableError:
        raise
    except Exception as error:
        raise UnwritableError(f"{type(error).__name__}: {error}") from error


def unpack(data: bytes) -> Any:
    """What `pack` was given, in plain types."""
    return _coders()[1](data)


def _refusing(encode: Callable[[], bytes]) -> bytes:
    try:
        return encode()
    except UnwritableError:
        raise
    except Exception as error:
        raise UnwritableError(f"{type(error).__name__}: {error}") from error


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind.__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise UnwritableError(
        f"a value of type {kind.__module__}.{kind.__qualname__} can't be written down; "
        "return text, numbers, true/false, None, lists and mappings"
    )


def _mark_big(value: Any) -> Any:
    import msgspec

    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(BIG_INT, format(value, "x").encode())
    if isinstance(value, Mapping):
        return {_mark_big(key): _mark_big(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_mark_big(item) for item in value]
    return value


def _extension(code: int, data: memoryview) -> Any:
    if code != BIG_INT:
        raise ValueError(f"unknown extension {code}")
    return int(bytes(data), 16)
