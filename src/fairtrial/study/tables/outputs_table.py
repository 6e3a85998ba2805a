"""The table of outputs: everything that agents returned and that has no column in other tables.

One row for each part of a run's output, of its metrics that are no scalars, of its metadata and of
its traces. A value and its type together are what the agent returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.study.extensions import ExtraTable, StudyExtension, TableColumn
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.tables.rows import Row, as_cell, as_json

OUTPUTS = "outputs"
COLUMNS = {
    "run_id": TableColumn(str, "text", "the run, as in runs.csv"),
    "field": TableColumn(str, "text", "part and name, joined by a dot; its own within the run"),
    "part": TableColumn(str, "text", "what it is a part of: output, metric, metadata or trace"),
    "name": TableColumn(str, "text", "its name there; for a trace its number, from 0"),
    "type": TableColumn(str, "text", "its type: text, number, boolean, null or json"),
    "value": TableColumn(str, "text", "its value: text as it is, anything else as JSON"),
}


class OutputsTable(ExtraTable):
    """The table of outputs."""

    name = OUTPUTS
    is_sound = True
    columns = COLUMNS

    def rows(self, result: RunResult) -> Iterator[Row]:
        """Yield a row for each part of what the agent returned."""
        return output_rows(result)


@dataclass(frozen=True, slots=True)
class OutputsExtension(StudyExtension):
    """Adds the table of outputs to every study."""

    def table(self) -> OutputsTable:
        """Return the table of outputs."""
        return _TABLE

    def is_used_by(self, study: Study) -> bool:
        """Return True: every agent returns something."""
        return True


_TABLE = OutputsTable()


def output_rows(result: RunResult) -> Iterator[Row]:
    """Yield a row for each part of what a run's agent returned."""
    seen: set[str] = set()
    for part, name, value in _parts(result):
        field = f"{part}.{name}"
        while field in seen:  # names such as 1 and "1", which are the same as text
            field += "'"
        seen.add(field)
        yield [result.run_id, field, part, name, *typed_text(value)]


def _parts(result: RunResult) -> Iterator[tuple[str, str, Any]]:
    outputs: Any = result.outputs
    if not isinstance(outputs, Mapping):  # of results that are Python objects
        outputs = {"value": outputs}
    for name, value in outputs.items():
        yield "output", str(name), value
    for name, value in result.metrics.items():
        if typed_text(value)[0] == "json":
            yield "metric", str(name), value
    metadata = result.run_spec.execution_metadata if result.run_spec is not None else {}
    for name, value in (metadata.get("agent_metadata") or {}).items():
        yield "metadata", str(name), value
    for number, value in enumerate(result.trace_refs):
        yield "trace", str(number), value


def typed_text(value: Any) -> tuple[str, str]:
    """Return the type of a value, and the text that stands for it."""
    if type(value) is str:
        return "text", value
    cell = value if value is None else as_cell(value)
    if cell is None:
        return "null", "null"
    if isinstance(cell, bool):
        return "boolean", as_json(cell)
    if isinstance(cell, (int, float)):
        return "number", repr(cell)
    return ("text", cell) if isinstance(value, str) else ("json", cell)
