"""The mutable objects that a value consists of: which they are, and changing them.

Only containers of the standard library, instances of classes and arrays of numpy are entered, by
their exact types and with the methods of those types: nothing that a class may override is called.
"""

from __future__ import annotations

import builtins
import collections
from typing import Any

from .instances import HIDDEN, ClassFacts, HiddenStateError, find_atom_writer, is_written_in_c
from .library_values import find_numpy_type

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own
MARK = "changed by the caller"
_MOST_OBJECTS = 10_000
_MOST_CHANGED = 100
_NUMBERS = "biufc"
_PLAIN = (type(None), bool, int, float, str)
_deque = collections.deque
_DICTS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_read, _write = object.__getattribute__, object.__setattr__
_bases = type.__dict__["__mro__"].__get__
_namespace = type.__dict__["__dict__"].__get__


def list_mutable(value: object) -> list[Any]:
    """Return the mutable objects in a value, each as often as it occurs, up to a limit."""
    array = find_numpy_type("ndarray")
    known: dict[int, ClassFacts] = {}
    entered: dict[int, Any] = {}  # instances may refer to each other in cycles
    mutable, waiting, seen = [], [value], 0
    while waiting and seen < _MOST_OBJECTS:
        seen += 1
        part: Any = waiting.pop()
        kind = type(part)
        if kind is list or kind is _deque:
            mutable.append(part)
            waiting += reversed(list(part))
        elif kind is tuple:
            waiting += reversed(part)
        elif _is_dict(kind):
            mutable.append(part)
            waiting += reversed(list(dict.values(part)))
        elif _list_fields(kind):
            mutable.append(part)
            waiting += reversed([value for _, value in _read_fields(part)])
        elif kind is set or kind is bytearray or (array is not None and kind is array):
            mutable.append(part)
        elif _is_instance(kind):
            facts = known.get(id(kind)) or ClassFacts(kind)
            known[id(kind)] = facts
            if not facts.declares_own("__setattr__"):
                mutable.append(part)
            if id(part) not in entered:
                entered[id(part)] = part
                waiting += reversed(_read_attributes(facts, part))
    return mutable


def is_iterator(value: object) -> bool:
    """Return whether a value can be iterated over only once."""
    return any("__next__" in _namespace(base) for base in _bases(type(value)))


def change(value: object) -> None:
    """Change the mutable objects in a value, as a caller may do with a result."""
    for part in list_mutable(value)[:_MOST_CHANGED]:
        kind = type(part)
        if kind is list or kind is _deque:
            kind.append(part, MARK)
        elif _is_dict(kind):
            dict.__setitem__(part, MARK, MARK)
        elif _list_fields(kind):
            for name, _ in _read_fields(part)[:1]:
                _write(part, name, MARK)
        elif kind is set:
            part.add(MARK)
        elif kind is bytearray:
            part.append(0)
        elif _is_instance(kind):
            _change_attribute(part)
        else:
            _change_array(kind, part)


def _is_instance(kind: type) -> bool:
    """Return whether instances of a type hold nothing but attributes."""
    if find_atom_writer(kind) is not None:  # members of enumerations are shared by all
        return False
    is_extended = any(base is not object and is_written_in_c(base) for base in _bases(kind))
    return not is_extended and kind is not object and not is_written_in_c(kind)


def _read_attributes(facts: ClassFacts, part: Any) -> list[Any]:
    try:
        return list(facts.read_attributes(part).values())
    except HiddenStateError:
        return []


def _change_attribute(part: Any) -> None:
    """Change the first attribute that holds a plain value."""
    try:
        attributes = ClassFacts(type(part)).read_attributes(part)
    except HiddenStateError:
        return
    for name, value in attributes.items():
        if any(type(value) is kind for kind in _PLAIN) and HIDDEN not in name:
            _write(part, name, MARK)
            return


def _is_dict(kind: type) -> bool:
    return any(kind is other for other in _DICTS)


def _list_fields(kind: type) -> list[str]:
    """Return the fields of a dataclass whose instances can be changed; none for other classes."""
    fields: Any = None
    for base in _bases(kind):
        if "__dataclass_fields__" in _namespace(base):
            fields = _namespace(base)["__dataclass_fields__"]
            break
    parameters = next(
        (
            _namespace(base)["__dataclass_params__"]
            for base in _bases(kind)
            if "__dataclass_params__" in _namespace(base)
        ),
        None,
    )
    if type(fields) is not dict or getattr(parameters, "frozen", True):
        return []
    return [name for name in fields if type(name) is str]


def _read_fields(part: Any) -> list[tuple[str, Any]]:
    """Return the fields of a dataclass instance that have a value."""
    pairs = []
    for name in _list_fields(type(part)):
        try:
            pairs.append((name, _read(part, name)))
        except AttributeError:
            continue
    return pairs


def _change_array(kind: Any, array: Any) -> None:
    """Change the first number of an array."""
    flags, dtype, size, axes = (
        getattr(kind, name).__get__(array) for name in ("flags", "dtype", "size", "ndim")
    )
    if flags.writeable and size and dtype.kind in _NUMBERS:
        first = (0,) * axes
        kind.__setitem__(array, first, 0 if kind.__getitem__(array, first) == 1 else 1)
