"""Encoded values taken apart: what they are, what they hold.

Pure functions on tagged JSON (`fairtrial.sandbox.harness.codec`), of which one side may be forged: they raise
ValueError, TypeError or LookupError for what isn't an encoded value.
"""

from __future__ import annotations

import binascii

from fairtrial.sandbox import TAG, Encoded, dump

UNORDERED = {"set", "frozenset", "dict_keys", "dict_values", "dict_items"}
MAPPINGS = {"dict", "Counter", "defaultdict"}
SEQUENCES = {"list", "tuple", "namedtuple", "deque", "array", "iterator"}
EXACT = {"None", "bool", "bytes", "bytearray", "constant", "type", "cycle", "enum", "range"}
EXACT |= {"slice", "date", "time", "datetime", "timedelta", "Fraction", "Decimal", "UUID", "path"}
KINDS = {"OrderedDict", "complex", "dataclass", "exception", "float", "int", "ndarray", "object"}
KINDS |= {"opaque", "scalar", "str", "unreadable"} | UNORDERED | MAPPINGS | SEQUENCES | EXACT


def kind_of(node: Encoded) -> str:
    """What a value is, whether plain or tagged: ``int``, ``tuple``, ``opaque``."""
    if isinstance(node, dict):
        tag = node.get(TAG, "dict")
        return tag if isinstance(tag, str) and tag in KINDS else "unknown"
    name = type(node).__name__
    return "None" if node is None else name if name in KINDS else "unknown"


def read_int(node: Encoded) -> int:
    """An integer, plain or tagged."""
    return int(node["value"], 16) if isinstance(node, dict) else int(node)


def read_float(node: Encoded) -> float:
    """A float, plain or tagged."""
    return float(node["value"]) if isinstance(node, dict) else float(node)


def read_text(node: Encoded) -> str:
    """A text, plain or tagged."""
    if isinstance(node, dict):
        return read_bytes(node).decode("utf-8", "surrogatepass")
    return str(node)


def read_bytes(node: Encoded) -> bytes:
    """The bytes that stand in a tagged value."""
    return binascii.a2b_base64(node["value"])


def canonical(node: Encoded) -> str:
    """The same text for the same value, whatever order its unordered parts came in."""
    return dump(_sorted(node))


def _sorted(node: Encoded) -> Encoded:
    if isinstance(node, list):
        return [_sorted(item) for item in node]
    if not isinstance(node, dict):
        return node
    kind, made = kind_of(node), {key: _sorted(value) for key, value in sorted(node.items())}
    if kind in UNORDERED:
        made["items"] = sorted(made["items"], key=dump)
    elif kind in MAPPINGS:
        pairs = [[_sorted(key), _sorted(value)] for key, value in pairs_of(node)]
        about = {"factory": node["factory"]} if "factory" in node else {}
        return {TAG: kind, **about, "items": sorted(pairs, key=dump)}
    return made


def pairs_of(node: Encoded) -> list[tuple[Encoded, Encoded]]:
    """The keys and values of a dictionary, plain or tagged."""
    return [(key, value) for key, value in (node["items"] if TAG in node else node.items())]


def find_unplain(node: Encoded) -> Encoded | None:
    """The first part of a value that can't be compared with anything."""
    if isinstance(node, dict) and node.get(TAG) in ("opaque", "unreadable"):
        return node
    parts = node if isinstance(node, list) else node.values() if isinstance(node, dict) else ()
    found = (find_unplain(part) for part in parts)
    return next((each for each in found if each is not None), None)
