"""CSV files: writing tables in one pass in constant memory, and reading them back.

The metrics, and so the columns of the table of runs, are known only after the last run. Its rows
are written without a header first; header and missing cells are added at the end.
"""

from __future__ import annotations

import csv
import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from fairtrial.core import table_files

CHUNK_ROWS = 1_000


class CsvFile:
    """A CSV file that is written row by row.

    path: the file
    rows: number of rows written
    """

    def __init__(self, path: Path, columns: Sequence[str] = ()) -> None:
        self.path = path
        self.rows = 0
        self._file: IO[bytes] = path.open("xb")
        if columns:
            self._file.write(table_files.format_csv([columns]).encode("utf-8"))

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows; None becomes an empty cell."""
        self._file.write(table_files.format_csv(rows).encode("utf-8"))
        self.rows += len(rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class OptionalCsvFile:
    """A CSV file that is created with its first row; without rows there is no file."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._path, self._columns = path, columns
        self._file: CsvFile | None = None

    @property
    def rows(self) -> int:
        return 0 if self._file is None else self._file.rows

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows; the first one creates the file."""
        if self._file is None and rows:
            self._file = CsvFile(self._path, self._columns)
        if self._file is not None:
            self._file.add(rows)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class GrowingCsvFile:
    """A CSV file whose columns are known only at the end; early rows may have fewer cells."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._body = CsvFile(path.with_name(f"{path.name}.part"))
        self._widths: set[int] = set()

    @property
    def rows(self) -> int:
        return self._body.rows

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows, each with the columns known so far."""
        self._widths.update(map(len, rows))
        self._body.add(rows)

    def finish(self, columns: Sequence[str]) -> None:
        """Write the final file, with its header and all rows padded to the same width."""
        self._body.close()
        if self._widths <= {len(columns)}:
            with self.path.open("xb") as file, self._body.path.open("rb") as body:
                file.write(table_files.format_csv([columns]).encode("utf-8"))
                shutil.copyfileobj(body, file, 1 << 20)
        else:
            self._pad(columns)
        self._body.path.unlink()

    def close(self) -> None:
        """Close the file."""
        self._body.close()

    def _pad(self, columns: Sequence[str]) -> None:
        full = CsvFile(self.path, columns)
        try:
            with (
                self._body.path.open(encoding="utf-8", newline="") as body,
                table_files.unlimited_csv_fields(),
            ):
                for chunk in _chunks(csv.reader(body)):
                    full.add([row + [""] * (len(columns) - len(row)) for row in chunk])
        finally:
            full.close()


def _chunks(rows: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    chunk: list[list[str]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == CHUNK_ROWS:
            yield chunk
            chunk = []
    yield chunk


class CsvTable:
    """Reads a CSV file and computes its checksum and size in the same pass.

    rows: number of rows, without the header, when it has been read to the end
    size: number of bytes read
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.size = 0
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The SHA-256 checksum of the bytes read so far."""
        return self._digest.hexdigest()

    def read(self) -> Iterator[list[str]]:
        """Yield the header, then the rows; must be iterated to the end."""
        with self.path.open("rb") as file, table_files.unlimited_csv_fields():
            for row in csv.reader(map(self._decode, file)):
                yield row
                self.rows += 1
        self.rows = max(self.rows - 1, 0)

    def _decode(self, line: bytes) -> str:
        self._digest.update(line)
        self.size += len(line)
        return line.decode("utf-8")
