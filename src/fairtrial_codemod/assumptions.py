"""What transformations assume where syntax can't tell.

Each text completes the sentence "the change assumes that". A candidate's note has a line for each.
"""

from __future__ import annotations

HASHABLE = (
    "the searched items and the values that are looked for are hashable, and equal values have "
    "equal hashes; an unhashable value is a TypeError now, where it was compared before"
)
SEARCHED = (
    "the values that are looked for are hashable, equal values have equal hashes, and the searched "
    "object may be read before the loop, even if the loop has no rounds"
)
GROUPED = (
    "the compared values are hashable, equal values have equal hashes, what the inner loop goes "
    "through is no iterator and may be read before the outer loop, to its end, and nobody else "
    "changes it while the loop runs"
)
CONSTANTS = (
    "the values that are looked for are hashable, and equal values have equal hashes; an "
    "unhashable value is a TypeError now"
)
TABLES = f"no other module changes or replaces a table of this one, and {CONSTANTS}"
ORDER = (
    "the sorted object is a list, its items have one order (sets and NaN don't), comparing them "
    "has no side effect, and it doesn't matter which of two equal items comes first"
)
REMEMBERED = (
    "arguments are hashable, the same arguments have the same result each time, nobody changes a "
    "result afterwards, and all results fit into memory"
)
HOISTED = (
    "what is computed before a loop now could be computed at any time, even if the loop has no "
    "rounds, and nobody else changes what it is computed from while the loop runs"
)
COMPLETE = "what is added to a list is a list, and nobody else reads it before the loop is over"
INTERNAL = (
    "nobody outside of its module calls the function that fills the list, or reads the list before "
    "it is complete"
)
TEXTS = "the parts are strings, not instances of a subclass"
LISTED = (
    "all items fit into memory at once, and comparing, hashing or adding them doesn't fail before "
    "the end"
)
INLINED = "nobody replaces a function of the module, in a test for instance, while it runs"
LISTS = (
    "nobody else reads a list before it is complete, joined parts are strings, what is iterated "
    "isn't changed meanwhile, and functions that are called for each item exist even if there are "
    "no items"
)
