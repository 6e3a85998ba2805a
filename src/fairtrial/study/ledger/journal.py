"""The journals of runs in the ledger: every entry on disk before anybody relies on it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from zlib import crc32

from fairtrial.study.ledger.journal_entries import add_up_paid
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
_UNTOLD = "SELECT DISTINCT run_id, seed, attempt FROM journal WHERE attempt > 0"
_TOLD = (
    "SELECT run_id, seed, attempt FROM results UNION "
    "SELECT run_id, seed, attempts.attempt FROM attempts JOIN results USING (turn)"
)
"""What a ledger has told that was begun before entries were marked for it."""
_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'journal'"


class Journals:
    """The journals of a study's runs, of this session and of earlier ones."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(self, spec: RunSpec, attempt: int, data: bytes) -> None:
        """Add an entry to a run's journal; it is on disk when this returns."""
        row = {
            "run_id": spec.run_id,
            "seed": spec.seed,
            "attempt": attempt,
            "data": data,
            "crc": crc32(data),
        }
        self._ledger.has_journals = True
        with self._ledger.writing() as connection:
            connection.execute(_ADD, row)

    def of(self, spec: RunSpec) -> tuple[bytes, ...]:
        """The entries of a run's journal, packed, in order."""
        if not self._ledger.has_journals:  # nothing to look up for any run
            return ()
        return read_journal(self._ledger.connection, self._ledger.path, spec)


def read_journal(
    connection: sqlite3.Connection, path: Path | None, spec: RunSpec
) -> tuple[bytes, ...]:
    """The same of any ledger; one that was begun before there were journals has none."""
    with explained(path):
        if connection.execute(_HAS_TABLE).fetchone() is None:
            return ()
        rows = connection.execute(_READ, (spec.run_id, spec.seed)).fetchall()
    if any(crc32(data) != crc for data, crc in rows):
        raise damaged(path, f"the journal of {spec.run_id}: its bytes are not those written")
    return tuple(data for data, _ in rows)


def untold_payments(
    connection: sqlite3.Connection, path: Path | None
) -> list[tuple[str, int, int, Expense]]:
    """Run id, seed and number of each attempt that has paid and didn't come to an end.

    It is under way, or was cut off with the whole study: only its entries tell what it took.
    """
    with explained(path):
        if connection.execute(_HAS_TABLE).fetchone() is None:
            return []
        found = []
        left = connection.execute(_UNTOLD).fetchall()
        if left:
            told = set(connection.execute(f"{_UNTOLD} INTERSECT SELECT * FROM ({_TOLD})"))
            left = [attempt for attempt in left if attempt not in told]
        for attempt in left:
            paid = add_up_paid(data for (data,) in connection.execute(_READ_ATTEMPT, attempt))
            found.append((*attempt, paid))
    return [each for each in found if any(each[-1])]
