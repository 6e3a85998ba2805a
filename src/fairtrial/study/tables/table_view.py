"""Tables of results for Python code: as rows, as columns, as data frames of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from fairtrial.core import LabError, Mistake, StudyError, did_you_mean
from fairtrial.study.tables.data_frames import make_frame
from fairtrial.study.tables.rows import as_cell

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

NamedRow = dict[str, Any]
"""A row of a table: the cells by column name."""


class TableView:
    """A table that is read from the ledger on each access, by rows or by columns.

    A row of the table of runs has the metrics of the runs so far; `columns` returns all metrics.
    """

    def __init__(
        self, fixed_columns: Sequence[str], rows: Callable[[], Iterator[NamedRow]]
    ) -> None:
        self._fixed_columns = fixed_columns
        self._rows = rows

    def __iter__(self) -> Iterator[NamedRow]:
        return self._rows()

    def columns(self, *names: str) -> dict[str, list[Any]]:
        """Return columns by name, by default all; ``pandas.DataFrame`` accepts the result.

        Raises `StudyError` for an unknown column.
        """
        columns: dict[str, list[Any]] = {name: [] for name in names or self._fixed_columns}
        existing = set(self._fixed_columns)
        for length, row in enumerate(self._rows()):
            existing.update(row)
            if not names:
                for name in [name for name in row if name not in columns]:
                    columns[name] = [None] * length
            for name, values in columns.items():
                values.append(row.get(name))
        unknown = [name for name in names if name not in existing]
        if unknown:
            hint = did_you_mean(unknown[0], sorted(existing))
            raise StudyError(Mistake((), f"there is no column '{unknown[0]}'", hint))
        return columns

    # -- data frames --

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas data frame with typed columns.

        Raises `LabError` without pandas.
        """
        return make_frame(self.columns())

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a polars data frame; raises `LabError` without polars."""
        columns = _with_one_type(self.columns())
        frame = _import("polars").DataFrame(columns, strict=False, infer_schema_length=None)
        return cast("polars.DataFrame", frame)

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as an Arrow table; raises `LabError` without pyarrow."""
        return cast("pyarrow.Table", _import("pyarrow").table(_with_one_type(self.columns())))


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise LabError(f"this data frame needs {name}: `pip install {name}`") from error


def _with_one_type(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return columns whose cells have one type each, as typed tables need: if need be, text."""
    return {name: _unify(values) for name, values in columns.items()}


def _unify(values: Sequence[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    is_small = kinds != {int} or all(abs(value) < 2**63 for value in values if value is not None)
    if len(kinds) <= 1 and kinds <= {str, int, float, bool} and is_small and kinds != {str}:
        return list(values)
    return [None if value is None else _as_text(value) for value in values]


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else str(as_cell(value))
    return text.encode("utf-8", "backslashreplace").decode()  # lone surrogates have no UTF-8
