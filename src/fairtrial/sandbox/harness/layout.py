"""The addresses of a timed worker: the same for base and candidate, others in each session.

Where a process's objects lie decides which of them share a line of a cache, and with random
addresses two processes of the same code differ by several percent, however often they are called.
So the kernel's randomization is switched off for timed workers (`kernel.fix_addresses`), and they
move their memory by themselves: by amounts drawn from a number that both workers of a session get.
Over sessions, many layouts are measured, but no session compares a lucky one with an unlucky one.
"""

from __future__ import annotations

import hashlib
import os

_PAGE = 4096
_SMALL = range(32, 513, 16)
"""Sizes of objects that Python's own allocator serves, each from pages of its own."""


def shift_addresses(variable: str) -> object:
    """Move all memory that is allocated later; returns what has to be kept alive for that.

    variable: the environment variable with the session's number, which is removed
    """
    seed = os.environ.pop(variable, "")
    if not seed:
        return None
    chance = hashlib.shake_128(seed.encode("utf-8")).digest(8 + len(_SMALL))
    pages, units = chance[0] + 256 * (chance[1] % 4), int.from_bytes(chance[2:4], "big") % 4096
    kept: list[object] = [bytearray(2**18 + _PAGE * pages), bytearray(528 + 16 * units)]
    for amount, size in zip(chance[8:], _SMALL):
        # An empty bytes object takes 33 bytes; those of one page or less are left.
        kept.append([bytes(max(0, size - 33)) for _ in range(amount % (_PAGE // size))])
    return kept
