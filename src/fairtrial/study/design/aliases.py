"""The alias structure of two-level fractional factorials: words, resolution, alias chains.

Every column of a regular fraction is a product of base columns, up to a sign. With one bit for each
base column, a product of columns is the exclusive or of their bits, so that everything is exact
integer arithmetic that needs no rows:

- the column of an interaction is the product of its factors' columns
- two effects are aliased if their columns have the same bits
- a word of the defining relation is a set of factors whose product is constant: its bits are 0
- the resolution is the length of the shortest word
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LETTERS = "ABCDEFGHJKLMNOPQ"
"""The usual letters for factors, in order; I denotes the constant column."""

FEW_FACTORS = 7
"""Up to this many factors, alias chains of resolution IV and more list three-factor effects."""
FEW_WORDS = 127
"""If there are more words than this, only those of up to four letters are listed."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product of columns or factors, with a sign; bit i of `bits` is set for the i-th of them."""

    bits: int
    sign: int = 1

    def __mul__(self, other: Product) -> Product:
        return Product(self.bits ^ other.bits, self.sign * other.sign)

    @property
    def members(self) -> tuple[int, ...]:
        """The indexes of the columns or factors in the product, in order."""
        return tuple(i for i in range(self.bits.bit_length()) if self.bits >> i & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def format(self, names: Sequence[str] = LETTERS, join: str = "") -> str:
        """Return the product as text: ``-ABC``, or with names and a separator ``-temp × depth``."""
        return ("-" if self.sign < 0 else "") + join.join(names[i] for i in self.members)


def independent_words(columns: Sequence[Product]) -> list[Product]:
    """Return generators of the defining relation, as products of factors.

    This is Gaussian elimination over bits: each column is multiplied by earlier ones that cancel
    its highest bit. A column that vanishes completely gives a word.
    """
    basis: list[tuple[Product, Product]] = []
    words = []
    for index, column in enumerate(columns):
        factors = Product(1 << index)
        for basis_column, basis_factors in basis:
            if column.bits ^ basis_column.bits < column.bits:
                column, factors = column * basis_column, factors * basis_factors
        if column.bits:
            basis.append((column, factors))
        else:
            words.append(Product(factors.bits, column.sign))
    return words


def defining_relation(columns: Sequence[Product]) -> list[Product]:
    """Return all words of the defining relation, the shortest first."""
    words = [Product(0)]
    for word in independent_words(columns):
        words.extend([earlier * word for earlier in words])
    return sorted(words[1:], key=lambda word: (len(word), word.members))


def alias_chains(columns: Sequence[Product], order: int) -> list[list[Product]]:
    """Return the chains of aliased effects, the simplest effect of each chain first.

    Interactions of up to `order` factors are considered. A chain starts with a main effect or a
    two-factor interaction; such an effect that is in no chain is not aliased with any of the
    considered effects. The sign of an effect is relative to the first of its chain.
    """
    chains: dict[int, list[Product]] = {}
    for size in range(1, order + 1):
        for members in itertools.combinations(range(len(columns)), size):
            column = Product(0)
            for index in members:
                column *= columns[index]
            effect = Product(sum(1 << index for index in members), column.sign)
            chains.setdefault(column.bits, []).append(effect)
    return [
        [Product(effect.bits, effect.sign * chain[0].sign) for effect in chain]
        for chain in chains.values()
        if len(chain) > 1 and len(chain[0]) <= 2
    ]


def roman(number: int) -> str:
    """Return a number in Roman numerals, as resolutions are written."""
    units = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
    return "X" * (number // 10) + units[number % 10]


def describe_fraction(columns: Sequence[Product], names: Sequence[str]) -> dict[str, Any]:
    """Return the properties of a fraction as plain data; aliases use the factors' names."""
    words = defining_relation(columns)
    lengths = Counter(len(word) for word in words)
    resolution = min(lengths, default=None)
    generators = len(words).bit_length()
    shown = words if len(words) <= FEW_WORDS else [word for word in words if len(word) <= 4]
    order = 3 if resolution is not None and resolution >= 4 and len(names) <= FEW_FACTORS else 2
    facts: dict[str, Any] = {
        "fraction": f"2^({len(names)}-{generators})" if generators else f"2^{len(names)}",
        "resolution": "full" if resolution is None else roman(resolution),
        "letters": dict(zip(LETTERS, names, strict=False)),
        "defining_relation": [word.format() for word in shown],
        "word_lengths": dict(sorted(lengths.items())),
        "aliases": [
            " = ".join(effect.format(names, " × ") for effect in chain)
            for chain in alias_chains(columns, order)
        ],
    }
    if len(shown) < len(words):
        facts["words_left_out"] = len(words) - len(shown)
    return facts
