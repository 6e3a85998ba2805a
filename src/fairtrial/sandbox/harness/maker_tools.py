"""Tools for input makers, which import them as `fairtrial_makers`: recorded calls, larger values.

Only processes that make inputs have this module. It must run on Python 3.8.
"""

from __future__ import annotations

import ast
import json
import os
import random
from typing import Any, Callable, Iterable, Sequence

from . import pickled_calls

__all__ = ["RecordedCalls", "from_hints", "grow", "load_calls"]
_WIDE = 1000
_EVEN = 0.2
"""The share of draws that go to all calls alike, so that those that take no time come, too."""


class RecordedCalls:
    """Recorded calls, drawn mostly by the time that they took.

    entries: calls as the file holds them
    """

    def __init__(self, entries: Sequence[Any]) -> None:
        self.entries = list(entries)
        seconds = [float(entry.get("seconds", 0)) or 1e-9 for entry in self.entries]
        even = _EVEN / (1 - _EVEN) * sum(seconds) / len(seconds)
        self.weights = [one + even for one in seconds]
        usable = [entry for entry in entries if "raises" not in entry] or self.entries
        sizes = [len(json.dumps([entry["args"], entry.get("kwargs", {})])) for entry in usable]
        order = sorted(range(len(usable)), key=sizes.__getitem__, reverse=True)
        self.large = [usable[index] for index in order[: max(3, len(order) // 3)]]

    def draw(self, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of one call: (args, kwargs)."""
        return _decode(rng.choices(self.entries, self.weights)[0])

    def draw_larger(
        self, rng: random.Random, arguments: Iterable[Any], factor: int
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of one of the larger calls, with some of them grown.

        arguments: positions or names of the arguments to grow
        factor: how many times as large they become
        """
        args, kwargs = _decode(rng.choice(self.large))
        for place in arguments:
            if isinstance(place, int) and place < len(args):
                args[place] = grow(args[place], factor, rng)
            elif place in kwargs:
                kwargs[place] = grow(kwargs[place], factor, rng)
        return args, kwargs


def load_calls(maker: str, name: str) -> RecordedCalls:
    """Read recorded calls from a file beside an input maker.

    maker: the maker's `__file__`
    name: the file's name
    """
    path = os.path.join(os.path.dirname(os.path.abspath(maker)), name)
    with open(path, encoding="utf-8") as file:
        return RecordedCalls(json.load(file))


def _decode(entry: Any) -> tuple[list[Any], dict[str, Any]]:
    case = {"kwargs": {}, **entry}
    if "pickle" in entry:
        case[pickled_calls.PICKLED] = entry["pickle"]["data"]
    args, kwargs = pickled_calls.decode_call(case)
    return args, kwargs


def grow(value: Any, factor: int, rng: random.Random) -> Any:
    """Return a value like this one, about `factor` times as large, with other content.

    Lists, sets, dictionaries, texts, bytes and arrays grow, numbers become larger; items are drawn
    from those that are there, and varied. What is sorted stays sorted, what is distinct distinct.
    """
    kind = type(value)
    if kind is bool or value is None:
        return value
    if kind is int:
        return value * factor + rng.randrange(max(factor, 1))
    if kind in (str, bytes):
        return _grow_text(value, max(1, len(value)) * factor, rng)
    if kind in (list, tuple, set, frozenset):
        items = _make_items(list(value), len(value) * factor, rng)
        return kind(items)
    if kind is dict:
        keys = _make_items(list(value), len(value) * factor, rng, is_distinct=True)
        values = _make_items(list(value.values()), len(keys), rng)
        return dict(zip(keys, values))
    if kind.__module__ == "numpy" and getattr(value, "ndim", None):
        rows = [rng.randrange(len(value)) for _ in range(len(value) * factor)]
        return value[rows] if len(value) else value
    return value


def _grow_text(value: Any, length: int, rng: random.Random) -> Any:
    for separator in ("\n", " "):
        mark = separator if isinstance(value, str) else separator.encode()
        parts = value.split(mark)
        if len(parts) > 2:
            average = max(1, len(value) // len(parts))
            return mark.join(rng.choices(parts, k=max(1, length // average)))
    if not value:
        return value
    chosen = rng.choices(value, k=length)
    return "".join(chosen) if isinstance(value, str) else bytes(chosen)


def _make_items(
    items: list[Any], count: int, rng: random.Random, *, is_distinct: bool = False
) -> list[Any]:
    """Return `count` items like these."""
    if not items:
        return []
    try:
        is_distinct = is_distinct or len(set(items)) == len(items) > 2
        is_sorted = len(items) > 2 and sorted(items) == items
    except TypeError:
        is_distinct, is_sorted = is_distinct, False
    kinds = {type(item) for item in items}
    made: list[Any]
    if kinds == {int}:
        low, high = min(items), max(items)
        made = _make_numbers(low, high, count, len(items), rng, is_distinct)
    elif kinds == {float}:
        made = [rng.uniform(min(items), max(items)) for _ in range(count)]
    elif kinds == {str} and is_distinct:
        made = list({f"{rng.choice(items)}{rng.randrange(10 * count)}": 0 for _ in range(count)})
    elif is_distinct and all(type(item) is tuple for item in items):
        made = list({_vary(rng.choice(items), items, rng): 0 for _ in range(count)})
    else:
        made = [_vary(rng.choice(items), items, rng) for _ in range(count)]
    return sorted(made) if is_sorted else made


def _make_numbers(
    low: int, high: int, count: int, before: int, rng: random.Random, is_distinct: bool
) -> list[int]:
    if not is_distinct:
        return [rng.randint(low, high) for _ in range(count)]
    width = max((high - low + 1) * max(1, count // max(before, 1)), 2 * count)
    return rng.sample(range(low, low + width), count)


def _vary(item: Any, items: list[Any], rng: random.Random) -> Any:
    """Return an item with the parts of several ones, where they have the same shape."""
    kind = type(item)
    if kind in (list, tuple) and item:
        same = [other for other in items if type(other) is kind and len(other) == len(item)]
        return kind(_vary_atom(rng.choice(same)[place], rng) for place in range(len(item)))
    if kind is dict:
        same = [other for other in items if type(other) is dict and other.keys() == item.keys()]
        return {key: _vary_atom(rng.choice(same)[key], rng) for key in item}
    return _vary_atom(item, rng)


def _vary_atom(item: Any, rng: random.Random) -> Any:
    kind = type(item)
    if kind is int and abs(item) > 3:
        return item + rng.randint(-abs(item) // 4, abs(item) // 4)
    if kind is float and item:
        return item * rng.uniform(0.75, 1.25)
    return item


class UnknownHintError(Exception):
    """There is no rule for values of a type hint."""


def from_hints(hints: Sequence[str], rng: random.Random, size: int = 100) -> list[Any]:
    """Return values for type hints such as `list[int]` and `dict[str, float] | None`.

    size: about how many items collections and texts have

    Raises `UnknownHintError` for hints of other types.
    """
    return [_make_value(ast.parse(hint, mode="eval").body, rng, size) for hint in hints]


def _make_value(node: ast.AST, rng: random.Random, size: int) -> Any:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return _make_value(ast.parse(node.value, mode="eval").body, rng, size)
        return node.value
    if isinstance(node, ast.BinOp):
        return _make_value(rng.choice([node.left, node.right]), rng, size)
    if isinstance(node, ast.Attribute):
        node = ast.Name(node.attr)
    if isinstance(node, ast.Name):
        make = _SIMPLE.get(node.id)
        if make is None:
            raise UnknownHintError(f"no values are known for {node.id}")
        return make(rng, size)
    if isinstance(node, ast.Subscript):
        holder = node.value
        name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
        inner: Any = getattr(node.slice, "value", None) or node.slice  # Python 3.8 wraps it
        if not isinstance(inner, ast.AST):
            inner = node.slice
        parts = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        return _make_compound(name, parts, rng, size)
    raise UnknownHintError(f"no values are known for {type(node).__name__}")


def _make_compound(name: str, parts: list[Any], rng: random.Random, size: int) -> Any:
    less = max(3, size // 10)
    if name in ("Optional", "Union"):
        return _make_value(rng.choice(parts), rng, size)
    if name == "Literal":
        return _make_value(rng.choice(parts), rng, size)
    if name in ("dict", "Dict", "Mapping", "MutableMapping"):
        pairs = (
            (_make_value(parts[0], rng, 8), _make_value(parts[1], rng, less)) for _ in range(size)
        )
        return dict(pairs)
    if name in ("tuple", "Tuple"):
        if len(parts) == 2 and isinstance(parts[1], ast.Constant):
            return tuple(_make_value(parts[0], rng, less) for _ in range(size))
        return tuple(_make_value(part, rng, less) for part in parts)
    if name in ("set", "Set", "frozenset", "FrozenSet", "AbstractSet"):
        kind = frozenset if name.lower() == "frozenset" else set
        return kind(_make_value(parts[0], rng, 8) for _ in range(size))
    if name in _LISTS:
        return [_make_value(parts[0], rng, less) for _ in range(size)]
    raise UnknownHintError(f"no values are known for {name}[...]")


_LETTERS = "abcdefghijklmnopqrstuvwxyz      ABC.,-0123456789"
_LISTS = {"list", "List", "Sequence", "Iterable", "Collection", "MutableSequence", "Container"}
_SIMPLE: dict[str, Callable[[random.Random, int], Any]] = {
    "int": lambda rng, size: rng.randrange(_WIDE),
    "float": lambda rng, size: rng.uniform(-_WIDE, _WIDE),
    "complex": lambda rng, size: complex(rng.random(), rng.random()),
    "bool": lambda rng, size: rng.random() < 0.5,
    "str": lambda rng, size: "".join(rng.choices(_LETTERS, k=rng.randint(1, size))),
    "bytes": lambda rng, size: bytes(rng.choices(range(256), k=rng.randint(1, size))),
    "list": lambda rng, size: [rng.randrange(_WIDE) for _ in range(size)],
    "Any": lambda rng, size: rng.randrange(_WIDE),
    "object": lambda rng, size: rng.randrange(_WIDE),
}
