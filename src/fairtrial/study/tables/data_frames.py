"""Tables as data frames of pandas, with a type for each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairtrial.core import LabError

if TYPE_CHECKING:
    import pandas

_TIMES = ("start_time", "end_time", "timestamp")
_FLOATS = ("latency_s", "cost_usd")


def make_frame(columns: Mapping[str, Sequence[Any]]) -> pandas.DataFrame:
    """Return a data frame of columns; raises `LabError` if pandas is not installed.

    Whole numbers are `Int64`, booleans `boolean` and texts `string`, all of which know missing
    values; other numbers are `float64`, times `datetime64` in UTC. A column of mixed types keeps
    its values as they are.
    """
    try:
        import pandas as pd
    except ImportError:
        hint = "`pip install 'fairtrial[pandas]'`; or read `results.runs.columns()`"
        raise LabError(f"pandas is not installed, and data frames need it: {hint}") from None
    series: dict[str, Any] = {}
    for name, values in columns.items():
        if name in _TIMES:
            times = pd.Series(list(values), dtype="object")
            series[name] = pd.to_datetime(times, utc=True, format="ISO8601", errors="coerce")
        else:
            series[name] = pd.Series(list(values), dtype=_column_type(name, values))
    return pd.DataFrame(series)


def _column_type(name: str, values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if name in _FLOATS and kinds <= {int, float}:
        return "float64"
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "Int64" if all(abs(value) < 2**63 for value in values if value is not None) else "O"
    if kinds and kinds <= {int, float}:
        return "float64"
    return "string" if kinds == {str} else "object"
