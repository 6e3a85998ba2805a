"""Column types of the SQLite and Parquet files, inferred from all values of a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from fairtrial.study.extensions import extra_tables
from fairtrial.study.tables.canonical import RUN_COLUMNS

MAX_EXACT_INT = 2**53
"""Integers up to this magnitude are exact as floats."""
_FLOAT_COLUMNS = ("latency_s", "cost_usd")
_VALUE_KINDS = {bool: "bool", float: "float", str: "text"}


class ColumnType(Enum):
    """The type of a column in a typed file."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"


_COLUMN_TYPES = {
    bool: ColumnType.BOOL,
    int: ColumnType.INT,
    float: ColumnType.FLOAT,
    str: ColumnType.TEXT,
}


class ColumnTypes:
    """Infers the column types of all tables; columns of mixed types are text.

    columns: column names of each table; set when all rows have been observed
    """

    def __init__(self) -> None:
        self.columns: dict[str, list[str]] = {}
        self._kinds: dict[str, list[set[str]]] = {}

    def observe(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Record the types of the values in some rows; later rows may have more cells."""
        column_kinds = self._kinds.setdefault(table, [])
        for row in rows:
            while len(column_kinds) < len(row):
                column_kinds.append(set())
            for kinds, value in zip(column_kinds, row, strict=False):
                if value is not None:
                    kinds.add(_VALUE_KINDS.get(type(value)) or _int_kind(value))

    def merge(self, table: str, part: str, indices: Sequence[int]) -> None:
        """Add the types that were recorded for a part of a table's rows.

        part: the name that its rows were observed with
        indices: the table's column for each of the part's columns
        """
        column_kinds = self._kinds.setdefault(table, [])
        for index, kinds in zip(indices, self._kinds.pop(part, ()), strict=False):
            while len(column_kinds) <= index:
                column_kinds.append(set())
            column_kinds[index] |= kinds

    def column_types(self, table: str) -> list[ColumnType]:
        """Return the types of a table's columns."""
        if extra := extra_tables().get(table):
            return [_COLUMN_TYPES[column.type] for column in extra.columns.values()]
        columns = self.columns[table]
        observed = self._kinds.get(table, [])
        column_kinds = [*observed, *(set() for _ in columns[len(observed) :])]
        types = [_infer_type(kinds) for kinds in column_kinds]
        if table == "runs":
            types[: len(RUN_COLUMNS)] = [
                ColumnType.FLOAT if name in _FLOAT_COLUMNS else column_type
                for name, column_type in zip(RUN_COLUMNS, types, strict=False)
            ]
        return types

    def converters(self, table: str) -> list[Callable[[Any], Any] | None]:
        """Return for each column a function that converts its values to the column's type.

        None for columns whose values all have that type already.
        """
        observed = self._kinds.get(table, [])
        return [
            _find_converter(column_type, observed[index] if index < len(observed) else set())
            for index, column_type in enumerate(self.column_types(table))
        ]


def _int_kind(value: int) -> str:
    """Classify an integer: exact as a float, within 64 bits, or larger."""
    if -MAX_EXACT_INT <= value <= MAX_EXACT_INT:
        return "int"
    return "wide" if -(2**63) <= value < 2**63 else "huge"


def _infer_type(kinds: set[str]) -> ColumnType:
    if kinds <= {"int", "wide"} and kinds:
        return ColumnType.INT
    if kinds <= {"int", "float"} and kinds:
        return ColumnType.FLOAT
    return ColumnType.BOOL if kinds == {"bool"} else ColumnType.TEXT


def _find_converter(column_type: ColumnType, kinds: set[str]) -> Callable[[Any], Any] | None:
    if column_type is ColumnType.FLOAT:
        return _to_float if "int" in kinds else None
    return _to_text if column_type is ColumnType.TEXT and kinds - {"text"} else None


def _to_float(value: Any) -> float | None:
    return None if value is None else float(value)


def _to_text(value: Any) -> str | None:
    """Convert a value to the text that the CSV file has."""
    return value if value is None or isinstance(value, str) else str(value)
