"""Encoded values as people read them: the way Python would show them, but short.

What is shown may have been forged by a candidate: nothing here raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fairtrial.arena.checks.arrays import read_array
from fairtrial.arena.checks.encoded_values import read_bytes, read_float, read_text
from fairtrial.sandbox import TAG, Encoded, encode

LONGEST = 120
_UNREADABLE = "<something that can't be read>"


def render(node: Encoded, longest: int = LONGEST) -> str:
    """The value in about `longest` characters at most."""
    page = _Page(longest)
    try:
        page.value(node)
    except _FullError:
        return page.text[: longest - 3] + "..."
    except Exception:
        return _UNREADABLE
    return page.text


def render_call(function: str, case: Mapping[str, Any], longest: int = 300) -> str:
    """``sort([3, 1], key=None)``."""
    page = _Page(longest)
    try:
        page.add(f"{function.partition(':')[2]}(")
        named = [(f"{name}=", value) for name, value in case["kwargs"].items()]
        page.list_of([("", value) for value in case["args"]] + named)
        page.add(")")
    except _FullError:
        return page.text[: longest - 3] + "..."
    except Exception:
        return _UNREADABLE
    return page.text


class _FullError(Exception):
    """There is no more room."""


class _Page:
    """Room for a short text."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.text = ""

    def add(self, text: str) -> None:
        self.text += text
        if len(self.text) > self.longest:
            raise _FullError

    def list_of(self, values: Iterable[tuple[str, Encoded]]) -> None:
        """``a, b``: each with what stands before it."""
        for place, (before, value) in enumerate(values):
            self.add((", " if place else "") + before)
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
        self.list_of(("", item) for item in items)
        self.add(closing)

    def pairs(self, opening: str, items: Iterable[Any], closing: str) -> None:
        self.add(opening)
        for place, (key, value) in enumerate(items):
            self.add(", " if place else "")
            self.value(key)
            self.add(": ")
            self.value(value)
        self.add(closing)


def short_name(node: Encoded) -> str:
    """A type's name without ``builtins.``."""
    return str(node["type"]).removeprefix("builtins.")


def _show_any(page: _Page, node: Encoded) -> None:
    page.add(f"<{node[TAG]}>")


def _show_tuple(page: _Page, node: Encoded) -> None:
    page.bracketed("(", node["items"], ",)" if len(node["items"]) == 1 else ")")


def _show_set(page: _Page, node: Encoded) -> None:
    if node["items"]:
        page.bracketed("{", node["items"], "}")
    else:
        page.add("set()")


def _show_named(page: _Page, node: Encoded) -> None:
    page.add(f"{short_name(node)}(")
    page.list_of(
        (f"{name}=", item) for name, item in zip(node["names"], node["items"], strict=True)
    )
    page.add(")")


def _show_state(page: _Page, node: Encoded) -> None:
    page.add(f"{short_name(node)}(")
    based = [("", node["base"])] if "base" in node else []
    page.list_of(based + [(f"{name}=", value) for name, value in node["state"].items()])
    page.add(")")


def _show_moment(page: _Page, node: Encoded) -> None:
    page.add(f"{node[TAG]}(")
    *parts, fold = node["items"]
    page.list_of([("", part) for part in parts] + ([("fold=", fold)] if fold else []))
    if node["zone"]:
        page.add(", tzinfo=")
        page.value(node["zone"]["key"] or node["zone"]["offset"])
    page.add(")")


def _show_array(page: _Page, node: Encoded) -> None:
    import numpy

    items = node["items"] if "items" in node else encode(read_array(node).ravel()[:50].tolist())
    if node[TAG] == "scalar":
        page.add(f"{node['type']}(")
        page.value(items[0])
        page.add(")")
        return
    page.add(f"array of {numpy.dtype(node['dtype'])}, shape {tuple(node['shape'])}: ")
    page.value(items)


def _show_items(opening: str, closing: str) -> Callable[[_Page, Encoded], None]:
    return lambda page, node: page.bracketed(opening, node["items"], closing)


def _show_with(opening: str, about: str) -> Callable[[_Page, Encoded], None]:
    """Items, and what else is said of the whole."""

    def show(page: _Page, node: Encoded) -> None:
        page.bracketed(opening, node["items"], "]")
        page.add(f", {about}={node[about]!r})" if node[about] is not None else ")")

    return show


def _show_defaultdict(page: _Page, node: Encoded) -> None:
    page.pairs(f"defaultdict({node['factory']}, {{", node["items"], "})")


def _show_pairs(name: str) -> Callable[[_Page, Encoded], None]:
    return lambda page, node: page.pairs(f"{name}({{", node["items"], "})")


def _show_iterator(page: _Page, node: Encoded) -> None:
    page.bracketed("<iterator of [", node["items"], "]")
    if "raised" in node:
        page.add(", then ")
        page.value(node["raised"])
    page.add(">")


def _show_exception(page: _Page, node: Encoded) -> None:
    page.bracketed(f"{short_name(node)}(", node["args"], ")")


_SHOWN: Mapping[str, Callable[[_Page, Encoded], None]] = {
    "Counter": _show_pairs("Counter"),
    "Decimal": lambda page, node: page.add(f"Decimal({node['value']!r})"),
    "Fraction": _show_items("Fraction(", ")"),
    "OrderedDict": _show_pairs("OrderedDict"),
    "UUID": lambda page, node: page.add(f"UUID({node['value']!r})"),
    "array": _show_with("array([", "code"),
    "bytearray": lambda page, node: page.add(f"bytearray({read_bytes(node)!r})"),
    "bytes": lambda page, node: page.add(repr(read_bytes(node))),
    "complex": lambda page, node: page.add(repr(complex(*map(read_float, node["items"])))),
    "constant": lambda page, node: page.add(str(node["value"])),
    "cycle": lambda page, node: page.add("<itself again>"),
    "dataclass": _show_state,
    "date": _show_items("date(", ")"),
    "datetime": _show_moment,
    "defaultdict": _show_defaultdict,
    "deque": _show_with("deque([", "maxlen"),
    "dict": lambda page, node: page.pairs("{", node["items"], "}"),
    "dict_items": _show_items("dict_items([", "])"),
    "dict_keys": _show_items("dict_keys([", "])"),
    "dict_values": _show_items("dict_values([", "])"),
    "enum": lambda page, node: page.add(f"{short_name(node)}.{node['name']}"),
    "exception": _show_exception,
    "float": lambda page, node: page.add(str(node["value"])),
    "frozenset": _show_items("frozenset({", "})"),
    "int": lambda page, node: page.add(str(node["value"])),
    "iterator": _show_iterator,
    "namedtuple": _show_named,
    "ndarray": _show_array,
    "object": _show_state,
    "opaque": lambda page, node: page.add(f"<an object of type {short_name(node)}>"),
    "path": lambda page, node: page.add(f"{node['type']}({read_text(node['value'])!r})"),
    "range": _show_items("range(", ")"),
    "scalar": _show_array,
    "set": _show_set,
    "slice": _show_items("slice(", ")"),
    "str": lambda page, node: page.add(repr(read_text(node))),
    "time": _show_moment,
    "timedelta": _show_items("timedelta(", ")"),
    "tuple": _show_tuple,
    "type": lambda page, node: page.add(f"<class {short_name(node)}>"),
    "unreadable": lambda page, node: page.add(f"<a value that can't be read: {node['why']}>"),
}
