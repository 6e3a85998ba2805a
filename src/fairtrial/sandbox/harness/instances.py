"""What instances of classes consist of: read without calling anything that a class may override.

Attributes are taken from the real ``__dict__`` and the real slots. Of dataclasses and attrs classes
only the fields count that take part in ``==``. What `functools.cached_property` keeps doesn't
count: it follows from the rest. An attribute that a property or another descriptor of the class
hides gets another name, so that a class can't show its callers something else than it holds.

Parts of an instance that are written in C are read by methods of that type itself: its
``__reduce_ex__`` or ``__getstate__``. Methods in Python of these names are not called.
"""

from __future__ import annotations

import _thread
import builtins
import copyreg
import enum
import functools
import gc
import sys
import types
from typing import Any, Iterator

from . import library_objects, library_values
from .library_values import TAG, Encoded, is_native, qualified_name

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own

HIDDEN = " (behind a property)"
"""Added to the name of an attribute that a property of the class hides."""
_PROTOCOL = 4
_Enum, _cached_property = enum.Enum, functools.cached_property
_Function, _Method, _Builtin = types.FunctionType, types.MethodType, types.BuiltinFunctionType
_Module, _Member, _Getset = types.ModuleType, types.MemberDescriptorType, types.GetSetDescriptorType
_reducers = dict(copyreg.dispatch_table)
_modules, _get_referents = sys.modules, gc.get_referents
_bases = type.__dict__["__mro__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_read = object.__getattribute__
_args = BaseException.__dict__["args"].__get__
_CHANGED_ACCESS = ("__getattribute__", "__class__")
_LOCKS = {type(_thread.allocate_lock()): "lock", type(_thread.RLock()): "RLock"}
_REDUCED = ("made_by", "arguments", "state", "items", "pairs")
# Converts an instance of a subclass to the class itself, if its own methods would be called.
_PLAIN: dict[type, Any] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    complex: complex.__pos__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytearray.__getitem__(value, slice(None)),
}


_CONTENTS: dict[type, Any] = {
    **_PLAIN,
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
}


class HiddenStateError(Exception):
    """A class hides what its instances consist of."""


class ClassFacts:
    """What is known of a class.

    kind: the class
    name: its qualified name; a class that changes how attributes are read is marked
    bases: the class and its base classes
    native: the first of them that is written in C
    fields: the names of the fields that are compared, if it says which; else None
    write: encodes its instances, if it belongs to a library whose classes are known; else None
    """

    __slots__ = ("_names", "_slots", "bases", "fields", "kind", "name", "native", "write")

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.bases = _bases(kind)
        self.native = next(base for base in self.bases if is_written_in_c(base))
        own = self.bases[: _find(self.bases, self.native)]
        changed = [
            name for name in _CHANGED_ACCESS if any(name in _namespace(base) for base in own)
        ]
        self.name = qualified_name(kind) + "".join(f" (with its own {name})" for name in changed)
        self.fields = _find_fields(self.bases)
        self.write = library_objects.find_writer(self.bases)
        self._slots: list[tuple[str, Any]] = [
            (name, member)
            for base in own
            for name, member in list(_namespace(base).items())
            if type(member) is _Member
        ]
        if any(type(_namespace(base).get("__dict__")) not in (_Getset, type(None)) for base in own):
            self._slots = [("__dict__", None)]
        self._names: dict[str, str] = {}

    def read_state(self, value: object) -> dict[str, object]:
        """Return the attributes of an instance that are compared.

        Raises `HiddenStateError` if the class hides them.
        """
        attributes = self.read_attributes(value)
        if self.fields is None:
            return attributes
        return dict(self._iterate_fields(attributes))

    def read_attributes(self, value: object) -> dict[str, object]:
        """Return the attributes of an instance, whether or not they are compared."""
        return dict(self._iterate_attributes(value))

    @property
    def is_simple(self) -> bool:
        """Whether content and attributes are all that is compared of its instances."""
        if self.write is not None or _contains(self.bases, BaseException):
            return False
        if _contains(self.bases, _Enum) or _contains(self.bases, type) or self.declares("__next__"):
            return False
        return (self.native is object and self.kind is not object) or self.native in _CONTENTS

    def read_content(self, value: Any) -> object:
        """Return the content of an instance that extends a built-in type; None for others."""
        return None if self.native is object else _CONTENTS[self.native](value)

    def declares(self, name: str) -> bool:
        """Return whether the class or a base class of it defines this name."""
        return any(name in _namespace(base) for base in self.bases)

    def declares_own(self, name: str) -> bool:
        """Return whether a class in Python among them defines this name."""
        own = self.bases[: _find(self.bases, self.native)]
        return any(name in _namespace(base) for base in own)

    def _iterate_fields(self, attributes: dict[str, object]) -> Iterator[tuple[str, object]]:
        for name in self.fields or ():
            spelled = self._spell(name)
            if spelled in attributes:
                yield spelled, attributes[spelled]
            else:  # a default that the class keeps for all instances
                default = find_declared(self.bases, name)
                if default is not None and not _is_descriptor(default):
                    yield name, default

    def _iterate_attributes(self, value: object) -> Iterator[tuple[str, object]]:
        for name, member in self._slots:
            if member is None:
                raise HiddenStateError
            try:
                content = member.__get__(value)
            except AttributeError:
                continue  # a slot without a value
            yield self._spell(name), content
        try:
            attributes = _read(value, "__dict__")
        except AttributeError:
            return
        if type(attributes) is not dict:
            raise HiddenStateError
        for name, content in list(attributes.items()):
            spelled = self._spell(name) if type(name) is str else "?"
            if spelled:
                yield spelled, content

    def _spell(self, name: str) -> str:
        """Return the name under which an attribute is reported; empty if it is not compared."""
        spelled = self._names.get(name)
        if spelled is None:
            declared = find_declared(self.bases, name)
            kind = type(declared)
            spelled = name
            if any(base is _cached_property for base in _bases(kind)):
                spelled = ""
            elif kind is not _Member and _is_descriptor(declared, "__set__", "__delete__"):
                spelled = name + HIDDEN
            self._names[name] = spelled
        return spelled


def is_written_in_c(kind: type) -> bool:
    """Return whether a type is written in C: a static one, or one that C code has made."""
    if is_native(kind):
        return True
    new = _namespace(kind).get("__new__")
    return type(new) is _Builtin and new.__self__ is kind


def _is_descriptor(declared: object, *setters: str) -> bool:
    """Return whether an attribute of a class decides what instances show under its name."""
    bases = _bases(type(declared))
    names = {name for base in bases for name in ("__get__", *setters) if name in _namespace(base)}
    return "__get__" in names and (not setters or len(names) > 1)


def find_declared(bases: Any, name: str) -> Any:
    """Return the attribute that a class or one of its bases defines; None if none does."""
    return next((_namespace(base)[name] for base in bases if name in _namespace(base)), None)


def _find_fields(bases: Any) -> list[str] | None:
    """Return the fields that the `==` of a dataclass or an attrs class compares; else None."""
    declared = find_declared(bases, "__dataclass_fields__")
    if type(declared) is dict:
        return [
            name
            for name, field in declared.items()
            if type(name) is str
            and getattr(getattr(field, "_field_type", None), "name", None) == "_FIELD"
            and getattr(field, "compare", True)
        ]
    declared = find_declared(bases, "__attrs_attrs__")
    if isinstance(declared, tuple):
        fields = tuple.__iter__(declared)
        return [
            field.name
            for field in fields
            if type(getattr(field, "name", None)) is str and getattr(field, "eq", True)
        ]
    return None


def write_instance(encoder: Any, value: Any) -> Encoded:
    """Encode an instance of a class that has no writer of its own."""
    facts: ClassFacts = encoder.learn(type(value))
    entry = {"type": facts.name}
    if _contains(facts.bases, BaseException):
        return {TAG: "exception", **entry, "args": encoder.encode_all(_args(value))}
    if facts.write is not None:
        content: Encoded = facts.write(encoder, facts.name, value)
        return content
    generic = library_values.find_numpy_type("generic")
    if generic is not None and _contains(facts.bases, generic):
        return library_values.write_scalar(encoder, generic, value)
    try:
        if facts.native is object:
            return _write_python_object(encoder, facts, value)
        return _write_extended(encoder, facts, value)
    except HiddenStateError:
        return {TAG: "opaque", **entry}


def _write_python_object(encoder: Any, facts: ClassFacts, value: Any) -> Encoded:
    entry = {"type": facts.name}
    if facts.fields is not None:
        return {TAG: "dataclass", **entry, "state": encoder.state(facts.read_state(value))}
    if encoder.exhausts and facts.declares("__next__"):
        return write_iterator(encoder, value)
    if facts.kind is object:
        return {TAG: "opaque", **entry}
    return {TAG: "object", **entry, "state": encoder.state(facts.read_state(value))}


def _write_extended(encoder: Any, facts: ClassFacts, value: Any) -> Encoded:
    """Encode an instance of a type of C, or of a class that extends one."""
    entry, native = {"type": facts.name}, facts.native
    write = encoder.writers.get(id(native))
    if write is not None and native is tuple and find_declared(facts.bases, "_fields"):
        names = encoder.encode_all(find_declared(facts.bases, "_fields"))
        items = encoder.encode_all(tuple.__iter__(value))
        return {TAG: "namedtuple", **entry, "names": names, "items": items}
    if write is not None:
        content = write(encoder, _PLAIN.get(native, _same)(value))
    elif facts.declares("__next__") and (encoder.exhausts or facts.kind is native):
        return write_iterator(encoder, value)
    else:
        content = _write_reduced(encoder, facts, value)
        if content is None:
            return {TAG: "opaque", **entry}
    if facts.kind is native:
        return {**content, **entry} if write is None else content
    return {
        TAG: "object",
        **entry,
        "base": content,
        "state": encoder.state(facts.read_state(value)),
    }


def _same(value: Any) -> Any:
    return value


def _write_reduced(encoder: Any, facts: ClassFacts, value: Any) -> Any:
    """Encode what a type of C says when it is pickled; None if it says nothing."""
    if facts.native in _LOCKS:
        return {TAG: "constant", "value": _LOCKS[facts.native]}
    parts = _reduce(facts, value)
    if type(parts) is str:
        return {TAG: "constant", "value": parts}
    if type(parts) is not tuple or not 2 <= len(parts) <= len(_REDUCED) + 1:
        return None
    made_by, args, *rest = parts[: len(_REDUCED)]
    rest += [None] * (3 - len(rest))
    state, items, pairs = rest[0], *(None if part is None else list(part) for part in rest[1:])
    content = encoder.encode_all([made_by, args, state, items, pairs])
    entry = {"type": qualified_name(facts.native)}
    return {TAG: "namedtuple", **entry, "names": list(_REDUCED), "items": content}


def _reduce(facts: ClassFacts, value: Any) -> Any:
    reducer = _reducers.get(facts.native)
    if reducer is not None and facts.kind is facts.native:
        return reducer(value)
    for base in facts.bases[_find(facts.bases, facts.native) : -1]:
        for name, args in (
            ("__reduce_ex__", (_PROTOCOL,)),
            ("__reduce__", ()),
            ("__getstate__", ()),
        ):
            method = _namespace(base).get(name)
            if type(method) is _Function:
                return None
            if method is not None:
                parts = method.__get__(value)(*args)
                return parts if name != "__getstate__" else (base, (), parts)
    return None


def write_iterator(encoder: Any, value: Any) -> Encoded:
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


def _contains(bases: Any, wanted: object) -> bool:
    return any(base is wanted for base in bases)  # a metaclass may override `==`


def _find(bases: Any, wanted: object) -> int:
    return next(index for index, base in enumerate(bases) if base is wanted)


def find_atom_writer(kind: type) -> Any:
    """Return the writer of a type whose values have no identity of their own; None for others.

    These are members of enumerations, classes, functions, methods and modules.
    """
    bases = _bases(kind)
    if _contains(bases, _Enum):
        return _write_member
    if _contains(bases, type):
        return lambda encoder, value: {TAG: "type", "type": qualified_name(value)}
    return _ATOMS.get(kind) if is_native(kind) else None


def _write_member(encoder: Any, value: Any) -> Encoded:
    parts = {part: encoder.as_key(_read(value, f"_{part}_")) for part in ("name", "value")}
    return {TAG: "enum", "type": qualified_name(type(value)), **parts}


def _write_function(encoder: Any, value: Any) -> Encoded:
    return _name_function(value) or {TAG: "opaque", "type": "builtins.function"}


def _name_function(value: Any) -> Any:
    """Return the name of a function that is found under it; None for others."""
    module, name = value.__module__, value.__qualname__
    if type(module) is not str or type(name) is not str:
        return None
    if library_values.find_by_name(module, name) is not value:
        return None
    return {TAG: "function", "name": f"{module}.{name}"}


def _write_method(encoder: Any, value: Any) -> Encoded:
    function = value.__func__
    if type(function) is not _Function:
        return {TAG: "opaque", "type": "builtins.method"}
    owner = encoder.encode(value.__self__)
    return {TAG: "method", "name": encoder.encode(function.__qualname__), "items": [owner]}


def _write_builtin(encoder: Any, value: Any) -> Encoded:
    owner = value.__self__
    if owner is None or type(owner) is _Module:
        return _name_function(value) or {TAG: "opaque", "type": "builtins.function"}
    name = encoder.encode(value.__qualname__)
    return {TAG: "method", "name": name, "items": [encoder.encode(owner)]}


def _write_module(encoder: Any, value: Any) -> Encoded:
    name = _read(value, "__name__")
    is_found = type(name) is str and _modules.get(name) is value
    return {TAG: "function", "name": name} if is_found else {TAG: "opaque", "type": "module"}


_ATOMS = {
    _Function: _write_function,
    _Method: _write_method,
    _Builtin: _write_builtin,
    _Module: _write_module,
    types.MappingProxyType: lambda encoder, value: {
        TAG: "method",
        "name": "mappingproxy",
        "items": encoder.encode_all(_get_referents(value)),
    },
}
