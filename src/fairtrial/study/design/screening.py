"""Plackett-Burman designs: main effects of many two-level factors in few runs.

The constructions are those of Plackett & Burman, "The design of optimum multifactorial
experiments", *Biometrika* 33 (1946): cyclic shifts of a row, and a last row of lows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import Mistake, Record, StudyError
from fairtrial.study.design.fractional import add_mirror
from fairtrial.study.design.rows import decode, number_rows, two_level_factors
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.study import Study

MAX_FACTORS = 47

Signs = tuple[int, ...]

# As printed in the paper. For a prime number of columns the row is computed: see `_squares_row`.
FIRST_ROWS = {
    16: "++++-+-++--+---",
    36: "-+-+++---+++++-+++--+----+-+-++--+-",
}
# Nine rows of three blocks; the blocks are shifted cyclically.
ROWS_OF_28 = (
    "+-++++----+---+--+++-+-++-+",
    "++-+++-----++--+---++++-++-",
    "-+++++---+---+--+-+-+-++-++",
    "---+-++++--+-+---++-+++-+-+",
    "---++-++++----++--++--++++-",
    "----+++++-+-+---+--+++-+-++",
    "+++---+-+--+--+-+-+-++-+++-",
    "+++---++-+--+----+++-++--++",
    "+++----++-+--+-+---++-+++-+",
)


@dataclass(frozen=True, slots=True)
class PlackettBurman(Record):
    """A screening design: the number of runs is the next multiple of four above that of factors.

    Main effects are estimated independently of each other; each is partly aliased with two-factor
    interactions of other factors. For up to 47 factors; the low level is a factor's first level.

    foldover: whether the mirror image of every row is added after the original rows, so that main
        effects are not aliased with two-factor interactions
    """

    foldover: bool = False

    def table(self, study: Study) -> DesignTable:
        """Return the table of the design; raises `StudyError` if the factors don't fit."""
        factors = two_level_factors(study, str(study.design_spec.kind))
        if len(factors) > MAX_FACTORS:
            raise StudyError(
                Mistake(
                    ("factors",),
                    f"{study.design_spec.kind} takes up to {MAX_FACTORS} factors; "
                    f"there are {len(factors)}",
                    "tie some together (tied_to), or use d_optimal",
                )
            )
        rows: Sequence[Sequence[int]] = screening_rows(len(factors))
        if self.foldover:
            rows = add_mirror(rows)
        return number_rows(study, len(rows), lambda: decode(study, factors, rows), _describe(rows))


def screening_rows(count: int) -> list[Signs]:
    """Return rows of -1 and 1 for `count` factors."""
    size = 4 * (count // 4 + 1)
    return [row[:count] for row in _saturated(size)]


def _saturated(size: int) -> list[Signs]:
    """Return the design of `size` runs for `size` - 1 factors."""
    low = (-1,) * (size - 1)
    if size == 28:
        block_rows = [_parse_signs(row) for row in ROWS_OF_28]
        return [*(_shift(row, 9 * block) for block in range(3) for row in block_rows), low]
    if size == 40:
        return _double(_saturated(20))
    first = _parse_signs(FIRST_ROWS[size]) if size in FIRST_ROWS else _squares_row(size - 1)
    return [*(_shift(first, steps) for steps in range(size - 1)), low]


def _squares_row(prime: int) -> Signs:
    """Return 1 at positions that are squares modulo `prime` (3 modulo 4), and -1 elsewhere.

    The cyclic shifts of this row are an orthogonal design: Paley, "On orthogonal matrices",
    *Journal of Mathematics and Physics* 12 (1933).
    """
    squares = {number * number % prime for number in range(prime)}
    return tuple(1 if position in squares else -1 for position in range(prime))


def _double(rows: Sequence[Signs]) -> list[Signs]:
    """Return a design of twice the size: [[H, H], [H, -H]], where H has a first column of 1."""
    full = [(1, *row) for row in rows]
    return [
        *((*row, *row)[1:] for row in full),
        *((*row, *(-sign for sign in row))[1:] for row in full),
    ]


def _parse_signs(text: str) -> Signs:
    return tuple(1 if sign == "+" else -1 for sign in text)


def _shift(row: Signs, steps: int) -> Signs:
    """Return the row shifted cyclically to the right."""
    start = len(row) - steps
    return row[start:] + row[:start]


def _describe(rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return the facts of the design."""
    correlation = max_alias_correlation(rows)
    is_full = len(set(map(tuple, rows))) == 2 ** len(rows[0])
    resolution = "III" if correlation else "IV"
    facts: dict[str, Any] = {
        "rows": len(rows),
        "resolution": "full" if is_full else resolution,
        "largest_alias_correlation": correlation,
    }
    if correlation == 1:
        facts["note"] = (
            "some main effects are fully aliased with two-factor interactions; foldover clears them"
        )
    elif correlation:
        facts["note"] = (
            "each main effect is partly aliased with two-factor interactions of other factors, "
            f"with a correlation of up to {correlation:.2f}; foldover clears them"
        )
    else:
        facts["note"] = "main effects are clear of two-factor interactions"
    return facts


def max_alias_correlation(rows: Sequence[Sequence[int]]) -> float:
    """Return the largest correlation of a main effect with an interaction of two other factors."""
    columns = [
        sum(1 << index for index, sign in enumerate(column) if sign < 0)
        for column in zip(*rows, strict=True)
    ]
    # For each product of three columns: a bit for each row in which it is -1.
    triples = (
        first ^ second ^ third for first, second, third in itertools.combinations(columns, 3)
    )
    return max((abs(1 - 2 * bits.bit_count() / len(rows)) for bits in triples), default=0.0)
