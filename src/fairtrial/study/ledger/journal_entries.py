"""The stored form of journal entries: kind, data and costs."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from fairtrial.study.ledger.packing import UnreadableError, pack, unpack
from fairtrial.study.model.expenses import NO_EXPENSE, Expense

LONG_BYTES = 4_096
"""Longer entries are compressed: prompts are repetitive."""
_COMPRESSED = b"\x78"  # the first byte of zlib data, never that of a packed mapping


def pack_entry(kind: str, data: Mapping[str, Any], paid: Expense) -> bytes:
    """Return the stored form of an entry; `UnwritableError` for data without a plain form."""
    entry = {"kind": kind, "data": data}
    packed = pack({**entry, "paid": list(paid)} if any(paid) else entry)
    return zlib.compress(packed, 1) if len(packed) > LONG_BYTES else packed


def unpack_entry(packed: bytes) -> tuple[str, Mapping[str, Any], Expense]:
    """Return kind, data and costs of an entry."""
    entry = unpack(zlib.decompress(packed) if packed.startswith(_COMPRESSED) else packed)
    return entry["kind"], entry["data"], Expense(*entry.get("paid", ()))


def total_paid(packed: Iterable[bytes]) -> Expense:
    """Return the total costs of entries; bytes that are no entry count as nothing."""
    total = NO_EXPENSE
    for entry in packed:
        with suppress(UnreadableError, zlib.error, TypeError, ValueError, KeyError):
            total = total.plus(unpack_entry(entry)[2])
    return total
