"""A run's journal: what must not be paid for twice, safe before it is used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.study.ledger.journal_entries import add_up_paid, pack_entry, unpack_entry
from fairtrial.study.ledger.packing import UnwritableError
from fairtrial.study.model.expenses import NO_EXPENSE, Expense

MOST_ENTRIES = 100_000
MOST_ENTRY_BYTES = 16 << 20
MOST_JOURNAL_BYTES = 64 << 20
"""What a run's journal may hold, all attempts together: so many entries, so much in one of them,
so much in all, long entries compressed."""


def _keep_in_memory(data: bytes) -> None:
    """Where entries go if there is no ledger."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry of a journal.

    kind: what it tells of, in the agent's own words: `reply`, `verdict`
    data: what it tells, as it is read back from the ledger: plain data, tuples as lists
    paid: what was paid for it
    """

    kind: str
    data: Mapping[str, Any]
    paid: Expense = NO_EXPENSE


class Journal:
    """What the attempts at one run have committed, in order; threads may share it.

    Entries are no events: they never come into the tables. Where a run is attempted again, because
    it broke, was cut off or was stopped, it finds the entries of the earlier attempts.
    """

    __slots__ = ("_bytes", "_earlier", "_is_over", "_keep", "_lock", "_packed")

    def __init__(
        self, earlier: Sequence[bytes] = (), keep: Callable[[bytes], None] = _keep_in_memory
    ) -> None:
        self._packed = list(earlier)
        self._earlier = len(self._packed)
        self._bytes = sum(map(len, earlier))
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
        """Add an entry; when this returns it is on disk, whatever happens to any process.

        Takes as long as a disk takes to write. An entry is there as a whole or not at all; if this
        raises, or the process dies meanwhile, it may be either.

        cost_usd, input_tokens, output_tokens: what was paid for it. The study's budget counts that
            however the run ends; a run that tells no such metrics gets them from its journal.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"a journal entry's data is a mapping, not {type(data).__qualname__}")
        paid = Expense.checked(cost_usd, input_tokens, output_tokens)
        try:
            packed = pack_entry(str(kind), data, paid)
        except UnwritableError as error:
            raise UnwritableError(f"journal entry '{kind}': {error}") from None
        with self._lock:
            self._refuse(kind, len(packed))
            self._keep(packed)
            self._packed.append(packed)
            self._bytes += len(packed)

    def entries(self) -> tuple[JournalEntry, ...]:
        """What earlier attempts at this run have committed, then what this one has, in order."""
        return tuple(JournalEntry(*unpack_entry(each)) for each in tuple(self._packed))

    def paid(self) -> tuple[Expense, Expense]:
        """What entries were paid for: by earlier attempts, by this one."""
        packed = tuple(self._packed)
        if not packed:
            return NO_EXPENSE, NO_EXPENSE
        return add_up_paid(packed[: self._earlier]), add_up_paid(packed[self._earlier :])

    def close(self) -> None:
        """The run is over, and nothing more is kept."""
        with self._lock:
            self._is_over = True

    def _refuse(self, kind: str, size: int) -> None:
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
