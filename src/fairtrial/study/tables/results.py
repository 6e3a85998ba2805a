"""Results of a study for Python code: a lazily read sequence, and tables as rows and columns."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from fairtrial.core import LedgerError, Mistake, StudyError, did_you_mean, notebook_html
from fairtrial.study.extensions import extra_tables
from fairtrial.study.ledger.ledger_summary import spell_cost
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
    factor_columns,
)
from fairtrial.study.tables.rows import RunRows, evaluation_rows, event_rows
from fairtrial.study.tables.source import add_skipped, done_plan_indices
from fairtrial.study.tables.table_view import NamedRow, TableView

if TYPE_CHECKING:
    import pandas

    from fairtrial.study.page.results_plot import ResultsPlot
    from fairtrial.study.report.exploration_record import Exploration

SHOWN_RUNS = 5


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

    def _repr_html_(self) -> str:
        """Return the progress and the first runs for a notebook; outcomes are left to reports."""
        summary = self.reader.summary()
        first = self[:SHOWN_RUNS]
        rows = [(one.run_id, one.status.value, one.failure_kind, one.latency) for one in first]
        return notebook_html.compose(
            self.study.title or self.study.study_id,
            notebook_html.facts(
                [
                    ("done", f"{summary.done:,} of {summary.planned:,} runs"),
                    *((name, f"{number:,}") for name, number in summary.counts.items()),
                    ("cost", spell_cost(summary.cost_usd) if summary.cost_usd else None),
                    ("folder", self.folder),
                ]
            ),
            notebook_html.table(("run", "status", "failure", "latency, s"), rows, total=len(self)),
            kind="results",
        )

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
        """The table of runs, including skipped ones, with the values of their factors."""
        columns = (*RUN_COLUMNS, *factor_columns(self.study, self.conditions).values())
        return TableView(columns, self._run_rows)

    @property
    def events(self) -> TableView:
        """The table of events that runs emitted."""
        return TableView(EVENT_COLUMNS, self._event_rows)

    @property
    def evaluations(self) -> TableView:
        """The table of evaluations of the runs' outputs."""
        return TableView(EVALUATION_COLUMNS, self._evaluation_rows)

    @property
    def outputs(self) -> TableView:
        """The table of what agents returned, a row for each part."""
        return self.extra_table("outputs")

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

    def to_pandas(self, table: str = "runs") -> pandas.DataFrame:
        """Return a table as a data frame with typed columns; needs the extra `pandas`.

        table: runs, conditions, events, evaluations, outputs, or another extra table

        Raises `StudyError` for an unknown table, and `LabError` if pandas is not installed.
        """
        views = {
            "runs": self.runs,
            "conditions": self.condition_table,
            "events": self.events,
            "evaluations": self.evaluations,
        }
        names = [*views, *extra_tables()]
        if table not in names:
            raise StudyError(
                Mistake((), f"there is no table '{table}'", did_you_mean(table, names))
            )
        view = views[table] if table in views else self.extra_table(table)
        return view.to_pandas()

    def _run_rows(self) -> Iterator[NamedRow]:
        rows = RunRows(self.study, self.conditions)
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

    @property
    def plot(self) -> ResultsPlot:
        """Figures of the results, as matplotlib axes (extra `report`)."""
        from fairtrial.study.page.results_plot import ResultsPlot

        return ResultsPlot(self)

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


def open_results(folder: str | Path) -> Results:
    """Open the results of a finished or running study by its output directory.

    For a running study these are the results committed so far; open it again for newer ones.
    """
    return Results(LedgerReader.open(Path(folder)))
