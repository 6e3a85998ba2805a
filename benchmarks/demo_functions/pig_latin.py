# ruff: noqa
"""Pig Latin, with strings that grow and vowels in a list."""

from __future__ import annotations


def translate_with_helper(text: str) -> str:
    """Ask an inner function for vowels, and let the consonants grow one by one."""

    def is_vowel(char):
        return char.lower() in ["a", "e", "i", "o", "u"]

    result = []
    for word in text.split():
        if is_vowel(word[0]):
            result.append(word + "way")
        else:
            consonants = ""
            for char in word:
                if not is_vowel(char):
                    consonants += char
                else:
                    break
            result.append(word[len(consonants) :] + consonants + "ay")
    return " ".join(result)


def translate_by_growing(text):
    """Let the whole sentence grow."""
    vowels = ["a", "e", "i", "o", "u"]
    sentence = ""
    for word in text.split(" "):
        start = ""
        rest = ""
        is_start = True
        for char in word:
            if char.lower() in vowels:
                is_start = False
            if is_start:
                start = start + char
            else:
                rest = rest + char
        sentence += rest + start + "ay" + " "
    return sentence.strip()


VOWELS = ["a", "e", "i", "o", "u", "A", "E", "I", "O", "U"]


def _is_vowel(char):
    return char in VOWELS


def translate_with_index(text: str) -> str:
    """Look for the first vowel by its index."""
    words = []
    for word in text.split():
        index = 0
        while index < len(word) and not _is_vowel(word[index]):
            index += 1
        words.append(word[index:] + word[:index] + "ay")
    return " ".join(words)
