# ruff: noqa
"""Sorts written by hand, in the shapes of textbooks."""

from __future__ import annotations


def sort_with_temporary(values):
    """Swap neighbors by a temporary variable, always to the end."""
    for _ in range(len(values)):
        for j in range(len(values) - 1):
            if values[j] > values[j + 1]:
                temporary = values[j]
                values[j] = values[j + 1]
                values[j + 1] = temporary
    return values


def sort_with_tuple(values):
    """Swap neighbors by a tuple, each time a little less far."""
    n = len(values)
    for i in range(n):
        for j in range(0, n - i - 1):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
    return values


def sort_until_done(values: list[int]) -> list[int]:
    """Stop once a pass swapped nothing."""
    values = list(values)
    for i in range(len(values)):
        swapped = False
        for j in range(len(values) - 1 - i):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
                swapped = True
        if not swapped:
            break
    return values


def sort_while_swapping(values):
    """Repeat while a pass swaps something."""
    swapped = True
    while swapped:
        swapped = False
        for i in range(len(values) - 1):
            if values[i] > values[i + 1]:
                values[i], values[i + 1] = values[i + 1], values[i]
                swapped = True
    return values


def sort_by_insertion(values):
    """Move each value to the left until it fits."""
    for i in range(1, len(values)):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value
    return values


def sort_by_selection(values):
    """Swap the smallest that is left to the front."""
    for i in range(len(values)):
        smallest = i
        for j in range(i + 1, len(values)):
            if values[j] < values[smallest]:
                smallest = j
        values[i], values[smallest] = values[smallest], values[i]
    return values


def sort_records(records):
    """Sort dictionaries by one of their values, the largest first."""
    n = len(records)
    for i in range(n - 1):
        for j in range(n - i - 1):
            if records[j]["score"] < records[j + 1]["score"]:
                records[j], records[j + 1] = records[j + 1], records[j]
    return records
