"""Generators as people write them: `D = ABC`, `E = -AC`, `depth = model * prompt`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fairtrial.core import Mistake, Place, StudyError, did_you_mean
from fairtrial.study.design.aliases import LETTERS, Product

PATH: Place = ("design_spec", "options", "generators")
Symbols = Mapping[str, set[int]]


def solve_generators(texts: Sequence[str], names: Sequence[str]) -> tuple[int, list[Product]]:
    """How many factors stay free, and each factor's column as a product of the free ones' columns.

    Raises one `StudyError` with all that is wrong with the generators.
    """
    if len(names) > len(LETTERS):
        message = f"are for up to {len(LETTERS)} factors; there are {len(names)}"
        raise StudyError(Mistake(PATH, message, "use plackett_burman or d_optimal"))
    solved = _eliminate(texts, _read_all(texts, names))
    free = [index for index in range(len(names)) if index not in solved]
    columns = []
    for index in range(len(names)):
        equal = solved.get(index, Product(1 << index))
        bits = sum(1 << free.index(member) for member in equal.members)
        columns.append(Product(bits, equal.sign))
    return len(free), columns


def _read_all(texts: Sequence[str], names: Sequence[str]) -> dict[int, Product]:
    """The factor that each generator defines and its word, a product of factors, in order."""
    symbols = _symbols(names)
    words: dict[int, Product] = {}
    mistakes = []
    for index, text in enumerate(texts):
        try:
            defined, word = _read(text, symbols, names)
            if defined in words:
                raise ValueError(f"defines '{names[defined]}' once more")
            words[defined] = word
        except ValueError as error:
            mistakes.append(Mistake((*PATH, index), f"`{text}` {error}"))
    if mistakes:
        raise StudyError(mistakes)
    return words


def _symbols(names: Sequence[str]) -> Symbols:
    """Which factor each name and each letter stands for; two where one's name is another's letter.

    Small letters stand for factors too, unless they are a factor's name.
    """
    symbols = {name: {index} for index, name in enumerate(names)}
    for index, letter in enumerate(LETTERS[: len(names)]):
        symbols.setdefault(letter, set()).add(index)
        symbols.setdefault(letter.lower(), {index})
    return symbols


def _read(text: str, symbols: Symbols, names: Sequence[str]) -> tuple[int, Product]:
    """The factor that a generator defines, and its word; a `ValueError` says what is wrong."""
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
    defined, *members = (_find(symbol, symbols, names) for symbol in (left, *parts))
    if defined in members:
        raise ValueError(f"defines '{names[defined]}' by itself")
    for member in members:
        if members.count(member) > 1:
            raise ValueError(f"names '{names[member]}' twice")
    return defined, Product(sum(1 << member for member in (defined, *members)), sign)


def _find(symbol: str, symbols: Symbols, names: Sequence[str]) -> int:
    found = sorted(symbols.get(symbol, ()))
    if not found:
        letters = f"{LETTERS[0]} to {LETTERS[len(names) - 1]}"
        raise ValueError(
            f"has '{symbol}', which is no factor and no word of letters ({letters}); "
            + did_you_mean(symbol, names)
        )
    if len(found) > 1:
        both = " and ".join(f"'{names[index]}' (factor {index + 1})" for index in found)
        raise ValueError(
            f"has '{symbol}', which may mean {both}: one's name is the other's letter; rename it"
        )
    return found[0]


def _eliminate(texts: Sequence[str], words: Mapping[int, Product]) -> dict[int, Product]:
    """As many factors as there are words, each as a product of others: Gauss's elimination.

    The factors are the defined ones, unless their definitions go round in a circle: of `A = BC` and
    `B = ADE`, which together say `E = CD`, it is A and E.
    """
    rows = list(words.values())
    solved: dict[int, int] = {}
    mistakes = []
    for index, defined in enumerate(words):
        row = rows[index]
        if not row.bits:
            what = "says what the others say" if row.sign > 0 else "contradicts the others"
            mistakes.append(Mistake((*PATH, index), f"`{texts[index]}` {what}"))
            continue
        pivot = defined if defined in row.members else row.members[-1]
        solved[pivot] = index
        for other in range(len(rows)):
            if other != index and pivot in rows[other].members:
                rows[other] *= row
    if mistakes:
        raise StudyError(mistakes)
    return {pivot: rows[index] * Product(1 << pivot) for pivot, index in solved.items()}
