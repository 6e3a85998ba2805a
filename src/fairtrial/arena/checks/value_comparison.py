"""Are two encoded values the same, and if not, where?

Pure functions on tagged JSON (`fairtrial.sandbox.harness.codec`). The expected side is ours; the actual one
may be forged, and a form that can't be read equals nothing.

The rules: types count (1, 1.0 and True differ, so do a list and a tuple); floats are equal within
the tolerance, NaN equals NaN, an infinity equals itself, and 0.0 equals -0.0 unless both tolerances
are 0; sets and dictionaries have no order, an `OrderedDict` has; arrays must have the same dtype
and shape; exceptions are equal if their types and arguments are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.arena.checks.arrays import find_unequal, read_array
from fairtrial.arena.checks.encoded_values import (
    EXACT,
    MAPPINGS,
    SEQUENCES,
    UNORDERED,
    canonical,
    kind_of,
    pairs_of,
    read_float,
    read_int,
    read_text,
)
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.model.verdicts import Difference
from fairtrial.sandbox import TAG, Encoded, dump

MOST = 5
"""How many places are told of two values that differ."""
_MOST_PAIRINGS = 300
_WINDOW = 60
_CONTENT = {TAG, "items", "value", "state", "base", "args", "raised"}


@dataclass(frozen=True, slots=True)
class _Said:
    """Words that stand in the place of a value."""

    text: str


_NOTHING = _Said("nothing")


@dataclass(frozen=True, slots=True)
class Differences:
    """Where two values differ.

    first: the first few places
    count: how many there are
    """

    first: tuple[Difference, ...] = ()
    count: int = 0


def compare(
    expected: Encoded, actual: Encoded, *, rel_tol: float, abs_tol: float, where: str = "result"
) -> Differences:
    """All places where `actual` is not what it should be; never raises for a forged `actual`."""
    comparison = _Comparison(rel_tol, abs_tol)
    try:
        comparison.node(where, expected, actual)
    except (RecursionError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        comparison.add(where, expected, actual)
    return Differences(tuple(comparison.first), comparison.count)


class _Comparison:
    """One comparison, and what it has found so far."""

    def __init__(self, rel_tol: float, abs_tol: float) -> None:
        self.rel_tol = rel_tol
        self.abs_tol = abs_tol
        self.is_exact = rel_tol == 0 == abs_tol
        self.first: list[Difference] = []
        self.count = 0

    def add(self, where: str, expected: Encoded, actual: Encoded) -> None:
        self.count += 1
        if len(self.first) < MOST:  # rendering all of a million would take long
            one, other = (
                value.text if isinstance(value, _Said) else render(value)
                for value in (expected, actual)
            )
            self.first.append(Difference(where, one, other))

    def holds(self, expected: Encoded, actual: Encoded) -> bool:
        """Whether two values are the same, without a word about it."""
        return compare(expected, actual, rel_tol=self.rel_tol, abs_tol=self.abs_tol).count == 0

    def node(self, where: str, expected: Encoded, actual: Encoded) -> None:
        kind = kind_of(expected)
        if kind_of(actual) != kind or _about(expected) != _about(actual):
            self.add(where, expected, actual)
        else:
            _KINDS[kind](self, where, expected, actual)

    def close(self, expected: float, actual: float) -> bool:
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        if expected == actual:
            return not self.is_exact or math.copysign(1, expected) == math.copysign(1, actual)
        return math.isclose(expected, actual, rel_tol=self.rel_tol, abs_tol=self.abs_tol)

    def sequence(
        self, where: str, expected: Sequence[Encoded], actual: Sequence[Encoded], names: Any = ()
    ) -> None:
        if len(expected) != len(actual):
            self.add(f"len({where})", len(expected), len(actual))
        for place, (one, other) in enumerate(zip(expected, actual, strict=False)):
            before = self.count
            self.node(f"{where}.{names[place]}" if names else f"{where}[{place}]", one, other)
            if len(expected) != len(actual) and self.count > before:
                return  # what follows is likely to have moved

    def keyed(self, spell: Callable[[Encoded], str], expected: _Pairs, actual: _Pairs) -> None:
        """Values by key, in any order; NaN may be a key more than once."""
        there = defaultdict(list)
        for key, value in actual:
            there[canonical(key)].append((key, value))
        for key, value in expected:
            found = there.get(canonical(key))
            if found:
                self.node(spell(key), value, found.pop(0)[1])
            else:
                self.add(spell(key), value, _NOTHING)
        for key, value in (pair for pairs in there.values() for pair in pairs):
            self.add(spell(key), _NOTHING, value)


_Pairs = Iterable[tuple[Encoded, Encoded]]
_Comparer = Callable[[_Comparison, str, Encoded, Encoded], None]


def _about(node: Encoded) -> str:
    """What is said of a value beside its content: its type, dtype, time zone."""
    if not isinstance(node, dict) or TAG not in node:
        return ""
    about = {key: value for key, value in sorted(node.items()) if key not in _CONTENT}
    return dump(about) if about else ""  # as of a plain one: only some dictionaries need a tag


def _exact(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    if canonical(expected) != canonical(actual):
        found.add(where, expected, actual)


def _never(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    found.add(where, expected, actual)


def _compare_ints(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    if read_int(expected) != read_int(actual):
        found.add(where, expected, actual)


def _compare_floats(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    if not found.close(read_float(expected), read_float(actual)):
        found.add(where, expected, actual)


def _compare_complex(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    one, other = ([read_float(part) for part in node["items"]] for node in (expected, actual))
    if all(map(found.close, one, other)) and len(other) == 2:
        return
    # A part that is nearly nothing beside the other may be off by more than its own tolerance.
    distance = math.hypot(one[0] - other[0], one[1] - other[1])
    size = max(math.hypot(*one), math.hypot(*other))
    near = distance <= max(found.rel_tol * size, found.abs_tol)
    if not (near and math.isfinite(size) and distance > 0):
        found.add(where, expected, actual)


def _compare_texts(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    one, other = read_text(expected), read_text(actual)
    if one == other:
        return
    pairs = enumerate(zip(one, other, strict=False))
    start = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    if start <= _WINDOW:
        found.add(where, expected, actual)
        return
    said = [_Said(f"...{render(text[start - _WINDOW // 2 :])}") for text in (one, other)]
    found.add(f"{where} at character {start}", *said)


def _compare_items(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    names = expected.get("names", ()) if isinstance(expected, dict) else ()
    found.sequence(where, _items(expected), _items(actual), names)
    one, other = (_raised(node) for node in (expected, actual))
    if one != other:
        found.node(f"{where} (at its end)", one, other)


def _items(node: Encoded) -> list[Encoded]:
    items = node if isinstance(node, list) else node["items"]
    if not isinstance(items, list):
        raise TypeError("items must be a list")
    return items


def _raised(node: Encoded) -> Encoded:
    return node.get("raised") if isinstance(node, dict) else None


def _compare_pairs(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    found.keyed(lambda key: f"{where}[{render(key, 40)}]", pairs_of(expected), pairs_of(actual))


def _compare_ordered(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    before = found.count
    _compare_pairs(found, where, expected, actual)
    orders = [[key for key, _ in pairs_of(node)] for node in (expected, actual)]
    if found.count == before and canonical(orders[0]) != canonical(orders[1]):
        found.add(f"list({where})", *orders)


def _compare_sets(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    there = defaultdict(list)
    for item in _items(actual):
        there[canonical(item)].append(item)
    missing = []
    for item in _items(expected):
        same = there[canonical(item)]
        if same:
            same.pop()
        else:
            missing.append(item)
    extra = [item for items in there.values() for item in items]
    if len(missing) <= _MOST_PAIRINGS:  # floats may be close to each other
        missing = [item for item in missing if not _take_twin(found, item, extra)]
    for item in missing:
        found.add(f"{where} (an item)", item, _NOTHING)
    for item in extra:
        found.add(f"{where} (an item)", _NOTHING, item)


def _take_twin(found: _Comparison, item: Encoded, extra: list[Encoded]) -> bool:
    """Take what is close enough to an item out of the rest, if there is such a thing."""
    for place, other in enumerate(extra[:_MOST_PAIRINGS]):
        if found.holds(item, other):
            del extra[place]
            return True
    return False


def _compare_state(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    if "base" in expected:
        found.node(where, expected["base"], actual["base"])
    pairs = (expected["state"].items(), actual["state"].items())
    found.keyed(lambda name: f"{where}.{name}", *pairs)


def _compare_exceptions(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    found.sequence(f"{where}.args", expected["args"], actual["args"])


def _compare_arrays(found: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    if "items" in expected:
        found.sequence(where, _items(expected), _items(actual))
        return
    if expected["value"] == actual["value"]:
        return
    one, other = read_array(expected), read_array(actual)
    places = find_unequal(one, other, found.rel_tol, found.abs_tol)
    for place in places[:MOST]:
        at = tuple(int(part) for part in place)
        spelled = f"{where}[{', '.join(map(str, at))}]" if at else where
        found.add(spelled, _Said(str(one[at])), _Said(str(other[at])))
    found.count += max(0, len(places) - MOST)


_KINDS: Mapping[str, _Comparer] = {
    **dict.fromkeys(EXACT, _exact),
    **dict.fromkeys(SEQUENCES, _compare_items),
    **dict.fromkeys(UNORDERED, _compare_sets),
    **dict.fromkeys(MAPPINGS, _compare_pairs),
    **dict.fromkeys(("opaque", "unreadable"), _never),
    **dict.fromkeys(("dataclass", "object"), _compare_state),
    **dict.fromkeys(("ndarray", "scalar"), _compare_arrays),
    "OrderedDict": _compare_ordered,
    "complex": _compare_complex,
    "exception": _compare_exceptions,
    "float": _compare_floats,
    "int": _compare_ints,
    "str": _compare_texts,
}
