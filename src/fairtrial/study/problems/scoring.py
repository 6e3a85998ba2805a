"""What an evaluator said, as rows of evaluations.csv.

Numbers become rows. What stands beside them (a reason, a list) goes into the rows' notes; what
can't be read raises TypeError. Nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GeneratorType
from typing import Any

from fairtrial.core import fields_of, plain_number
from fairtrial.study.ledger.packing import UnwritableError, pack

EVALUATOR = "problem_evaluator"
"""The evaluator's name in tables, where it gives none."""
METRIC = "score"
"""The name of a number that comes without one."""
_VALUES = ("metric_value", "value")
_TEXTS = ("evaluator_id", "metric_unit", "aggregation_level")
_ROW = frozenset(("run_id", "metric_name", *_VALUES, *_TEXTS, "notes_json"))

Row = Mapping[str, Any]


def read_verdict(verdict: Any) -> list[Row]:
    """The rows that a verdict stands for.

    - a number (numpy's too), true or false: one row, `score`
    - a mapping, or an object with fields: a row for each number in it
    - a mapping with `metric_name` or `metric_value`: a row as it stands
    - a list, an array or a generator: the rows of each item
    - None: none
    """
    if verdict is None:
        return []
    number = plain_number(verdict)
    if number is not None:
        return [_row(METRIC, number, {})]
    if isinstance(verdict, Mapping):
        return [_read_row(verdict)] if _is_row(verdict) else _read_mapping(verdict)
    fields = fields_of(verdict)
    if fields is None and getattr(verdict, "ndim", None) and hasattr(verdict, "tolist"):
        verdict = verdict.tolist()
    if fields is None and isinstance(verdict, (list, tuple, GeneratorType)):
        return [row for item in verdict for row in read_verdict(_expect(item))]
    if fields is None:
        fields = _attributes_of(verdict)
    if not fields:
        raise TypeError(
            f"the evaluator returned a value of type {type(verdict).__qualname__}, which can't be "
            "read; return a number, a mapping of numbers, a list of rows, or None for no verdict"
        )
    return _read_mapping(fields)


def _expect(item: Any) -> Any:
    if item is None:
        raise TypeError("the evaluator returned a list with None in it; leave such items out")
    return item


def _attributes_of(value: Any) -> Mapping[str, Any]:
    """The public attributes of an object of somebody's own class."""
    if isinstance(value, (type, BaseException)) or callable(value):
        return {}
    held = getattr(value, "__dict__", None)
    if held is None:
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {name: item for name, item in held.items() if not name.startswith("_")}


def _read_mapping(metrics: Mapping[Any, Any]) -> list[Row]:
    numbers: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, value in metrics.items():
        number = plain_number(value)
        if number is None or key == "higher_is_better":
            others[str(key)] = value
        else:
            numbers[str(key)] = number
    if not numbers and metrics:
        raise TypeError(
            f"the evaluator returned no number: {', '.join(others)}; "
            "a verdict in words is a row: {'metric_name': ..., 'metric_value': ...}"
        )
    notes = _notes(others)
    return [_row(name, value, notes) for name, value in numbers.items()]


def _notes(others: Mapping[str, Any]) -> dict[str, Any]:
    """What a verdict holds beside its numbers, as far as it can be written down."""
    notes, left_out = {}, []
    for name, value in others.items():
        try:
            pack(value)
        except UnwritableError:
            left_out.append(name)
        else:
            notes[name] = value
    return {**notes, "left_out": left_out} if left_out else notes


def _is_row(given: Mapping[Any, Any]) -> bool:
    if "metric_name" in given or "metric_value" in given:
        return True
    return "value" in given and _ROW.issuperset(given)


def _read_row(given: Mapping[str, Any]) -> Row:
    named = [name for name in _VALUES if name in given]
    if not named:
        raise TypeError(f"the evaluator's row '{given['metric_name']}' has no metric_value")
    value = given[named[0]]
    if value is not None and not isinstance(value, str):
        number = plain_number(value)
        if number is None:
            raise TypeError(
                f"the evaluator's row '{given.get('metric_name', METRIC)}' has a metric_value of "
                f"type {type(value).__qualname__}; it must be a number or text"
            )
        value = number
    notes = given.get("notes_json")
    if not isinstance(notes, Mapping):
        notes = {} if notes is None else {"note": notes}
    further = {str(key): given[key] for key in given if key not in _ROW}
    row = _row(str(given.get("metric_name", METRIC)), value, {**notes, **_notes(further)})
    return {**row, **{name: str(given[name]) for name in _TEXTS if given.get(name) is not None}}


def _row(name: str, value: Any, notes: Mapping[str, Any]) -> Row:
    return {
        "evaluator_id": EVALUATOR,
        "metric_name": name,
        "metric_value": value,
        "metric_unit": "unitless",
        "aggregation_level": "run",
        "notes_json": notes,
    }
