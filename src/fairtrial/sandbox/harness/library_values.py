"""Encoding of values of the standard library and of numpy, for `codec`.

Only modules that are loaded already are used: their values can't exist without them, and importing
them here would hide a project's own modules of the same name. Candidates may replace what modules
hold: so numpy's types are used only if they are written in C, which classes of Python can't be.
"""

from __future__ import annotations

import builtins
import sys
from typing import Any, Callable

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own

TAG = "$"
Encoded = Any
Writer = Callable[[Any, Any, Any], Encoded]
"""Encodes a value; called with the encoder, the type, and the value."""

RAW_KINDS = "biufcmMSU"  # numpy's kinds of types whose values are given by their bytes alone
_DATE, _TIME = ("year", "month", "day"), ("hour", "minute", "second", "microsecond")


_modules = sys.modules
_flags = type.__dict__["__flags__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_ModuleType: Any = type(sys)
_module_dict = vars(_ModuleType)["__dict__"].__get__
_NAMES = tuple(type.__dict__[part].__get__ for part in ("__module__", "__qualname__"))
_IS_MADE_LATER = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_IS_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE, since Python 3.10


def qualified_name(kind: type) -> str:
    """Return a type's module and name (``graphs.Graph.Node``), as set before any metaclass.

    A class that isn't found under its name, and so may only pretend to be another one, is marked.
    """
    names = [read(kind) for read in _NAMES]
    name = ".".join(part if type(part) is str else "?" for part in names)
    return name if _is_found(kind, *names) else name + " (another class of this name)"


def _is_found(kind: type, module: Any, path: Any) -> bool:
    """Return whether a class is the one that its module holds under its name."""
    if is_native(kind) or type(module) is not str or type(path) is not str or "<" in path:
        return True
    return find_by_name(module, path) is kind


def find_by_name(module: str, path: str) -> Any:
    """Return what a loaded module holds under a name such as ``Graph.Node``; None if nothing.

    No code of the module or of its classes is run.
    """
    namespace = None
    member: Any = _modules.get(module)
    try:
        for part in path.split("."):
            namespace = _module_dict(member) if namespace is None else _namespace(member)
            member = namespace[part]
            if type(member) is staticmethod:
                member = member.__func__
    except (KeyError, TypeError):
        return None
    return member


def is_native(kind: Any) -> bool:
    """Return whether a type was made by C code and can't be changed by code in Python."""
    if not isinstance(kind, type):
        return False
    flags = _flags(kind)
    return not flags & _IS_MADE_LATER or bool(flags & _IS_IMMUTABLE)


def find_numpy_type(name: str) -> Any:
    """Return `ndarray` or `generic`, if numpy is loaded and its type is numpy's own; else None."""
    kind = getattr(_modules.get("numpy"), name, None)
    return kind if is_native(kind) and _NAMES[0](kind) == "numpy" else None


def _get_attributes(kind: Any, value: object, *names: str) -> list[Any]:
    """Return attributes of a value as `kind` defines them, even if a subclass overrides them."""
    return [getattr(kind, name).__get__(value) for name in names]


def _write_parts(tag: str, *names: str) -> Writer:
    return lambda encoder, kind, value: encoder.items(tag, _get_attributes(kind, value, *names))


def _write_text(tag: str) -> Writer:
    return lambda encoder, kind, value: {
        TAG: tag,
        "type": kind.__name__,
        "value": encoder.encode(kind.__str__(value)),
    }


def _write_moment(*names: str) -> Writer:
    """Return a writer for `datetime` and `time`: numbers, fold and time zone."""

    def write(encoder: Any, kind: Any, value: Any) -> Encoded:
        *parts, zone = _get_attributes(kind, value, *names, "fold", "tzinfo")
        encoded = None if zone is None else _write_zone(encoder, value, zone)
        return {TAG: kind.__name__, "items": parts, "zone": encoded}

    return write


def _write_zone(encoder: Any, value: Any, zone: Any) -> Encoded:
    fixed_offset = getattr(sys.modules.get("datetime"), "timezone", None)
    entry = {"type": qualified_name(type(zone)), "offset": encoder.encode(value.utcoffset())}
    key = zone.tzname(None) if type(zone) is fixed_offset else getattr(zone, "key", None)
    return {**entry, "key": encoder.encode(key)}


def _write_defaultdict(encoder: Any, kind: Any, value: Any) -> Encoded:
    (factory,) = _get_attributes(kind, value, "default_factory")
    is_builtin = type(factory) is type and factory.__module__ == "builtins"
    name = None if factory is None else factory.__name__ if is_builtin else "another"
    return {**encoder.pairs("defaultdict", dict.items(value)), "factory": name}


def _write_ndarray(encoder: Any, kind: Any, value: Any) -> Encoded:
    dtype, shape, size = _get_attributes(kind, value, "dtype", "shape", "nbytes")
    layout = {"layout": describe_layout(kind, value)} if encoder.has_layouts else {}
    if dtype.kind in RAW_KINDS:
        encoder.charge(size)
        entry = {TAG: "ndarray", "dtype": dtype.str, "shape": list(shape), **layout}
        return {**entry, "value": encoder.base64(kind.tobytes(value))}
    items = kind.tolist(kind.reshape(kind.view(value, kind), -1))
    entry = {"dtype": str(dtype), "shape": list(shape), **layout}
    return {**encoder.items("ndarray", items), **entry}


def describe_layout(kind: Any, value: Any) -> str:
    """Return letters for C-contiguous, F-contiguous and writable."""
    (flags,) = _get_attributes(kind, value, "flags")
    letters = {"C": flags.c_contiguous, "F": flags.f_contiguous, "W": flags.writeable}
    return "".join(letter for letter, is_set in letters.items() if is_set)


def write_scalar(encoder: Any, generic: Any, value: Any) -> Encoded:
    """Encode a numpy scalar, like an array without axes."""
    array = _write_ndarray(encoder, find_numpy_type("ndarray"), generic.__array__(value))
    array.pop("layout", None)
    return {**array, TAG: "scalar", "type": qualified_name(type(value))}


STANDARD: dict[tuple[str, str], Writer] = {
    ("array", "array"): lambda encoder, kind, value: {
        **encoder.items("array", kind.tolist(value)),
        "code": _get_attributes(kind, value, "typecode")[0],
    },
    ("collections", "Counter"): lambda encoder, kind, value: encoder.pairs(
        "Counter", dict.items(value)
    ),
    ("collections", "OrderedDict"): lambda encoder, kind, value: encoder.pairs(
        "OrderedDict", kind.items(value)
    ),
    ("collections", "defaultdict"): _write_defaultdict,
    ("collections", "deque"): lambda encoder, kind, value: {
        **encoder.items("deque", kind.__iter__(value)),
        "maxlen": _get_attributes(kind, value, "maxlen")[0],
    },
    ("datetime", "date"): _write_parts("date", *_DATE),
    ("datetime", "datetime"): _write_moment(*_DATE, *_TIME),
    ("datetime", "time"): _write_moment(*_TIME),
    ("datetime", "timedelta"): _write_parts("timedelta", "days", "seconds", "microseconds"),
    ("decimal", "Decimal"): _write_text("Decimal"),
    ("fractions", "Fraction"): _write_parts("Fraction", "numerator", "denominator"),
    ("numpy", "ndarray"): _write_ndarray,
    ("pathlib", "PosixPath"): _write_text("path"),
    ("pathlib", "PurePosixPath"): _write_text("path"),
    ("pathlib", "PureWindowsPath"): _write_text("path"),
    ("pathlib", "WindowsPath"): _write_text("path"),
    ("uuid", "UUID"): _write_text("UUID"),
}
"""The writer of each type, by module and name."""


def find_loaded_types() -> list[tuple[type, Writer]]:
    """Return the types of `STANDARD` whose modules are loaded, with their writers."""
    loaded = []
    for (module, name), write in STANDARD.items():
        kind = _FIRST.get((module, name)) or getattr(_modules.get(module), name, None)
        if isinstance(kind, type) and (module != "numpy" or is_native(kind)):
            loaded.append((kind, write))
    return loaded


def list_immutable() -> list[Any]:
    """Return the types of dates and decimal numbers whose modules are loaded."""
    return [
        kind
        for (module, _), kind in _FIRST.items()
        if module in ("datetime", "decimal") and kind is not None
    ]


# The types of modules that were loaded before any candidate could replace them.
_FIRST = {key: getattr(_modules.get(key[0]), key[1], None) for key in STANDARD}
