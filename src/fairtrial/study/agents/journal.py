"""A run's journal: durable entries that later attempts at the run can read back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.study.ledger.journal_entries import pack_entry, total_paid, unpack_entry
from fairtrial.study.ledger.packing import UnwritableError
from fairtrial.study.model.expenses import NO_EXPENSE, Expense

MOST_ENTRIES = 100_000
MOST_ENTRY_BYTES = 16 << 20
MOST_JOURNAL_BYTES = 64 << 20
"""Limits of a run's journal over all attempts: the number of entries, the size of one entry, and
the total size; long entries are compressed."""


def _keep_in_memory(data: bytes) -> None:
    """Do nothing: without a ledger, entries are kept in memory only."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry of a journal.

    kind: the type of entry, named by the agent: `reply`, `verdict`
    data: its content as read back from the ledger: plain data, tuples as lists
    paid: its costs
    """

    kind: str
    data: Mapping[str, Any]
    paid: Expense = NO_EXPENSE


class Journal:
    """The journal of one run, over all its attempts, in order; threads may share it.

    Entries are not events: they don't appear in the tables. A run that is attempted again, because
    it broke or was interrupted, finds the entries of its earlier attempts.
    """

    __slots__ = ("_bytes", "_earlier", "_is_over", "_keep", "_lock", "_packed")

    def __init__(
        self, earlier: Sequence[bytes] = (), keep: Callable[[bytes], None] = _keep_in_memory
    ) -> None:
        self._packed = list(earlier)
        self._earlier = len(self._packed)
        self._bytes = sum(map(len, earlier)) if earlier else 0
        self._keep = keep
        self._is_over = False
        self._lock = threading.Lock()

    def append(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        cost_usd: float | None = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        """Add an entry and return when it is on disk.

        Takes as long as a disk write. An entry is stored completely or not at all; if this raises,
        or the process dies meanwhile, it may be either.

        cost_usd, input_tokens, output_tokens: its costs. They count against the study's budget
            however the run ends; a run that reports no such metrics gets them from its journal.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"a journal entry's data is a mapping, not {type(data).__qualname__}")
        paid = Expense.checked(cost_usd, input_tokens, output_tokens)
        try:
            packed = pack_entry(str(kind), data, paid)
        except UnwritableError as error:
            raise UnwritableError(f"journal entry '{kind}': {error}") from None
        with self._lock:
            self._check_limits(kind, len(packed))
            self._keep(packed)
            self._packed.append(packed)
            self._bytes += len(packed)

    def entries(self) -> tuple[JournalEntry, ...]:
        """Return the entries of earlier attempts at this run, then those of this one, in order."""
        return tuple(JournalEntry(*unpack_entry(packed)) for packed in tuple(self._packed))

    def paid(self) -> tuple[Expense, Expense]:
        """Return the costs of the entries of earlier attempts, and of those of this attempt."""
        if not self._packed:
            return NO_EXPENSE, NO_EXPENSE
        packed = tuple(self._packed)
        return total_paid(packed[: self._earlier]), total_paid(packed[self._earlier :])

    def close(self) -> None:
        """Refuse further entries: the run is over."""
        with self._lock:
            self._is_over = True

    def _check_limits(self, kind: str, size: int) -> None:
        if self._is_over:
            raise RuntimeError(f"journal entry '{kind}' comes too late: the run is over")
        if size > MOST_ENTRY_BYTES:
            raise ValueError(
                f"journal entry '{kind}' takes {size / 2**20:.1f} MB, and one may take "
                f"{MOST_ENTRY_BYTES >> 20} MB; write it to a file in the run's workspace"
            )
        if self._bytes + size > MOST_JOURNAL_BYTES or len(self._packed) >= MOST_ENTRIES:
            raise ValueError(
                f"journal entry '{kind}' is one too many: a run's journal holds "
                f"{MOST_ENTRIES:,} entries and {MOST_JOURNAL_BYTES >> 20} MB, and this one has "
                f"{len(self._packed):,} with {self._bytes / 2**20:.1f} MB"
            )
