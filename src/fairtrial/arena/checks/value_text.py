"""Render encoded values as short text, similar to Python's `repr`.

Values may have been forged by a candidate; the functions never raise because of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fairtrial.arena.checks.arrays import read_array
from fairtrial.arena.checks.encoded_values import TAG, Encoded, read_bytes, read_float, read_text
from fairtrial.sandbox import wire

MAX_CHARACTERS = 120
_UNREADABLE = "<something that can't be read>"


def render(node: Encoded, longest: int = MAX_CHARACTERS) -> str:
    """Return a value as text of at most about `longest` characters."""
    writer = _BoundedWriter(longest)
    try:
        writer.value(node)
    except _FullError:
        return writer.text[: longest - 3] + "..."
    except Exception:
        return _UNREADABLE
    return writer.text


def render_call(function: str, case: Mapping[str, Any], longest: int = 300) -> str:
    """Return a call as text: ``sort([3, 1], key=None)``."""
    writer = _BoundedWriter(longest)
    try:
        writer.add(f"{function.partition(':')[2]}(")
        named = [(f"{name}=", value) for name, value in case["kwargs"].items()]
        writer.list_items([("", value) for value in case["args"]] + named)
        writer.add(")")
    except _FullError:
        return writer.text[: longest - 3] + "..."
    except Exception:
        return _UNREADABLE
    return writer.text


class _FullError(Exception):
    """The text has reached its limit."""


class _BoundedWriter:
    """Collects text, and raises `_FullError` when it gets too long."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.text = ""

    def add(self, text: str) -> None:
        self.text += text
        if len(self.text) > self.longest:
            raise _FullError

    def list_items(self, values: Iterable[tuple[str, Encoded]]) -> None:
        """Write prefixes and values, separated by commas: ``a, key=b``."""
        for index, (prefix, value) in enumerate(values):
            self.add((", " if index else "") + prefix)
            self.value(value)

    def value(self, node: Encoded) -> None:
        if isinstance(node, list):
            self.bracketed("[", node, "]")
        elif not isinstance(node, dict):
            self.add(repr(node[: self.longest] if isinstance(node, str) else node))
        elif TAG not in node:
            self.pairs("{", node.items(), "}")
        else:
            _SHOWN.get(node[TAG], _show_any)(self, node)

    def bracketed(self, opening: str, items: Iterable[Encoded], closing: str) -> None:
        self.add(opening)
        self.list_items(("", item) for item in items)
        self.add(closing)

    def pairs(self, opening: str, items: Iterable[Any], closing: str) -> None:
        self.add(opening)
        for index, (key, value) in enumerate(items):
            self.add(", " if index else "")
            self.value(key)
            self.add(": ")
            self.value(value)
        self.add(closing)


def short_name(node: Encoded) -> str:
    """Return a type's name without ``builtins.``."""
    return str(node["type"]).removeprefix("builtins.")


def _show_any(writer: _BoundedWriter, node: Encoded) -> None:
    writer.add(f"<{node[TAG]}>")


def _show_tuple(writer: _BoundedWriter, node: Encoded) -> None:
    writer.bracketed("(", node["items"], ",)" if len(node["items"]) == 1 else ")")


def _show_set(writer: _BoundedWriter, node: Encoded) -> None:
    if node["items"]:
        writer.bracketed("{", node["items"], "}")
    else:
        writer.add("set()")


def _show_named(writer: _BoundedWriter, node: Encoded) -> None:
    writer.add(f"{short_name(node)}(")
    writer.list_items(
        (f"{name}=", item) for name, item in zip(node["names"], node["items"], strict=True)
    )
    writer.add(")")


def _show_state(writer: _BoundedWriter, node: Encoded) -> None:
    writer.add(f"{short_name(node)}(")
    based = [("", node["base"])] if "base" in node else []
    writer.list_items(based + [(f"{name}=", value) for name, value in node["state"].items()])
    writer.add(")")


def _show_moment(writer: _BoundedWriter, node: Encoded) -> None:
    writer.add(f"{node[TAG]}(")
    *parts, fold = node["items"]
    writer.list_items([("", part) for part in parts] + ([("fold=", fold)] if fold else []))
    if node["zone"]:
        writer.add(", tzinfo=")
        writer.value(node["zone"]["key"] or node["zone"]["offset"])
    writer.add(")")


def _show_array(writer: _BoundedWriter, node: Encoded) -> None:
    import numpy

    items = (
        node["items"] if "items" in node else wire.encode(read_array(node).ravel()[:50].tolist())
    )
    if node[TAG] == "scalar":
        writer.add(f"{node['type']}(")
        writer.value(items[0])
        writer.add(")")
        return
    writer.add(f"array of {numpy.dtype(node['dtype'])}, shape {tuple(node['shape'])}: ")
    writer.value(items)


def _show_items(opening: str, closing: str) -> Callable[[_BoundedWriter, Encoded], None]:
    return lambda writer, node: writer.bracketed(opening, node["items"], closing)


def _show_with(opening: str, attribute: str) -> Callable[[_BoundedWriter, Encoded], None]:
    """Return a function that writes items, and an attribute of the container."""

    def show(writer: _BoundedWriter, node: Encoded) -> None:
        writer.bracketed(opening, node["items"], "]")
        writer.add(f", {attribute}={node[attribute]!r})" if node[attribute] is not None else ")")

    return show


def _show_defaultdict(writer: _BoundedWriter, node: Encoded) -> None:
    writer.pairs(f"defaultdict({node['factory']}, {{", node["items"], "})")


def _show_pairs(name: str) -> Callable[[_BoundedWriter, Encoded], None]:
    return lambda writer, node: writer.pairs(f"{name}({{", node["items"], "})")


def _show_iterator(writer: _BoundedWriter, node: Encoded) -> None:
    writer.bracketed("<iterator of [", node["items"], "]")
    if "raised" in node:
        writer.add(", then ")
        writer.value(node["raised"])
    writer.add(">")


def _show_exception(writer: _BoundedWriter, node: Encoded) -> None:
    writer.bracketed(f"{short_name(node)}(", node["args"], ")")


_SHOWN: Mapping[str, Callable[[_BoundedWriter, Encoded], None]] = {
    "Counter": _show_pairs("Counter"),
    "Decimal": lambda writer, node: writer.add(f"Decimal({node['value']!r})"),
    "Fraction": _show_items("Fraction(", ")"),
    "OrderedDict": _show_pairs("OrderedDict"),
    "UUID": lambda writer, node: writer.add(f"UUID({node['value']!r})"),
    "array": _show_with("array([", "code"),
    "bytearray": lambda writer, node: writer.add(f"bytearray({read_bytes(node)!r})"),
    "bytes": lambda writer, node: writer.add(repr(read_bytes(node))),
    "complex": lambda writer, node: writer.add(repr(complex(*map(read_float, node["items"])))),
    "constant": lambda writer, node: writer.add(str(node["value"])),
    "cycle": lambda writer, node: writer.add("<itself again>"),
    "dataclass": _show_state,
    "date": _show_items("date(", ")"),
    "datetime": _show_moment,
    "defaultdict": _show_defaultdict,
    "deque": _show_with("deque([", "maxlen"),
    "dict": lambda writer, node: writer.pairs("{", node["items"], "}"),
    "dict_items": _show_items("dict_items([", "])"),
    "dict_keys": _show_items("dict_keys([", "])"),
    "dict_values": _show_items("dict_values([", "])"),
    "enum": lambda writer, node: writer.add(f"{short_name(node)}.{node['name']}"),
    "exception": _show_exception,
    "float": lambda writer, node: writer.add(str(node["value"])),
    "frozenset": _show_items("frozenset({", "})"),
    "function": lambda writer, node: writer.add(str(node["name"])),
    "graph": lambda writer, node: writer.value(node["root"]),
    "int": lambda writer, node: writer.add(str(node["value"])),
    "iterator": _show_iterator,
    "method": lambda writer, node: writer.add(f"<method {node['name']}>"),
    "namedtuple": _show_named,
    "ndarray": _show_array,
    "object": _show_state,
    "opaque": lambda writer, node: writer.add(f"<an object of type {short_name(node)}>"),
    "path": lambda writer, node: writer.add(f"{node['type']}({read_text(node['value'])!r})"),
    "range": _show_items("range(", ")"),
    "ref": lambda writer, node: writer.add("<an object again>"),
    "scalar": _show_array,
    "set": _show_set,
    "shown": lambda writer, node: writer.add(str(node["text"])),
    "slice": _show_items("slice(", ")"),
    "str": lambda writer, node: writer.add(repr(read_text(node))),
    "time": _show_moment,
    "timedelta": _show_items("timedelta(", ")"),
    "tuple": _show_tuple,
    "type": lambda writer, node: writer.add(f"<class {short_name(node)}>"),
    "unreadable": lambda writer, node: writer.add(f"<a value that can't be read: {node['why']}>"),
}
