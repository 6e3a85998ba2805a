"""What a kind of problem adds to studies: a table, remarks in the report, adapted problems.

An extension registers as an entry point of the group ``fairtrial.extensions``. The study package
knows nothing of code candidates: the optimizer adds the table of candidates this way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from fairtrial.core import plugins

if TYPE_CHECKING:
    from fairtrial.core import Mistake, Place
    from fairtrial.study.model.runs import RunResult
    from fairtrial.study.model.study import Study

Cells = list[Any]
KeywordArgument = Callable[[Any], Any]
"""Takes a `fairtrial.Task`; returns the value of the argument."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of an extra table.

    type: bool, int, float or str
    unit: what the codebook says of its type
    meaning: what the codebook says of its content
    """

    type: type[Any]
    unit: str
    meaning: str


class ExtraTable:
    """A table beside the canonical ones; written only if a run has a row in it.

    Its first column is `run_id`; its second tells the rows of one run apart.
    """

    name: str = ""
    columns: Mapping[str, TableColumn] = {}

    def rows(self, result: RunResult) -> Iterator[Cells]:
        """Yield the rows of one run, a cell for each column."""
        yield from ()


class ReportNotes:
    """Reads every result once and adds remarks to the report; by default none."""

    def add(self, group: Hashable | None, result: RunResult) -> None:
        """Read one result; `group` is what its replicates share, None for a foreign condition."""

    def result_lines(self) -> Sequence[str]:
        """Return lines for the list of how runs ended."""
        return ()

    def deviations(self) -> Sequence[str]:
        """Return ways in which the study differs from a single, unchanged plan."""
        return ()

    def remarks(self) -> Sequence[str]:
        """Return sentences on how far the tests can be trusted."""
        return ()


class StudyExtension:
    """A plug-in that adds to studies; every hook does nothing by default."""

    def adapt_problem(self, name: str, value: Any) -> Any:
        """Return the problem that a Python object stands for, or None if it isn't one of ours."""
        return None

    def modernize(
        self, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        """Return a study's data with keys of other formats replaced; add what is wrong with them."""
        return data

    def keyword_arguments(self) -> Mapping[str, KeywordArgument]:
        """Return parameter names that agents may ask for, each with what it gets of the task."""
        return {}

    def table(self) -> ExtraTable | None:
        """Return the table that is added."""
        return None

    def is_used_by(self, study: Study) -> bool:
        """Return whether runs of a study are likely to have rows in the table."""
        return False

    def report_notes(self) -> ReportNotes:
        """Return a fresh reader of results."""
        return ReportNotes()


@cache
def extensions() -> tuple[StudyExtension, ...]:
    """Return all installed extensions, in the order of their names."""
    return tuple(plugins.load("extensions", name)() for name in plugins.names("extensions"))


def extra_tables() -> dict[str, ExtraTable]:
    """Return the tables that extensions add, by name."""
    tables = (extension.table() for extension in extensions())
    return {table.name: table for table in tables if table is not None}


@cache
def keyword_arguments() -> dict[str, KeywordArgument]:
    """Return the parameter names that agents may ask for, each with what it gets of the task."""
    return {
        name: argument
        for extension in extensions()
        for name, argument in extension.keyword_arguments().items()
    }
