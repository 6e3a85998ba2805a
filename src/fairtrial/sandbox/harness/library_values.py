"""Values of the standard library and of numpy, as `codec` writes them down.

Modules are looked for among those that are loaded: a value of theirs can't exist without them, and
importing them here would put them before a project's own modules of the same name.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

TAG = "$"
Encoded = Any
Writer = Callable[[Any, Any, Any], Encoded]
"""Is given the encoder, the type that it is for, and the value."""

_RAW_KINDS = "biufcmMSU"  # numpy's: what an array's bytes say all of
_DATE, _TIME = ("year", "month", "day"), ("hour", "minute", "second", "microsecond")


def name_of(kind: type) -> str:
    """``builtins.ValueError``, ``graphs.Graph.Node``; not what a metaclass makes of it."""
    names = [type.__dict__[part].__get__(kind) for part in ("__module__", "__qualname__")]
    return ".".join(name if type(name) is str else "?" for name in names)


def _get(kind: Any, value: object, *names: str) -> list[Any]:
    """Attributes as `kind` defines them, whatever a subclass makes of them."""
    return [getattr(kind, name).__get__(value) for name in names]


def _write_parts(tag: str, *names: str) -> Writer:
    return lambda encoder, kind, value: encoder.items(tag, _get(kind, value, *names))


def _write_text(tag: str) -> Writer:
    return lambda encoder, kind, value: {
        TAG: tag,
        "type": kind.__name__,
        "value": encoder.encode(kind.__str__(value)),
    }


def _write_moment(*names: str) -> Writer:
    """Of `datetime` and `time`: the numbers, the fold, the time zone."""

    def write(encoder: Any, kind: Any, value: Any) -> Encoded:
        *parts, zone = _get(kind, value, *names, "fold", "tzinfo")
        encoded = None if zone is None else _write_zone(encoder, value, zone)
        return {TAG: kind.__name__, "items": parts, "zone": encoded}

    return write


def _write_zone(encoder: Any, value: Any, zone: Any) -> Encoded:
    fixed = getattr(sys.modules.get("datetime"), "timezone", None)
    named = {"type": name_of(type(zone)), "offset": encoder.encode(value.utcoffset())}
    key = zone.tzname(None) if type(zone) is fixed else getattr(zone, "key", None)
    return {**named, "key": encoder.encode(key)}


def _write_defaultdict(encoder: Any, kind: Any, value: Any) -> Encoded:
    (factory,) = _get(kind, value, "default_factory")
    is_known = type(factory) is type and factory.__module__ == "builtins"
    name = None if factory is None else factory.__name__ if is_known else "another"
    return {**encoder.pairs("defaultdict", dict.items(value)), "factory": name}


def _write_ndarray(encoder: Any, kind: Any, value: Any) -> Encoded:
    dtype, shape, size = _get(kind, value, "dtype", "shape", "nbytes")
    if dtype.kind in _RAW_KINDS:
        encoder.charge(size)
        about = {TAG: "ndarray", "dtype": dtype.str, "shape": list(shape)}
        return {**about, "value": encoder.base64(kind.tobytes(value))}
    items = kind.tolist(kind.reshape(kind.view(value, kind), -1))
    return {**encoder.items("ndarray", items), "dtype": str(dtype), "shape": list(shape)}


def write_scalar(encoder: Any, numpy: Any, value: Any) -> Encoded:
    """A number of numpy's own: an array without axes."""
    array = _write_ndarray(encoder, numpy.ndarray, numpy.asarray(value))
    return {**array, TAG: "scalar", "type": name_of(type(value))}


STANDARD: dict[tuple[str, str], Writer] = {
    ("array", "array"): lambda encoder, kind, value: {
        **encoder.items("array", kind.tolist(value)),
        "code": _get(kind, value, "typecode")[0],
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
        "maxlen": _get(kind, value, "maxlen")[0],
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
"""By module and type: how an instance is written down."""


def find_loaded() -> list[tuple[type, Writer]]:
    """Those types of the table whose modules are loaded."""
    found = []
    for (module, name), write in STANDARD.items():
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type):
            found.append((kind, write))
    return found
