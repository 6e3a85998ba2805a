"""The tables once more as one SQLite file, with types and indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.extensions import extra_tables
from fairtrial.study.tables.columns import ColumnType, ColumnTypes

MOST_COLUMNS = 2_000
_NAMES = {
    ColumnType.BOOL: "BOOLEAN",
    ColumnType.INT: "INTEGER",
    ColumnType.FLOAT: "REAL",
    ColumnType.TEXT: "TEXT",
}
_INDEXES = """
CREATE UNIQUE INDEX "conditions_by_id" ON "conditions" ("condition_id");
CREATE UNIQUE INDEX "runs_by_id" ON "runs" ("run_id");
CREATE INDEX "runs_by_condition" ON "runs" ("condition_id");
CREATE INDEX "events_by_run" ON "events" ("run_id");
CREATE INDEX "evaluations_by_run" ON "evaluations" ("run_id");
"""


class SqliteMirror:
    """Fills an SQLite file with rows; a context manager."""

    def __init__(self, path: Path, types: ColumnTypes) -> None:
        for table, columns in types.columns.items():
            if len(columns) > MOST_COLUMNS:
                message = f"{table} has {len(columns):,} columns, more than SQLite can hold"
                raise StudyError(Mistake((), message, "leave out the SQLite file"))
        # All or nothing is the folder's affair: no journal is needed.
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "BEGIN"):
            self._connection.execute(statement)
        self._converters = {table: types.converters(table) for table in types.columns}
        self._inserts = {}
        for table, columns in types.columns.items():
            kinds = [_NAMES[kind] for kind in types.of(table)]
            told = ", ".join(f"{quote(n)} {k}" for n, k in zip(columns, kinds, strict=True))
            self._connection.execute(f"CREATE TABLE {quote(table)} ({told})")
            marks = ", ".join("?" for _ in columns)
            self._inserts[table] = f"INSERT INTO {quote(table)} VALUES ({marks})"

    def __enter__(self) -> SqliteMirror:
        return self

    def add(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows; those that are short of columns get nulls."""
        converters = self._converters[table]
        self._connection.executemany(
            self._inserts[table], ([*fit(row, converters)] for row in rows)
        )

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
            self._connection.executescript(_INDEXES)
            for name, table in extra_tables().items():
                if name in self._inserts:
                    keys = ", ".join(map(quote, list(table.columns)[:2]))
                    self._connection.execute(
                        f"CREATE UNIQUE INDEX {quote(f'{name}_by_id')} ON {quote(name)} ({keys})"
                    )
        self._connection.close()


def fit(row: Sequence[Any], converters: Sequence[Any]) -> list[Any]:
    """A row as its columns want it, with None for the cells that it lacks."""
    cells = [
        value if convert is None else convert(value)
        for value, convert in zip(row, converters, strict=False)
    ]
    return cells + [None] * (len(converters) - len(cells))


def quote(name: str) -> str:
    """A name as SQL spells it, whatever is in it."""
    return '"' + name.replace('"', '""').replace("\0", "\N{REPLACEMENT CHARACTER}") + '"'
