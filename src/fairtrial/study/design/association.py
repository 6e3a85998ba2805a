"""Columns of a design, and measures of association between them."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from fairtrial.core import canonical_json, is_scalar, scalar_text
from fairtrial.study.design.rows import is_number

MANY_VALUES = 10
"""A column with more different numbers than this is a scale rather than a set of levels."""
_OWN_KEYS = frozenset((str, int, float, type(None)))
"""Types whose values are levels of their own; true and 1 are equal, and two levels."""
CONFOUNDED = 0.999
"""The association from which on the effects of two columns are confounded."""


class DesignColumn:
    """One column of a design, with a code for the level of each value.

    The declared levels have the first codes, in order. Other values have the following codes, in
    the order of their occurrence: they are points of a sampled range, or defaults of a factor that
    doesn't apply. Equal numbers are one level (2 and 2.0); true is not 1, and "1" is not 1.

    name: the column's name
    values: the values of all rows
    levels: the declared levels
    names: the names of the declared levels, if they are not called by their values
    """

    def __init__(
        self,
        name: str,
        values: Sequence[Any],
        levels: Sequence[Any] = (),
        names: Sequence[str] = (),
    ) -> None:
        self.name = name
        keys, level_keys = _keys(values), _keys(levels)
        # The last value that is given for a key stays, which is the first of the column.
        firsts = dict(zip(reversed(keys), reversed(values), strict=True))
        firsts |= zip(reversed(level_keys), reversed(levels), strict=True)
        codes = {key: code for code, key in enumerate(dict.fromkeys((*level_keys, *keys)))}
        distinct = [firsts[key] for key in codes]
        self.codes = list(map(codes.__getitem__, keys))
        self.counts = dict(sorted(Counter(self.codes).items()))
        """The number of rows of each level that occurs, by code."""
        # Values of one level are equal: all of them are numbers if one is.
        are_numbers = all(is_number(distinct[code]) for code in self.counts)
        self.numbers = list(map(float, values)) if are_numbers else []
        """The values, if all of them are numbers; otherwise empty."""
        level_names = {codes[key]: name for key, name in zip(level_keys, names, strict=False)}
        self.labels = _label_levels(distinct, level_names)
        """The names of the levels, by code."""
        declared = {codes[key] for key in level_keys}
        self._is_sampled = any(
            is_number(distinct[code]) for code in self.counts if code not in declared
        )
        self._is_between_levels = bool(declared) and declared.isdisjoint(self.counts)
        unused = [] if self._is_sampled else sorted(declared - self.counts.keys())
        self.unused = [self.labels[code] for code in unused]
        """The declared levels that don't occur; empty if values are sampled from a range."""

    @property
    def is_scale(self) -> bool:
        """Whether the values are points on a scale rather than levels.

        They are if they are many, hardly repeated, or all different from the declared levels.
        """
        if not (self.numbers and self._is_sampled):
            return False
        distinct = len(self.counts)
        is_sparse = distinct > 2 and 2 * distinct > len(self.codes)
        return distinct > MANY_VALUES or is_sparse or self._is_between_levels

    @cached_property
    def deviations(self) -> list[float]:
        """The numbers' deviations from their mean, scaled to at most 1 so that squares don't
        underflow."""
        mean = math.fsum(self.numbers) / len(self.numbers)
        deviations = [x - mean for x in self.numbers]
        largest = max(map(abs, deviations))
        return [x / largest for x in deviations] if largest else deviations

    @cached_property
    def spread(self) -> float:
        """The sum of the squared deviations."""
        return math.fsum(x * x for x in self.deviations)

    @property
    def ratio(self) -> float:
        """The count of the most frequent value, divided by that of the least frequent one."""
        return max(self.counts.values()) / min(self.counts.values()) if self.counts else 1.0


def read_columns(
    rows: Sequence[Mapping[str, Any]],
    levels: Mapping[str, Sequence[Any]] | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> list[DesignColumn]:
    """Return the columns of rows, in the order of their occurrence; missing values are None.

    levels: the declared levels of each column
    names: the names of these levels
    """
    levels, names = levels or {}, names or {}
    columns = []
    for name in dict.fromkeys(itertools.chain.from_iterable(rows)):
        values = [row.get(name) for row in rows]
        columns.append(DesignColumn(name, values, levels.get(name, ()), names.get(name, ())))
    return columns


def associate(first: DesignColumn, second: DesignColumn) -> tuple[float, str, bool | None]:
    """Return the association of two columns (0..1), its measure, and whether they are balanced.

    They are balanced if all pairs of levels occur equally often; None if one column is a scale.
    """
    are_numbers = bool(first.numbers and second.numbers)
    equal = None
    if not (first.is_scale or second.is_scale):
        cells = Counter(zip(first.codes, second.codes, strict=True))
        full = len(cells) == len(first.counts) * len(second.counts)
        equal = full and len(set(cells.values())) <= 1
        v = _cramers_v(first, second, cells)
        # Center points raise V of numeric factors but don't confound their effects, so numbers are
        # measured by correlation, unless one column determines the other.
        if v >= CONFOUNDED or not are_numbers:
            return v, "cramers_v", equal
    if are_numbers:
        return abs(_correlation(first, second)), "correlation", equal
    scale, levels = (first, second) if first.is_scale else (second, first)
    return _correlation_ratio(scale, levels), "correlation_ratio", None


def _cramers_v(
    first: DesignColumn, second: DesignColumn, cells: Mapping[tuple[int, int], int]
) -> float:
    """Return Cramér's V: Cramér (1946), Mathematical methods of statistics, ch. 21."""
    smaller = min(len(first.counts), len(second.counts))
    if smaller < 2:
        return 0.0
    shares = (
        count * count / (first.counts[one] * second.counts[two])
        for (one, two), count in cells.items()
    )
    # The sum is 1 for independent columns, and `smaller` if one determines the other.
    return math.sqrt(min(1.0, max(0.0, (math.fsum(shares) - 1) / (smaller - 1))))


def _correlation(first: DesignColumn, second: DesignColumn) -> float:
    spread = math.sqrt(first.spread) * math.sqrt(second.spread)
    joint = math.fsum(map(operator.mul, first.deviations, second.deviations))
    return max(-1.0, min(1.0, joint / spread)) if spread else 0.0


def _correlation_ratio(scale: DesignColumn, levels: DesignColumn) -> float:
    """Return Pearson's eta: the root of the share of variance that is between levels."""
    sums: defaultdict[int, float] = defaultdict(float)
    for x, code in zip(scale.deviations, levels.codes, strict=True):
        sums[code] += x
    between = math.fsum(total**2 / levels.counts[code] for code, total in sums.items())
    return math.sqrt(min(1.0, between / scale.spread)) if scale.spread else 0.0


def _keys(values: Sequence[Any]) -> Sequence[Any]:
    """Return what makes values one level, for each value."""
    if _OWN_KEYS.issuperset(map(type, values)):
        return values
    return [_key(value) for value in values]


def _key(value: Any) -> Any:
    if isinstance(value, bool):
        return ("truth", value)
    return value if is_scalar(value) else ("json", canonical_json(value))


def label_values(values: Sequence[Any]) -> list[str]:
    """Return distinct labels of values: their texts, or JSON if a text is blank or not unique."""
    texts = [scalar_text(value) if is_scalar(value) else "" for value in values]
    counts = Counter(texts)
    return [
        text if text.strip() and counts[text] == 1 else canonical_json(value)
        for text, value in zip(texts, values, strict=True)
    ]


def _label_levels(values: Sequence[Any], names: Mapping[int, str]) -> list[str]:
    """Return the name of each value, by its code, or its label if it has no name."""
    labels = label_values(values)
    named = [names.get(code, text) for code, text in enumerate(labels)]
    return named if len(set(named)) == len(named) else labels
