"""Read what an evaluator returned into rows of evaluations.csv.

Numbers become rows. Other values (a reason, a list) go into the notes of those rows. Values that
can't be read raise TypeError; nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GeneratorType
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study.ledger.packing import UnwritableError, pack
from fairtrial.study.model.object_fields import get_fields

DEFAULT_EVALUATOR = "problem_evaluator"
"""The evaluator's name in tables if it gives none."""
DEFAULT_METRIC = "score"
"""The name of a metric that is returned as a bare number."""
_VALUE_KEYS = ("metric_value", "value")
_TEXT_KEYS = ("evaluator_id", "metric_unit", "aggregation_level")
_ROW_KEYS = frozenset(("run_id", "metric_name", *_VALUE_KEYS, *_TEXT_KEYS, "notes_json"))

Row = Mapping[str, Any]


def read_verdict(verdict: Any) -> list[Row]:
    """Return the rows of a verdict; raises TypeError for a value that can't be read.

    - a number (also numpy's), true or false: one row, `score`
    - a mapping, or an object with fields: a row for each number in it
    - a mapping with `metric_name` or `metric_value`: one row with these columns
    - a list, an array or a generator: the rows of each item
    - None: no rows
    """
    if verdict is None:
        return []
    number = plain_number(verdict)
    if number is not None:
        return [_row(DEFAULT_METRIC, number, {})]
    if isinstance(verdict, Mapping):
        return [_read_row(verdict)] if _is_row(verdict) else _read_mapping(verdict)
    fields = get_fields(verdict)
    if fields is None and getattr(verdict, "ndim", None) and hasattr(verdict, "tolist"):
        verdict = verdict.tolist()
    if fields is None and isinstance(verdict, (list, tuple, GeneratorType)):
        return [row for item in verdict for row in read_verdict(_refuse_none(item))]
    if fields is None:
        fields = _public_attributes(verdict)
    if not fields:
        raise TypeError(
            f"the evaluator returned a value of type {type(verdict).__qualname__}, which can't be "
            "read; return a number, a mapping of numbers, a list of rows, or None for no verdict"
        )
    return _read_mapping(fields)


def _refuse_none(item: Any) -> Any:
    if item is None:
        raise TypeError("the evaluator returned a list with None in it; leave such items out")
    return item


def _public_attributes(value: Any) -> Mapping[str, Any]:
    """Return the public attributes of an object; none of a class, an exception or a callable."""
    if isinstance(value, (type, BaseException)) or callable(value):
        return {}
    attributes = getattr(value, "__dict__", None)
    if attributes is None:
        slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
        attributes = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {name: item for name, item in attributes.items() if not name.startswith("_")}


def _read_mapping(metrics: Mapping[Any, Any]) -> list[Row]:
    """Return a row for each number of a mapping; the other values are notes of all rows."""
    numbers: dict[str, Any] = {}
    remarks: dict[str, Any] = {}
    for key, value in metrics.items():
        number = plain_number(value)
        if number is None or key == "higher_is_better":
            remarks[str(key)] = value
        else:
            numbers[str(key)] = number
    if not numbers and metrics:
        raise TypeError(
            f"the evaluator returned no number: {', '.join(remarks)}; "
            "a verdict in words is a row: {'metric_name': ..., 'metric_value': ...}"
        )
    notes = _writable_notes(remarks)
    return [_row(name, value, notes) for name, value in numbers.items()]


def _writable_notes(remarks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the remarks that can be stored; `left_out` names the others."""
    notes, left_out = {}, []
    for name, value in remarks.items():
        try:
            pack(value)
        except UnwritableError:
            left_out.append(name)
        else:
            notes[name] = value
    return {**notes, "left_out": left_out} if left_out else notes


def _is_row(verdict: Mapping[Any, Any]) -> bool:
    if "metric_name" in verdict or "metric_value" in verdict:
        return True
    return "value" in verdict and _ROW_KEYS.issuperset(verdict)


def _read_row(verdict: Mapping[str, Any]) -> Row:
    """Return a row that was given by its columns; unknown columns go into its notes."""
    named = [name for name in _VALUE_KEYS if name in verdict]
    if not named:
        raise TypeError(f"the evaluator's row '{verdict['metric_name']}' has no metric_value")
    value = verdict[named[0]]
    if value is not None and not isinstance(value, str):
        number = plain_number(value)
        if number is None:
            name = verdict.get("metric_name", DEFAULT_METRIC)
            raise TypeError(
                f"the evaluator's row '{name}' has a metric_value of "
                f"type {type(value).__qualname__}; it must be a number or text"
            )
        value = number
    notes = verdict.get("notes_json")
    if not isinstance(notes, Mapping):
        notes = {} if notes is None else {"note": notes}
    remarks = {str(key): verdict[key] for key in verdict if key not in _ROW_KEYS}
    row = _row(
        str(verdict.get("metric_name", DEFAULT_METRIC)),
        value,
        {**notes, **_writable_notes(remarks)},
    )
    return {
        **row,
        **{name: str(verdict[name]) for name in _TEXT_KEYS if verdict.get(name) is not None},
    }


def _row(name: str, value: Any, notes: Mapping[str, Any]) -> Row:
    return {
        "evaluator_id": DEFAULT_EVALUATOR,
        "metric_name": name,
        "metric_value": value,
        "metric_unit": "unitless",
        "aggregation_level": "run",
        "notes_json": notes,
    }
