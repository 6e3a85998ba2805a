"""Extensions of studies: extra tables, report notes, adapted problems, other file formats.

An extension is a class registered as an entry point of the group ``fairtrial.extensions``. The
study package knows nothing about code candidates or other study formats: the optimizer adds its
table of candidates, and `fairtrial.compat` its legacy keys, through extensions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from fairtrial.core import plugins

if TYPE_CHECKING:
    from fairtrial.core import FieldPath, Mistake
    from fairtrial.study.model.problems import ProblemBinding
    from fairtrial.study.model.runs import RunResult
    from fairtrial.study.model.study import AgentBinding, Study
    from fairtrial.study.tables.results import Results

Cells = list[Any]
KeywordArgument = Callable[[Any], Any]
"""A function that takes a `fairtrial.Task` and returns the value of a keyword argument."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of an extra table.

    type: bool, int, float or str
    unit: its type or unit, as shown in the codebook
    meaning: its description, as shown in the codebook
    """

    type: type[Any]
    unit: str
    meaning: str


class ExtraTable:
    """A table beside the canonical ones; written only if a run has rows in it.

    Its first column is `run_id`; its second column distinguishes the rows of one run.

    name: the table's name, and its file's name without suffix
    columns: its columns by name, in order
    is_sound: whether its rows are valid by construction, so that they are not read back when they
        are written
    """

    name: str = ""
    is_sound: bool = False
    columns: Mapping[str, TableColumn] = {}

    def rows(self, result: RunResult) -> Iterable[Cells]:
        """Return the rows of one run, a cell for each column."""
        return ()


class ReportNotes:
    """Collects notes for the report from all results; by default there are none."""

    def add(self, group: Hashable | None, result: RunResult) -> None:
        """Read one result.

        group: a key that is shared by the replicates of an agent on a problem under a condition;
            None if the result's condition is not part of the study
        """

    def result_lines(self) -> Sequence[str]:
        """Return lines for the report's section on how runs ended."""
        return ()

    def deviations(self) -> Sequence[str]:
        """Return lines for the report's section on deviations from the plan."""
        return ()

    def remarks(self) -> Sequence[str]:
        """Return sentences about limits of the tests' validity."""
        return ()


@dataclass(frozen=True, slots=True)
class PagePart:
    """A section of a study's page.

    name: its name in the page's addresses
    title: its heading
    data: what it shows: plain data of limited size, with harmless texts
    """

    name: str
    title: str
    data: Mapping[str, Any]


class StudyExtension:
    """Base class of extensions; each hook does nothing by default."""

    def adapt_problem(self, name: str, value: Any) -> Any:
        """Return the problem for a Python object bound to a name, or None to leave it to others."""
        return None

    def find_agent(self, name: str) -> AgentBinding | None:
        """Return the binding of an agent that a study names, but binds to nothing; None if the
        extension doesn't know it."""
        return None

    def find_problem(self, name: str) -> ProblemBinding | None:
        """Return the binding of a problem that a study names, but binds to nothing; None if the
        extension doesn't know it."""
        return None

    def modernize(
        self, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        """Return the data of a study with keys of other formats replaced.

        Mistakes in these keys are appended to `mistakes`; their paths start with `path`.
        """
        return data

    def keyword_arguments(self) -> Mapping[str, KeywordArgument]:
        """Return further parameter names for agents, each with a function that gives its value."""
        return {}

    def table(self) -> ExtraTable | None:
        """Return the extra table, if the extension has one."""
        return None

    def is_used_by(self, study: Study) -> bool:
        """Return whether runs of a study are likely to have rows in the extra table."""
        return False

    def report_notes(self) -> ReportNotes:
        """Return a new collector of notes for one report."""
        return ReportNotes()

    def page_part(self, results: Results) -> PagePart | None:
        """Return a section for the page of a study; None if the extension has nothing to show."""
        return None

    def page_script(self) -> str:
        """Return JavaScript that sets ``partViews[name]`` to a function from the section's data to
        elements; it shares the scope of the page's scripts."""
        return ""


@cache
def extensions() -> tuple[StudyExtension, ...]:
    """Return the installed extensions, sorted by name."""
    return tuple(plugins.load("extensions", name)() for name in plugins.names("extensions"))


def extra_tables() -> dict[str, ExtraTable]:
    """Return the tables of all extensions, by name."""
    tables = (extension.table() for extension in extensions())
    return {table.name: table for table in tables if table is not None}


@cache
def keyword_arguments() -> dict[str, KeywordArgument]:
    """Return the keyword arguments of all extensions, by name."""
    return {
        name: argument
        for extension in extensions()
        for name, argument in extension.keyword_arguments().items()
    }
