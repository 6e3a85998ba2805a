"""CSV files: writing and reading them in constant memory, with their checksums."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from fairtrial.core import table_files
from fairtrial.study.tables.csv_lines import format_lines


class CsvFile:
    """A CSV file that is written batch by batch; its checksum is computed meanwhile.

    path: the file
    rows: number of rows written
    size: number of bytes written
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.rows = self.size = 0
        self._digest = hashlib.sha256()
        self._file: IO[bytes] = path.open("xb")
        self.add_lines(table_files.format_csv([columns]).encode("utf-8"), 0)

    @property
    def sha256(self) -> str:
        """The SHA-256 checksum of the bytes written so far."""
        return self._digest.hexdigest()

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows; None becomes an empty cell."""
        self.add_lines("".join(format_lines(rows)).encode("utf-8"), len(rows))

    def add_lines(self, lines: bytes, rows: int) -> None:
        """Write formatted rows; `rows` is their number."""
        self._file.write(lines)
        self._digest.update(lines)
        self.size += len(lines)
        self.rows += rows

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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
