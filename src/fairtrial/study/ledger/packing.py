"""The stored form of results: msgpack of plain values, which are read back unchanged.

Plain values are None, true and false, integers of any size, floats (with NaN and the infinities),
text, bytes, lists, and mappings whose keys are text. Other values are converted:

- enums to their value, dataclasses to a mapping of their fields
- tuples and ranges to lists, sets to sorted lists
- keys that are numbers, true, false, None or enums to text
- paths, UUIDs, dates and times (ISO 8601) to text, a Decimal to a float
- numpy's scalars and arrays to numbers and lists

Any other type is refused, never converted by `str`.
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
from typing import Any, NotRequired, TypedDict
from uuid import UUID

from fairtrial.core import canonical


class Body(TypedDict):
    """The content of a packed outcome (`Outcome.body`).

    outputs: what the agent returned
    metrics: the agent's metrics and those of its process, in the order of the tables
    evaluations: rows with evaluator_id, metric_name, metric_value, metric_unit, aggregation_level,
        notes_json
    execution_metadata: facts that are added to those of the run's spec: problem_family, agent_kind,
        pattern_name, model_name, ...
    started_at: wall clock time, ISO 8601 in UTC with milliseconds
    evaluator_failed: whether the agent had finished and its evaluator failed; older ledgers don't
        have it
    host: the machine, if it isn't that of the session
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
    evaluator_failed: bool
    host: NotRequired[str]


class EventData(TypedDict, total=False):
    """The content of a packed event (`Emitted.data`); the first five fields are required."""

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


class RescoredOutput(TypedDict):
    """The packed result of rescoring a stored output.

    rows: the evaluations that replace the first ones
    metrics: the metrics that follow from them and replace those of the same names
    """

    rows: list[Mapping[str, Any]]
    metrics: Mapping[str, Any]


BIG_INT = 1
"""The msgpack extension type for an integer beyond 64 bits, as hexadecimal text."""
_TOO_DEEP = f"{canonical.TOO_DEEP}, or hold themselves"
_PLAIN_TYPES = frozenset((str, float, int, bool, bytes, type(None)))
MAX_BYTES = 256 << 20
"""The size limit of a packed value; SQLite's own limit for a field is four times that."""


class UnwritableError(Exception):
    """A value has no plain form."""


class UnreadableError(Exception):
    """Bytes were not made by `pack`, or have changed since."""


@functools.cache
def _coders() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    import msgspec

    return msgspec.msgpack.encode, msgspec.msgpack.Decoder(ext_hook=_decode_extension).decode


def pack(value: Any, unchecked: list[Any] | None = None) -> bytes:
    """Return `value` as bytes; raises `UnwritableError` if it has no plain form.

    unchecked: the parts of it that may not be plain, if the caller knows that the rest is
    """
    encode = _coders()[0]
    try:
        checked = value if unchecked is None else unchecked
        kind = type(checked)
        if (kind is not dict and kind is not list) or not _is_plain(checked, 1):
            value = _plain(value, 0)
        try:
            data = encode(value)
        except OverflowError:
            data = encode(_encode_big_ints(value))
    except UnwritableError:
        raise
    except UnicodeEncodeError as error:
        raise UnwritableError(
            f"a text holds {error.object[error.start]!r}, half of a surrogate pair, which is no "
            'character; text.encode("utf-8", "replace").decode() is free of them'
        ) from error
    except Exception as error:  # a value's own methods may raise anything
        raise UnwritableError(f"{type(error).__name__}: {error}") from error
    if len(data) > MAX_BYTES:
        raise UnwritableError(
            f"it takes {len(data) >> 20:,} MB, and no more than {MAX_BYTES >> 20} MB are kept; "
            "write it to a file in the run's workspace"
        )
    return data


def unpack(data: bytes) -> Any:
    """Return the plain form of what `pack` was given; raises `UnreadableError` for other bytes."""
    try:
        return _coders()[1](data)
    except Exception as error:  # msgspec's, and those of `_decode_extension`
        raise UnreadableError(f"{type(error).__name__}: {error}") from error


def _is_plain(value: Any, depth: int) -> bool:
    """Return whether a list or mapping holds only plain values; the common case, so it is fast."""
    if depth > canonical.DEPTH_LIMIT:
        raise UnwritableError(_TOO_DEEP)
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                return False
            kind = type(item)
            if kind in _PLAIN_TYPES:
                continue
            if kind is not dict and kind is not list:
                return False
            if item and not _is_plain(item, depth + 1):
                return False
        return True
    for item in value:
        kind = type(item)
        if kind in _PLAIN_TYPES:
            continue
        if (kind is not dict and kind is not list) or not _is_plain(item, depth + 1):
            return False
    return True


def _next_depth(depth: int) -> int:
    if depth >= canonical.DEPTH_LIMIT:
        raise UnwritableError(_TOO_DEEP)
    return depth + 1


def _plain(value: Any, depth: int) -> Any:
    """Return the plain form of a value; raises `UnwritableError` if it has none."""
    kind = type(value)
    if kind in (str, int, float, bool, bytes) or value is None:
        return value
    if isinstance(value, Enum):
        return _plain(value.value, _next_depth(depth))
    if isinstance(value, Mapping):
        return _plain_mapping(value, _next_depth(depth))
    if isinstance(value, (list, tuple, range)):
        inner = _next_depth(depth)
        return [_plain(item, inner) for item in value]
    if isinstance(value, (set, frozenset)):
        inner = _next_depth(depth)
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
        text = _plain_key(key)
        if text in result:
            raise UnwritableError(f"{canonical.DUPLICATE_KEY}: {text!r}")
        result[text] = _plain(item, depth)
    return result


def _plain_key(key: Any) -> str:
    if type(key).__module__ == "numpy" and hasattr(key, "item"):
        key = key.item()
    if key is None or isinstance(key, (str, int, float, Enum)):
        return canonical.key_text(key)
    raise UnwritableError(f"a key of type {_type_name(key)} can't be written down; use text")


def _plain_numpy(value: Any, depth: int) -> Any:
    plain = value.tolist()
    if type(plain) is type(value):  # a number wider than Python's
        return float(value)
    return _plain(plain, _next_depth(depth))


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
        inner = _next_depth(depth)
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name), inner) for name in names}
    raise UnwritableError(
        f"a value of type {_type_name(value)} can't be written down; "
        "return text, numbers, true/false, None, lists and mappings"
    )


def _type_name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _encode_big_ints(value: Any) -> Any:
    """Return a plain value with integers beyond 64 bits as msgpack extensions."""
    import msgspec

    if type(value) is int and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(BIG_INT, format(value, "x").encode())
    if type(value) is dict:
        return {key: _encode_big_ints(item) for key, item in value.items()}
    if type(value) is list:
        return [_encode_big_ints(item) for item in value]
    return value


def _decode_extension(code: int, data: memoryview) -> Any:
    if code != BIG_INT:
        raise ValueError(f"unknown extension {code}")
    return int(bytes(data), 16)
