"""Plackett-Burman designs: main effects of many two-level factors in hardly more runs than factors.

Constructions are those of Plackett & Burman, "The design of optimum multifactorial experiments",
*Biometrika* 33 (1946): rows that are shifted round, and a last row of lows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import Mistake, Record, StudyError
from fairtrial.study.design.fractional import mirror
from fairtrial.study.design.rows import decode, number_rows, two_level_factors
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.study import Study

MOST_FACTORS = 47

Signs = tuple[int, ...]

# As printed in the paper. Those of a prime number of columns need no table: see `_squares_row`.
FIRST_ROWS = {
    16: "++++-+-++--+---",
    36: "-+-+++---+++++-+++--+----+-+-++--+-",
}
# Nine rows of three blocks; the blocks are shifted round.
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
    """The smallest multiple of four runs that is more than the number of two-level factors.

    Main effects are estimated independently of each other; each is mixed, in part, with
    two-factor interactions of other factors. Up to 47 factors; low is a factor's first level.

    foldover: whether the mirror image of every row is added, after the original rows: it clears
        main effects of two-factor interactions
    """

    foldover: bool = False

    def table(self, study: Study) -> DesignTable:
        factors = two_level_factors(study, str(study.design_spec.kind))
        if len(factors) > MOST_FACTORS:
            raise StudyError(
                Mistake(
                    ("factors",),
                    f"{study.design_spec.kind} takes up to {MOST_FACTORS} factors; "
                    f"there are {len(factors)}",
                    "tie some together (tied_to), or use d_optimal",
                )
            )
        rows: Sequence[Sequence[int]] = screening_rows(len(factors))
        if self.foldover:
            rows = mirror(rows)
        return number_rows(study, len(rows), lambda: decode(study, factors, rows), _facts(rows))


def screening_rows(count: int) -> list[Signs]:
    """Rows of -1 and 1 for so many factors."""
    size = 4 * (count // 4 + 1)
    return [row[:count] for row in _saturated(size)]


def _saturated(size: int) -> list[Signs]:
    """A design of `size` runs for one factor less than that."""
    low = (-1,) * (size - 1)
    if size == 28:
        nine = [_signs(row) for row in ROWS_OF_28]
        return [*(_shift(row, 9 * turn) for turn in range(3) for row in nine), low]
    if size == 40:
        return _double(_saturated(20))
    first = _signs(FIRST_ROWS[size]) if size in FIRST_ROWS else _squares_row(size - 1)
    return [*(_shift(first, turn) for turn in range(size - 1)), low]


def _squares_row(prime: int) -> Signs:
    """+ where the position is a square modulo `prime`, a prime that leaves 3 when divided by 4.

    Shifted round it gives an orthogonal design: Paley, "On orthogonal matrices", *Journal of
    Mathematics and Physics* 12 (1933).
    """
    squares = {number * number % prime for number in range(prime)}
    return tuple(1 if position in squares else -1 for position in range(prime))


def _double(rows: Sequence[Signs]) -> list[Signs]:
    """Twice the runs and factors: H beside H, over H beside -H, H with a column of + in front."""
    full = [(1, *row) for row in rows]
    return [
        *((*row, *row)[1:] for row in full),
        *((*row, *(-sign for sign in row))[1:] for row in full),
    ]


def _signs(text: str) -> Signs:
    return tuple(1 if sign == "+" else -1 for sign in text)


def _shift(row: Signs, places: int) -> Signs:
    """`row` moved to the right, what falls off coming back on the left."""
    start = len(row) - places
    return row[start:] + row[:start]


def _facts(rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    share = alias_share(rows)
    is_full = len(set(map(tuple, rows))) == 2 ** len(rows[0])
    resolution = "III" if share else "IV"
    facts: dict[str, Any] = {
        "rows": len(rows),
        "resolution": "full" if is_full else resolution,
        "largest_alias_correlation": share,
    }
    if share == 1:
        facts["note"] = (
            "some main effects are fully aliased with two-factor interactions; foldover clears them"
        )
    elif share:
        facts["note"] = (
            "each main effect is partly aliased with two-factor interactions of other factors, "
            f"with a correlation of up to {share:.2f}; foldover clears them"
        )
    else:
        facts["note"] = "main effects are clear of two-factor interactions"
    return facts


def alias_share(rows: Sequence[Sequence[int]]) -> float:
    """The largest correlation of a main effect with a two-factor interaction of other factors."""
    columns = [
        sum(1 << index for index, sign in enumerate(column) if sign < 0)
        for column in zip(*rows, strict=True)
    ]
    # Of a product of three columns: the rows where it is -, as bits.
    triples = (
        first ^ second ^ third for first, second, third in itertools.combinations(columns, 3)
    )
    return max((abs(1 - 2 * bits.bit_count() / len(rows)) for bits in triples), default=0.0)
