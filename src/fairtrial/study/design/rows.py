"""What designs share: blocks, repeated rows, centre points, order, row numbers.

A design that computes its own rows makes a list of plain mappings (factor -> value) and hands it to
`number_rows`, which does the rest the same way for all of them.
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
LARGEST = 1e150
"""Of larger numbers neither squares nor distances can be computed."""


def block_assignments(study: Study) -> list[Assignment]:
    """Every combination of block levels, in order; one empty combination without blocks."""
    names = [block.name for block in study.blocks]
    return [
        dict(zip(names, levels, strict=True))
        for levels in itertools.product(*(block.levels for block in study.blocks))
    ]


def count_blocks(study: Study) -> int:
    """How many combinations of block levels there are, without making them."""
    return math.prod(len(block.levels) for block in study.blocks)


def number_rows(
    study: Study,
    size: int,
    make: Callable[[], Sequence[Mapping[str, Any]]],
    facts: Mapping[str, Any] | None = None,
) -> DesignTable:
    """The table of a design that comes as rows.

    `size` is how many rows `make` will give. They are repeated, given centre points and shuffled as
    the spec says, numbered from 0 after that, copied for each combination of blocks and, last,
    counterbalanced.
    """
    spec = study.design_spec
    count = size * spec.replicates + spec.center_points

    def rows() -> Iterator[DesignRow]:
        once = make()
        made = [dict(row) for _ in range(spec.replicates) for row in once]
        made = add_center_points(made, spec.center_points)
        if spec.randomize:
            made = shuffle_rows(made, study.seed_policy.base_seed, spec.block_randomization_key)
        blocks = block_assignments(study)
        for index, row in enumerate(made):
            keyed = {"design_kind": str(spec.kind), "row_index": index}
            for block in blocks:
                yield DesignRow(row, block, keyed=keyed, metadata=keyed)

    return DesignTable(
        size=count * count_blocks(study),
        rows=_interleaved(rows()) if spec.counterbalance else rows(),
        facts=facts or {},
        settled=True,
    )


def _interleaved(rows: Iterable[DesignRow]) -> Iterator[DesignRow]:
    yield from interleave(list(rows))


def interleave(items: Sequence[T]) -> list[T]:
    """The 1st, 3rd, 5th, ... and then the others from the back: neighbours come apart."""
    if len(items) < 3:
        return list(items)
    return [*items[::2], *reversed(items[1::2])]


def add_center_points(rows: list[Assignment], count: int) -> list[Assignment]:
    """`rows` and, at the end, `count` rows in the middle of all of them.

    A numeric column's middle is halfway between its extremes; another column takes its most
    frequent value, the earliest of several.
    """
    if not count or not rows:
        return rows
    centre: Assignment = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if all(is_number(value) for value in values):
            centre[name] = (float(min(values)) + float(max(values))) / 2.0
        else:
            times = Counter(map(canonical_json, values))
            centre[name] = max(values, key=lambda value: times[canonical_json(value)])
    return [*rows, *(dict(centre) for _ in range(count))]


def shuffle_rows(rows: list[Assignment], seed: int, within: str | None) -> list[Assignment]:
    """`rows` in a seeded random order; with `within`, each value's rows in their own order."""
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
    """Whether a value is a number that can be reckoned with (true and false are not, and numbers
    whose squares are too large for a computer aren't either)."""
    is_numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_numeric and abs(value) <= LARGEST


def free_factors(study: Study) -> list[Factor]:
    """The factors that a design may set; tied ones follow their leader (`follow_ties`)."""
    return [factor for factor in study.factors if factor.tied_to is None]


def follow_ties(study: Study, row: Mapping[str, Any]) -> Assignment:
    """`row` with the tied factors added, each at the level number of the factor it is tied to."""
    by_name = {factor.name: factor for factor in study.factors}
    result: Assignment = {}
    for factor in study.factors:
        if factor.tied_to is None:
            result[factor.name] = row[factor.name]
        else:
            leader = by_name[factor.tied_to]
            # By their text: as levels 1 and true are two, though Python takes them for equal.
            texts = [canonical_json(value) for value in leader.iter_values()]
            position = texts.index(canonical_json(row[leader.name]))
            result[factor.name] = factor.iter_values()[position]
    return result


def two_level_factors(study: Study, kind: str) -> list[Factor]:
    """The free factors, two or more, each of two levels; else an error that names those that
    aren't."""
    factors = free_factors(study)
    wrong = [
        Mistake(
            ("factors", study.factors.index(factor), "levels"),
            f"{kind} needs two levels for each factor; '{factor.name}' has {len(factor.levels)}",
        )
        for factor in factors
        if len(factor.levels) != 2
    ]
    if len(factors) < 2:
        message = f"{kind} needs at least two factors (tied ones don't count); got {len(factors)}"
        wrong.append(Mistake(("factors",), message))
    if wrong:
        raise StudyError(wrong)
    return factors


def decode(
    study: Study, factors: Sequence[Factor], coded: Iterable[Sequence[float]]
) -> list[Assignment]:
    """Rows of -1 and +1 as rows of the factors' low and high levels, ties followed."""
    rows = []
    for row in coded:
        values = {
            factor.name: factor.levels[0 if sign < 0 else 1].value
            for factor, sign in zip(factors, row, strict=True)
        }
        rows.append(follow_ties(study, values))
    return rows
