"""Rows of the tables of runs, events and evaluations, made from results.

A row is a list of cells in the order of the table's columns; numbers stay numbers, and None means
no value. Rows do not depend on when a table is written: the same results give the same rows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study.design.agent_options import select_assignments
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.identity import ID_DIGITS
from fairtrial.study.model.runs import FailureKind, RunResult, RunSpec, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.tables.canonical import (
    EVENT_COLUMNS,
    MANIFEST_FILE,
    RUN_COLUMNS,
    factor_columns,
)
from fairtrial.study.tables.primary_outcome import PRIMARY, primary_outcome

PREFIX = "metric_"
"""Prefix of a metric's column if its name is already taken by another column."""
KEY_METRICS = ("latency_s", "cost_usd", "input_tokens", "output_tokens", PRIMARY)
"""Metrics that have one of the fixed columns of the table of runs."""
MAX_KEPT = 1_000
"""How many sets of metrics are remembered."""
UNKNOWN = "unknown"
SCALARS = frozenset({int, float, bool, str, type(None)})
"""The types that a cell can hold."""
_EVENT_KEYS = frozenset((*EVENT_COLUMNS, "meta"))
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_AUTO_GENERATED = _encode({"auto_generated": True})
Row = list[Any]


class MetricColumns:
    """The columns of metrics, in the order in which the metrics first appear.

    A metric whose name equals another column's, ignoring case, gets a prefix. Metrics that are not
    scalars have no column.

    names: the columns so far
    left_out: how many values each metric without a column had
    """

    def __init__(self, fixed: Sequence[str] = RUN_COLUMNS) -> None:
        """Start without columns of metrics.

        fixed: the columns before them
        """
        self.names: list[str] = []
        self.left_out: dict[str, int] = {}
        self._indices: dict[str, int | None] = dict.fromkeys(KEY_METRICS)
        self._taken = {name.lower() for name in fixed}
        self._kept: dict[tuple[str, ...], tuple[str, ...]] = {}

    def split(self, metrics: Mapping[str, Any]) -> tuple[tuple[str, ...], Row, Sequence[str]]:
        """Return the names and values of the metrics that get a column, and the other names."""
        names = tuple(metrics)
        if SCALARS.issuperset(map(type, metrics.values())):
            kept = self._kept.get(names)
            if kept is None:
                kept = tuple(name for name in names if name not in KEY_METRICS)
                if len(self._kept) < MAX_KEPT:
                    self._kept[names] = kept
            return kept, [metrics[name] for name in kept], ()
        cells = {name: _plain_scalar(value) for name, value in metrics.items()}
        others = [name for name, value in cells.items() if type(value) not in SCALARS]
        for name in (*KEY_METRICS, *others):
            cells.pop(name, None)
        return tuple(cells), list(cells.values()), others

    def add(self, names: Sequence[str]) -> list[int]:
        """Add columns for the metrics that have none yet; returns the indices of all of them."""
        for name in names:
            if name not in self._indices:
                self._indices[name] = self._add_column(name)
        return [index for name in names if (index := self._indices[name]) is not None]

    def cells(self, metrics: Mapping[str, Any]) -> Row:
        """Return a run's metrics in the columns known so far; adds columns for new metrics."""
        cells: Row = [None] * len(self.names)
        for name, value in metrics.items():
            if type(value) not in SCALARS:
                value = _plain_scalar(value)
                if type(value) not in SCALARS:
                    self.left_out[name] = self.left_out.get(name, 0) + 1
                    continue
            if name not in self._indices:
                self._indices[name] = self._add_column(name)
                cells.append(None)
            index = self._indices[name]
            if index is not None:
                cells[index] = value
        return cells

    def _add_column(self, name: str) -> int:
        column = str(name)
        while column.lower() in self._taken:
            column = PREFIX + column
        self._taken.add(column.lower())
        self.names.append(column)
        return len(self.names) - 1


class RunRows:
    """Makes rows of the table of runs; new metrics add columns.

    fixed: the columns that every row has: the canonical ones, and those of factors
    """

    def __init__(self, study: Study, conditions: Sequence[Condition] = ()) -> None:
        self._study = study
        self._factors = factor_columns(study, conditions)
        self.fixed = (*RUN_COLUMNS, *self._factors.values())
        self.metrics = MetricColumns(self.fixed)
        self._conditions = {condition.condition_id: condition for condition in conditions}
        self._kept: dict[tuple[str, str | None], Row] = {}

    @property
    def columns(self) -> list[str]:
        """The columns of the table so far."""
        return [*self.fixed, *self.metrics.names]

    def row(self, result: RunResult) -> Row:
        """Return the row of a run, with a cell for each of the columns so far."""
        return [*self.fixed_cells(result), *self.metrics.cells(result.metrics)]

    def fixed_cells(self, result: RunResult) -> Row:
        """Return the cells of a run that are not those of its metrics."""
        spec, metrics = result.run_spec, result.metrics
        assert spec is not None
        find = spec.execution_metadata.get
        was_run = result.status is not RunStatus.SKIPPED
        about = [
            find("problem_family") or UNKNOWN,
            find("agent_id", spec.agent_spec_ref),
            find("agent_kind") or UNKNOWN,
            find("pattern_name") or UNKNOWN,
            find("model_name") or UNKNOWN,
            metrics.get("input_tokens", 0) if was_run else None,
            metrics.get("output_tokens", 0) if was_run else None,
        ]
        if not SCALARS.issuperset(map(type, about)):
            about = list(map(as_cell, about))
        failure = result.failure_kind
        return [
            self._study.study_id,
            spec.condition_id,
            result.run_id,
            spec.problem_id,
            *about[:5],
            spec.seed,
            spec.replicate,
            result.status.value,
            result.started_at,
            result.ended_at,
            result.latency if was_run else None,
            *about[5:],
            result.cost if was_run else None,
            _as_number(primary_outcome(metrics, result.evaluator_outputs, self._study.outcomes)),
            result.trace_refs[0] if result.trace_refs else None,
            MANIFEST_FILE,
            result.error_info,
            None if failure is None else failure.value,
            result.attempt if was_run else None,
            result.executor,
            result.host,
            *self._factor_cells(spec),
        ]

    def _factor_cells(self, spec: RunSpec) -> Row:
        """Return the values of the factors; options of other agents than the run's are blank."""
        key = spec.condition_id, spec.agent_spec_ref
        cells = self._kept.get(key)
        if cells is None:
            condition = self._conditions.get(spec.condition_id)
            assigned = {} if condition is None else condition.factor_assignments
            own = select_assignments(self._study, spec.agent_spec_ref, assigned)
            cells = [as_cell(own.get(name)) for name in self._factors]
            if len(self._kept) < MAX_KEPT:
                self._kept[key] = cells
        return cells


def event_rows(study: Study, result: RunResult) -> list[Row]:
    """Return a row for each event that a run emitted.

    A run that emitted no events gets one `assistant_output` event with the text of its output;
    a run that raised, crashed or was skipped has none.
    """
    spec = result.run_spec
    assert spec is not None
    if not result.observations:
        has_output = result.outputs or result.failure_kind is FailureKind.REPORTED
        if has_output or result.status is RunStatus.SUCCESS:
            return [_output_row(study, spec, result)]
        return []
    return list(_emitted_rows(study, spec, result))


def _emitted_rows(study: Study, spec: RunSpec, result: RunResult) -> Iterator[Row]:
    events, run_id = result.observations, result.run_id
    for index, event in enumerate(events):
        meta = event.get("meta", event.get("meta_json"))
        if not event.keys() <= _EVENT_KEYS:
            extra = {key: value for key, value in event.items() if key not in _EVENT_KEYS}
            meta = {**extra, **meta} if isinstance(meta, Mapping) else {**extra, "meta": meta}
        event_type = str(event.get("event_type", "event"))
        yield [
            as_cell(event.get("timestamp") or result.ended_at),
            as_cell(event.get("record_id")) or _record_id(run_id, index, event_type),
            as_cell(event.get("text", "")),
            as_cell(event.get("session_id") or run_id),
            as_cell(event.get("actor_id") or "agent"),
            event_type,
            meta if isinstance(meta, str) else as_json(meta or {}),
            str(event.get("level") or "step"),
            study.study_id,
            run_id,
            spec.condition_id,
            as_cell(event.get("trial_id")),
            as_cell(event.get("step_id")),
            as_cell(event.get("tool_name")),
            as_cell(event.get("evaluation_id")),
        ]


def _output_row(study: Study, spec: RunSpec, result: RunResult) -> Row:
    """Return the event that stands for the output of a run without events."""
    text = result.outputs.get("text", "") if isinstance(result.outputs, Mapping) else ""
    run_id = result.run_id
    return [
        result.ended_at or result.started_at,
        _short_hash(f'{{"index":0,"run_id":"{run_id}"}}'),
        str(text),
        run_id,
        "agent",
        "assistant_output",
        _AUTO_GENERATED,
        "step",
        study.study_id,
        run_id,
        spec.condition_id,
        None,
        None,
        None,
        None,
    ]


def _record_id(run_id: str, index: int, event_type: str) -> str:
    kind = json.dumps(event_type)
    return _short_hash(f'{{"event_type":{kind},"index":{index},"run_id":"{run_id}"}}')


def _short_hash(text: str) -> str:
    return f"evt-{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"


def evaluation_rows(result: RunResult) -> list[Row]:
    """Return a row for each evaluation of a run's output."""
    rows = []
    for evaluation in result.evaluator_outputs:
        find, notes = evaluation.get, evaluation.get("notes_json", {})
        value = find("metric_value")
        row = [
            result.run_id,
            find("evaluator_id", "problem_evaluator"),
            find("metric_name", "score"),
            value if type(value) is float else _as_number(value),
            find("metric_unit", "unitless"),
            find("aggregation_level", "run"),
            notes if isinstance(notes, str) else as_json(notes),
        ]
        rows.append(row if SCALARS.issuperset(map(type, row)) else list(map(as_cell, row)))
    return rows


def as_cell(value: Any) -> Any:
    """Convert a value to a scalar that a cell can hold; anything else becomes JSON text."""
    if type(value) in SCALARS:
        return value
    value = _plain_scalar(value)
    return value if type(value) in SCALARS else as_json(value)


def _as_number(value: Any) -> Any:
    """Convert a value to a cell of a numeric column; booleans become 1 and 0.

    A boolean among numbers would make readers treat the whole column as text.
    """
    cell = as_cell(value)
    return int(cell) if isinstance(cell, bool) else cell


def _plain_scalar(value: Any) -> Any:
    """Convert numbers of other libraries and subclasses of str to Python's own types."""
    if isinstance(value, str):
        return str.__str__(value)
    number = plain_number(value)
    return value if number is None else number


def as_json(value: Any) -> str:
    """Encode any value as compact, standard JSON with sorted keys.

    Numbers that are not finite become the texts nan, inf and -inf, bytes become base64, and other
    objects become their `str`.
    """
    if not value and type(value) is dict:
        return "{}"
    try:
        return _encode(value)
    except (TypeError, ValueError):
        return _encode(_to_json_data(value))


def _to_json_data(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_json_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_to_json_data(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if hasattr(value, "tolist"):  # numpy arrays
        return _to_json_data(value.tolist())
    value = _plain_scalar(value)
    return value if type(value) in SCALARS else str(value)
