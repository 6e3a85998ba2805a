"""Read encoded values: their kinds and contents.

Pure functions on tagged JSON (`fairtrial.sandbox.wire`), which may be forged: they raise
ValueError, TypeError or LookupError for anything that isn't an encoded value.
"""

from __future__ import annotations

import binascii
from typing import TypeAlias

from fairtrial.sandbox import wire

Encoded: TypeAlias = wire.Encoded
"""A value as tagged JSON."""
TAG = wire.TAG
"""The key of a tagged value's kind."""
UNORDERED = {"set", "frozenset", "dict_keys", "dict_values", "dict_items"}
MAPPINGS = {"dict", "Counter", "defaultdict"}
SEQUENCES = {"list", "tuple", "namedtuple", "deque", "array", "iterator"}
EXACT = {"None", "bool", "bytes", "bytearray", "constant", "type", "cycle", "enum", "range"}
EXACT |= {"slice", "date", "time", "datetime", "timedelta", "Fraction", "Decimal", "UUID", "path"}
EXACT |= {"function"}
KINDS = {"OrderedDict", "complex", "dataclass", "exception", "float", "int", "ndarray", "object"}
KINDS |= (
    {"graph", "method", "ref", "opaque", "scalar", "str", "unreadable"}
    | UNORDERED
    | MAPPINGS
    | SEQUENCES
    | EXACT
)


def get_kind(node: Encoded) -> str:
    """Return the kind of a value, plain or tagged: ``int``, ``tuple``, ``opaque``."""
    if isinstance(node, dict):
        tag = node.get(TAG, "dict")
        return tag if isinstance(tag, str) and tag in KINDS else "unknown"
    name = type(node).__name__
    return "None" if node is None else name if name in KINDS else "unknown"


def read_int(node: Encoded) -> int:
    """Decode an integer, plain or tagged."""
    return int(node["value"], 16) if isinstance(node, dict) else int(node)


def read_float(node: Encoded) -> float:
    """Decode a float, plain or tagged."""
    return float(node["value"]) if isinstance(node, dict) else float(node)


def read_text(node: Encoded) -> str:
    """Decode a text, plain or tagged."""
    if isinstance(node, dict):
        return read_bytes(node).decode("utf-8", "surrogatepass")
    return str(node)


def read_bytes(node: Encoded) -> bytes:
    """Decode the bytes of a tagged value."""
    return binascii.a2b_base64(node["value"])


def canonical(node: Encoded) -> str:
    """Return a text that is equal for equal values, whatever the order of sets and mappings.

    Each part is visited once, however deep a forged value is nested.
    """
    if isinstance(node, list):
        return "[{}]".format(",".join([canonical(item) for item in node]))
    if not isinstance(node, dict):
        return wire.dump_encoded(node)
    kind = get_kind(node)
    if kind in MAPPINGS:
        pairs = [f"[{canonical(key)},{canonical(value)}]" for key, value in get_pairs(node)]
        factory = canonical(node["factory"]) if "factory" in node else ""
        return "{}{}{{{}}}".format(kind, factory, ",".join(sorted(pairs)))
    is_unordered = kind in UNORDERED
    parts = {
        key: canonical(value)
        for key, value in node.items()
        if not (is_unordered and key == "items")
    }
    if is_unordered:
        items = [canonical(item) for item in _get_list(node)]
        parts["items"] = "[{}]".format(",".join(sorted(items)))
    return "{{{}}}".format(
        ",".join(f"{wire.dump_encoded(key)}:{parts[key]}" for key in sorted(parts))
    )


def _get_list(node: Encoded) -> list[Encoded]:
    items = node["items"]
    if not isinstance(items, list):
        raise TypeError("items must be a list")
    return items


def get_pairs(node: Encoded) -> list[tuple[Encoded, Encoded]]:
    """Return the keys and values of a dictionary, plain or tagged."""
    return [(key, value) for key, value in (node["items"] if TAG in node else node.items())]


def collect_labeled(node: Encoded) -> tuple[dict[int, Encoded], int]:
    """Return the parts of a value that others refer to, by their numbers, and the number of all."""
    objects: dict[int, Encoded] = {}
    waiting, count = [node], 0
    while waiting:
        part = waiting.pop()
        count += 1
        if isinstance(part, dict):
            if TAG in part and isinstance(part.get("id"), int) and part[TAG] != "ref":
                objects.setdefault(part["id"], part)
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return objects, count


def find_unplain(node: Encoded) -> Encoded | None:
    """Return the first part of a value that can't be compared; None if there is none."""
    if isinstance(node, dict) and node.get(TAG) in ("opaque", "unreadable"):
        return node
    parts = node if isinstance(node, list) else node.values() if isinstance(node, dict) else ()
    unplain = (find_unplain(part) for part in parts)
    return next((part for part in unplain if part is not None), None)
