"""The tables as CSV files, written in one pass however many runs there are.

Which metrics there are is known only after the last run, so rows of runs are written without a
header first, and get it, and the cells that they lack, when all are there.
"""

from __future__ import annotations

import csv
import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from fairtrial.core import any_field_size, spell_rows

CHUNK_ROWS = 1_000


class CsvFile:
    """A CSV file that grows by rows, and knows how many it has."""

    def __init__(self, path: Path, columns: Sequence[str] = ()) -> None:
        self.path = path
        self.rows = 0
        self._file: IO[bytes] = path.open("xb")
        if columns:
            self._file.write(spell_rows([columns]).encode("utf-8"))

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows; blank cells for None."""
        self._file.write(spell_rows(rows).encode("utf-8"))
        self.rows += len(rows)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class OptionalCsvFile:
    """A CSV file that is there only if it has rows."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._path, self._columns = path, columns
        self._file: CsvFile | None = None

    @property
    def rows(self) -> int:
        return 0 if self._file is None else self._file.rows

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows; the file is made with the first of them."""
        if self._file is None and rows:
            self._file = CsvFile(self._path, self._columns)
        if self._file is not None:
            self._file.add(rows)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()


class GrowingCsvFile:
    """A CSV file whose columns are known only at its end; rows are as long as they are known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._body = CsvFile(path.with_name(f"{path.name}.part"))
        self._widths: set[int] = set()

    @property
    def rows(self) -> int:
        return self._body.rows

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows, each in the columns known so far."""
        self._widths.update(map(len, rows))
        self._body.add(rows)

    def finish(self, columns: Sequence[str]) -> None:
        """Put the file together."""
        self._body.close()
        if self._widths <= {len(columns)}:
            with self.path.open("xb") as file, self._body.path.open("rb") as body:
                file.write(spell_rows([columns]).encode("utf-8"))
                shutil.copyfileobj(body, file, 1 << 20)
        else:
            self._pad(columns)
        self._body.path.unlink()

    def close(self) -> None:
        """Let go of the file."""
        self._body.close()

    def _pad(self, columns: Sequence[str]) -> None:
        full = CsvFile(self.path, columns)
        try:
            with self._body.path.open(encoding="utf-8", newline="") as body, any_field_size():
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
    """A CSV file as it is read back: header and rows, with its checksum and size at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.size = 0
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The checksum of what was read so far."""
        return self._digest.hexdigest()

    def read(self) -> Iterator[list[str]]:
        """The header, then the rows; to be gone through to its end."""
        with self.path.open("rb") as file, any_field_size():
            for row in csv.reader(map(self._take, file)):
                yield row
                self.rows += 1
        self.rows = max(self.rows - 1, 0)

    def _take(self, line: bytes) -> str:
        self._digest.update(line)
        self.size += len(line)
        return line.decode("utf-8")
