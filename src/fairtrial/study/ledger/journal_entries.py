"""Entries of journals as the ledger keeps them: what they tell, and what was paid for them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from fairtrial.study.ledger.packing import UnreadableError, pack, unpack
from fairtrial.study.model.expenses import NO_EXPENSE, Expense

LONG_BYTES = 4_096
"""Longer entries are compressed: prompts say much the same again and again."""
_COMPRESSED = b"\x78"  # how what is compressed begins, and what is packed doesn't


def pack_entry(kind: str, data: Mapping[str, Any], paid: Expense) -> bytes:
    """An entry, as `unpack_entry` reads it; raises `UnwritableError` for other than plain data."""
    entry = {"kind": kind, "data": data}
    packed = pack({**entry, "paid": list(paid)} if any(paid) else entry)
    return zlib.compress(packed, 1) if len(packed) > LONG_BYTES else packed


def unpack_entry(packed: bytes) -> tuple[str, Mapping[str, Any], Expense]:
    """What an entry tells of, what it tells, and what was paid for it."""
    told = unpack(zlib.decompress(packed) if packed.startswith(_COMPRESSED) else packed)
    return told["kind"], told["data"], Expense(*told.get("paid", ()))


def add_up_paid(packed: Iterable[bytes]) -> Expense:
    """What entries were paid for, all together; bytes that are no entry were paid nothing for."""
    total = NO_EXPENSE
    for each in packed:
        with suppress(UnreadableError, zlib.error, TypeError, ValueError, KeyError):
            total = total.plus(unpack_entry(each)[2])
    return total
