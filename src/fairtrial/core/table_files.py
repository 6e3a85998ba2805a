"""Writing tables: CSV, JSON and JSON Lines, complete or not at all.

A file appears under its name only when all of it is on disk, so a reader never sees half a table.
"""

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

from fairtrial.core.canonical import canonical_json
from fairtrial.core.errors import Mistake, StudyError
from fairtrial.core.files import replacing
from fairtrial.core.scalars import scalar_text

FORMATS = (".csv", ".json", ".jsonl")


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows in the format that the file's ending names; returns how many there were."""
    check_format(path)
    written = 0
    with replacing(path) as file:
        if path.suffix == ".csv":
            file.write(spell_rows([columns]))
        elif path.suffix == ".json":
            file.write("[")
        for row in rows:
            _write_row(file, path.suffix, columns, row, is_first=written == 0)
            written += 1
        if path.suffix == ".json":
            file.write("\n]\n")
    return written


def _write_row(
    file: TextIO, suffix: str, columns: Sequence[str], row: Mapping[str, Any], *, is_first: bool
) -> None:
    if suffix == ".csv":
        file.write(spell_rows([[cell(row.get(name)) for name in columns]]))
        return
    text = json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False)
    if suffix == ".jsonl":
        file.write(text + "\n")
    else:
        file.write(f"\n {text}" if is_first else f",\n {text}")


def spell_rows(rows: Sequence[Sequence[Any]]) -> str:
    """Rows of cells as CSV; a number is spelled so that reading it gives the same number."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if "\r" not in text.getvalue():
        return text.getvalue()
    # Before 3.13 the writer leaves a lone \r without quotes, and readers take it for a line's end.
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        has_return = any(isinstance(value, str) and "\r" in value for value in row)
        (quoted if has_return else plain).writerow(row)
    return text.getvalue()


def check_format(path: Path) -> None:
    """Refuse a file whose ending names no format, before any work is done for it."""
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


def cell(value: Any) -> Any:
    """A value as a CSV cell: blank for nothing, JSON for lists and mappings."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return scalar_text(value).capitalize()
    if isinstance(value, (list, tuple, Mapping)):
        return canonical_json(value)
    return value


@contextmanager
def any_field_size() -> Iterator[None]:
    """Let `csv` read cells of any length: a long answer is one."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def has_pyarrow() -> bool:
    """Whether Parquet can be written."""
    return find_spec("pyarrow") is not None


def require_pyarrow() -> None:
    """Refuse, before any work is done, to write Parquet without the library for it."""
    if not has_pyarrow():
        raise StudyError(
            Mistake((), "Parquet files need pyarrow", 'pip install "fairtrial[parquet]"')
        )
