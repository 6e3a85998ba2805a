"""The tables once more as Parquet files, with types, written in batches (extra `parquet`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairtrial.study.tables.columns import ColumnType, ColumnTypes
from fairtrial.study.tables.sqlite_mirror import fit

GROUP_ROWS = 10_000


class ParquetMirror:
    """Fills one Parquet file for each table; a context manager."""

    def __init__(self, folder: Path, types: ColumnTypes) -> None:
        self._files = {table: _ParquetFile(folder, table, types) for table in types.columns}

    def __enter__(self) -> ParquetMirror:
        return self

    def add(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows; those that are short of columns get nulls."""
        self._files[table].add(rows)

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()


class _ParquetFile:
    def __init__(self, folder: Path, table: str, types: ColumnTypes) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrow = {
            ColumnType.BOOL: pa.bool_(),
            ColumnType.INT: pa.int64(),
            ColumnType.FLOAT: pa.float64(),
            ColumnType.TEXT: pa.string(),
        }
        names = types.columns[table]
        kinds = [arrow[kind] for kind in types.of(table)]
        self._schema = pa.schema(list(zip(names, kinds, strict=True)))
        self._converters = types.converters(table)
        self._writer = pq.ParquetWriter(folder / f"{table}.parquet", self._schema)
        self._rows: list[list[Any]] = []

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        self._rows.extend(fit(row, self._converters) for row in rows)
        if len(self._rows) >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        columns = zip(*self._rows, strict=True)
        arrays = [
            pa.array(values, field.type)
            for values, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows.clear()

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()
