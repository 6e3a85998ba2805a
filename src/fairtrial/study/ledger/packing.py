"""How results are laid down: msgpack, read back as it was, numbers as numbers.

The plain form of a value has None, true and false, whole numbers of any size, floats (NaN and the
infinities too), text, bytes, lists, and mappings whose keys are text. What else has a plain form:

- enums have that of their value, dataclasses that of their fields, as a mapping
- tuples and ranges are lists, sets too, sorted
- keys that are numbers, true, false, None or enums are their text
- paths, UUIDs, dates and times (ISO 8601) are text, a Decimal is a float
- numpy's scalars and arrays are numbers and lists

Anything else is refused, never turned into its text.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, TypedDict
from uuid import UUID

from fairtrial.core import DEPTH_LIMIT, SAME_KEY, TOO_DEEP, key_text


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


class Scores(TypedDict):
    """What a packed verdict of a later evaluator holds.

    rows: evaluations, in the place of the first ones
    metrics: those that follow from them, in the place of metrics of their names
    """

    rows: list[Mapping[str, Any]]
    metrics: Mapping[str, Any]


BIG_INT = 1
"""The msgpack extension that holds a whole number beyond 64 bits, as text."""
_TOO_DEEP = f"{TOO_DEEP}, or hold themselves"
_PLAIN = frozenset((str, float, int, bool, bytes, type(None)))
MOST_BYTES = 256 << 20
"""What one value may take; SQLite holds no more than four times that in a field."""


class UnwritableError(Exception):
    """A value has no plain form."""


class UnreadableError(Exception):
    """Bytes that `pack` didn't make, or that have changed since."""


@functools.cache
def _coders() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    import msgspec

    return msgspec.msgpack.encode, msgspec.msgpack.Decoder(ext_hook=_extension).decode


def pack(value: Any, doubtful: list[Any] | None = None) -> bytes:
    """`value` as bytes; raises `UnwritableError` for what has no plain form.

    doubtful: the parts of it that may not be plain, where the caller knows that the rest is
    """
    encode = _coders()[0]
    try:
        seen = value if doubtful is None else doubtful
        kind = type(seen)
        if (kind is not dict and kind is not list) or not _is_plain(seen, 1):
            value = _plain(value, 0)
        try:
            data = encode(value)
        except OverflowError:
            data = encode(_mark_big(value))
    except UnwritableError:
        raise
    except UnicodeEncodeError as error:
        raise UnwritableError(
            f"a text holds {error.object[error.start]!r}, half of a surrogate pair, which is no "
            'character; text.encode("utf-8", "replace").decode() is free of them'
        ) from error
    except Exception as error:  # a value's own methods may raise anything
        raise UnwritableError(f"{type(error).__name__}: {error}") from error
    if len(data) > MOST_BYTES:
        raise UnwritableError(
            f"it takes {len(data) >> 20:,} MB, and no more than {MOST_BYTES >> 20} MB are kept; "
            "write it to a file in the run's workspace"
        )
    return data


def unpack(data: bytes) -> Any:
    """What `pack` was given, in its plain form; raises `UnreadableError` for other bytes."""
    try:
        return _coders()[1](data)
    except Exception as error:  # msgspec's, and those of `_extension`
        raise UnreadableError(f"{type(error).__name__}: {error}") from error


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a list or mapping holds only plain forms. Nearly always: so this is lean."""
    if depth > DEPTH_LIMIT:
        raise UnwritableError(_TOO_DEEP)
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                return False
            kind = type(item)
            if kind in _PLAIN:
                continue
            if kind is not dict and kind is not list:
                return False
            if item and not _is_plain(item, depth + 1):
                return False
        return True
    for item in value:
        kind = type(item)
        if kind in _PLAIN:
            continue
        if (kind is not dict and kind is not list) or not _is_plain(item, depth + 1):
            return False
    return True


def _deeper(depth: int) -> int:
    if depth >= DEPTH_LIMIT:
        raise UnwritableError(_TOO_DEEP)
    return depth + 1


def _plain(value: Any, depth: int) -> Any:
    """The plain form of a value."""
    kind = type(value)
    if kind in (str, int, float, bool, bytes) or value is None:
        return value
    if isinstance(value, Enum):
        return _plain(value.value, _deeper(depth))
    if isinstance(value, Mapping):
        return _plain_mapping(value, _deeper(depth))
    if isinstance(value, (list, tuple, range)):
        inner = _deeper(depth)
        return [_plain(item, inner) for item in value]
    if isinstance(value, (set, frozenset)):
        inner = _deeper(depth)
        items = [_plain(item, inner) for item in value]
        try:
            return sorted(items)
        except TypeError:
            return sorted(items, key=pack)
    if kind.__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return _plain_numpy(value, depth)
    for base in (str, int, float):
        if isinstance(value, base):
            return base(value)
    return _plain_other(value, depth)


def _plain_mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        text = _key(key)
        if text in result:
            raise UnwritableError(f"{SAME_KEY}: {text!r}")
        result[text] = _plain(item, depth)
    return result


def _key(key: Any) -> str:
    if type(key).__module__ == "numpy" and hasattr(key, "item"):
        key = key.item()
    if key is None or isinstance(key, (str, int, float, Enum)):
        return key_text(key)
    raise UnwritableError(f"a key of type {_name(key)} can't be written down; use text")


def _plain_numpy(value: Any, depth: int) -> Any:
    plain = value.tolist()
    if type(plain) is type(value):  # a number wider than Python's
        return float(value)
    return _plain(plain, _deeper(depth))


def _plain_other(value: Any, depth: int) -> Any:
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (PurePath, UUID)):
        return str(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Decimal):
        number = float(value)
        if math.isinf(number) and value.is_finite():
            raise UnwritableError(f"{value} is beyond what a float holds")
        return number
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = _deeper(depth)
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name), inner) for name in names}
    raise UnwritableError(
        f"a value of type {_name(value)} can't be written down; "
        "return text, numbers, true/false, None, lists and mappings"
    )


def _name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _mark_big(value: Any) -> Any:
    """A plain value, whole numbers that msgpack has no room for being extensions."""
    import msgspec

    if type(value) is int and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(BIG_INT, format(value, "x").encode())
    if type(value) is dict:
        return {key: _mark_big(item) for key, item in value.items()}
    if type(value) is list:
        return [_mark_big(item) for item in value]
    return value


def _extension(code: int, data: memoryview) -> Any:
    if code != BIG_INT:
        raise ValueError(f"unknown extension {code}")
    return int(bytes(data), 16)
