"""The table of candidates: what optimizers tried, its origin and its verdict.

It is made of events of type `candidate`, whose `meta` has the names of the columns. A study without
such events has no such table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study import RunResult, extensions, tables

EVENT_TYPE = "candidate"
CANDIDATES = "candidates"
COLUMNS = {
    "run_id": extensions.TableColumn(str, "text", "the run, as in runs.csv"),
    "candidate_id": extensions.TableColumn(str, "text", "the candidate; its own within the run"),
    "parent_id": extensions.TableColumn(str, "text", "the candidate that it was made from, if any"),
    "lineage": extensions.TableColumn(int, "whole number", "which first proposal it descends from"),
    "step": extensions.TableColumn(
        int, "whole number", "how many candidates that lineage had before"
    ),
    "kind": extensions.TableColumn(
        str, "text", "the kind of request: initial, repair, refine, adapt"
    ),
    "name": extensions.TableColumn(str, "text", "its name"),
    "digest": extensions.TableColumn(
        str, "text", "of its normalized change; the same for equal candidates"
    ),
    "verdict": extensions.TableColumn(
        str, "text", "passed, rejected, faster, slower, equivalent, inconclusive"
    ),
    "basis": extensions.TableColumn(str, "text", "what the verdict rests on"),
    "reason": extensions.TableColumn(str, "text", "why it was rejected"),
    "ratio": extensions.TableColumn(
        float, "number", "how many times as fast as the base it is; blank if it was not timed"
    ),
    "low": extensions.TableColumn(float, "number", "the lower bound of that"),
    "high": extensions.TableColumn(float, "number", "the upper bound of that"),
    "sessions": extensions.TableColumn(
        int, "whole number", "the timing sessions that this rests on"
    ),
    "adopt": extensions.TableColumn(bool, "yes or no", "whether it is worth taking"),
    "duplicate_of": extensions.TableColumn(
        str, "text", "the earlier candidate (or base) that it equals"
    ),
    "tokens": extensions.TableColumn(int, "whole number", "what was used to make it"),
    "cost_usd": extensions.TableColumn(
        float, "US dollars", "what that cost; blank if it isn't known"
    ),
    "diff_bytes": extensions.TableColumn(int, "bytes", "the length of its diff"),
    "note": extensions.TableColumn(str, "text", "what its maker says of it"),
}
_OLDER_NAMES = {"lineage": "line"}
"""Names of columns in events of the version before."""
_TYPES = {name: column.type for name, column in COLUMNS.items() if name != "run_id"}
_INTEGER_LIMIT = 2**63


class CandidatesTable(extensions.ExtraTable):
    """The table of candidates, as an extension of a study's tables."""

    name = CANDIDATES
    columns = COLUMNS

    def rows(self, result: RunResult) -> Iterator[tables.Row]:
        """Yield the candidates of a run."""
        return candidate_rows(result)


def candidate_rows(result: RunResult) -> Iterator[tables.Row]:
    """Yield the candidates of a run, one row each, in the order of their first events.

    A later event of the same `candidate_id` adds to the earlier one and overrides it. A value that
    doesn't fit its column is left blank; the table of events has it.
    """
    candidates: dict[str, dict[str, Any]] = {}
    for event in result.observations:
        meta = event.get("meta")
        if event.get("event_type") != EVENT_TYPE or not isinstance(meta, Mapping):
            continue
        cells = {name: fit(_get(meta, name), kind) for name, kind in _TYPES.items()}
        if not cells["candidate_id"]:
            continue  # an event of the same type with another meaning
        text = event.get("text")
        if cells["diff_bytes"] is None and isinstance(text, str) and text:
            cells["diff_bytes"] = len(text.encode("utf-8", "surrogatepass"))
        row = candidates.setdefault(cells["candidate_id"], dict.fromkeys(_TYPES))
        row.update({name: cell for name, cell in cells.items() if cell is not None})
    for cells in candidates.values():
        yield [result.run_id, *cells.values()]


def _get(meta: Mapping[str, Any], name: str) -> Any:
    return meta.get(name, meta.get(_OLDER_NAMES.get(name, name)))


def fit(value: Any, kind: type[Any]) -> Any:
    """Return a value as a cell of a column of that type; None if it doesn't fit."""
    if value is None:
        return None
    if kind is str:
        cell = tables.as_cell(value)
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
        return whole if whole == number and -_INTEGER_LIMIT <= whole < _INTEGER_LIMIT else None
    except (OverflowError, ValueError):  # NaN, an infinity, or more than a float holds
        return float(number) if kind is float and isinstance(number, float) else None
