"""Every combination of levels: the designs without rows of their own.

Their conditions are what they assign and nothing else, so a level or a factor's replicate that is
added later leaves all earlier ids as they were.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.design.constraints import Expression
from fairtrial.design.table import Assignment, block_assignments, count_blocks
from fairtrial.model.conditions import DesignRow, DesignTable
from fairtrial.model.factors import Factor
from fairtrial.model.study import Study


@dataclass(frozen=True)
class FullFactorial:
    """All combinations of all levels, in every block; constraints mark those that never run."""

    def table(self, study: Study) -> DesignTable:
        limit = study.design_spec.max_conditions
        size = count_combinations(study.factors, limit) * count_blocks(study)
        return DesignTable(size=size, rows=_rows(study))


def _rows(study: Study) -> Iterator[DesignRow]:
    blocks = block_assignments(study)
    for factors in combinations(study.factors):
        for block in blocks:
            yield DesignRow(factors, block)


def combinations(factors: Sequence[Factor]) -> Iterator[Assignment]:
    """Every combination of levels, the last factor changing fastest.

    A tied factor moves with the one it is tied to; a level whose `when` doesn't hold is left out;
    a factor whose `when` doesn't hold has its default.
    """
    if not any(_is_conditional(factor) for factor in factors):
        names = [factor.name for factor in factors]
        for values in itertools.product(*(factor.iter_values() for factor in factors)):
            yield dict(zip(names, values, strict=True))
        return
    yield from _extend({}, {}, factors, _expressions(factors))


def count_combinations(factors: Sequence[Factor], limit: int) -> int:
    """How many combinations there are; where that has to be counted out, counting stops past
    `limit`."""
    if not any(_is_conditional(factor) for factor in factors):
        return math.prod(len(factor.iter_values()) for factor in factors)
    return sum(1 for _ in itertools.islice(combinations(factors), min(limit + 1, sys.maxsize)))


def _is_conditional(factor: Factor) -> bool:
    return bool(
        factor.tied_to is not None
        or factor.when is not None
        or any(level.when is not None for level in factor.levels)
    )


def _expressions(factors: Sequence[Factor]) -> dict[str, Expression]:
    texts = [factor.when for factor in factors]
    texts += [level.when for factor in factors for level in factor.levels]
    return {text: Expression(text) for text in texts if text is not None}


def _extend(
    chosen: Assignment,
    positions: dict[str, int],
    factors: Sequence[Factor],
    expressions: Mapping[str, Expression],
) -> Iterator[Assignment]:
    if not factors:
        yield dict(chosen)
        return
    factor, rest = factors[0], factors[1:]
    for position, value in _choices(factor, chosen, positions, expressions):
        yield from _extend(
            {**chosen, factor.name: value}, {**positions, factor.name: position}, rest, expressions
        )


def _choices(
    factor: Factor,
    chosen: Assignment,
    positions: Mapping[str, int],
    expressions: Mapping[str, Expression],
) -> Iterator[tuple[int, Any]]:
    """The levels that `factor` may take after what has been chosen: (level number, value)."""

    def holds(text: str | None) -> bool:
        return text is None or expressions[text].holds(chosen, {})

    if not holds(factor.when):
        yield -1, factor.default
    elif factor.tied_to is not None:
        position = positions[factor.tied_to]
        yield position, factor.default if position < 0 else factor.levels[position].value
    elif not factor.levels:
        yield 0, factor.default
    else:
        for position, level in enumerate(factor.levels):
            if holds(level.when):
                yield position, level.value
