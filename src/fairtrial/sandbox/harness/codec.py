"""Encoding of values as tagged JSON: arguments and results of functions.

JSON's own values are encoded as themselves: null, booleans, texts, finite floats, integers up to
2^53, lists, and dictionaries whose keys are texts. Others become an object with a tag:
``{"$": "tuple", "items": [1, 2]}``. `decoder` decodes them.

The values come from untrusted code. Their types are taken from `type(value)` and its real bases,
and they are read with the methods of those bases; methods that a class may override (`__class__`,
`__len__`, `__iter__`, `__eq__`, `__reduce__`) are never called. Instances of classes are encoded by
what they consist of (see `instances`). One that occurs again is a reference to its first occurrence
(``{"$": "ref", "to": 2}`` and ``"id": 2`` there), and those that are deeply nested follow at the
end: ``{"$": "graph", "root": ..., "objects": [...]}``. Values with one of two tags equal nothing,
not even themselves: ``opaque`` (nothing is known of its content) and ``unreadable`` (too large, or
reading it failed).
"""

from __future__ import annotations

import binascii
import builtins
import collections
import functools
import json.encoder
import json.scanner
from typing import Any, Callable, Iterable, NamedTuple

from . import instances, library_values
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

_partial, _to_base64, _deque = functools.partial, binascii.b2a_base64, collections.deque
_bases = type.__dict__["__mro__"].__get__
_args = BaseException.__dict__["args"].__get__
_ATOMS = frozenset(id(kind) for kind in (type(None), bool, int, float, str))
_MOST_INLINE = 30  # how deep an instance may be nested to be encoded in place


class Caps(NamedTuple):
    """Limits of the size of one encoded value.

    depth: how deep it may be nested
    items: how many values it may hold, all levels together
    size: how many bytes its texts and numbers may take, approximately
    """

    depth: int = 100
    items: int = 1000000
    size: int = 16 * 2**20


def encode(
    value: object,
    caps: Caps = Caps(),  # noqa: B008
    *,
    has_layouts: bool = False,
    exhausts: bool = True,
) -> Encoded:
    """Encode a value; raises no `Exception`, whatever the value does.

    has_layouts: whether memory order and writability of arrays are encoded as well
    exhausts: whether instances of classes with ``__next__`` are encoded by their remaining items,
        and not by their attributes
    """
    try:
        return _Encoder(caps, has_layouts, exhausts).encode_whole(value)
    except _CapsExceededError as error:
        return {TAG: "unreadable", "why": str(error)}
    except Exception as error:
        return {TAG: "unreadable", "why": "reading it raised " + qualified_name(type(error))}


def encode_raised(error: BaseException, caps: Caps = Caps()) -> Encoded:  # noqa: B008
    """Encode a raised exception: its type, its arguments, and those attributes that can be read."""
    args = encode(list(_args(error)), caps)
    raised = {"type": qualified_name(type(error)), "args": args if type(args) is list else [args]}
    try:
        attributes = instances.ClassFacts(type(error)).read_attributes(error)
    except instances.HiddenStateError:
        return raised
    encoded = [(name, encode(value, caps, exhausts=False)) for name, value in attributes.items()]
    state = {name: node for name, node in encoded if _is_readable(node)}
    return {**raised, "state": state} if state else raised


def _is_readable(node: Encoded) -> bool:
    """Return whether all of an encoded value is known."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if type(part) is dict:
            if part.get(TAG) in ("opaque", "unreadable"):
                return False
            waiting += part.values()
        elif type(part) is list:
            waiting += part
    return True


def list_base_classes(error: BaseException) -> list[str]:
    """Return the names of all classes that an exception can be caught by, but its own."""
    return [qualified_name(kind) for kind in _bases(type(error))[1:-1]]


class _CapsExceededError(Exception):
    """A value is larger than the caps allow."""


class _Instance:
    """An instance that was found in a value.

    value: the instance; keeping it keeps its id from being used again
    number: by which others refer to it; 0 if none does
    node: what it was encoded to; None as long as it isn't
    """

    __slots__ = ("node", "number", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self.number = 0
        self.node: Any = None


class _Encoder:
    """Encodes one value, and counts its size."""

    def __init__(self, caps: Caps, has_layouts: bool, exhausts: bool) -> None:
        self.caps = caps
        self.has_layouts = has_layouts
        self.exhausts = exhausts
        self.items_left = caps.items
        self.size_left = caps.size
        self.above: dict[int, int] = {}  # depths of the values that contain the current one, by id
        self.keys = 0  # how many keys and items of sets contain the current value
        self.found: dict[int, _Instance] = {}
        self.waiting: Any = _deque()
        self.referred = 0
        self.facts: dict[int, instances.ClassFacts] = {}
        # By id: a type's metaclass may override `==`.
        self.writers = {id(kind): write for kind, write in _BUILT_IN.items()}
        for kind, write in library_values.find_loaded_types():
            self.writers[id(kind)] = _partial(_write_standard, write, kind)

    def encode_whole(self, value: Any) -> Encoded:
        """Encode a value, and then the instances that are nested too deeply in it."""
        root = self.encode(value)
        objects = []
        while self.waiting:
            instance = self.waiting.popleft()
            instance.node = self.enter(instances.write_instance, instance.value)
            objects.append(self.label(instance))
        return {TAG: "graph", "root": root, "objects": objects} if objects else root

    def encode(self, value: Any) -> Encoded:
        self.items_left -= 1
        if self.items_left < 0:
            raise _CapsExceededError(f"it holds more than {self.caps.items:,} values")
        kind = id(type(value))
        if kind in _ATOMS:
            return self.writers[kind](self, value)
        write = self.writers.get(kind)
        if write is None:
            return self.encode_object(value)
        return self.enter(write, value)

    def enter(self, write: Callable[[Any, Any], Encoded], value: Any) -> Encoded:
        """Encode a value that may contain others."""
        if id(value) in self.above:
            return {TAG: "cycle", "up": len(self.above) - self.above[id(value)]}
        if len(self.above) >= self.caps.depth:
            raise _CapsExceededError(f"it is nested deeper than {self.caps.depth} levels")
        self.above[id(value)] = len(self.above)
        try:
            return write(self, value)
        finally:
            del self.above[id(value)]

    def encode_object(self, value: Any) -> Encoded:
        """Encode an instance, or a reference to it if it has been found before."""
        write = instances.find_atom_writer(type(value))
        if write is not None:
            return self.enter(write, value)
        if self.keys:  # equal keys must give equal texts, wherever they are found first
            return self.enter(instances.write_instance, value)
        instance = self.found.get(id(value))
        if instance is not None:
            return self.refer(instance)
        instance = self.found[id(value)] = _Instance(value)
        if len(self.above) >= min(_MOST_INLINE, self.caps.depth):
            self.waiting.append(instance)
            return self.refer(instance)
        instance.node = self.enter(instances.write_instance, value)
        return self.label(instance)

    def refer(self, instance: _Instance) -> Encoded:
        """Return a reference to an instance."""
        if not instance.number:
            self.referred += 1
            instance.number = self.referred
            self.label(instance)
        return {TAG: "ref", "to": instance.number}

    def label(self, instance: _Instance) -> Encoded:
        """Return an encoded instance, with its number if others refer to it."""
        if instance.number and instance.node is not None:
            instance.node["id"] = instance.number
        return instance.node

    def learn(self, kind: type) -> instances.ClassFacts:
        """Return what is known of a class."""
        facts = self.facts.get(id(kind))
        if facts is None:
            facts = self.facts[id(kind)] = instances.ClassFacts(kind)
        return facts

    def as_key(self, value: object) -> Encoded:
        """Encode a value in a way that depends on nothing else."""
        self.keys += 1
        try:
            return self.encode(value)
        finally:
            self.keys -= 1

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
        return {TAG: tag, "items": sorted(map(self.as_key, values), key=dump_encoded)}

    def pairs(self, tag: str, values: Iterable[tuple[object, object]]) -> Encoded:
        return {TAG: tag, "items": [[self.as_key(key), self.encode(item)] for key, item in values]}

    def state(self, attributes: dict[str, object]) -> dict[str, Encoded]:
        return {name: self.encode(value) for name, value in attributes.items()}


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
