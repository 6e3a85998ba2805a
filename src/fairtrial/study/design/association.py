"""Columns of a table, and how two of them go together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from fairtrial.core import canonical_json, is_scalar, scalar_text
from fairtrial.study.design.rows import is_number

MANY_VALUES = 10
"""A column of more different numbers than this is a scale rather than a set of levels."""
CONFOUNDED = 0.999
"""From this association on, two columns' effects can't be told apart."""


class Column:
    """One column, its values coded by the level they are.

    `levels` are those that it is meant to have; they get the first codes, in order. Other values
    get the codes after, as they occur: they are points on a range that a design samples, or stand
    where a factor doesn't apply. Numbers that are equal are one level (2 and 2.0); true is not 1,
    and "1" is not 1. `names` are what the levels are called, if not by their values.
    """

    def __init__(
        self,
        name: str,
        values: Sequence[Any],
        levels: Sequence[Any] = (),
        names: Sequence[str] = (),
    ) -> None:
        self.name = name
        keys = [_key(value) for value in values]
        codes: dict[Any, int] = {}
        known: list[Any] = []
        for key, value in zip((*map(_key, levels), *keys), (*levels, *values), strict=True):
            if key not in codes:
                codes[key] = len(known)
                known.append(value)
        self.codes = [codes[key] for key in keys]
        self.counts = dict(sorted(Counter(self.codes).items()))
        """How often each level occurs, by code; without those that don't."""
        self.numbers = (
            [float(value) for value in values] if all(is_number(value) for value in values) else []
        )
        """The values, where all of them are numbers."""
        self.labels = _label(
            known, {codes[_key(at)]: n for at, n in zip(levels, names, strict=False)}
        )
        """What people call the levels, by code."""
        meant = {codes[_key(level)] for level in levels}
        self._is_sampled = any(is_number(known[code]) for code in self.counts if code not in meant)
        self._is_between_levels = bool(meant) and meant.isdisjoint(self.counts)
        unused = [] if self._is_sampled else sorted(meant - self.counts.keys())
        self.unused = [self.labels[code] for code in unused]
        """The levels that don't occur; none where values are sampled from a range."""

    @property
    def is_scale(self) -> bool:
        """Whether it holds points on a scale rather than levels: many, or hardly repeated, or none
        of them a level."""
        if not (self.numbers and self._is_sampled):
            return False
        distinct = len(self.counts)
        is_sparse = distinct > 2 and 2 * distinct > len(self.codes)
        return distinct > MANY_VALUES or is_sparse or self._is_between_levels

    @property
    def ratio(self) -> float:
        """How much more often the commonest value occurs than the rarest."""
        return max(self.counts.values()) / min(self.counts.values()) if self.counts else 1.0


def read_columns(
    rows: Sequence[Mapping[str, Any]],
    levels: Mapping[str, Sequence[Any]] | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> list[Column]:
    """The columns of some rows, in the order in which they first occur; what is absent is None.

    levels: those that a column is meant to have, by its name
    names: what these are called, where that is known
    """
    meant, called = levels or {}, names or {}
    return [
        Column(name, [row.get(name) for row in rows], meant.get(name, ()), called.get(name, ()))
        for name in dict.fromkeys(name for row in rows for name in row)
    ]


def associate(first: Column, second: Column) -> tuple[float, str, bool | None]:
    """How strongly two columns go together (0..1), by which measure, and whether every two levels
    meet equally often (None where one column is a scale)."""
    are_numbers = bool(first.numbers and second.numbers)
    equal = None
    if not (first.is_scale or second.is_scale):
        cells = Counter(zip(first.codes, second.codes, strict=True))
        full = len(cells) == len(first.counts) * len(second.counts)
        equal = full and len(set(cells.values())) <= 1
        v = _cramers_v(first, second, cells)
        # Rows at the centre of numeric factors raise V without making effects harder to tell
        # apart; but where one column decides the other, that is so whatever its shape.
        if v >= CONFOUNDED or not are_numbers:
            return v, "cramers_v", equal
    if are_numbers:
        return abs(_correlation(first.numbers, second.numbers)), "correlation", equal
    scale, levels = (first, second) if first.is_scale else (second, first)
    return _correlation_ratio(scale.numbers, levels), "correlation_ratio", None


def _cramers_v(first: Column, second: Column, cells: Mapping[tuple[int, int], int]) -> float:
    """Cramér (1946), Mathematical methods of statistics, ch. 21."""
    fewest = min(len(first.counts), len(second.counts))
    if fewest < 2:
        return 0.0
    shares = (
        count * count / (first.counts[one] * second.counts[two])
        for (one, two), count in cells.items()
    )
    # The sum is 1 for independent columns and `fewest` where one decides the other.
    return math.sqrt(min(1.0, max(0.0, (math.fsum(shares) - 1) / (fewest - 1))))


def _correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    xs, ys = _deviations(xs), _deviations(ys)
    spread = math.sqrt(math.fsum(x * x for x in xs)) * math.sqrt(math.fsum(y * y for y in ys))
    joint = math.fsum(x * y for x, y in zip(xs, ys, strict=True))
    return max(-1.0, min(1.0, joint / spread)) if spread else 0.0


def _correlation_ratio(numbers: Sequence[float], levels: Column) -> float:
    """The share of a scale's spread that lies between levels, as a root (Pearson's eta)."""
    deviations = _deviations(numbers)
    spread = math.fsum(x * x for x in deviations)
    sums: defaultdict[int, float] = defaultdict(float)
    for x, code in zip(deviations, levels.codes, strict=True):
        sums[code] += x
    between = math.fsum(total**2 / levels.counts[code] for code, total in sums.items())
    return math.sqrt(min(1.0, between / spread)) if spread else 0.0


def _deviations(numbers: Sequence[float]) -> list[float]:
    """From the mean, the largest being 1: the squares of tiny ones would be nothing at all."""
    mean = math.fsum(numbers) / len(numbers)
    deviations = [x - mean for x in numbers]
    largest = max(map(abs, deviations))
    return [x / largest for x in deviations] if largest else deviations


def _key(value: Any) -> Any:
    if isinstance(value, bool):
        return ("truth", value)
    return value if is_scalar(value) else ("json", canonical_json(value))


def label(values: Sequence[Any]) -> list[str]:
    """Each value as people write it; as JSON where that is blank or two would look the same."""
    texts = [scalar_text(value) if is_scalar(value) else "" for value in values]
    times = Counter(texts)
    return [
        text if text.strip() and times[text] == 1 else canonical_json(value)
        for text, value in zip(texts, values, strict=True)
    ]


def _label(values: Sequence[Any], names: Mapping[int, str]) -> list[str]:
    """Each value by its name, or else by its label."""
    labels = label(values)
    named = [names.get(code, text) for code, text in enumerate(labels)]
    return named if len(set(named)) == len(named) else labels
