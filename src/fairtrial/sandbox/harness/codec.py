"""Encoding of values as tagged JSON: arguments and results of functions.

JSON's own values are encoded as themselves: null, booleans, texts, finite floats, integers up to
2^53, lists, and dictionaries whose keys are texts. Others become an object with a tag:
``{"$": "tuple", "items": [1, 2]}``. `decoder` decodes them.

The values come from untrusted code. Their types are taken from `type(value)` and its real bases,
and they are read with the methods of those bases; methods that a class may override (`__class__`,
`__len__`, `__iter__`, `__eq__`) are never called. Values with one of two tags equal nothing, not
even themselves: ``opaque`` (an object that isn't plain data) and ``unreadable`` (too large, or
reading it failed).
"""

from __future__ import annotations

import binascii
import builtins
import enum
import functools
import json.encoder
import json.scanner
import types
from typing import Any, Callable, Iterable, Iterator, NamedTuple

from . import library_values
from .library_values import TAG, Encoded, qualified_name

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own


def _make_dump() -> Callable[[Encoded], str]:
    """Return the C encoder of `json` itself: its Python parts can be replaced."""
    plain = json.JSONEncoder(
        ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
    )
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    write_text: Any = getattr(json.encoder, "c_encode_basestring_ascii", None)
    try:
        write = make(None, plain.default, write_text, None, ":", ",", False, False, False)
    except TypeError:  # without C, or with other parameters in another Python
        write = None

    def dump(node: Encoded) -> str:
        """Return an encoded value as text; equal values give equal texts."""
        return "".join(write(node, 0)) if write else plain.encode(node)

    return dump


def _make_load() -> Callable[[str], Any]:
    """Return the C scanner of `json` itself; the text must be one value without spaces around."""
    plain = json.JSONDecoder()
    make: Any = getattr(json.scanner, "c_make_scanner", None)
    if make is None:
        return plain.decode
    scan = make(plain)

    def load(text: str) -> Any:
        try:
            value, end = scan(text, 0)
        except StopIteration:
            raise ValueError("it isn't JSON") from None
        if end != len(text):
            raise ValueError("it is more than one JSON value")
        return value

    return load


MAX_PLAIN_INT = 2**53
dump_encoded: Callable[[Encoded], str] = _make_dump()
load_encoded: Callable[[str], Encoded] = _make_load()
"""Parses the text of `dump_encoded`; raises ValueError if it isn't one."""

_Enum, _partial, _to_base64 = enum.Enum, functools.partial, binascii.b2a_base64
_MemberDescriptor = types.MemberDescriptorType
_bases = type.__dict__["__mro__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_read = object.__getattribute__
_args = BaseException.__dict__["args"].__get__
_ATOMS = frozenset(id(kind) for kind in (type(None), bool, int, float, str))


class Caps(NamedTuple):
    """Limits of the size of one encoded value.

    depth: how deep it may be nested
    items: how many values it may hold, all levels together
    size: how many bytes its texts and numbers may take, approximately
    """

    depth: int = 100
    items: int = 1000000
    size: int = 16 * 2**20


def encode(value: object, caps: Caps = Caps(), *, has_layouts: bool = False) -> Encoded:  # noqa: B008
    """Encode a value; raises no `Exception`, whatever the value does.

    has_layouts: whether memory order and writability of arrays are encoded as well
    """
    try:
        return _Encoder(caps, has_layouts).encode(value)
    except _CapsExceededError as error:
        return {TAG: "unreadable", "why": str(error)}
    except Exception as error:
        return {TAG: "unreadable", "why": "reading it raised " + qualified_name(type(error))}


def encode_raised(error: BaseException, caps: Caps = Caps()) -> Encoded:  # noqa: B008
    """Encode a raised exception: its type and arguments."""
    args = encode(list(_args(error)), caps)
    return {"type": qualified_name(type(error)), "args": args if type(args) is list else [args]}


def list_base_classes(error: BaseException) -> list[str]:
    """Return the names of all classes that an exception can be caught by, but its own."""
    return [qualified_name(kind) for kind in _bases(type(error))[1:-1]]


class _CapsExceededError(Exception):
    """A value is larger than the caps allow."""


class _Encoder:
    """Encodes one value, and counts its size."""

    def __init__(self, caps: Caps, has_layouts: bool) -> None:
        self.caps = caps
        self.has_layouts = has_layouts
        self.items_left = caps.items
        self.size_left = caps.size
        self.above: dict[int, int] = {}  # depths of the values that contain the current one, by id
        # By id: a type's metaclass may override `==`.
        self.writers = {id(kind): write for kind, write in _BUILT_IN.items()}
        for kind, write in library_values.find_loaded_types():
            self.writers[id(kind)] = _partial(_write_standard, write, kind)

    def encode(self, value: Any) -> Encoded:
        self.items_left -= 1
        if self.items_left < 0:
            raise _CapsExceededError(f"it holds more than {self.caps.items:,} values")
        kind = id(type(value))
        if kind in _ATOMS:
            return self.writers[kind](self, value)
        if id(value) in self.above:
            return {TAG: "cycle", "up": len(self.above) - self.above[id(value)]}
        if len(self.above) >= self.caps.depth:
            raise _CapsExceededError(f"it is nested deeper than {self.caps.depth} levels")
        self.above[id(value)] = len(self.above)
        try:
            return self.writers.get(kind, _write_instance)(self, value)
        finally:
            del self.above[id(value)]

    def charge(self, size: int) -> None:
        self.size_left -= size
        if self.size_left < 0:
            raise _CapsExceededError(f"it takes more than {self.caps.size:,} bytes")

    def base64(self, content: bytes) -> str:
        self.charge(len(content))
        return _to_base64(content, newline=False).decode("ascii")

    def encode_all(self, values: Iterable[object]) -> list[Encoded]:
        return [self.encode(value) for value in values]

    def items(self, tag: str, values: Iterable[object]) -> Encoded:
        return {TAG: tag, "items": self.encode_all(values)}

    def unordered(self, tag: str, values: Iterable[object]) -> Encoded:
        return {TAG: tag, "items": sorted(self.encode_all(values), key=dump_encoded)}

    def pairs(self, tag: str, values: Iterable[tuple[object, object]]) -> Encoded:
        return {TAG: tag, "items": [[self.encode(key), self.encode(item)] for key, item in values]}

    def state(self, attributes: Iterator[tuple[object, object]]) -> dict[str, Encoded]:
        return {
            name if type(name) is str else "?": self.encode(value) for name, value in attributes
        }


def _write_standard(
    write: library_values.Writer, kind: type, encoder: _Encoder, value: Any
) -> Encoded:
    return write(encoder, kind, value)


def _write_int(encoder: _Encoder, value: int) -> Encoded:
    if -MAX_PLAIN_INT <= value <= MAX_PLAIN_INT:
        return value
    encoder.charge(value.bit_length() // 4)
    return {TAG: "int", "value": hex(value)}  # decimal digits are slow to convert, and limited


def _write_float(encoder: _Encoder, value: float) -> Encoded:
    return value if value - value == 0 else {TAG: "float", "value": float.__repr__(value)}


def _write_text(encoder: _Encoder, value: str) -> Encoded:
    encoder.charge(len(value))
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # JSON would join a pair of surrogates to one character
        return {TAG: "str", "value": encoder.base64(value.encode("utf-8", "surrogatepass"))}
    return value


def _write_dict(encoder: _Encoder, value: dict[Any, Any]) -> Encoded:
    keys = list(dict.keys(value))
    if all(type(key) is str for key in keys) and TAG not in keys:
        names = encoder.encode_all(keys)
        if all(type(name) is str for name in names):
            return dict(zip(names, encoder.encode_all(dict.values(value))))
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
    list: lambda encoder, value: encoder.encode_all(list.__iter__(value)),
    tuple: lambda encoder, value: encoder.items("tuple", tuple.__iter__(value)),
    set: lambda encoder, value: encoder.unordered("set", set.__iter__(value)),
    frozenset: lambda encoder, value: encoder.unordered("frozenset", frozenset.__iter__(value)),
    dict: _write_dict,
    type({}.keys()): lambda encoder, value: encoder.unordered("dict_keys", value),
    type({}.values()): lambda encoder, value: encoder.unordered("dict_values", value),
    type({}.items()): lambda encoder, value: encoder.unordered("dict_items", value),
    range: lambda encoder, value: encoder.items("range", [value.start, value.stop, value.step]),
    slice: lambda encoder, value: encoder.items("slice", [value.start, value.stop, value.step]),
    type: lambda encoder, value: {TAG: "type", "type": qualified_name(value)},
    type(...): lambda encoder, value: {TAG: "constant", "value": "Ellipsis"},
    type(NotImplemented): lambda encoder, value: {TAG: "constant", "value": "NotImplemented"},
}
# Converts an instance of a subclass to the class itself, if its own methods would be called.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    complex: complex.__pos__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytearray.__getitem__(value, slice(None)),
}


def _write_instance(encoder: _Encoder, value: Any) -> Encoded:
    """Encode an instance of a class that has no writer of its own."""
    bases = _bases(type(value))
    type_entry = {"type": qualified_name(type(value))}
    if _contains(bases, _Enum):
        parts = {part: encoder.encode(_read(value, f"_{part}_")) for part in ("name", "value")}
        return {TAG: "enum", **type_entry, **parts}
    if _contains(bases, BaseException):
        return {TAG: "exception", **type_entry, "args": encoder.encode_all(_args(value))}
    base = next((kind for kind in bases if id(kind) in encoder.writers), None)
    if base is tuple and _find_declared(bases, "_fields"):
        names = encoder.encode_all(_find_declared(bases, "_fields"))
        items = encoder.encode_all(tuple.__iter__(value))
        return {TAG: "namedtuple", **type_entry, "names": names, "items": items}
    generic = library_values.find_numpy_type("generic")
    if generic is not None and _contains(bases, generic):
        return library_values.write_scalar(encoder, generic, value)
    if base is not None:
        content = encoder.writers[id(base)](encoder, _PLAIN.get(base, lambda same: same)(value))
        return {
            TAG: "object",
            **type_entry,
            "base": content,
            "state": encoder.state(_iterate_state(value)),
        }
    fields = _find_declared(bases, "__dataclass_fields__")
    if type(fields) is dict:
        return {
            TAG: "dataclass",
            **type_entry,
            "state": encoder.state(_iterate_compared_fields(value, fields)),
        }
    if _find_declared(bases, "__next__"):
        return _write_iterator(encoder, value)
    return {TAG: "opaque", **type_entry}


def _write_iterator(encoder: _Encoder, value: Any) -> Encoded:
    """Encode the remaining items one by one, since an iterator may reuse one list for all."""
    items: list[Encoded] = []
    while True:
        try:
            item = next(value)
        except StopIteration:
            return {TAG: "iterator", "items": items}
        except Exception as error:
            return {TAG: "iterator", "items": items, "raised": encoder.encode(error)}
        items.append(encoder.encode(item))


def _contains(bases: Iterable[type], wanted: object) -> bool:
    return any(base is wanted for base in bases)


def _find_declared(bases: Iterable[type], name: str) -> Any:
    """Return the attribute that a class or one of its bases defines; None if none does."""
    return next((_namespace(base)[name] for base in bases if name in _namespace(base)), None)


def _iterate_compared_fields(
    value: object, fields: dict[Any, Any]
) -> Iterator[tuple[object, object]]:
    """Yield name and value of the fields that a dataclass's own `==` compares."""
    for name, field in fields.items():
        is_field = getattr(getattr(field, "_field_type", None), "name", None) == "_FIELD"
        if is_field and getattr(field, "compare", True):
            yield name, _read(value, name)


def _iterate_state(value: object) -> Iterator[tuple[object, object]]:
    """Yield name and value of an instance's slots and attributes."""
    for base in _bases(type(value)):
        if library_values.is_native(base):
            continue
        for name, member in list(_namespace(base).items()):
            if type(member) is _MemberDescriptor:
                try:
                    yield name, member.__get__(value)
                except AttributeError:
                    continue  # a slot without a value
    try:
        attributes = _read(value, "__dict__")
    except AttributeError:
        return
    if type(attributes) is dict:
        yield from list(attributes.items())
