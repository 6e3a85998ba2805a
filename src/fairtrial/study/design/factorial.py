"""Every combination of levels: the designs without rows of their own.

Their conditions are what they assign and nothing else, so a level or a factor's replicate that is
added later leaves all earlier ids as they were.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.study.design.constraints import Expression, at
from fairtrial.study.design.rows import Assignment, block_assignments, count_blocks
from fairtrial.study.model.conditions import DesignRow, DesignTable
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.study import Study

MOST_STATES = 100_000
"""Beyond this many different ways to begin, nobody looks whether one of them leads anywhere."""


@dataclass(frozen=True)
class FullFactorial:
    """All combinations of all levels, in every block; constraints mark those that never run."""

    def table(self, study: Study) -> DesignTable:
        return DesignTable(size=count_conditions(study), rows=_rows(study))


def count_conditions(study: Study) -> int:
    """How many conditions there are; one more than `max_conditions` where counting was given up."""
    limit = study.design_spec.max_conditions
    count = count_combinations(study.factors, limit)
    return count if count == limit + 1 else count * count_blocks(study)


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
    elif count_combinations(factors, MOST_STATES):  # else all of very many ways lead nowhere
        yield from _walk(factors, _expressions(factors))


def count_combinations(factors: Sequence[Factor], limit: int) -> int:
    """How many combinations there are, without making them.

    Where that depends on too many factors at once, counting is given up at `limit` + 1.
    """
    if not any(_is_conditional(factor) for factor in factors):
        return math.prod(len(factor.iter_values()) for factor in factors)
    expressions = _expressions(factors)
    # What is chosen for the first factors matters only as far as later ones refer to it: of all
    # choices that look the same to those, one is followed up, and they are counted.
    tally: dict[tuple[int, ...], tuple[Assignment, dict[str, int], int]] = {(): ({}, {}, 1)}
    for index, factor in enumerate(factors):
        later = _references(factors[index + 1 :], expressions)
        following: dict[tuple[int, ...], tuple[Assignment, dict[str, int], int]] = {}
        for chosen, positions, times in tally.values():
            for position, value in _choices(factors, index, chosen, positions, expressions):
                now = {**positions, factor.name: position}
                key = tuple(now[name] for name in now if name in later)
                known = following.get(key)
                following[key] = (
                    ({**chosen, factor.name: value}, now, times)
                    if known is None
                    else (*known[:2], known[2] + times)
                )
        if len(following) > limit:
            return limit + 1
        tally = following
    return sum(times for _, _, times in tally.values())


def _references(factors: Sequence[Factor], expressions: Mapping[str, Expression]) -> set[str]:
    """The names of the factors that these depend on."""
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


def _expressions(factors: Sequence[Factor]) -> dict[str, Expression]:
    texts = [factor.when for factor in factors]
    texts += [level.when for factor in factors for level in factor.levels]
    return {text: Expression(text) for text in texts if text is not None}


def _walk(factors: Sequence[Factor], expressions: Mapping[str, Expression]) -> Iterator[Assignment]:
    """Choose a level for one factor after the other, and go back for the next; not recursive, for
    there may be thousands of factors."""
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
    """The levels that a factor may take after what has been chosen: (level number, value)."""
    factor = factors[index]

    def holds(text: str | None, *path: str | int) -> bool:
        place = ("factors", index, *path, "when")
        return text is None or at(place, expressions[text].holds)(chosen, {})

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
