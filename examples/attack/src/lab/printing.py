"""A function that prints."""

from __future__ import annotations


def show(words: list[str]) -> int:
    """Print the words in order, with their numbers; return how many there are."""
    for number, word in enumerate(sorted(words, key=lambda word: word[::-1])):
        print(f"{number:5} {word.ljust(20, '.')} {sum(map(ord, word)):6}")
    return len(words)
