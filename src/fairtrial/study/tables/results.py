"""Results of a study for Python code: a lazily read sequence, and tables as rows and columns."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

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
from fairtrial.study.tables.source import add_skipped, done_plan_indices

if TYPE_CHECKING:
    from fairtrial.study.report.exploration_record import Exploration

NamedRow = dict[str, Any]
"""A row of a table: the cells by column name."""


class Results(Sequence[RunResult]):
    """The results of the runs that were done when it was opened, in plan order.

    Each result is read from the ledger when it is accessed. A context manager; without one the
    ledger is closed when the object is garbage-collected.

    stopped: why the study ended before all runs were done; None if it did not
    stop_reason: the same in a sentence, for a ceiling, a refused key, or repeated failures
    """

    def __init__(
        self, reader: LedgerReader, *, stopped: str | None = None, stop_reason: str = ""
    ) -> None:
        self.reader = reader
        self.stopped, self.stop_reason = stopped, stop_reason
        # Not __del__: in a reference cycle the connection might be collected first.
        weakref.finalize(self, reader.close)
        self._plan_indices = done_plan_indices(reader)

    @property
    def study(self) -> Study:
        """The study as of the last version of the plan."""
        return self.reader.study

    @property
    def conditions(self) -> Sequence[Condition]:
        """All conditions in plan order, including inadmissible ones."""
        return self.reader.conditions

    @property
    def folder(self) -> Path:
        """The output directory."""
        if self.reader.path is not None:
            return self.reader.path.parent
        return Path(self.study.output_dir or ".").absolute()

    # -- results --

    def __len__(self) -> int:
        return len(self._plan_indices)

    @overload
    def __getitem__(self, index: int) -> RunResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[RunResult]: ...
    def __getitem__(self, index: int | slice) -> RunResult | list[RunResult]:
        if isinstance(index, slice):
            return [self._result(plan_index) for plan_index in self._plan_indices[index]]
        try:
            plan_index = self._plan_indices[index]
        except IndexError:
            raise IndexError(f"there are {len(self):,} results, no {index}") from None
        return self._result(plan_index)

    def __iter__(self) -> Iterator[RunResult]:
        # A generator keeps a reference to self; in `for result in open_results(...)` it is the
        # only one, and without it the ledger would be closed.
        if len(self._plan_indices) == len(self.reader.plan):  # no new results can come
            yield from self.reader.results()
        else:
            yield from map(self._result, self._plan_indices)

    def __repr__(self) -> str:
        planned = self.reader.plan.runnable
        return f"<Results of '{self.study.study_id}': {len(self):,} of {planned:,} runs done>"

    def _result(self, plan_index: int) -> RunResult:
        result = self.reader.result(plan_index)
        if result is None:
            run_id = self.reader.plan.spec(plan_index).run_id
            raise LedgerError(f"the result of {run_id} is gone; open the results anew")
        return result

    # -- tables --

    @property
    def condition_table(self) -> TableView:
        """The table of conditions with their assignments."""
        columns = condition_columns(self.study, self.conditions)
        return TableView(columns, lambda: condition_rows(self.study, self.conditions))

    @property
    def runs(self) -> TableView:
        """The table of runs, including skipped ones."""
        return TableView(RUN_COLUMNS, self._run_rows)

    @property
    def events(self) -> TableView:
        """The table of events that runs emitted."""
        return TableView(EVENT_COLUMNS, self._event_rows)

    @property
    def evaluations(self) -> TableView:
        """The table of evaluations of the runs' outputs."""
        return TableView(EVALUATION_COLUMNS, self._evaluation_rows)

    @property
    def candidates(self) -> TableView:
        """The table of code candidates that optimizers proposed; empty if there are none."""
        return self.extra_table("candidates")

    def extra_table(self, name: str) -> TableView:
        """Return a table that an extension adds; raises `StudyError` for an unknown name."""
        tables = extra_tables()
        if name not in tables:
            raise StudyError(Mistake((), f"there is no table '{name}'", did_you_mean(name, tables)))
        table = tables[name]

        def rows() -> Iterator[NamedRow]:
            for result in self:
                for row in table.rows(result):
                    yield dict(zip(table.columns, row, strict=True))

        return TableView(tuple(table.columns), rows)

    def _run_rows(self) -> Iterator[NamedRow]:
        rows = RunRows(self.study)
        for result in add_skipped(self.reader.plan, self._plan_indices, iter(self)):
            row = rows.row(result)
            yield dict(zip(rows.columns, row, strict=True))

    def _event_rows(self) -> Iterator[NamedRow]:
        for result in self:
            for row in event_rows(self.study, result):
                yield dict(zip(EVENT_COLUMNS, row, strict=True))

    def _evaluation_rows(self) -> Iterator[NamedRow]:
        for result in self:
            for row in evaluation_rows(result):
                yield dict(zip(EVALUATION_COLUMNS, row, strict=True))

    def to_html(self) -> str:
        """Return the page of the study: an HTML document that needs no network.

        Tests the hypotheses, and reads all results twice.
        """
        from fairtrial.study.page import collect_page, render_page

        return render_page(collect_page(self))

    def compare(
        self, *variables: str, outcomes: Sequence[str] | str = (), by: str | None = None
    ) -> Exploration:
        """Compare the levels of factors, or agents, whatever the plans declare: exploratory.

        Raises `StudyError` if a name is unknown, or no run has a value of an outcome.

        variables: factors, blocks or options of agents, or `agent_id`
        outcomes: outcomes, or names of metrics or evaluations; by default the primary outcomes
        by: also compare within each `problem`, `family` of problems, or level of a variable
        """
        from fairtrial.study.report.exploration import explore

        names = [outcomes] if isinstance(outcomes, str) else list(outcomes)
        return explore(self.study, self.conditions, iter(self), variables, outcomes=names, by=by)

    # -- the ledger --

    def close(self) -> None:
        """Close the ledger."""
        self.reader.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def open_results(folder: str | Path) -> Results:
    """Open the results of a finished or running study by its output directory.

    For a running study these are the results committed so far; open it again for newer ones.
    """
    return Results(LedgerReader.open(Path(folder)))
