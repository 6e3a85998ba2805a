"""What type a column has, by all the values in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from fairtrial.study.extensions import extra_tables
from fairtrial.study.tables.canonical import RUN_COLUMNS

EXACT = 2**53
"""Whole numbers up to this have a float of their own."""
_FLOATS = ("latency_s", "cost_usd")
_SORTS = {bool: "bool", float: "float", str: "text"}


class ColumnType(Enum):
    """What a typed file calls a column."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"


_OF = {
    bool: ColumnType.BOOL,
    int: ColumnType.INT,
    float: ColumnType.FLOAT,
    str: ColumnType.TEXT,
}


class ColumnTypes:
    """Gathers the types of all columns of all tables; a mixed column is text."""

    def __init__(self) -> None:
        self.columns: dict[str, list[str]] = {}
        self._seen: dict[str, list[set[str]]] = {}

    def note(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Take note of rows; later rows may be longer than earlier ones."""
        seen = self._seen.setdefault(table, [])
        for row in rows:
            while len(seen) < len(row):
                seen.append(set())
            for sorts, value in zip(seen, row, strict=False):
                if value is not None:
                    sorts.add(_SORTS.get(type(value)) or _sort_of_int(value))

    def of(self, table: str) -> list[ColumnType]:
        """The types of a table's columns."""
        if extra := extra_tables().get(table):
            return [_OF[column.type] for column in extra.columns.values()]
        columns = self.columns[table]
        seen = self._seen.get(table, [])
        sorts = [*seen, *(set() for _ in columns[len(seen) :])]
        types = [_type_of(each) for each in sorts]
        if table == "runs":
            types[: len(RUN_COLUMNS)] = [
                ColumnType.FLOAT if name in _FLOATS else kind
                for name, kind in zip(RUN_COLUMNS, types, strict=False)
            ]
        return types

    def converters(self, table: str) -> list[Callable[[Any], Any] | None]:
        """For each column what makes its values of one type; None where they are already."""
        seen = self._seen.get(table, [])
        return [
            _convert(kind, seen[index] if index < len(seen) else set())
            for index, kind in enumerate(self.of(table))
        ]


def _sort_of_int(value: int) -> str:
    if -EXACT <= value <= EXACT:
        return "int"
    return "wide" if -(2**63) <= value < 2**63 else "huge"


def _type_of(sorts: set[str]) -> ColumnType:
    if sorts <= {"int", "wide"} and sorts:
        return ColumnType.INT
    if sorts <= {"int", "float"} and sorts:
        return ColumnType.FLOAT
    return ColumnType.BOOL if sorts == {"bool"} else ColumnType.TEXT


def _convert(kind: ColumnType, sorts: set[str]) -> Callable[[Any], Any] | None:
    if kind is ColumnType.FLOAT:
        return _float if "int" in sorts else None
    return _text if kind is ColumnType.TEXT and sorts - {"text"} else None


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _text(value: Any) -> str | None:
    """As the CSV file spells it."""
    return value if value is None or isinstance(value, str) else str(value)
