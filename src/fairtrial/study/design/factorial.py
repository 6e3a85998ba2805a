"""Factorial designs: every combination of levels.

The id of a condition depends only on what it assigns, so ids stay the same when levels or
replicates are added later.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fairtrial.study.design.constraints import locate_mistakes
from fairtrial.study.design.expressions import Expression
from fairtrial.study.design.rows import Assignment, block_assignments, count_blocks
from fairtrial.study.model.conditions import DesignRow, DesignTable
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.runs import quick_maker
from fairtrial.study.model.study import Study

NO_METADATA: Mapping[str, Any] = MappingProxyType({})
MAX_STATES = 100_000
"""The most partial combinations for which it is checked that at least one can be completed."""

_new_row = quick_maker(DesignRow)


@dataclass(frozen=True)
class FullFactorial:
    """All combinations of all levels, in every block; constraints mark those that never run."""

    def table(self, study: Study) -> DesignTable:
        """Return the table of all combinations."""
        return DesignTable(size=count_conditions(study), rows=_generate_rows(study))


def count_conditions(study: Study) -> int:
    """Return the number of conditions; `max_conditions` + 1 if counting was given up."""
    limit = study.design_spec.max_conditions
    count = count_combinations(study.factors, limit)
    return count if count == limit + 1 else count * count_blocks(study)


def _generate_rows(study: Study) -> Iterator[DesignRow]:
    blocks = block_assignments(study)
    for factors in combinations(study.factors):
        for block in blocks:
            yield _new_row(factors, block, NO_METADATA, NO_METADATA, None)


def combinations(factors: Sequence[Factor]) -> Iterator[Assignment]:
    """Yield every combination of levels; the last factor changes fastest.

    A tied factor has the level of the factor it is tied to. A level whose `when` is false is left
    out, and a factor whose `when` is false has its default.
    """
    if not any(_is_conditional(factor) for factor in factors):
        names = [factor.name for factor in factors]
        for values in itertools.product(*(factor.iter_values() for factor in factors)):
            yield dict(zip(names, values, strict=True))
    elif count_combinations(factors, MAX_STATES):  # avoids a search that finds no combination
        yield from _walk(factors, _parse_expressions(factors))


def count_combinations(factors: Sequence[Factor], limit: int) -> int:
    """Return the number of combinations, without generating them.

    If it depends on too many factors at once, counting is given up and `limit` + 1 returned.
    """
    if not any(_is_conditional(factor) for factor in factors):
        return math.prod(len(factor.iter_values()) for factor in factors)
    expressions = _parse_expressions(factors)
    # Earlier choices matter only as far as later factors refer to them: of all partial combinations
    # that are equal in those factors one is extended, and their number is kept with it.
    states: dict[tuple[int, ...], tuple[Assignment, dict[str, int], int]] = {(): ({}, {}, 1)}
    for index, factor in enumerate(factors):
        referenced = _find_references(factors[index + 1 :], expressions)
        extended: dict[tuple[int, ...], tuple[Assignment, dict[str, int], int]] = {}
        for chosen, positions, count in states.values():
            for position, value in _choices(factors, index, chosen, positions, expressions):
                new_positions = {**positions, factor.name: position}
                key = tuple(new_positions[name] for name in new_positions if name in referenced)
                equal = extended.get(key)
                extended[key] = (
                    ({**chosen, factor.name: value}, new_positions, count)
                    if equal is None
                    else (*equal[:2], equal[2] + count)
                )
        if len(extended) > limit:
            return limit + 1
        states = extended
    return sum(count for _, _, count in states.values())


def _find_references(factors: Sequence[Factor], expressions: Mapping[str, Expression]) -> set[str]:
    """Return the names of the factors that these depend on."""
    names = {factor.tied_to for factor in factors if factor.tied_to is not None}
    for factor in factors:
        texts = [factor.when, *(level.when for level in factor.levels)]
        names.update(*(expressions[text].names for text in texts if text is not None))
    return names


def _is_conditional(factor: Factor) -> bool:
    return bool(
        factor.tied_to is not None
        or factor.when is not None
        or any(level.when is not None for level in factor.levels)
    )


def _parse_expressions(factors: Sequence[Factor]) -> dict[str, Expression]:
    texts = [factor.when for factor in factors]
    texts += [level.when for factor in factors for level in factor.levels]
    return {text: Expression(text) for text in texts if text is not None}


def _walk(factors: Sequence[Factor], expressions: Mapping[str, Expression]) -> Iterator[Assignment]:
    """Yield all combinations by backtracking, without recursion: factors may be thousands."""
    chosen: Assignment = {}
    positions: dict[str, int] = {}
    open_choices = [iter(list(_choices(factors, 0, chosen, positions, expressions)))]
    while open_choices:
        factor = factors[len(open_choices) - 1]
        step = next(open_choices[-1], None)
        if step is None:
            open_choices.pop()
            chosen.pop(factor.name, None)
            positions.pop(factor.name, None)
            continue
        positions[factor.name], chosen[factor.name] = step
        if len(open_choices) == len(factors):
            yield dict(chosen)
        else:
            following = _choices(factors, len(open_choices), chosen, positions, expressions)
            open_choices.append(iter(list(following)))


def _choices(
    factors: Sequence[Factor],
    index: int,
    chosen: Assignment,
    positions: Mapping[str, int],
    expressions: Mapping[str, Expression],
) -> Iterator[tuple[int, Any]]:
    """Yield (index, value) of each level that a factor may have after earlier choices.

    The index is -1 for the default of a factor whose `when` is false.
    """
    factor = factors[index]

    def holds(text: str | None, *path: str | int) -> bool:
        full_path = ("factors", index, *path, "when")
        return text is None or locate_mistakes(full_path, expressions[text].holds)(chosen, {})

    if not holds(factor.when):
        yield -1, factor.default
    elif factor.tied_to is not None:
        position = positions[factor.tied_to]
        yield position, factor.default if position < 0 else factor.levels[position].value
    elif not factor.levels:
        yield 0, factor.default
    else:
        for position, level in enumerate(factor.levels):
            if holds(level.when, "levels", position):
                yield position, level.value
