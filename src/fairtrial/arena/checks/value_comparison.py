"""Compare two encoded values, and find the positions where they differ.

Pure functions on tagged JSON (`fairtrial.sandbox.harness.codec`). The expected value is trusted;
the actual one may be forged, and an unreadable value equals nothing.

The rules: types count (1, 1.0 and True differ, so do a list and a tuple); floats are equal within
the tolerance, NaN equals NaN, an infinity equals itself, and 0.0 equals -0.0 unless both tolerances
are 0; sets have no order, an `OrderedDict` has, and other dictionaries as the rules say; arrays
must have the same dtype and shape and, as the rules say, be as usable as the expected ones;
instances of classes are equal if the names of their classes and their attributes are, whatever
their identity, and references to an instance stand for it; exceptions are equal if their types and
arguments are, and if all base classes of the expected one are base classes of the actual one.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.arena.checks.arrays import find_unequal, read_array
from fairtrial.arena.checks.comparison_rules import ComparisonLimitError, ComparisonRules
from fairtrial.arena.checks.encoded_values import (
    EXACT,
    MAPPINGS,
    SEQUENCES,
    TAG,
    UNORDERED,
    Encoded,
    canonical,
    collect_labeled,
    get_kind,
    get_pairs,
    read_float,
    read_int,
    read_text,
)
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.model.verdicts import Difference
from fairtrial.sandbox import wire

MAX_DIFFERENCES = 5
"""The number of differences that are listed."""
ORDER, LAYOUT = "order of ", "layout of "
"""How the positions of differences begin that only strict rules find."""
NOTHING = "nothing"
"""What is shown in place of a value that is missing."""
_MAX_PAIRINGS = 300
MOST_PAIRS_PER_PART = 2
"""How many pairs of instances are compared for each part of both values: cycles of different
lengths would need as many as their product."""
_WINDOW = 60
_CONTENT = {TAG, "items", "value", "state", "base", "args", "raised", "bases", "layout", "id"}
_LAYOUTS = {"C": "C-contiguous", "F": "F-contiguous", "W": "writable"}


@dataclass(frozen=True, slots=True)
class _Text:
    """Text that is shown in place of a value."""

    text: str


_NOTHING = _Text(NOTHING)


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences between two values.

    first: the first few
    count: their number
    """

    first: tuple[Difference, ...] = ()
    count: int = 0


def compare(
    expected: Encoded, actual: Encoded, rules: ComparisonRules, where: str = "result"
) -> Differences:
    """Return the differences between two values; never raises because of a forged `actual`.

    A comparison that exceeds its budget counts as a difference.
    """
    comparison = _Comparison(rules)
    try:
        comparison.compare_whole(where, expected, actual)
    except ComparisonLimitError as error:
        comparison.add(where, expected, _Text(str(error)))
    return Differences(tuple(comparison.first), comparison.count)


class _Comparison:
    """A comparison in progress, with the differences found so far."""

    def __init__(self, rules: ComparisonRules) -> None:
        self.rules = rules
        self.rel_tol, self.abs_tol = rules.rel_tol, rules.abs_tol
        self.is_exact = rules.rel_tol == 0 == rules.abs_tol
        self.first: list[Difference] = []
        self.count = 0
        self.waiting: deque[tuple[str, Encoded, Encoded]] = deque()
        self.met: set[tuple[int, int]] = set()  # pairs of instances, by the ids of their nodes
        self.wholes: tuple[Encoded, Encoded] = (None, None)
        self.labeled: list[dict[int, Encoded]] = []
        self.pairs_left = 0

    def compare_whole(self, where: str, expected: Encoded, actual: Encoded) -> None:
        """Compare two values, and then what they refer to."""
        self.wholes = (expected, actual)
        self.waiting.append((where, _get_root(expected), _get_root(actual)))
        while self.waiting:
            self.compare_safely(*self.waiting.popleft())

    def compare_safely(self, where: str, expected: Encoded, actual: Encoded) -> None:
        """Compare two values; one that is malformed is a difference."""
        try:
            self.node(where, expected, actual)
        except _MALFORMED:
            self.add(where, expected, actual)

    def add(self, where: str, expected: Encoded, actual: Encoded) -> None:
        self.count += 1
        if len(self.first) < MAX_DIFFERENCES:  # rendering a million would take long
            shown = (
                value.text if isinstance(value, _Text) else render(value)
                for value in (expected, actual)
            )
            self.first.append(Difference(where, *shown))

    def is_equal(self, expected: Encoded, actual: Encoded) -> bool:
        """Return whether two values are equal, without recording differences."""
        self.rules.budget.check_clock()
        comparison = _Comparison(self.rules)
        comparison.compare_safely("", expected, actual)
        return comparison.count == 0

    def node(self, where: str, expected: Encoded, actual: Encoded) -> None:
        """Compare two values of any kind."""
        self.rules.budget.spend()
        kind = get_kind(expected)
        if kind == "ref" or get_kind(actual) == "ref":
            self.refer(where, expected, actual)
        elif get_kind(actual) != kind or _get_metadata(expected) != _get_metadata(actual):
            self.add(where, expected, actual)
        else:
            _KINDS[kind](self, where, expected, actual)

    def refer(self, where: str, expected: Encoded, actual: Encoded) -> None:
        """Have instances compared later that are referred to; each pair of them once."""
        if not self.labeled:
            collected = list(map(collect_labeled, self.wholes))
            self.labeled = [labeled for labeled, _ in collected]
            self.pairs_left = MOST_PAIRS_PER_PART * sum(count for _, count in collected)
        nodes = [
            labeled[node["to"]] if get_kind(node) == "ref" else node
            for node, labeled in zip((expected, actual), self.labeled, strict=True)
        ]
        pair = (id(nodes[0]), id(nodes[1]))
        if pair not in self.met:
            self.pairs_left -= 1
            if self.pairs_left < 0:
                raise ComparisonLimitError("objects that refer to each other in too many ways")
            self.met.add(pair)
            self.waiting.append((where, *nodes))

    def is_close(self, expected: float, actual: float) -> bool:
        """Return whether two floats are equal within the tolerances."""
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
        for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
            before = self.count
            self.node(f"{where}.{names[index]}" if names else f"{where}[{index}]", one, other)
            if len(expected) != len(actual) and self.count > before:
                return  # an item is missing or added, so the rest has moved

    def keyed(self, locate: Callable[[Encoded], str], expected: _Pairs, actual: _Pairs) -> None:
        """Compare values by key, in any order; NaN may be a key more than once.

        locate: returns the position of a key's value, as text
        """
        remaining = defaultdict(list)
        for key, value in actual:
            self.rules.budget.spend()
            remaining[canonical(key)].append((key, value))
        for key, value in expected:
            matches = remaining.get(canonical(key))
            if matches:
                self.node(locate(key), value, matches.pop(0)[1])
            else:
                self.add(locate(key), value, _NOTHING)
        for key, value in (pair for pairs in remaining.values() for pair in pairs):
            self.add(locate(key), _NOTHING, value)


_MALFORMED = (
    RecursionError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    MemoryError,
)
_Pairs = Iterable[tuple[Encoded, Encoded]]
_Comparer = Callable[[_Comparison, str, Encoded, Encoded], None]


def _get_metadata(node: Encoded) -> str:
    """Return what describes a value beside its content, as JSON: its type, dtype, time zone."""
    if not isinstance(node, dict) or TAG not in node:
        return ""
    metadata = {key: value for key, value in sorted(node.items()) if key not in _CONTENT}
    # The same as of an untagged value: a dictionary is tagged only if its keys require it.
    return wire.dump_encoded(metadata) if metadata else ""


def _get_root(node: Encoded) -> Encoded:
    return node["root"] if get_kind(node) == "graph" and "root" in node else node


def _compare_exactly(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    if canonical(expected) != canonical(actual):
        comparison.add(where, expected, actual)


def _report_unequal(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    comparison.add(where, expected, actual)


def _compare_ints(comparison: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    if read_int(expected) != read_int(actual):
        comparison.add(where, expected, actual)


def _compare_floats(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    if not comparison.is_close(read_float(expected), read_float(actual)):
        comparison.add(where, expected, actual)


def _compare_complex(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    one, other = ([read_float(part) for part in node["items"]] for node in (expected, actual))
    if all(map(comparison.is_close, one, other)) and len(other) == 2:
        return
    # A part that is tiny beside the other may differ by more than its own tolerance.
    distance = math.hypot(one[0] - other[0], one[1] - other[1])
    size = max(math.hypot(*one), math.hypot(*other))
    near = distance <= max(comparison.rel_tol * size, comparison.abs_tol)
    if not (near and math.isfinite(size) and distance > 0):
        comparison.add(where, expected, actual)


def _compare_texts(comparison: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    one, other = read_text(expected), read_text(actual)
    if one == other:
        return
    pairs = enumerate(zip(one, other, strict=False))
    start = next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))
    if start <= _WINDOW:
        comparison.add(where, expected, actual)
        return
    shown = [_Text(f"...{render(text[start - _WINDOW // 2 :])}") for text in (one, other)]
    comparison.add(f"{where} at character {start}", *shown)


def _compare_items(comparison: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    names = expected.get("names", ()) if isinstance(expected, dict) else ()
    comparison.sequence(where, _items(expected), _items(actual), names)
    one, other = (_raised(node) for node in (expected, actual))
    if one != other:
        comparison.node(f"{where} (at its end)", one, other)


def _items(node: Encoded) -> list[Encoded]:
    items = node if isinstance(node, list) else node["items"]
    if not isinstance(items, list):
        raise TypeError("items must be a list")
    return items


def _raised(node: Encoded) -> Encoded:
    return node.get("raised") if isinstance(node, dict) else None


def _compare_mappings(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    place = f"{ORDER}{where}" if comparison.rules.dict_order else ""
    _compare_keyed(comparison, where, expected, actual, place)


def _compare_ordered(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    _compare_keyed(comparison, where, expected, actual, f"list({where})")


def _compare_keyed(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded, order: str
) -> None:
    """Compare the items of two mappings; their order counts if it has a name."""
    before = comparison.count
    comparison.keyed(
        lambda key: f"{where}[{render(key, 40)}]", get_pairs(expected), get_pairs(actual)
    )
    if not order or comparison.count > before:
        return
    orders = [[key for key, _ in get_pairs(node)] for node in (expected, actual)]
    if canonical(orders[0]) != canonical(orders[1]):
        comparison.add(order, *orders)


def _compare_sets(comparison: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    remaining = defaultdict(list)
    for item in _items(actual):
        comparison.rules.budget.spend()
        remaining[canonical(item)].append(item)
    missing = []
    for item in _items(expected):
        same = remaining[canonical(item)]
        if same:
            same.pop()
        else:
            missing.append(item)
    extra = [item for items in remaining.values() for item in items]
    if len(missing) <= _MAX_PAIRINGS:  # floats may be close to each other
        missing = [item for item in missing if not _take_twin(comparison, item, extra)]
    for item in missing:
        comparison.add(f"{where} (an item)", item, _NOTHING)
    for item in extra:
        comparison.add(f"{where} (an item)", _NOTHING, item)


def _take_twin(comparison: _Comparison, item: Encoded, extra: list[Encoded]) -> bool:
    """Remove an item within the tolerances from the rest; return whether there is one."""
    for index, other in enumerate(extra[:_MAX_PAIRINGS]):
        if comparison.is_equal(item, other):
            del extra[index]
            return True
    return False


def _compare_state(comparison: _Comparison, where: str, expected: Encoded, actual: Encoded) -> None:
    comparison.met.add((id(expected), id(actual)))
    if ("base" in expected) != ("base" in actual):
        comparison.add(where, expected, actual)
        return
    if "base" in expected:
        comparison.node(where, expected["base"], actual["base"])
    names = expected["state"].keys()
    may_add = comparison.rules.more_attributes
    comparison.keyed(
        lambda name: f"{where}.{name}",
        expected["state"].items(),
        [pair for pair in actual["state"].items() if not may_add or pair[0] in names],
    )


def _compare_methods(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    comparison.sequence(f"{where}.__self__", _items(expected), _items(actual))


def _compare_exceptions(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    comparison.sequence(f"{where}.args", expected["args"], actual["args"])
    if not comparison.rules.more_attributes:
        state, others = expected.get("state", {}), actual.get("state", {})
        known = [pair for pair in others.items() if pair[0] in state]  # further ones do no harm
        comparison.keyed(lambda name: f"{where}.{name}", state.items(), known)
    # Recorded exceptions have no base classes.
    missing = [base for base in expected.get("bases", ()) if base not in actual["bases"]]
    if missing:
        wanted, bases = (_Text(", ".join(map(str, names))) for names in (missing, actual["bases"]))
        comparison.add(f"base classes of {where}", wanted, bases)


def _compare_arrays(
    comparison: _Comparison, where: str, expected: Encoded, actual: Encoded
) -> None:
    if comparison.rules.array_layout and "layout" in expected:
        _compare_layouts(comparison, where, expected["layout"], actual["layout"])
    if "items" in expected:
        comparison.sequence(where, _items(expected), _items(actual))
        return
    if expected["value"] == actual["value"]:
        return
    one, other = read_array(expected), read_array(actual)
    indexes = find_unequal(one, other, comparison.rel_tol, comparison.abs_tol)
    for index in indexes[:MAX_DIFFERENCES]:
        at = tuple(int(part) for part in index)
        position = f"{where}[{', '.join(map(str, at))}]" if at else where
        comparison.add(position, _Text(str(one[at])), _Text(str(other[at])))
    comparison.count += max(0, len(indexes) - MAX_DIFFERENCES)


def _compare_layouts(comparison: _Comparison, where: str, expected: str, actual: str) -> None:
    """Require what callers can do with the expected array: write to it, use its memory order."""
    missing = [name for letter, name in _LAYOUTS.items() if letter in set(expected) - set(actual)]
    if missing:
        wanted, got = (
            _Text(" and ".join(name for letter, name in _LAYOUTS.items() if letter in letters))
            for letters in (expected, actual)
        )
        comparison.add(f"{LAYOUT}{where}", wanted, got if got.text else _Text("strided"))


_KINDS: Mapping[str, _Comparer] = {
    **dict.fromkeys(EXACT, _compare_exactly),
    **dict.fromkeys(SEQUENCES, _compare_items),
    **dict.fromkeys(UNORDERED, _compare_sets),
    **dict.fromkeys(MAPPINGS, _compare_mappings),
    **dict.fromkeys(("graph", "opaque", "unreadable"), _report_unequal),
    **dict.fromkeys(("dataclass", "object"), _compare_state),
    **dict.fromkeys(("ndarray", "scalar"), _compare_arrays),
    "OrderedDict": _compare_ordered,
    "complex": _compare_complex,
    "exception": _compare_exceptions,
    "float": _compare_floats,
    "int": _compare_ints,
    "method": _compare_methods,
    "str": _compare_texts,
}
