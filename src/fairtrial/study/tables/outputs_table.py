"""The table of outputs: everything that agents returned and that has no column in other tables.

One row for each part of a run's output, of its metrics that are no scalars, of its metadata and of
its traces. A value and its type together are what the agent returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.study.extensions import ExtraTable, StudyExtension, TableColumn
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.tables.rows import SCALARS, Row, as_cell, as_json

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

    def rows(self, result: RunResult) -> list[Row]:
        """Return a row for each part of what the agent returned."""
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


def output_rows(result: RunResult) -> list[Row]:
    """Return a row for each part of what a run's agent returned."""
    rows: list[Row] = []
    outputs: Any = result.outputs
    if type(outputs) is not dict and not isinstance(outputs, Mapping):  # of Python objects
        outputs = {"value": outputs}
    _add_rows(rows, result.run_id, "output", outputs)
    metrics = result.metrics
    if not SCALARS.issuperset(map(type, metrics.values())):
        rest = {name: value for name, value in metrics.items() if typed_text(value)[0] == "json"}
        _add_rows(rows, result.run_id, "metric", rest)
    metadata = result.run_spec.execution_metadata if result.run_spec is not None else {}
    if own := metadata.get("agent_metadata"):
        _add_rows(rows, result.run_id, "metadata", own)
    if result.trace_refs:
        _add_rows(rows, result.run_id, "trace", dict(enumerate(result.trace_refs)))
    return rows


def _add_rows(rows: list[Row], run_id: str, part: str, values: Mapping[Any, Any]) -> None:
    """Add a row for each value of a part; names that are the same as text get an apostrophe."""
    fields: set[str] | None = None if all(type(name) is str for name in values) else set()
    for key, value in values.items():
        name = str(key)
        field = f"{part}.{name}"
        if fields is not None:  # names such as 1 and "1"
            while field in fields:
                field += "'"
            fields.add(field)
        if type(value) is str:
            rows.append([run_id, field, part, name, "text", value])
        else:
            rows.append([run_id, field, part, name, *typed_text(value)])


def typed_text(value: Any) -> tuple[str, str]:
    """Return the type of a value, and the text that stands for it."""
    kind = type(value)
    if kind is str:
        return "text", value
    if kind is float or kind is int:
        return "number", repr(value)
    cell = value if value is None else as_cell(value)
    if cell is None:
        return "null", "null"
    if isinstance(cell, bool):
        return "boolean", as_json(cell)
    if isinstance(cell, (int, float)):
        return "number", repr(cell)
    return ("text", cell) if isinstance(value, str) else ("json", cell)
