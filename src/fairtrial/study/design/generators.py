"""Parse generators of fractions: `D = ABC`, `E = -AC`, `depth = model * prompt`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fairtrial.core import FieldPath, Mistake, StudyError, did_you_mean
from fairtrial.study.design.aliases import LETTERS, Product

PATH: FieldPath = ("design_spec", "options", "generators")
Symbols = Mapping[str, set[int]]


def solve_generators(texts: Sequence[str], names: Sequence[str]) -> tuple[int, list[Product]]:
    """Return the number of base factors, and each factor's column as a product of base columns.

    Raises one `StudyError` with all mistakes in the generators.
    """
    if len(names) > len(LETTERS):
        message = f"are for up to {len(LETTERS)} factors; there are {len(names)}"
        raise StudyError(Mistake(PATH, message, "use plackett_burman or d_optimal"))
    solved = _eliminate(texts, _parse_all(texts, names))
    base = [index for index in range(len(names)) if index not in solved]
    columns = []
    for index in range(len(names)):
        product = solved.get(index, Product(1 << index))
        bits = sum(1 << base.index(member) for member in product.members)
        columns.append(Product(bits, product.sign))
    return len(base), columns


def _parse_all(texts: Sequence[str], names: Sequence[str]) -> dict[int, Product]:
    """Return the word of each generator, a product of factors, by the factor that it defines."""
    symbols = _make_symbols(names)
    words: dict[int, Product] = {}
    mistakes = []
    for index, text in enumerate(texts):
        try:
            defined, word = _parse(text, symbols, names)
            if defined in words:
                raise ValueError(f"defines '{names[defined]}' once more")
            words[defined] = word
        except ValueError as error:
            mistakes.append(Mistake((*PATH, index), f"`{text}` {error}"))
    if mistakes:
        raise StudyError(mistakes)
    return words


def _make_symbols(names: Sequence[str]) -> Symbols:
    """Return the factors that each name and letter may denote.

    There are two if one factor's name is another one's letter. Lower-case letters denote factors
    too, unless they are a factor's name.
    """
    symbols = {name: {index} for index, name in enumerate(names)}
    for index, letter in enumerate(LETTERS[: len(names)]):
        symbols.setdefault(letter, set()).add(index)
        symbols.setdefault(letter.lower(), {index})
    return symbols


def _parse(text: str, symbols: Symbols, names: Sequence[str]) -> tuple[int, Product]:
    """Return the factor that a generator defines, and its word; raises `ValueError`."""
    left, equals, right = (part.strip() for part in text.partition("="))
    sign = -1 if right.startswith("-") else 1
    right = right.removeprefix("-").removeprefix("+").strip()
    if not (left and equals and right):
        raise ValueError("is no generator; write `D = ABC` or `name = other * another`")
    if re.search("[*×]", right):
        parts = [part.strip() for part in re.split("[*×]", right)]
    elif right in symbols or any(letter not in symbols for letter in right):
        parts = [right]
    else:
        parts = list(right)
    defined, *members = (_find_factor(symbol, symbols, names) for symbol in (left, *parts))
    if defined in members:
        raise ValueError(f"defines '{names[defined]}' by itself")
    for member in members:
        if members.count(member) > 1:
            raise ValueError(f"names '{names[member]}' twice")
    return defined, Product(sum(1 << member for member in (defined, *members)), sign)


def _find_factor(symbol: str, symbols: Symbols, names: Sequence[str]) -> int:
    """Return the index of the factor that a symbol denotes; raises `ValueError`."""
    indexes = sorted(symbols.get(symbol, ()))
    if not indexes:
        letters = f"{LETTERS[0]} to {LETTERS[len(names) - 1]}"
        raise ValueError(
            f"has '{symbol}', which is no factor and no word of letters ({letters}); "
            + did_you_mean(symbol, names)
        )
    if len(indexes) > 1:
        both = " and ".join(f"'{names[index]}' (factor {index + 1})" for index in indexes)
        raise ValueError(
            f"has '{symbol}', which may mean {both}: one's name is the other's letter; rename it"
        )
    return indexes[0]


def _eliminate(texts: Sequence[str], words: Mapping[int, Product]) -> dict[int, Product]:
    """Return as many factors as there are words, each as a product of the others.

    This is Gaussian elimination. The factors are the defined ones, unless definitions are circular:
    for `A = BC` and `B = ADE`, which together mean `E = CD`, they are A and E.
    """
    rows = list(words.values())
    solved: dict[int, int] = {}
    mistakes = []
    for index, defined in enumerate(words):
        row = rows[index]
        if not row.bits:
            problem = "follows from the others" if row.sign > 0 else "contradicts the others"
            mistakes.append(Mistake((*PATH, index), f"`{texts[index]}` {problem}"))
            continue
        pivot = defined if defined in row.members else row.members[-1]
        solved[pivot] = index
        for other in range(len(rows)):
            if other != index and pivot in rows[other].members:
                rows[other] *= row
    if mistakes:
        raise StudyError(mistakes)
    return {pivot: rows[index] * Product(1 << pivot) for pivot, index in solved.items()}
