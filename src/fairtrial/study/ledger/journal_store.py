"""The journals of runs in the ledger: every entry is on disk before its run continues."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

from fairtrial.study.ledger.journal_entries import total_paid
from fairtrial.study.ledger.sqlite_errors import damaged, explained
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.model.expenses import Expense
from fairtrial.study.model.runs import RunSpec

_ADD = (
    "INSERT INTO journal SELECT :run_id, :seed, coalesce(max(number), -1) + 1, :attempt, :data, "
    ":crc FROM journal WHERE run_id = :run_id AND seed = :seed"
)
_READ = "SELECT data, crc FROM journal WHERE run_id = ? AND seed = ? ORDER BY number"
_READ_ATTEMPT = (
    "SELECT data FROM journal WHERE run_id = ? AND seed = ? AND attempt = ? ORDER BY number"
)
_UNREPORTED = "SELECT DISTINCT run_id, seed, attempt FROM journal WHERE attempt > 0"
_REPORTED = (
    "SELECT run_id, seed, attempt FROM results UNION "
    "SELECT run_id, seed, attempts.attempt FROM attempts JOIN results USING (turn)"
)
"""Attempts whose costs are recorded, in ledgers older than the mark `attempt = 0`."""
_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'journal'"


class JournalStore:
    """Reads and appends to the journals of a study's runs."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(self, entries: Iterable[tuple[RunSpec, int, bytes]]) -> None:
        """Append packed entries to the journals of runs; all are on disk when this returns.

        entries: the run, the attempt and the packed entry of each
        """
        rows = [
            {
                "run_id": spec.run_id,
                "seed": spec.seed,
                "attempt": attempt,
                "data": data,
                "crc": crc32(data),
            }
            for spec, attempt, data in entries
        ]
        self._ledger.has_journals = True
        with self._ledger.writing() as connection:
            connection.executemany(_ADD, rows)

    def entries(self, spec: RunSpec) -> tuple[bytes, ...]:
        """Return the packed entries of a run's journal, in order."""
        if not self._ledger.has_journals:  # spares a query for each run
            return ()
        return read_journal(self._ledger.connection, self._ledger.path, spec)


def read_journal(
    connection: sqlite3.Connection, path: Path | None, spec: RunSpec
) -> tuple[bytes, ...]:
    """Return the packed entries of a run's journal in any ledger; old ledgers have none.

    Raises `LedgerError` if the bytes are not those that were written.
    """
    with explained(path):
        if connection.execute(_HAS_TABLE).fetchone() is None:
            return ()
        rows = connection.execute(_READ, (spec.run_id, spec.seed)).fetchall()
    if any(crc32(data) != crc for data, crc in rows):
        raise damaged(path, f"the journal of {spec.run_id}: its bytes are not those written")
    return tuple(data for data, _ in rows)


def unreported_payments(
    connection: sqlite3.Connection, path: Path | None
) -> list[tuple[str, int, int, Expense]]:
    """Return run id, seed, number and costs of each unfinished attempt that has costs.

    Such an attempt is under way, or was interrupted with the whole study: its costs are known from
    its journal entries only.
    """
    with explained(path):
        if connection.execute(_HAS_TABLE).fetchone() is None:
            return []
        payments = []
        attempts = connection.execute(_UNREPORTED).fetchall()
        if attempts:
            query = f"{_UNREPORTED} INTERSECT SELECT * FROM ({_REPORTED})"
            reported = set(connection.execute(query))
            attempts = [attempt for attempt in attempts if attempt not in reported]
        for attempt in attempts:
            paid = total_paid(data for (data,) in connection.execute(_READ_ATTEMPT, attempt))
            payments.append((*attempt, paid))
    return [payment for payment in payments if any(payment[-1])]
