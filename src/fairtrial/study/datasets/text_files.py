"""Rows of JSON Lines and CSV files: an index of positions in memory, the rows on disk."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fairtrial.core import LabError, Mistake, StudyError, did_you_mean, table_files
from fairtrial.study.datasets.rows import Row, Rows, too_many

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WHOLE = re.compile(r"[-+]?\d{1,18}")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
DELIMITERS = (",", "\t", ";", "|")
CHUNK = 1 << 20


class TextFile:
    """A text file that is read line by line and, at known positions, again.

    A file in another encoding than UTF-8 is converted in memory. Raises `StudyError` if it can't be
    read or decoded.
    """

    def __init__(self, path: Path, encoding: str = "") -> None:
        self.path = path
        try:
            self._fd: int | None = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise unreadable(path, error) from None
        self._data = b""
        state = os.fstat(self._fd)
        self._state = state.st_size, state.st_mtime_ns
        self.start = 0
        digest = hashlib.sha256()
        for chunk in self._chunks():
            digest.update(chunk)
        self.digest = digest.hexdigest()
        head = self.read(0, 4)
        if not encoding and head.startswith(_UTF16_MARKS):
            encoding = "utf-16"
        if encoding and _normal(encoding) not in ("utf-8", "utf-8-sig"):
            self._convert(encoding)
        elif head.startswith(codecs.BOM_UTF8):
            self.start = len(codecs.BOM_UTF8)
        if self._has_old_line_ends():
            self._convert("utf-8-sig")

    def __del__(self) -> None:
        if getattr(self, "_fd", None) is not None:
            os.close(self._fd)  # type: ignore[arg-type]
            self._fd = None

    def _chunks(self) -> Iterator[bytes]:
        position = 0
        while chunk := self._pread(CHUNK, position):
            position += len(chunk)
            yield chunk

    def _pread(self, size: int, position: int) -> bytes:
        if self._fd is None:
            return self._data[position : position + size]
        try:
            return os.pread(self._fd, size, position)
        except OSError as error:
            raise unreadable(self.path, error) from None

    def _convert(self, encoding: str) -> None:
        """Hold the file in memory as UTF-8, with line ends that can be found."""
        data = b"".join(self._chunks())
        try:
            text = data.decode(encoding)
        except LookupError:
            raise StudyError(Mistake(("encoding",), f"Python knows no '{encoding}'")) from None
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise StudyError(Mistake(("from",), f"{self.path}, line {line:,}: {error}")) from None
        if "\n" not in text:
            text = text.replace("\r", "\n")
        self._data, self.start = text.removeprefix("\ufeff").encode(), 0
        os.close(self._fd)  # type: ignore[arg-type]
        self._fd = None

    def _has_old_line_ends(self) -> bool:
        """Return whether lines end in a lone carriage return, as on old Macs."""
        has_return = False
        for chunk in self._chunks():
            if b"\n" in chunk:
                return False
            has_return |= b"\r" in chunk.rstrip(b"\r\n")
        return has_return

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the position of each line's end and the line; raises `StudyError`."""
        position, rest, number = self.start, b"", 0
        while chunk := self._pread(CHUNK, position + len(rest)):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                number += 1
                position += len(line) + 1
                yield position, self._decode(line, number) + "\n"
        if rest:
            yield position + len(rest), self._decode(rest, number + 1)

    def _decode(self, line: bytes, number: int) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            message = f"{self.path}, line {number:,} is not UTF-8: {error.reason} at byte "
            hint = "name the file's encoding, such as `encoding: latin-1` or `cp1252`"
            raise StudyError(Mistake(("from",), f"{message}{error.start + 1}", hint)) from None

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two positions.

        Raises `LabError` if the file changed since it was opened.
        """
        if self._fd is not None:
            state = os.fstat(self._fd)
            if (state.st_size, state.st_mtime_ns) != self._state:
                raise LabError(f"{self.path} changed while it was in use; start again")
        return self._pread(end - start, start)


def unreadable(path: Path, error: OSError) -> StudyError:
    """Return the error for a file that can't be read, with the most similar name beside it."""
    if isinstance(error, FileNotFoundError):
        there = [item.name for item in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, there) if there else "the folder doesn't exist"
        hint = hint if hint.startswith(("did", "the")) else "the path is relative to the study"
        return StudyError(Mistake(("from",), f"there is no file {path}", hint))
    return StudyError(Mistake(("from",), f"{path} can't be read: {error.strerror or error}"))


def _normal(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return encoding


class JsonLines(Rows):
    """The rows of a JSON Lines file: one mapping a line; blank lines don't count."""

    def __init__(self, path: Path, encoding: str = "") -> None:
        self._file = TextFile(path, encoding)
        self.digest = self._file.digest
        self._starts, self._ends, self._lines = array("Q"), array("Q"), array("Q")
        names: dict[str, None] = {}
        wrong: list[str] = []
        start = self._file.start
        for number, (end, line) in enumerate(self._file.lines(), 1):
            if line.strip():
                self._starts.append(start)
                self._ends.append(end)
                self._lines.append(number)
                row = self._read(line, number, wrong)
                if not names.keys() >= row.keys():
                    names.update(dict.fromkeys(row))
            start = end
        if wrong:
            raise too_many(wrong)
        self.columns = list(names)

    def _read(self, line: str, number: int, wrong: list[str]) -> Mapping[str, Any]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            wrong.append(f"{self._file.path}, line {number:,} is not JSON: {error}")
            return {}
        if not isinstance(row, dict):
            wrong.append(
                f"{self._file.path}, line {number:,} is not a mapping: {line.strip()[:40]}"
            )
            return {}
        return row

    def __len__(self) -> int:
        return len(self._starts)

    def row(self, number: int) -> Row:
        """Return a row."""
        data = self._file.read(self._starts[number], self._ends[number])
        row: Row = json.loads(data)
        return row

    def place(self, number: int) -> str:
        """Return the line of a row."""
        return f"line {self._lines[number]:,}"


class CsvRows(Rows):
    """The rows of a CSV file with a header.

    A column in which every cell that isn't empty is a number holds numbers, and None where it is
    empty; every other cell is text.
    """

    def __init__(self, path: Path, encoding: str = "", delimiter: str = "") -> None:
        self._file = TextFile(path, encoding)
        self.digest = self._file.digest
        self._starts, self._ends, self._lines = array("Q"), array("Q"), array("Q")
        self._dialect: dict[str, Any] = {"strict": True, "delimiter": delimiter or ","}
        if not delimiter:
            self._dialect["delimiter"] = self._guess_delimiter()
        with table_files.unlimited_csv_fields():
            self._index()

    def _guess_delimiter(self) -> str:
        """Return the separator of the header: a comma, or the most frequent other one if none."""
        header = next((line for _, line in self._file.lines() if line.strip()), "")
        if self._file.path.suffix == ".tsv" or "," in header:
            return "\t" if self._file.path.suffix == ".tsv" else ","
        return max(DELIMITERS, key=header.count)

    def _index(self) -> None:
        ends = [self._file.start]

        def feed() -> Iterator[str]:
            for end, line in self._file.lines():
                ends[0] = end
                yield line

        reader = csv.reader(feed(), **self._dialect)
        wrong: list[str] = []
        types: list[Callable[[str], Any] | None] = []
        start, line, header = ends[0], 1, None
        while (cells := self._next(reader, line)) is not None:
            if header is None and cells:
                header = _read_header(cells)
                types = [int] * len(header)
            elif cells and header is not None:
                if len(cells) != len(header):
                    wrong.append(_wrong_count(self._file.path, line, cells, header))
                else:
                    types = [_widen(kind, cell) for kind, cell in zip(types, cells, strict=True)]
                    self._starts.append(start)
                    self._ends.append(ends[0])
                    self._lines.append(line)
            start, line = ends[0], reader.line_num + 1
        if header is None:
            raise StudyError(Mistake(("from",), f"{self._file.path} is empty"))
        if wrong:
            hint = "a cell with the separator or a line break in it stands in double quotes"
            raise too_many(wrong, hint)
        self.columns = header
        self._types = types

    def _next(self, reader: Iterator[list[str]], line: int) -> list[str] | None:
        try:
            return next(reader, None)
        except csv.Error as error:
            message = f"{self._file.path}, record of line {line:,}: {error}"
            hint = "look for a quotation mark without its partner"
            raise StudyError(Mistake(("from",), message, hint)) from None

    def __len__(self) -> int:
        return len(self._starts)

    def row(self, number: int) -> Row:
        """Return a row, with numbers in the columns of numbers."""
        return self._typed(self._cells(number))

    def _cells(self, number: int) -> list[str]:
        data = self._file.read(self._starts[number], self._ends[number])
        return self._split(data.decode())

    def _split(self, text: str) -> list[str]:
        with table_files.unlimited_csv_fields():
            return next(csv.reader(io.StringIO(text, newline="\n"), **self._dialect))

    def _typed(self, cells: list[str]) -> Row:
        return {
            name: cell if kind is None else kind(cell) if cell.strip() else None
            for name, kind, cell in zip(self.columns, self._types, cells, strict=True)
        }

    def read(self, number: int) -> tuple[Row, Row]:
        """Return a row, and its cells as they are written."""
        cells = self._cells(number)
        return self._typed(cells), dict(zip(self.columns, cells, strict=True))

    def place(self, number: int) -> str:
        """Return the line that a row begins at."""
        return f"line {self._lines[number]:,}"


def _read_header(cells: list[str]) -> list[str]:
    names = [cell.strip() or f"column_{number}" for number, cell in enumerate(cells, 1)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StudyError(Mistake(("from",), f"two columns are called '{twice}'", "rename one"))
    return names


def _wrong_count(path: Path, line: int, cells: list[str], header: list[str]) -> str:
    return f"{path}, line {line:,} has {len(cells)} cells; the header has {len(header)}"


def _widen(kind: Callable[[str], Any] | None, cell: str) -> Callable[[str], Any] | None:
    """Return the type of a column with one more cell: int, float, or None for text."""
    cell = cell.strip()
    if kind is None or not cell:
        return kind
    if _WHOLE.fullmatch(cell):
        digits = cell.lstrip("+-")
        # 007 is a code, no number.
        return None if len(digits) > 1 and digits[0] == "0" else kind
    return _to_number if _NUMBER.fullmatch(cell) and float(cell) < float("inf") else None


def _to_number(cell: str) -> int | float:
    return int(cell) if _WHOLE.fullmatch(cell.strip()) else float(cell)
