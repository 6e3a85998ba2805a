"""Writing of tables as CSV, JSON and JSON Lines; files are replaced atomically."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from fairtrial.core.atomic_files import atomic_write
from fairtrial.core.canonical import canonical_json
from fairtrial.core.errors import Mistake, StudyError
from fairtrial.core.scalars import scalar_text

FORMATS = (".csv", ".json", ".jsonl")


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows in the format of the file's suffix; returns the number of rows.

    Raises `StudyError` if the suffix names no format, or the file can't be written.
    """
    check_format(path)
    row_count = 0
    with atomic_write(path) as file:
        if path.suffix == ".csv":
            file.write(format_csv([columns]))
        elif path.suffix == ".json":
            file.write("[")
        for row in rows:
            _write_row(file, path.suffix, columns, row, is_first=row_count == 0)
            row_count += 1
        if path.suffix == ".json":
            file.write("\n]\n")
    return row_count


def _write_row(
    file: TextIO, suffix: str, columns: Sequence[str], row: Mapping[str, Any], *, is_first: bool
) -> None:
    if suffix == ".csv":
        file.write(format_csv([[format_cell(row.get(name)) for name in columns]]))
        return
    text = json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False)
    if suffix == ".jsonl":
        file.write(text + "\n")
    else:
        file.write(f"\n {text}" if is_first else f",\n {text}")


def format_csv(rows: Sequence[Sequence[Any]]) -> str:
    """Format rows of cells as CSV; numbers read back are equal to those written."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if "\r" not in text.getvalue():
        return text.getvalue()
    # Before 3.13 the writer doesn't quote a lone \r, and readers take it for the end of a line.
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        has_return = any(isinstance(value, str) and "\r" in value for value in row)
        (quoted if has_return else plain).writerow(row)
    return text.getvalue()


def check_format(path: Path) -> None:
    """Raise `StudyError` if a file's suffix names no format, or the path is a folder."""
    if path.suffix not in FORMATS:
        raise StudyError(
            Mistake(
                (),
                f"{path}: can't tell the format from the ending '{path.suffix}'",
                f"end the name in {', '.join(FORMATS)}",
            )
        )
    if path.is_dir():
        raise StudyError(Mistake((), f"{path} is a directory", "name a file in it"))


def format_cell(value: Any) -> Any:
    """Convert a value to a CSV cell: empty for None, JSON for lists and mappings."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return scalar_text(value).capitalize()
    if isinstance(value, (list, tuple, Mapping)):
        return canonical_json(value)
    return value


@contextmanager
def unlimited_csv_fields() -> Iterator[None]:
    """Lift the length limit of `csv` cells during the block: an agent's answer may be long."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def has_pyarrow() -> bool:
    """Return whether pyarrow, and so Parquet, is available."""
    return find_spec("pyarrow") is not None


def require_pyarrow() -> None:
    """Raise `StudyError` if pyarrow, which writes Parquet, is not installed."""
    if not has_pyarrow():
        raise StudyError(
            Mistake((), "Parquet files need pyarrow", 'pip install "fairtrial[parquet]"')
        )
