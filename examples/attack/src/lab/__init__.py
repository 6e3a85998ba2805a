"""Small functions of different kinds, to be attacked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODULUS = 2147483648


def work(numbers: list[int]) -> list[int]:
    """Return the 150th successor of each number, by a congruential generator."""
    results = []
    for number in numbers:
        for _ in range(150):
            number = (number * 1103515245 + 12345) % MODULUS
        results.append(number)
    return results


def smooth(values: NDArray[Any]) -> NDArray[Any]:
    """Return sorted running means of an array, several times over."""
    import numpy

    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values))
        values = (sums[width:] - sums[:-width]) / width
    return values


def show(words: list[str]) -> int:
    """Print the words in order, with their numbers; return how many there are."""
    for number, word in enumerate(sorted(words, key=lambda word: word[::-1])):
        print(f"{number:5} {word.ljust(20, '.')} {sum(map(ord, word)):6}")
    return len(words)
