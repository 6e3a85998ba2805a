"""What results become: rows of the tables of runs, events and evaluations.

A row is a list of cells in the order of the table's columns; numbers stay numbers, None is no
value. Nothing here depends on when a table is written: the same results give the same rows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study.model.identity import ID_DIGITS
from fairtrial.study.model.runs import FailureKind, RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.tables.canonical import EVENT_COLUMNS, MANIFEST_FILE, RUN_COLUMNS
from fairtrial.study.tables.primary_outcome import PRIMARY, primary_outcome

PREFIX = "metric_"
"""Put before a metric's name where a column of that name is there already."""
IN_KEY_COLUMNS = ("latency_s", "cost_usd", "input_tokens", "output_tokens", PRIMARY)
"""Metrics that have a column of their own among those of every run."""
UNKNOWN = "unknown"
_SCALARS = frozenset({int, float, bool, str, type(None)})
_EVENT_KEYS = frozenset((*EVENT_COLUMNS, "meta"))
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
Row = list[Any]


class MetricColumns:
    """The columns that metrics get, in the order in which the metrics first appear.

    A metric that is named like another column, letter case aside, gets a prefix. One that is no
    scalar has no column; `left_out` counts its values.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.left_out: dict[str, int] = {}
        self._places: dict[str, int | None] = dict.fromkeys(IN_KEY_COLUMNS)
        self._taken = {name.lower() for name in RUN_COLUMNS}

    def cells(self, metrics: Mapping[str, Any]) -> Row:
        """A run's metrics in the columns known so far, new ones included."""
        cells: Row = [None] * len(self.names)
        for name, value in metrics.items():
            if type(value) not in _SCALARS:
                value = _plain_scalar(value)
                if type(value) not in _SCALARS:
                    self.left_out[name] = self.left_out.get(name, 0) + 1
                    continue
            if name not in self._places:
                self._places[name] = self._add(name)
                cells.append(None)
            place = self._places[name]
            if place is not None:
                cells[place] = value
        return cells

    def _add(self, name: str) -> int:
        column = str(name)
        while column.lower() in self._taken:
            column = PREFIX + column
        self._taken.add(column.lower())
        self.names.append(column)
        return len(self.names) - 1


class RunRows:
    """Makes rows of the table of runs; `columns` grows with the metrics that were met."""

    def __init__(self, study: Study) -> None:
        self.metrics = MetricColumns()
        self._study_id = study.study_id
        self._outcomes = study.outcomes

    @property
    def columns(self) -> list[str]:
        """The table's columns, so far."""
        return [*RUN_COLUMNS, *self.metrics.names]

    def row(self, result: RunResult) -> Row:
        """The row of a run; as long as `columns` is right now."""
        spec, metrics = result.run_spec, result.metrics
        assert spec is not None
        told = spec.execution_metadata
        happened = result.status is not RunStatus.SKIPPED
        return [
            self._study_id,
            spec.condition_id,
            result.run_id,
            spec.problem_id,
            as_cell(told.get("problem_family") or UNKNOWN),
            as_cell(told.get("agent_id", spec.agent_spec_ref)),
            as_cell(told.get("agent_kind") or UNKNOWN),
            as_cell(told.get("pattern_name") or UNKNOWN),
            as_cell(told.get("model_name") or UNKNOWN),
            spec.seed,
            spec.replicate,
            str(result.status),
            result.started_at,
            result.ended_at,
            result.latency if happened else None,
            as_cell(metrics.get("input_tokens", 0)) if happened else None,
            as_cell(metrics.get("output_tokens", 0)) if happened else None,
            result.cost if happened else None,
            _as_figure(primary_outcome(metrics, result.evaluator_outputs, self._outcomes)),
            result.trace_refs[0] if result.trace_refs else None,
            MANIFEST_FILE,
            result.error_info,
            None if result.failure_kind is None else str(result.failure_kind),
            result.attempt if happened else None,
            result.executor,
            result.host,
            *self.metrics.cells(metrics),
        ]


def event_rows(study: Study, result: RunResult) -> Iterator[Row]:
    """What a run emitted; one `assistant_output` with its text if it emitted nothing.

    A run that raised or crashed, or never happened, has no output to tell of.
    """
    events: Sequence[Mapping[str, Any]] = result.observations
    if not events:
        has_output = result.outputs or result.failure_kind is FailureKind.REPORTED
        if not has_output and result.status is not RunStatus.SUCCESS:
            return
        events = [_stand_in(result)]
    spec, run_id = result.run_spec, result.run_id
    assert spec is not None
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


def _stand_in(result: RunResult) -> Mapping[str, Any]:
    text = result.outputs.get("text", "") if isinstance(result.outputs, Mapping) else ""
    return {
        "timestamp": result.ended_at or result.started_at,
        "record_id": _short_hash(f'{{"index":0,"run_id":"{result.run_id}"}}'),
        "text": str(text),
        "event_type": "assistant_output",
        "meta": {"auto_generated": True},
    }


def _record_id(run_id: str, index: int, event_type: str) -> str:
    kind = json.dumps(event_type)
    return _short_hash(f'{{"event_type":{kind},"index":{index},"run_id":"{run_id}"}}')


def _short_hash(text: str) -> str:
    return f"evt-{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"


def evaluation_rows(result: RunResult) -> Iterator[Row]:
    """What judged a run's output, and how."""
    for told in result.evaluator_outputs:
        notes = told.get("notes_json", {})
        yield [
            result.run_id,
            as_cell(told.get("evaluator_id", "problem_evaluator")),
            as_cell(told.get("metric_name", "score")),
            _as_figure(told.get("metric_value")),
            as_cell(told.get("metric_unit", "unitless")),
            as_cell(told.get("aggregation_level", "run")),
            notes if isinstance(notes, str) else as_json(notes),
        ]


def as_cell(value: Any) -> Any:
    """A value that a cell can hold: a scalar as it is, anything else as JSON."""
    if type(value) in _SCALARS:
        return value
    value = _plain_scalar(value)
    return value if type(value) in _SCALARS else as_json(value)


def _as_figure(value: Any) -> Any:
    """A cell of a column of numbers: yes and no are 1 and 0, lest all of it be read as text."""
    cell = as_cell(value)
    return int(cell) if isinstance(cell, bool) else cell


def _plain_scalar(value: Any) -> Any:
    """Numbers of other libraries as Python's, subclasses of text as text."""
    if isinstance(value, str):
        return str.__str__(value)
    number = plain_number(value)
    return value if number is None else number


def as_json(value: Any) -> str:
    """Compact JSON with sorted keys, whatever a result holds; only what JSON has.

    Numbers that are not finite become the texts nan, inf and -inf; bytes become base64.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError):
        return _encode(_mild(value))


def _mild(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _mild(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_mild(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if hasattr(value, "tolist"):  # numpy's arrays
        return _mild(value.tolist())
    value = _plain_scalar(value)
    return value if type(value) in _SCALARS else str(value)
