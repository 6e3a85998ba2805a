"""What designs have in common: blocks, repeated rows, center points, order, row numbers.

A design that computes its own rows returns them as plain mappings (factor -> value); `number_rows`
makes a table of them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from fairtrial.core import Mistake, StudyError, canonical_json
from fairtrial.study.model.conditions import DesignRow, DesignTable
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.study import Study

Assignment = dict[str, Any]
T = TypeVar("T")
LARGEST_NUMBER = 1e150
"""The largest number whose squares and distances can be computed without overflow."""


def block_assignments(study: Study) -> list[Assignment]:
    """Return all combinations of block levels, in order; one empty combination without blocks."""
    names = [block.name for block in study.blocks]
    return [
        dict(zip(names, levels, strict=True))
        for levels in itertools.product(*(block.levels for block in study.blocks))
    ]


def count_blocks(study: Study) -> int:
    """Return the number of combinations of block levels, without generating them."""
    return math.prod(len(block.levels) for block in study.blocks)


def number_rows(
    study: Study,
    size: int,
    make_rows: Callable[[], Sequence[Mapping[str, Any]]],
    facts: Mapping[str, Any] | None = None,
) -> DesignTable:
    """Return the table of a design that computes its own rows.

    The rows are repeated, extended by center points and shuffled as the design spec says; then
    numbered from 0, repeated for each combination of blocks and counterbalanced.

    size: the number of rows that `make_rows` returns
    make_rows: computes the rows; called when the table's rows are iterated
    facts: properties of the design for its users
    """
    spec = study.design_spec
    count = size * spec.replicates + spec.center_points

    def generate() -> Iterator[DesignRow]:
        design_rows = make_rows()
        rows = [dict(row) for _ in range(spec.replicates) for row in design_rows]
        rows = add_center_points(rows, spec.center_points)
        if spec.randomize:
            rows = shuffle_rows(rows, study.seed_policy.base_seed, spec.block_randomization_key)
        blocks = block_assignments(study)
        for index, row in enumerate(rows):
            id_metadata = {"design_kind": str(spec.kind), "row_index": index}
            for block in blocks:
                yield DesignRow(row, block, id_metadata=id_metadata, metadata=id_metadata)

    return DesignTable(
        size=count * count_blocks(study),
        rows=_interleave_lazily(generate()) if spec.counterbalance else generate(),
        facts=facts or {},
        settled=True,
    )


def _interleave_lazily(rows: Iterable[DesignRow]) -> Iterator[DesignRow]:
    yield from interleave(list(rows))


def interleave(items: Sequence[T]) -> list[T]:
    """Return the 1st, 3rd, 5th, ... item, then the others in reverse: neighbors are moved apart."""
    if len(items) < 3:
        return list(items)
    return [*items[::2], *reversed(items[1::2])]


def add_center_points(rows: list[Assignment], count: int) -> list[Assignment]:
    """Return the rows followed by `count` center points.

    The center of a numeric column is halfway between its extremes; that of another column is its
    most frequent value, the first of several.
    """
    if not count or not rows:
        return rows
    center: Assignment = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if all(is_number(value) for value in values):
            center[name] = (float(min(values)) + float(max(values))) / 2.0
        else:
            counts = Counter(map(canonical_json, values))
            center[name] = max(values, key=lambda value: counts[canonical_json(value)])
    return [*rows, *(dict(center) for _ in range(count))]


def shuffle_rows(rows: list[Assignment], seed: int, within: str | None) -> list[Assignment]:
    """Return the rows in a seeded random order.

    With `within`, the name of a factor, rows are shuffled only among those with the same value.
    """
    rng = random.Random(seed)
    if within is None:
        shuffled = list(rows)
        rng.shuffle(shuffled)
        return shuffled
    if any(within not in row for row in rows):
        raise StudyError(
            Mistake(
                ("design_spec", "block_randomization_key"),
                f"'{within}' is not a factor of the design",
            )
        )
    groups: dict[str, list[Assignment]] = {}
    for row in rows:
        groups.setdefault(canonical_json(row[within]), []).append(row)
    for group in groups.values():
        rng.shuffle(group)
    return list(itertools.chain.from_iterable(groups.values()))


def is_number(value: Any) -> bool:
    """Return whether a value is a number, not a truth value, and at most `LARGEST_NUMBER`."""
    is_numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_numeric and abs(value) <= LARGEST_NUMBER


def free_factors(study: Study) -> list[Factor]:
    """Return the factors that a design sets; `follow_ties` adds the tied ones."""
    return [factor for factor in study.factors if factor.tied_to is None]


def follow_ties(study: Study, row: Mapping[str, Any]) -> Assignment:
    """Return the row with tied factors added, each at the level with its leader's index."""
    by_name = {factor.name: factor for factor in study.factors}
    result: Assignment = {}
    for factor in study.factors:
        if factor.tied_to is None:
            result[factor.name] = row[factor.name]
        else:
            leader = by_name[factor.tied_to]
            # Compared as JSON: 1 and true are different levels, but equal to Python.
            texts = [canonical_json(value) for value in leader.iter_values()]
            position = texts.index(canonical_json(row[leader.name]))
            result[factor.name] = factor.iter_values()[position]
    return result


def two_level_factors(study: Study, kind: str) -> list[Factor]:
    """Return the free factors; raises `StudyError` unless all of two or more have two levels."""
    factors = free_factors(study)
    mistakes = [
        Mistake(
            ("factors", study.factors.index(factor), "levels"),
            f"{kind} needs two levels for each factor; '{factor.name}' has {len(factor.levels)}",
        )
        for factor in factors
        if len(factor.levels) != 2
    ]
    if len(factors) < 2:
        message = f"{kind} needs at least two factors (tied ones don't count); got {len(factors)}"
        mistakes.append(Mistake(("factors",), message))
    if mistakes:
        raise StudyError(mistakes)
    return factors


def decode(
    study: Study, factors: Sequence[Factor], coded: Iterable[Sequence[float]]
) -> list[Assignment]:
    """Return rows of -1 and +1 as rows of the factors' first and second levels, ties included."""
    rows = []
    for row in coded:
        values = {
            factor.name: factor.levels[0 if sign < 0 else 1].value
            for factor, sign in zip(factors, row, strict=True)
        }
        rows.append(follow_ties(study, values))
    return rows
