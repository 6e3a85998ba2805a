"""What transformations take for granted where syntax can't tell: checks may find out, people know.

Each goes on after "the change takes for granted that".
"""

from __future__ import annotations

HASHABLE = (
    "what is looked for, and what it is looked for in, can be hashed, and what is equal hashes "
    "alike; what can't be is a TypeError now, where it was compared before, or nothing was looked "
    "for"
)
SOUGHT = (
    "what is looked for can be hashed, and what is equal hashes alike; what can't be is a "
    "TypeError now"
)
TABLES = f"no other module puts something else in the place of a table, and {SOUGHT}"
KEYS = (
    "what is searched can be gone through again and again, and the keys that are compared can be "
    "hashed; what can't be is a TypeError now, even where nothing is looked for"
)
ORDER = "what is compared has one order, and of what is equal in it, it doesn't matter which comes"
COMPARED = (
    "comparing has no effect of its own, and any two are in one order (sets and NaN are in none)"
)
REMEMBERED = (
    "the same arguments give the same each time, and nobody changes a result after it was given"
)
SAME = (
    "what is computed before a loop now could be at any time, even if the loop has nothing to do, "
    "comes out the same each time, and is changed by nobody else while the loop runs"
)
UNCHANGED = "what a loop goes through, or asks, is changed by nobody else while it runs"
LATER = "nobody else looks at what is made before the loop is over"
SUMS = "the last digits don't matter where floats are added up"
WHOLE = "the number is a whole one"
WHOLE_PLACES = "places are whole numbers; with others it fails in other words"
TEXTS = "what is put together are texts, of no class of their own"
A_TEXT = "what is searched is a text, of no class of its own; what isn't fails in other words"
DICTIONARY = (
    "the table is a plain dictionary, whose values come the same way however they are asked, and "
    "it isn't changed under another name meanwhile"
)
PLACES = "all places that are filled lie within the list"
LISTED = (
    "all of it fits into memory at once, and comparing it, hashing it or adding it up doesn't fail "
    "before the end is reached"
)
MEMORY = "all of it fits into memory at once"
SAME_NAMES = "nobody replaces functions of modules while the loop runs"
LISTS = (
    "nobody else looks at a list before it is complete, what is gone through stays as it is, and "
    "what is called for each is there even if there are none"
)
