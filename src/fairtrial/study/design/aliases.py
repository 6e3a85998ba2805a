"""What a two-level fraction can't tell apart: its words, its resolution, its alias chains.

Every column of a regular fraction is a product of base columns, up to a sign. As bits, one for each
base column, a product of columns is the exclusive or of their bits. So all of this is exact
arithmetic on whole numbers, and takes no rows:

- the column of an interaction is the product of its factors' columns
- two effects are aliased where their columns have the same bits
- a word is a set of factors whose product is constant: no bits are left
- the resolution is the length of the shortest word
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LETTERS = "ABCDEFGHJKLMNOPQ"
"""The usual letters for factors, in order; I stands for the constant column."""

SMALL = 7
"""Up to this many factors alias chains go up to three-factor interactions, where that helps."""
FEW_WORDS = 127
"""Of more words than this only those that alias main effects or pairs are listed."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product with a sign: bit i of `bits` says whether the i-th thing is part of it."""

    bits: int
    sign: int = 1

    def __mul__(self, other: Product) -> Product:
        return Product(self.bits ^ other.bits, self.sign * other.sign)

    @property
    def members(self) -> tuple[int, ...]:
        """What is part of it, in order."""
        return tuple(i for i in range(self.bits.bit_length()) if self.bits >> i & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def spell(self, names: Sequence[str] = LETTERS, join: str = "") -> str:
        """``-ABC``; with other names and ``" × "`` between them ``-temp × depth``."""
        return ("-" if self.sign < 0 else "") + join.join(names[i] for i in self.members)


def independent_words(columns: Sequence[Product]) -> list[Product]:
    """Words, as products of factors, that all other words are products of.

    Takes columns one by one and divides each by the earlier ones whose highest bit it has. What is
    left is new; a column of which nothing is left closes a word.
    """
    known: list[tuple[Product, Product]] = []
    words = []
    for index, column in enumerate(columns):
        factors = Product(1 << index)
        for other, makers in known:
            if column.bits ^ other.bits < column.bits:
                column, factors = column * other, factors * makers
        if column.bits:
            known.append((column, factors))
        else:
            words.append(Product(factors.bits, column.sign))
    return words


def defining_relation(columns: Sequence[Product]) -> list[Product]:
    """All words, short ones first."""
    words = [Product(0)]
    for word in independent_words(columns):
        words.extend([other * word for other in words])
    return sorted(words[1:], key=lambda word: (len(word), word.members))


def alias_chains(columns: Sequence[Product], order: int) -> list[list[Product]]:
    """Effects that can't be told apart, the simplest of each chain first.

    Looks at interactions of up to `order` factors. A chain starts with a main effect or a
    two-factor interaction; one of these that stands in no chain is clear of all the effects that
    were looked at. The sign of an effect is relative to the first of its chain.
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
    """A resolution as it is written: 4 is IV."""
    units = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
    return "X" * (number // 10) + units[number % 10]


def describe_fraction(columns: Sequence[Product], names: Sequence[str]) -> dict[str, Any]:
    """What a person should know of a fraction, as plain data; aliases are in factors' names."""
    words = defining_relation(columns)
    lengths = Counter(len(word) for word in words)
    resolution = min(lengths, default=None)
    removed = len(words).bit_length()
    shown = words if len(words) <= FEW_WORDS else [word for word in words if len(word) <= 4]
    order = 3 if resolution is not None and resolution >= 4 and len(names) <= SMALL else 2
    facts: dict[str, Any] = {
        "fraction": f"2^({len(names)}-{removed})" if removed else f"2^{len(names)}",
        "resolution": "full" if resolution is None else roman(resolution),
        "letters": dict(zip(LETTERS, names, strict=False)),
        "defining_relation": [word.spell() for word in shown],
        "word_lengths": dict(sorted(lengths.items())),
        "aliases": [
            " = ".join(effect.spell(names, " × ") for effect in chain)
            for chain in alias_chains(columns, order)
        ],
    }
    if len(shown) < len(words):
        facts["words_left_out"] = len(words) - len(shown)
    return facts
