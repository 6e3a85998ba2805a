"""Results as Python sees them: a sequence that is read lazily, and tables as rows and columns."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from fairtrial.core import LedgerError, Mistake, StudyError, did_you_mean
from fairtrial.study.extensions import extra_tables
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.tables.canonical import (
    EVALUATION_COLUMNS,
    EVENT_COLUMNS,
    RUN_COLUMNS,
    condition_columns,
    condition_rows,
)
from fairtrial.study.tables.rows import RunRows, evaluation_rows, event_rows
from fairtrial.study.tables.source import done_places, with_skipped

Named = dict[str, Any]


class Results(Sequence[RunResult]):
    """What came of a study's runs, in plan order: those that are done, as of when it was opened.

    Each result is read from the ledger when it is asked for. A context manager; without one it
    lets go of the ledger when nobody needs it any more.

    stopped: why the study ended before its plan did; None if it didn't
    """

    def __init__(self, reader: LedgerReader, *, stopped: str | None = None) -> None:
        self.reader = reader
        self.stopped = stopped
        # Not __del__: in a circle of garbage the connection might go before it.
        weakref.finalize(self, reader.close)
        self._places = done_places(reader)

    @property
    def study(self) -> Study:
        """The study, as it was when the plan was last laid down."""
        return self.reader.study

    @property
    def conditions(self) -> Sequence[Condition]:
        """The conditions, in plan order, inadmissible ones included."""
        return self.reader.conditions

    @property
    def folder(self) -> Path:
        """The output directory."""
        if self.reader.path is not None:
            return self.reader.path.parent
        return Path(self.study.output_dir or ".").absolute()

    # -- results --

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> RunResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[RunResult]: ...
    def __getitem__(self, index: int | slice) -> RunResult | list[RunResult]:
        if isinstance(index, slice):
            return [self._result(place) for place in self._places[index]]
        try:
            place = self._places[index]
        except IndexError:
            raise IndexError(f"there are {len(self):,} results, no {index}") from None
        return self._result(place)

    def __iter__(self) -> Iterator[RunResult]:
        # A generator, and so one that holds on to these results: nobody else may, in a `for` loop.
        if len(self._places) == len(self.reader.plan):  # there can't be any new ones
            yield from self.reader.results()
        else:
            yield from map(self._result, self._places)

    def __repr__(self) -> str:
        planned = self.reader.plan.runnable
        return f"<Results of '{self.study.study_id}': {len(self):,} of {planned:,} runs done>"

    def _result(self, place: int) -> RunResult:
        result = self.reader.result(place)
        if result is None:
            run_id = self.reader.plan.spec(place).run_id
            raise LedgerError(f"the result of {run_id} is gone; open the results anew")
        return result

    # -- tables --

    @property
    def condition_table(self) -> TableView:
        """The table of conditions: what each assigns."""
        columns = condition_columns(self.study, self.conditions)
        return TableView(columns, lambda: condition_rows(self.study, self.conditions))

    @property
    def runs(self) -> TableView:
        """The table of runs: skipped ones are among them."""
        return TableView(RUN_COLUMNS, self._run_rows)

    @property
    def events(self) -> TableView:
        """The table of events: what runs emitted."""
        return TableView(EVENT_COLUMNS, self._event_rows)

    @property
    def evaluations(self) -> TableView:
        """The table of evaluations: what judged each output, and how."""
        return TableView(EVALUATION_COLUMNS, self._evaluation_rows)

    @property
    def candidates(self) -> TableView:
        """The table of candidates: what optimizers tried; empty if none did."""
        return self.extra_table("candidates")

    def extra_table(self, name: str) -> TableView:
        """A table that an extension adds; raises `StudyError` if there is none of that name."""
        tables = extra_tables()
        if name not in tables:
            raise StudyError(Mistake((), f"there is no table '{name}'", did_you_mean(name, tables)))
        table = tables[name]

        def rows() -> Iterator[Named]:
            for result in self:
                for row in table.rows(result):
                    yield dict(zip(table.columns, row, strict=True))

        return TableView(tuple(table.columns), rows)

    def _run_rows(self) -> Iterator[Named]:
        rows = RunRows(self.study)
        for result in with_skipped(self.reader.plan, self._places, iter(self)):
            row = rows.row(result)
            yield dict(zip(rows.columns, row, strict=True))

    def _event_rows(self) -> Iterator[Named]:
        for result in self:
            for row in event_rows(self.study, result):
                yield dict(zip(EVENT_COLUMNS, row, strict=True))

    def _evaluation_rows(self) -> Iterator[Named]:
        for result in self:
            for row in evaluation_rows(result):
                yield dict(zip(EVALUATION_COLUMNS, row, strict=True))

    # -- the ledger --

    def close(self) -> None:
        """Let go of the ledger."""
        self.reader.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TableView:
    """A table as rows and as columns; each is read from the ledger when it is asked for.

    A row of runs holds the metrics that were met so far; `columns` holds all of them.
    """

    def __init__(self, fixed: Sequence[str], rows: Callable[[], Iterator[Named]]) -> None:
        self._fixed = fixed
        self._rows = rows

    def __iter__(self) -> Iterator[Named]:
        return self._rows()

    def columns(self, *names: str) -> dict[str, list[Any]]:
        """Columns by name, all of them if none is named; ``pandas.DataFrame`` takes them as is."""
        found: dict[str, list[Any]] = {name: [] for name in names or self._fixed}
        known = set(self._fixed)
        for length, row in enumerate(self._rows()):
            known.update(row)
            if not names:
                for name in [name for name in row if name not in found]:
                    found[name] = [None] * length
            for name, values in found.items():
                values.append(row.get(name))
        unknown = [name for name in names if name not in known]
        if unknown:
            hint = did_you_mean(unknown[0], sorted(known))
            raise StudyError(Mistake((), f"there is no column '{unknown[0]}'", hint))
        return found


def open_results(folder: str | Path) -> Results:
    """The results of a finished or running study, by its output directory.

    Of one that is running: what is safely written down right now; open it again for more.
    """
    return Results(LedgerReader.open(Path(folder)))
