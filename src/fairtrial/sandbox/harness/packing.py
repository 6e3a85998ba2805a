"""Packing of plain values: as exact as `codec`, and much faster, for timed workers.

Plain values are made of None, booleans, numbers, texts, bytes, lists, tuples, dictionaries and
sets, of exactly these types. They are packed by the pickler of C without its memo, so that the
bytes depend on types and values alone: equal bytes mean equal values. (The order of a set's items
may differ, so equal values don't always have equal bytes.) Other values can't be packed; no code of
theirs is run.

Nothing but plain values is unpacked: a name in the data is refused.
"""

from __future__ import annotations

import _pickle
import binascii
import builtins
import hashlib
import io
import operator
import struct
from typing import Any, Callable, Iterable

from . import codec, instances, library_values

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own

PACKED_FIRST = b"\x80"
"""The first byte of a packed value; that of JSON is another one."""
PICKLED_FIRST = b"\x01"
"""The first byte of pickled arguments."""
_BINARY = (PACKED_FIRST, PICKLED_FIRST)
_PROTOCOL = 4
_FRAMED = b"\x00"
_PAIR_END = b"\x86."  # how a packed tuple of two values ends
_ARRAY_TAGS: tuple[Any, ...] = ("ndarray", "scalar")
_EXACT = frozenset(filter(library_values.is_native, library_values.list_immutable()))
_SIZE = struct.Struct(">I")
_SUMMARY = struct.Struct(">16sId")
SUMMARY_BYTES = _SUMMARY.size
_buffer, _blake2b, _is = io.BytesIO, hashlib.blake2b, operator.is_
_from_base64, _to_base64 = binascii.a2b_base64, binascii.b2a_base64


class _NotPlainError(Exception):
    """A value of another type was found."""


class _PlainPickler(_pickle.Pickler):
    """Refuses all types that aren't plain."""

    def reducer_override(self, value: Any) -> Any:
        """Called for all values but plain ones."""
        raise _NotPlainError


class _ArrayPickler(_pickle.Pickler):
    """Writes arrays and scalars of numpy by type, shape, layout and bytes; it is never read."""

    def reducer_override(self, value: Any) -> Any:
        """Called for all values but plain ones."""
        kind = type(value)
        if value is list:
            return NotImplemented
        if not library_values.is_native(kind):
            raise _NotPlainError
        array, generic = map(library_values.find_numpy_type, ("ndarray", "generic"))
        if array is not None and kind is array:
            dtype = array.dtype.__get__(value)
            if dtype.kind in library_values.RAW_KINDS:
                layout = library_values.describe_layout(array, value)
                shape = array.shape.__get__(value)
                return list, ((dtype.str, shape, layout, array.tobytes(value)),)
        elif generic is not None and issubclass(kind, generic):
            dtype = generic.dtype.__get__(value)
            if dtype.kind in library_values.RAW_KINDS:
                name = library_values.qualified_name(kind)
                return list, ((dtype.str, name, generic.tobytes(value)),)
        raise _NotPlainError


class _ObjectPickler(_ArrayPickler):
    """Writes instances as what they consist of (see `instances`), too; it is never read."""

    def __init__(self, buffer: Any, protocol: int) -> None:
        super().__init__(buffer, protocol)
        self.dispatch_table: dict[type, Any] = {}  # that of `copyreg` can be changed
        self.known: dict[int, Any] = {}  # by id: a metaclass may override `==`

    def reducer_override(self, value: Any) -> Any:
        """Called for all values but plain ones."""
        kind = type(value)
        facts = self.known.get(id(kind))
        if facts is None:
            if library_values.is_native(kind):
                is_exact = library_values.is_native(value) or kind in _EXACT
                return NotImplemented if is_exact else super().reducer_override(value)
            facts = self.known[id(kind)] = instances.ClassFacts(kind)
            if not facts.is_simple:
                raise _NotPlainError
        parts = (facts.name, facts.read_content(value), facts.read_state(value))
        return list, (), None, iter(parts)  # items, so that instances may contain themselves


class _PlainUnpickler(_pickle.Unpickler):
    """Refuses every name."""

    def find_class(self, module: str, name: str) -> Any:
        """Called for names only."""
        raise _NotPlainError


def pack_plain(value: object, *, has_arrays: bool = False) -> bytes | None:
    """Return a value as bytes; None if it isn't plain, contains itself, or is nested too deeply.

    has_arrays: whether values of numpy may be in it; such bytes are for comparison only
    """
    buffer = _buffer()
    pickler = (_ArrayPickler if has_arrays else _PlainPickler)(buffer, _PROTOCOL)
    pickler.fast = True  # without the memo
    try:
        pickler.dump(value)
    except Exception:
        return None
    return buffer.getvalue()


def pack_values(value: object) -> bytes | None:
    """Return values as bytes, for comparison only; None if that isn't possible.

    Equal bytes mean equal values; equal values don't always have equal bytes.
    """
    packed = pack_plain(value, has_arrays=True)
    if packed is not None:
        return packed
    buffer = _buffer()
    try:
        _ObjectPickler(buffer, _PROTOCOL).dump(value)
    except Exception:
        return None
    return buffer.getvalue()


def unpack_plain(data: bytes) -> Any:
    """Return a value that `pack_plain` wrote; raises `ValueError` if it isn't one."""
    try:
        return _PlainUnpickler(_buffer(data)).load()
    except Exception as error:
        raise ValueError("it isn't a packed value") from error


def pack_case(case: dict[str, Any]) -> bytes | None:
    """Return the encoded arguments of a call (see `codec`) as bytes, with arrays as they are.

    None if the bytes of no array are in it: then its JSON is as good.
    """
    raw = _with_arrays(case, _to_raw)
    return None if raw is case else pack_plain(raw)


def is_plain_case(data: bytes) -> bool:
    """Return whether the arguments of a call were packed as they are, without being encoded."""
    return data[:1] == PACKED_FIRST and data[-2:] == _PAIR_END


def unpack_case(data: bytes) -> dict[str, Any]:
    """Return the encoded arguments of a call, as `codec` writes them.

    data: packed arguments, of `pack_plain` or `pack_case`
    """
    case = unpack_plain(data)
    if type(case) is tuple:
        return {"args": codec.encode(case[0]), "kwargs": codec.encode(case[1])}
    encoded: dict[str, Any] = _with_arrays(case, _to_text)
    return encoded


def _with_arrays(node: Any, convert: Callable[[Any], Any]) -> Any:
    """Return encoded values with the content of arrays converted; the same object without any."""
    if type(node) is list:
        items = [_with_arrays(item, convert) for item in node]
        return node if all(map(_is, items, node)) else items
    if type(node) is not dict:
        return node
    if node.get(library_values.TAG) in _ARRAY_TAGS and "value" in node:
        return {**node, "value": convert(node["value"])}
    values = [_with_arrays(value, convert) for value in node.values()]
    return node if all(map(_is, values, node.values())) else dict(zip(node, values))


def _to_raw(text: str) -> bytes:
    return _from_base64(text)


def _to_text(raw: bytes) -> str:
    return _to_base64(raw, newline=False).decode("ascii")


def join_inputs(inputs: Iterable[bytes]) -> bytes:
    """Return inputs as one payload: lines, if all are JSON; else each with its size before it."""
    parts = list(inputs)
    if not any(part.startswith(_BINARY) for part in parts):
        return b"\n".join(parts)
    framed = [_FRAMED]
    for part in parts:
        framed += (_SIZE.pack(len(part)), part)
    return b"".join(framed)


def split_inputs(payload: bytes) -> list[bytes]:
    """Return the inputs of a payload made by `join_inputs`."""
    if not payload.startswith(_FRAMED):
        return payload.split(b"\n") if payload else []
    parts, start = [], 1
    while start < len(payload):
        first = start + _SIZE.size
        (size,) = _SIZE.unpack_from(payload, start)
        start = first + size
        parts.append(payload[first:start])
    return parts


def digest(data: bytes) -> bytes:
    """Return the digest by which results are compared: 16 bytes."""
    return _blake2b(data, digest_size=16).digest()


def pack_summary(result_digest: bytes, calls: int, iterating_s: float) -> bytes:
    """Return the summary of a turn: digest of its results, number of calls, time of iterating."""
    return _SUMMARY.pack(result_digest, calls, iterating_s)


def unpack_summary(payload: bytes) -> tuple[bytes, int, float]:
    """Return what `pack_summary` packed; raises `ValueError` for other payloads."""
    if len(payload) != SUMMARY_BYTES:
        raise ValueError("it isn't a summary")
    result_digest, calls, iterating_s = _SUMMARY.unpack(payload)
    return result_digest, calls, iterating_s
