"""A function that returns a list."""

from __future__ import annotations

MODULUS = 2147483648


def work(numbers: list[int]) -> list[int]:
    """Return the 150th successor of each number, by a congruential generator."""
    results = []
    for number in numbers:
        for _ in range(150):
            number = (number * 1103515245 + 12345) % MODULUS
        results.append(number)
    return results


def order(numbers: list[int]) -> list[int]:
    """Return the numbers in order, each once: takes no longer than reading and writing them."""
    seen = set()
    for number in numbers:
        seen.add(number)
    return sorted(seen)
