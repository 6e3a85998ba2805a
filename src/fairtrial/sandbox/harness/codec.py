"""Values as tagged JSON: what functions are called with, and what they give back.

What JSON has of its own stands for itself: null, true, texts, finite floats, integers up to 2^53,
lists, and dictionaries whose keys are texts. All else is an object with a tag:
``{"$": "tuple", "items": [1, 2]}``. `rebuild.py` makes values of it again.

The objects come from code that nobody trusts. What they are is asked of `type(value)` and its real
bases, and they are read with the methods of those bases: what a class says of itself (`__class__`,
`__len__`, `__iter__`, `__eq__`) is never asked. Two tags equal nothing, not even themselves:
``opaque`` (an object that isn't plain data) and ``unreadable`` (too large, or reading it failed).
"""

from __future__ import annotations

import binascii
import enum
import functools
import json
import sys
import types
from typing import Any, Callable, Iterable, Iterator, NamedTuple

from . import library_values
from .library_values import TAG, Encoded, name_of

LARGEST_INT = 2**53
dump: Callable[[Encoded], str] = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
"""Encoded values as text, always the same for the same value."""

_bases = type.__dict__["__mro__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_read = object.__getattribute__
_args = BaseException.__dict__["args"].__get__
_ATOMS = frozenset(id(kind) for kind in (type(None), bool, int, float, str))
_IS_WRITTEN_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE


class Caps(NamedTuple):
    """How much of one value is written down.

    depth: how deep it may be nested
    items: how many values it may hold, all levels together
    size: how many bytes its texts and numbers may take, about
    """

    depth: int = 100
    items: int = 1000000
    size: int = 16 * 2**20


def encode(value: object, caps: Caps = Caps()) -> Encoded:  # noqa: B008 - a constant
    """The value as tagged JSON; raises no `Exception`, whatever the value does."""
    try:
        return _Encoder(caps).encode(value)
    except _BeyondError as stop:
        return {TAG: "unreadable", "why": str(stop)}
    except Exception as stop:
        return {TAG: "unreadable", "why": "reading it raised " + name_of(type(stop))}


def encode_raised(stop: BaseException, caps: Caps = Caps()) -> Encoded:  # noqa: B008
    """A raised exception: its type and arguments."""
    args = encode(list(_args(stop)), caps)
    return {"type": name_of(type(stop)), "args": args if type(args) is list else [args]}


class _BeyondError(Exception):
    """More than the caps allow."""


class _Encoder:
    """Writes down one value."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.items_left = caps.items
        self.size_left = caps.size
        self.above: dict[int, int] = {}  # the values that hold the one in hand: their depths
        # By id: a type may say that it equals another one.
        self.writers = {id(kind): write for kind, write in _BUILT_IN.items()}
        for kind, write in library_values.find_loaded():
            self.writers[id(kind)] = functools.partial(_write_standard, write, kind)

    def encode(self, value: Any) -> Encoded:
        self.items_left -= 1
        if self.items_left < 0:
            raise _BeyondError(f"it holds more than {self.caps.items:,} values")
        kind = id(type(value))
        if kind in _ATOMS:
            return self.writers[kind](self, value)
        if id(value) in self.above:
            return {TAG: "cycle", "up": len(self.above) - self.above[id(value)]}
        if len(self.above) >= self.caps.depth:
            raise _BeyondError(f"it is nested deeper than {self.caps.depth} levels")
        self.above[id(value)] = len(self.above)
        try:
            return self.writers.get(kind, _write_instance)(self, value)
        finally:
            del self.above[id(value)]

    def charge(self, size: int) -> None:
        self.size_left -= size
        if self.size_left < 0:
            raise _BeyondError(f"it takes more than {self.caps.size:,} bytes")

    def base64(self, content: bytes) -> str:
        self.charge(len(content))
        return binascii.b2a_base64(content, newline=False).decode("ascii")

    def each(self, values: Iterable[object]) -> list[Encoded]:
        return [self.encode(value) for value in values]

    def items(self, tag: str, values: Iterable[object]) -> Encoded:
        return {TAG: tag, "items": self.each(values)}

    def unordered(self, tag: str, values: Iterable[object]) -> Encoded:
        return {TAG: tag, "items": sorted(self.each(values), key=dump)}

    def pairs(self, tag: str, values: Iterable[tuple[object, object]]) -> Encoded:
        return {TAG: tag, "items": [[self.encode(key), self.encode(one)] for key, one in values]}

    def state(self, found: Iterator[tuple[object, object]]) -> dict[str, Encoded]:
        return {name if type(name) is str else "?": self.encode(value) for name, value in found}


def _write_standard(
    write: library_values.Writer, kind: type, encoder: _Encoder, value: Any
) -> Encoded:
    return write(encoder, kind, value)


def _write_int(encoder: _Encoder, value: int) -> Encoded:
    if -LARGEST_INT <= value <= LARGEST_INT:
        return value
    encoder.charge(value.bit_length() // 4)
    return {TAG: "int", "value": hex(value)}  # decimal digits take long, and have a limit


def _write_float(encoder: _Encoder, value: float) -> Encoded:
    return value if value - value == 0 else {TAG: "float", "value": float.__repr__(value)}


def _write_text(encoder: _Encoder, value: str) -> Encoded:
    encoder.charge(len(value))
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # JSON would make one character of a pair of surrogates
        return {TAG: "str", "value": encoder.base64(value.encode("utf-8", "surrogatepass"))}
    return value


def _write_dict(encoder: _Encoder, value: dict[Any, Any]) -> Encoded:
    keys = list(dict.keys(value))
    if all(type(key) is str for key in keys) and TAG not in keys:
        names = encoder.each(keys)
        if all(type(name) is str for name in names):
            return dict(zip(names, encoder.each(dict.values(value))))
    return encoder.pairs("dict", dict.items(value))


_BUILT_IN: dict[type, Callable[[_Encoder, Any], Encoded]] = {
    type(None): lambda encoder, value: None,
    bool: lambda encoder, value: value,
    int: _write_int,
    float: _write_float,
    str: _write_text,
    complex: lambda encoder, value: encoder.items("complex", [value.real, value.imag]),
    bytes: lambda encoder, value: {TAG: "bytes", "value": encoder.base64(value)},
    bytearray: lambda encoder, value: {TAG: "bytearray", "value": encoder.base64(bytes(value))},
    list: lambda encoder, value: encoder.each(list.__iter__(value)),
    tuple: lambda encoder, value: encoder.items("tuple", tuple.__iter__(value)),
    set: lambda encoder, value: encoder.unordered("set", set.__iter__(value)),
    frozenset: lambda encoder, value: encoder.unordered("frozenset", frozenset.__iter__(value)),
    dict: _write_dict,
    type({}.keys()): lambda encoder, value: encoder.unordered("dict_keys", value),
    type({}.values()): lambda encoder, value: encoder.unordered("dict_values", value),
    type({}.items()): lambda encoder, value: encoder.unordered("dict_items", value),
    range: lambda encoder, value: encoder.items("range", [value.start, value.stop, value.step]),
    slice: lambda encoder, value: encoder.items("slice", [value.start, value.stop, value.step]),
    type: lambda encoder, value: {TAG: "type", "type": name_of(value)},
    type(...): lambda encoder, value: {TAG: "constant", "value": "Ellipsis"},
    type(NotImplemented): lambda encoder, value: {TAG: "constant", "value": "NotImplemented"},
}
# An instance of a subclass as one of the class itself, where its own methods would be called.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    complex: complex.__pos__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytearray.__getitem__(value, slice(None)),
}


def _write_instance(encoder: _Encoder, value: Any) -> Encoded:
    """Instances of classes that somebody wrote."""
    bases = _bases(type(value))
    named = {"type": name_of(type(value))}
    if _holds(bases, enum.Enum):
        parts = {part: encoder.encode(_read(value, f"_{part}_")) for part in ("name", "value")}
        return {TAG: "enum", **named, **parts}
    if _holds(bases, BaseException):
        return {TAG: "exception", **named, "args": encoder.each(_args(value))}
    base = next((each for each in bases if id(each) in encoder.writers), None)
    if base is tuple and _declared(bases, "_fields"):
        names = encoder.each(_declared(bases, "_fields"))
        items = encoder.each(tuple.__iter__(value))
        return {TAG: "namedtuple", **named, "names": names, "items": items}
    numpy = sys.modules.get("numpy")
    if _holds(bases, getattr(numpy, "generic", None)):
        return library_values.write_scalar(encoder, numpy, value)
    if base is not None:
        content = encoder.writers[id(base)](encoder, _PLAIN.get(base, lambda same: same)(value))
        return {TAG: "object", **named, "base": content, "state": encoder.state(_state(value))}
    fields = _declared(bases, "__dataclass_fields__")
    if type(fields) is dict:
        return {TAG: "dataclass", **named, "state": encoder.state(_compared(value, fields))}
    if _declared(bases, "__next__"):
        return _write_iterator(encoder, value)
    return {TAG: "opaque", **named}


def _write_iterator(encoder: _Encoder, value: Any) -> Encoded:
    """What is left of it, item by item: it may yield one list again and again."""
    items: list[Encoded] = []
    while True:
        try:
            item = next(value)
        except StopIteration:
            return {TAG: "iterator", "items": items}
        except Exception as stop:
            return {TAG: "iterator", "items": items, "raised": encoder.encode(stop)}
        items.append(encoder.encode(item))


def _holds(bases: Iterable[type], wanted: object) -> bool:
    return any(base is wanted for base in bases)


def _declared(bases: Iterable[type], name: str) -> Any:
    """What a class or one of its bases defines by that name."""
    return next((_namespace(base)[name] for base in bases if name in _namespace(base)), None)


def _compared(value: object, fields: dict[Any, Any]) -> Iterator[tuple[object, object]]:
    """Those fields of a dataclass that its own `==` looks at."""
    for name, field in fields.items():
        is_field = getattr(getattr(field, "_field_type", None), "name", None) == "_FIELD"
        if is_field and getattr(field, "compare", True):
            yield name, _read(value, name)


def _state(value: object) -> Iterator[tuple[object, object]]:
    """All that an instance has beside the value of its built-in base."""
    for base in _bases(type(value)):
        if not base.__flags__ & _IS_WRITTEN_IN_PYTHON:
            continue
        for name, member in list(_namespace(base).items()):
            if type(member) is types.MemberDescriptorType:
                try:
                    yield name, member.__get__(value)
                except AttributeError:
                    continue  # a slot that was never filled
    try:
        attributes = _read(value, "__dict__")
    except AttributeError:
        return
    if type(attributes) is dict:
        yield from list(attributes.items())
