"""The table of candidates: what optimisers tried, where it came from and what it came to.

Made of events of type `candidate`; their `meta` has the names of the columns. Optional: a study
whose runs tell of no candidate has no such table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairtrial.core.foreign import plain_number
from fairtrial.study.model.runs import RunResult
from fairtrial.study.tables.canonical import CANDIDATE_COLUMNS
from fairtrial.study.tables.rows import Row, as_cell

EVENT_TYPE = "candidate"
_TOLD = {name: kind for name, kind in CANDIDATE_COLUMNS.items() if name != "run_id"}
_MOST = 2**63


def candidate_rows(result: RunResult) -> Iterator[Row]:
    """The candidates of a run, one row each, in the order in which it first told of them.

    A later event of the same `candidate_id` adds to the earlier one, and overrules it. A value that
    doesn't fit its column is left blank: the event, which is in its own table, has it.
    """
    found: dict[str, dict[str, Any]] = {}
    for event in result.observations:
        meta = event.get("meta")
        if event.get("event_type") != EVENT_TYPE or not isinstance(meta, Mapping):
            continue
        cells = {name: fit(meta.get(name), kind) for name, kind in _TOLD.items()}
        if not cells["candidate_id"]:
            continue  # somebody's own sort of event
        text = event.get("text")
        if cells["diff_bytes"] is None and isinstance(text, str) and text:
            cells["diff_bytes"] = len(text.encode("utf-8", "surrogatepass"))
        known = found.setdefault(cells["candidate_id"], dict.fromkeys(_TOLD))
        known.update({name: cell for name, cell in cells.items() if cell is not None})
    for cells in found.values():
        yield [result.run_id, *cells.values()]


def fit(value: Any, kind: type[Any]) -> Any:
    """A value as a cell of a column of that type; None where it is no such thing."""
    if value is None:
        return None
    if kind is str:
        cell = as_cell(value)
        return cell if isinstance(cell, str) else str(cell)
    number = plain_number(value)
    if kind is bool:
        return number if isinstance(number, bool) else None
    if number is None or isinstance(number, bool):
        return None
    try:
        whole = int(number)
        if kind is float:
            return float(number)
        return whole if whole == number and -_MOST <= whole < _MOST else None
    except (OverflowError, ValueError):  # NaN, an infinity, or more than a float holds
        return float(number) if kind is float and isinstance(number, float) else None


def misfit(row: list[str]) -> str | None:
    """The first column of a row, as it is read from a file, that holds what it can't; else None."""
    for (name, kind), cell in zip(CANDIDATE_COLUMNS.items(), row, strict=True):
        if kind is bool and cell not in ("", "True", "False"):
            return name
        if kind in (int, float) and cell:
            try:
                kind(cell)
            except ValueError:
                return name
    return None
