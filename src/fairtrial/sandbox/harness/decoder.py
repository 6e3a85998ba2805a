"""Decoding of tagged JSON (see `codec`) to values, for the arguments of functions.

Only plain types are decoded. Nothing is evaluated, unpickled or looked up by a name in the data.
"""

from __future__ import annotations

import binascii
import builtins
from typing import Any, Callable

from .library_values import TAG, Encoded, find_numpy_type

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own
_from_base64 = binascii.a2b_base64

_FACTORIES = {
    kind.__name__: kind
    for kind in (bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple)
}


def decode(node: Encoded) -> Any:
    """Decode a value; raises `ValueError` if it isn't plain data, or is malformed."""
    if type(node) is list:
        return [decode(item) for item in node]
    if type(node) is not dict:
        return node
    if TAG not in node:
        return {key: decode(value) for key, value in node.items()}
    read = _READERS.get(node[TAG]) if type(node[TAG]) is str else None
    if read is None:
        raise ValueError(f"{_describe(node)} can't be made again from plain data")
    try:
        return read(node)
    except (KeyError, TypeError, AttributeError, IndexError, ImportError) as error:
        raise ValueError(f"{_describe(node)} can't be read: {error!r}") from error


def _describe(node: Encoded) -> str:
    name = node.get("type", node[TAG])
    return f"an object of type {name}" if "type" in node else f"a value tagged {name!r}"


def _decode_bytes(node: Encoded) -> bytes:
    content = node["value"]
    return content if type(content) is bytes else _from_base64(content)


def _decode_items(node: Encoded) -> list[Any]:
    return [decode(item) for item in node["items"]]


def _decode_pairs(node: Encoded) -> list[tuple[Any, Any]]:
    return [(decode(key), decode(value)) for key, value in node["items"]]


def _read_int(node: Encoded) -> int:
    return int(node["value"], 16)


def _read_collection(name: str) -> Callable[[Encoded], Any]:
    def read(node: Encoded) -> Any:
        import collections

        if name == "deque":
            return collections.deque(_decode_items(node), node.get("maxlen"))
        if name == "defaultdict":
            factory = node.get("factory")
            return collections.defaultdict(factory and _FACTORIES[factory], _decode_pairs(node))
        mapping = getattr(collections, name)()
        for key, value in _decode_pairs(node):
            mapping[key] = value
        return mapping

    return read


def _read_moment(node: Encoded) -> Any:
    import datetime

    *parts, fold = node["items"]
    zone = node.get("zone")
    if zone is not None and zone["type"] == "zoneinfo.ZoneInfo":
        import zoneinfo

        zone = zoneinfo.ZoneInfo(zone["key"])
    elif zone is not None and zone["type"] == "datetime.timezone":
        offset = decode(zone["offset"])
        plain = datetime.timezone(offset)
        name = decode(zone["key"])
        zone = plain if plain.tzname(None) == name else datetime.timezone(offset, name)
    elif zone is not None:
        raise ValueError("a time zone of type {} can't be made again".format(zone["type"]))
    kind = {"datetime": datetime.datetime, "time": datetime.time}[node[TAG]]
    return kind(*parts, tzinfo=zone, fold=fold)


def _read_with(module: str, name: str) -> Callable[[Encoded], Any]:
    """Return a reader for a type that is constructed from its items, in order."""
    return lambda node: getattr(__import__(module), name)(*_decode_items(node))


def _read_path(node: Encoded) -> Any:
    import pathlib

    names = ("PosixPath", "PurePosixPath", "PureWindowsPath", "WindowsPath")
    return {name: getattr(pathlib, name) for name in names}[node["type"]](decode(node["value"]))


def _read_array(node: Encoded) -> Any:
    import array

    return array.array(node["code"], _decode_items(node))


def _read_ndarray(node: Encoded) -> Any:
    # Only the type itself is used: functions of the module can be replaced.
    __import__("numpy")
    make = find_numpy_type("ndarray")
    if "value" in node:
        array = make(node["shape"], node["dtype"], bytearray(_decode_bytes(node)))
        if make.dtype.__get__(array).hasobject:
            raise ValueError("the bytes of an array can't be addresses of objects")
        return array
    if node["dtype"] != "object":
        raise ValueError("an array of {} can't be made again".format(node["dtype"]))
    flat = make(len(node["items"]), object)
    for index, item in enumerate(_decode_items(node)):
        flat[index] = item
    return make.reshape(flat, node["shape"])


_READERS: dict[str, Callable[[Encoded], Any]] = {
    "Counter": _read_collection("Counter"),
    "Decimal": lambda node: __import__("decimal").Decimal(node["value"]),
    "Fraction": _read_with("fractions", "Fraction"),
    "OrderedDict": _read_collection("OrderedDict"),
    "UUID": lambda node: __import__("uuid").UUID(node["value"]),
    "array": _read_array,
    "bytearray": lambda node: bytearray(_decode_bytes(node)),
    "bytes": _decode_bytes,
    "complex": lambda node: complex(*_decode_items(node)),
    "constant": lambda node: {"Ellipsis": ..., "NotImplemented": NotImplemented}[node["value"]],
    "date": _read_with("datetime", "date"),
    "datetime": _read_moment,
    "defaultdict": _read_collection("defaultdict"),
    "deque": _read_collection("deque"),
    "dict": lambda node: dict(_decode_pairs(node)),
    "float": lambda node: float(node["value"]),
    "frozenset": lambda node: frozenset(_decode_items(node)),
    "int": _read_int,
    "iterator": lambda node: iter(_decode_items(node)),
    "ndarray": _read_ndarray,
    "path": _read_path,
    "range": lambda node: range(*_decode_items(node)),
    "scalar": lambda node: _read_ndarray(node)[()],
    "set": lambda node: set(_decode_items(node)),
    "slice": lambda node: slice(*_decode_items(node)),
    "str": lambda node: _decode_bytes(node).decode("utf-8", "surrogatepass"),
    "time": _read_moment,
    "timedelta": _read_with("datetime", "timedelta"),
    "tuple": lambda node: tuple(_decode_items(node)),
}
