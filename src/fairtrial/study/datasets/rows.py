"""Rows of a dataset, read one by one: what each kind of source provides."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairtrial.core import Mistake, StudyError, canonical_json, describe_value

MOST_SHOWN = 5
"""How many wrong rows are reported one by one."""
Row = Mapping[str, Any]


class Rows(ABC):
    """The rows of a source, by number from 0, all columns included.

    columns: the names of the columns
    digest: the SHA-256 of the source's content
    """

    columns: Sequence[str] = ()
    digest: str = ""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def row(self, number: int) -> Row:
        """Return a row."""

    def read(self, number: int) -> tuple[Row, Row]:
        """Return a row, and the same as it is written: 1.50 in a CSV file is the text `1.50`."""
        row = self.row(number)
        return row, row

    def scan(self) -> Iterator[tuple[Row, Row]]:
        """Yield all rows in order, as `read` gives them."""
        return map(self.read, range(len(self)))

    def place(self, number: int) -> str:
        """Return where a row stands, for messages."""
        return f"row {number + 1:,}"


class MemoryRows(Rows):
    """Rows that are in memory already: a list of mappings from Python, or a JSON array."""

    def __init__(self, items: Sequence[Any], digest: str | None = None) -> None:
        check_rows(items)
        self._items = items
        names: dict[str, None] = {}
        for item in items:
            names.update(dict.fromkeys(item))
        self.columns = list(names)
        self.digest = digest or _digest_rows(items)

    def __len__(self) -> int:
        return len(self._items)

    def row(self, number: int) -> Row:
        """Return a row."""
        item: Row = self._items[number]
        return item


def check_rows(items: Sequence[Any]) -> None:
    """Raise `StudyError` if some item is no mapping of texts to values."""
    wrong = [
        f"row {number + 1:,} is {describe_value(item)}"
        for number, item in enumerate(items)
        if not isinstance(item, Mapping) or not all(isinstance(key, str) for key in item)
    ]
    if wrong:
        raise too_many(wrong, "each row is a mapping of column names to values")


def too_many(wrong: Sequence[str], hint: str = "") -> StudyError:
    """Return the error for wrong rows, of which the first few are named."""
    more = f" (and {len(wrong) - MOST_SHOWN:,} more)" if len(wrong) > MOST_SHOWN else ""
    shown = [Mistake(("from",), text, hint) for text in wrong[:MOST_SHOWN]]
    shown[-1] = Mistake(("from",), shown[-1].message + more, hint)
    return StudyError(shown)


def _digest_rows(items: Sequence[Row]) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(canonical_text(item).encode() + b"\n")
    return digest.hexdigest()


def canonical_text(row: Row) -> str:
    """Return the text that a row's content is hashed by; values without JSON by their `repr`."""
    try:
        return canonical_json(row)
    except StudyError:
        return canonical_json({name: _plain(value) for name, value in row.items()})


def _plain(value: Any) -> Any:
    try:
        canonical_json(value)
    except StudyError:
        return repr(value)
    return value
