"""The problems of a dataset: which rows they are, their names, and their parts for a run."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairtrial.core import FieldPath, Mistake, StudyError, did_you_mean, is_scalar, scalar_text
from fairtrial.study.datasets.row_templates import RowTemplate
from fairtrial.study.datasets.rows import Row, Rows, canonical_text, too_many
from fairtrial.study.datasets.selection import RowFilter, draw_sample, share_of
from fairtrial.study.datasets.sources import open_rows

if TYPE_CHECKING:
    from fairtrial.study.model.problems import Dataset

UNKNOWN_FAMILY = "unknown"
ID_DIGITS = 12


@dataclass(frozen=True, slots=True)
class RowParts:
    """What a row is to a run.

    family: the group it belongs to
    brief: the instructions for the agent
    payload: the columns that the agent sees
    reference: the right answer
    hidden: the columns that only evaluators see
    """

    family: str
    brief: str
    payload: Row
    reference: Any
    hidden: Row


@dataclass(slots=True)
class ProblemTable:
    """The problems of a dataset, by name.

    names: their names, in the order of the rows
    facts: what identifies the data: digest, number of rows, number of problems
    mistakes: why the source can't be used; there are no problems then
    warnings: what users should know about the rows
    columns: the columns of the source
    without_reference: which rows have no reference, in words; empty if all have one
    """

    names: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[str, ...] = ()
    columns: Sequence[str] = ()
    without_reference: str = ""
    _numbers: Sequence[int] = ()
    _rows: Rows | None = None
    _make_parts: Callable[[Row, Row], RowParts] | None = None
    _positions: dict[str, int] | None = None

    @property
    def positions(self) -> Mapping[str, int]:
        """The position of each name."""
        if self._positions is None:
            self._positions = {name: position for position, name in enumerate(self.names)}
        return self._positions

    def parts(self, name: str) -> RowParts:
        """Return the parts of a problem, read from its source now.

        Raises KeyError for an unknown name, and `LabError` if the source has changed.
        """
        number = self._numbers[self.positions[name]]
        assert self._rows is not None
        assert self._make_parts is not None
        return self._make_parts(*self._rows.read(number))

    @property
    def is_open(self) -> bool:
        """Whether rows can be read: False for names from a ledger."""
        return self._rows is not None


def stored_table(names: tuple[str, ...], facts: Mapping[str, Any]) -> ProblemTable:
    """Return the problems as a ledger has stored them: their names, but not their rows."""
    return ProblemTable(names, facts)


def open_table(dataset: Dataset) -> ProblemTable:
    """Read a dataset's source once and return its problems; mistakes are in the table."""
    try:
        return _TableReader(dataset, open_rows(dataset)).read()
    except StudyError as error:
        mistakes = tuple(mistake.under(("problems",)) for mistake in error.mistakes)
        return ProblemTable(mistakes=mistakes)


class _TableReader:
    """Reads all rows of a source once, and selects those of a dataset."""

    def __init__(self, dataset: Dataset, rows: Rows) -> None:
        self._dataset, self._rows = dataset, rows
        self._hidden = {*dataset.hide, *([dataset.reference] if dataset.reference else [])}
        self._hidden |= set(dataset.hidden_columns())
        self._template = RowTemplate(dataset.brief, rows.columns)
        self._warnings: list[str] = []
        self._check_columns()
        self._filter = RowFilter(dataset.where, rows.columns)

    def _check_columns(self) -> None:
        dataset, columns = self._dataset, self._rows.columns
        named: list[tuple[FieldPath, str]] = [(("id",), dataset.id), (("family",), dataset.family)]
        named += [(("reference",), dataset.reference)]
        named += [(("hide", index), name) for index, name in enumerate(dataset.hide)]
        if dataset.sample is not None:
            named.append((("sample", "stratify"), dataset.sample.stratify))
        mistakes = [
            Mistake(path, f"there is no column '{name}'", did_you_mean(name, columns))
            for path, name in named
            if name and name not in columns
        ]
        mistakes += [
            Mistake(("evaluator",), f"there is no column '{name}'", did_you_mean(name, columns))
            for name in dataset.hidden_columns()
            if name not in columns
        ]
        mistakes += self._template.mistakes
        if not len(self._rows):
            mistakes = [Mistake(("from",), f"{dataset.source} has no rows")]
        shown = {name for name in self._template.names if name in self._hidden}
        mistakes += [
            Mistake(("brief",), f"shows agents the column '{name}', which is hidden from them")
            for name in sorted(shown)
        ]
        if mistakes:
            raise StudyError(mistakes)

    def read(self) -> ProblemTable:
        """Return the table."""
        dataset, rows = self._dataset, self._rows
        numbers, keys, strata = array("Q"), [], []
        hashed = dataset.id == ""
        wrong: list[str] = []
        unanswered: set[int] = set()
        for number, (row, texts) in enumerate(rows.scan()):
            if not self._filter.holds(row, number, rows):
                continue
            key = _content_name(texts) if hashed else self._name(row, number, wrong)
            if dataset.parts and not share_of(dataset.split, dataset.use, key):
                continue
            absent = self._template.absent(row)
            if absent:
                wrong.append(f"{rows.place(number)} has no {', '.join(absent)}")
            broken = _find_broken_text(row)
            if broken:
                wrong.append(f"{rows.place(number)}: '{broken}' holds half of a surrogate pair")
            if dataset.reference and row.get(dataset.reference) is None:
                unanswered.add(number)
            numbers.append(number)
            keys.append(key)
            if dataset.sample is not None and dataset.sample.stratify:
                strata.append(canonical_text({"": row.get(dataset.sample.stratify)}))
        if wrong:
            raise too_many(wrong)
        self._refuse_empty(len(numbers))
        if not hashed:
            self._refuse_repeated(keys, numbers)
        if dataset.sample is not None:
            kept = draw_sample(dataset.sample, keys, strata)
            numbers, keys = array("Q", (numbers[i] for i in kept)), [keys[i] for i in kept]
        names = self._number_copies(keys) if hashed else keys
        facts = {"digest": rows.digest, "rows": len(rows), "problems": len(names)}
        return ProblemTable(
            tuple(names),
            facts,
            warnings=tuple(self._warnings),
            columns=rows.columns,
            without_reference=self._describe(sorted(unanswered.intersection(numbers))),
            _numbers=numbers,
            _rows=rows,
            _make_parts=self.make_parts,
        )

    def _describe(self, numbers: Sequence[int]) -> str:
        """Return the places of rows in words: the first one, and how many more."""
        if not numbers:
            return ""
        more = f" and {len(numbers) - 1:,} more" if len(numbers) > 1 else ""
        return f"{self._rows.place(numbers[0])}{more}"

    def _name(self, row: Row, number: int, wrong: list[str]) -> str:
        value = row.get(self._dataset.id)
        if value is None or not is_scalar(value) or not scalar_text(value).strip():
            wrong.append(f"{self._rows.place(number)} has no name in '{self._dataset.id}'")
            return ""
        return scalar_text(value)

    def _refuse_empty(self, count: int) -> None:
        if count:
            return
        dataset = self._dataset
        total = f"{len(self._rows):,} rows"
        if self._filter.kept == 0:
            message = f"none of the {total} fulfills `{dataset.where}`"
            raise StudyError(Mistake(("where",), message, self._filter.describe_values()))
        raise StudyError(Mistake(("use",), f"none of the {total} is in the part '{dataset.use}'"))

    def _refuse_repeated(self, keys: Sequence[str], numbers: Sequence[int]) -> None:
        first: dict[str, int] = {}
        wrong = []
        for key, number in zip(keys, numbers, strict=True):
            if key in first:
                earlier = self._rows.place(first[key])
                wrong.append(f"{self._rows.place(number)}: '{key}' is also the name of {earlier}")
            else:
                first[key] = number
        if wrong:
            hint = "names must differ; without `id`, rows are named by their content"
            mistakes = too_many(wrong, hint).mistakes
            raise StudyError([Mistake(("id",), item.message, item.hint) for item in mistakes])

    def _number_copies(self, keys: Sequence[str]) -> list[str]:
        """Return names that differ for rows that are the same."""
        seen: dict[str, int] = {}
        names = []
        for key in keys:
            count = seen[key] = seen.get(key, 0) + 1
            names.append(key if count == 1 else f"{key}-{count}")
        copies = len(keys) - len(seen)
        if copies:
            what = "row is a copy of another" if copies == 1 else "rows are copies of others"
            self._warnings.append(f"{copies:,} {what}; the name of a copy ends in -2, -3, ...")
        return names

    def make_parts(self, row: Row, texts: Row) -> RowParts:
        """Return what a row is to a run."""
        dataset = self._dataset
        family = row.get(dataset.family) if dataset.family else None
        return RowParts(
            UNKNOWN_FAMILY if family in (None, "") else _as_text(family),
            self._template.fill(texts),
            {name: value for name, value in row.items() if name not in self._hidden},
            row.get(dataset.reference) if dataset.reference else None,
            {name: value for name, value in row.items() if name in self._hidden},
        )


def _content_name(row: Row) -> str:
    return f"row-{hashlib.sha256(canonical_text(row).encode()).hexdigest()[:ID_DIGITS]}"


def _find_broken_text(row: Row) -> str:
    """Return the first column with a text that is no valid Unicode; an empty text if none is."""
    for name, value in row.items():
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return name
    return ""


def _as_text(value: Any) -> str:
    return scalar_text(value) if is_scalar(value) else canonical_text({"": value})
