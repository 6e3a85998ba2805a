"""A copy of the tables as one SQLite file with typed columns and indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.extensions import extra_tables
from fairtrial.study.tables.columns import ColumnType, ColumnTypes

MAX_COLUMNS = 2_000
_SQL_TYPES = {
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
    """Writes the tables into an SQLite file; a context manager."""

    def __init__(self, path: Path, types: ColumnTypes) -> None:
        for table, columns in types.columns.items():
            if len(columns) > MAX_COLUMNS:
                message = f"{table} has {len(columns):,} columns, more than SQLite can hold"
                raise StudyError(Mistake((), message, "leave out the SQLite file"))
        # The file appears with the whole set of tables or not at all: no journal is needed.
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "BEGIN"):
            self._connection.execute(statement)
        self._converters = {table: types.converters(table) for table in types.columns}
        self._inserts = {}
        for table, columns in types.columns.items():
            sql_types = [_SQL_TYPES[column_type] for column_type in types.column_types(table)]
            definitions = ", ".join(
                f"{quote(name)} {sql_type}"
                for name, sql_type in zip(columns, sql_types, strict=True)
            )
            self._connection.execute(f"CREATE TABLE {quote(table)} ({definitions})")
            marks = ", ".join("?" for _ in columns)
            self._inserts[table] = f"INSERT INTO {quote(table)} VALUES ({marks})"

    def __enter__(self) -> SqliteMirror:
        return self

    def add(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows; missing cells become nulls."""
        converters = self._converters[table]
        self._connection.executemany(
            self._inserts[table], (convert_row(row, converters) for row in rows)
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


def convert_row(row: Sequence[Any], converters: Sequence[Any]) -> list[Any]:
    """Convert the cells of a row to their column types, with None for missing cells."""
    cells = [
        value if convert is None else convert(value)
        for value, convert in zip(row, converters, strict=False)
    ]
    return cells + [None] * (len(converters) - len(cells))


def quote(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""').replace("\0", "\N{REPLACEMENT CHARACTER}") + '"'
