"""Two-level fractions: part of all combinations of two levels, chosen so that it is known which
effects can't be told apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairtrial.core import Mistake, Record, StudyError
from fairtrial.study.design.aliases import (
    LETTERS,
    Product,
    defining_relation,
    describe_fraction,
    independent_words,
    roman,
)
from fairtrial.study.design.generators import solve_generators
from fairtrial.study.design.rows import Assignment, decode, number_rows, two_level_factors
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.study import Study

MOST_FACTORS = 15
NUMERALS = {"III": 3, "IV": 4, "V": 5}

# For each resolution: base factors, the numbers of factors (from, to), and the words that the
# further factors equal, as many as are needed. Fewer factors than the first entry's: all 2^k.
PUBLISHED: dict[str, tuple[tuple[int, int, int, str], ...]] = {
    "III": (
        (3, 4, 7, "ABC AC BC AB"),
        (4, 8, 8, "BCD ACD ABC ABD"),
        (4, 9, 15, "ABC BCD ACD ABD ABCD AB AC AD BC BD CD"),
    ),
    "IV": (
        (3, 4, 4, "ABC"),
        (4, 5, 5, "ABCD"),
        (4, 6, 7, "ABC BCD ACD"),
        (4, 8, 8, "BCD ACD ABC ABD"),
        (5, 9, 9, "BCDE ACDE ABDE ABCE"),
        (5, 10, 10, "ABCD ABCE ABDE ACDE BCDE"),
        (5, 11, 11, "ABC BCD CDE ACD ADE BDE"),
        (5, 12, 12, "ACE ACD ABD ABE CDE ABCDE ADE"),
        (5, 13, 13, "ACE BCE ABC CDE ABCDE ABE ACD ADE"),
        (5, 14, 15, "ABC ABD ABE ACD ACE ADE BCD BCE BDE CDE"),
    ),
    "V": (
        (4, 5, 5, "ABCD"),
        (5, 6, 6, "ABCDE"),
        (6, 7, 7, "ABCDEF"),
        (6, 8, 8, "ABCD ABEF"),
        (7, 9, 9, "ACDFG BCEFG"),
        (7, 10, 11, "ABCG BCDE ACDF ABCDEFG"),
        (8, 12, 15, "ABCD ABEF ACEG BDFG BCEH ABDFH ABDEGH"),
    ),
}
"""The smallest regular fractions of at least each resolution, for 4 to 15 factors.

Up to 11 factors, and all of resolution III and IV: Box, Hunter & Hunter, *Statistics for
Experimenters* (1978), table 12.15, and Montgomery, *Design and Analysis of Experiments*, table
"Selected 2^(k-p) fractional factorial designs". Those of 4 to 7 factors in 8 runs have their
columns in the order ABC, AC, BC, AB, which older studies are used to. 12 to 15 factors of
resolution V: the Walsh indices 15, 51, 85, 106, 150, 171, 219 of Sanchez & Sanchez, "Very large
fractional factorial and central composite designs", *ACM TOMACS* 15 (2005).
"""


@dataclass(frozen=True, slots=True)
class FractionalFactorial(Record):
    """A fraction of all combinations of two levels; low is a factor's first level.

    In resolution III main effects are aliased with two-factor interactions, in IV only these with
    each other, in V main effects and two-factor interactions are all clear of each other. The
    design's facts list what is aliased with what.

    resolution: the least that will do; the smallest published fraction that has it is taken, of 4
        factors or more: of 2 or 3 it is all combinations
    generators: your own instead, for up to 16 factors: `D = ABC` or `E = -AC`, where letters stand
        for the factors in order (A to H, J to Q), or with names, `depth = model * prompt`
    foldover: whether the mirror image of every row is added, after the original rows: it clears
        main effects of two-factor interactions
    backend: of older studies; the rows are the same with each
    """

    resolution: Literal["III", "IV", "V"] = "III"
    generators: tuple[str, ...] = ()
    foldover: bool = False
    backend: Literal["stdlib", "pydoe3", "pydoe"] = "stdlib"

    def table(self, study: Study) -> DesignTable:
        factors = two_level_factors(study, str(study.design_spec.kind))
        names = [factor.name for factor in factors]
        base, columns = self._columns(names)
        runs = 2**base * (2 if self.foldover else 1)

        def make() -> list[Assignment]:
            rows = list(coded_rows(base, columns))
            return decode(study, factors, mirror(rows) if self.foldover else rows)

        return number_rows(study, runs, make, self._facts(runs, base, columns, names))

    def _columns(self, names: Sequence[str]) -> tuple[int, list[Product]]:
        """How many base columns there are, and each factor's column as a product of them."""
        if not self.generators:
            return published_fraction(len(names), self.resolution)
        base, columns = solve_generators(self.generators, names)
        words = defining_relation(columns)
        if len(words[0]) < NUMERALS[self.resolution]:
            raise StudyError(
                Mistake(
                    ("design_spec", "options", "generators"),
                    f"give resolution {roman(len(words[0]))}, not {self.resolution}: "
                    f"{words[0].spell(names, ' × ')} is the same in every row",
                    "use longer words, fewer generators, or none: a published fraction is taken",
                )
            )
        return base, columns

    def _facts(
        self, runs: int, base: int, columns: Sequence[Product], names: Sequence[str]
    ) -> dict[str, Any]:
        facts = {"rows": runs, "generators": _spell_generators(columns)}
        if self.foldover:
            # One more base column, + in the original rows and - in their mirror images: there
            # every factor is what it was, times this column.
            columns = [column * Product(1 << base) for column in columns]
            if len(columns) - len(independent_words(columns)) == base:
                facts["note"] = (
                    "the mirror images are rows of the fraction itself: foldover only repeats it, "
                    "and main effects are clear of two-factor interactions without it"
                )
        return facts | describe_fraction(columns, names)


def published_fraction(count: int, resolution: str) -> tuple[int, list[Product]]:
    """The smallest published fraction for so many factors: base columns, and all columns."""
    if count > MOST_FACTORS:
        raise StudyError(
            Mistake(
                ("factors",),
                f"fractions are listed for up to {MOST_FACTORS} factors; there are {count}",
                "use plackett_burman (47 factors) or d_optimal, or give generators (16 factors)",
            )
        )
    base, words = count, ""
    for base_count, least, most, listed in PUBLISHED[resolution]:
        if least <= count <= most:
            base, words = base_count, listed
    columns = [*LETTERS[:base], *words.split()[: count - base]]
    return base, [Product(sum(1 << LETTERS.index(letter) for letter in word)) for word in columns]


def coded_rows(base: int, columns: Sequence[Product]) -> Iterator[tuple[int, ...]]:
    """Rows of -1 and 1: all combinations of the base columns, the last changing fastest."""
    for levels in itertools.product((-1, 1), repeat=base):
        low = sum(1 << index for index, level in enumerate(levels) if level < 0)
        yield tuple(
            -column.sign if (column.bits & low).bit_count() % 2 else column.sign
            for column in columns
        )


def mirror(rows: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """`rows` and after them their mirror images: a foldover."""
    return [*rows, *(tuple(-value for value in row) for row in rows)]


def _spell_generators(columns: Sequence[Product]) -> list[str]:
    base = {
        column.bits: letter
        for letter, column in zip(LETTERS, columns, strict=False)
        if len(column) == 1
    }
    letters = [base[1 << bit] for bit in range(len(base))]
    return [
        f"{letter} = {column.spell(letters)}"
        for letter, column in zip(LETTERS, columns, strict=False)
        if len(column) > 1
    ]
