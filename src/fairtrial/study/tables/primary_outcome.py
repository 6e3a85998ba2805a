"""The one number that a run is judged by."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study.model.hypotheses import OutcomeSpec

PRIMARY = "primary_outcome"
_COMBINE: dict[str, Callable[[Sequence[Any]], Any]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "sum": sum,
    "min": min,
    "max": max,
    "last": lambda values: values[-1],
    "count": len,
}


def primary_outcome(
    metrics: Mapping[str, Any],
    evaluations: Sequence[Mapping[str, Any]],
    outcomes: Sequence[OutcomeSpec],
) -> Any:
    """A run's primary outcome; None if it has none.

    The metric of that name, which an agent may set itself; else the column of the study's first
    primary outcome, among metrics or evaluations; else the first evaluation.
    """
    own = metrics.get(PRIMARY)
    if own is not None:
        return own
    first = next((outcome for outcome in outcomes if outcome.primary), None)
    if first is not None:
        measured = metrics.get(first.column)
        judged = [
            row.get("metric_value") for row in evaluations if row.get("metric_name") == first.column
        ]
        if judged and (measured is None or first.source_table == "evaluations"):
            return _combine(judged, first.aggregation)
        if measured is not None:
            return measured
    return evaluations[0].get("metric_value") if evaluations else None


def _combine(values: Sequence[Any], how: str) -> Any:
    """One value of several, the way the outcome says; the first of values that aren't numbers."""
    combine = _COMBINE.get(how)
    if combine is None or (len(values) == 1 and how != "count"):
        return values[0]
    if how != "count" and any(plain_number(value) is None for value in values):
        return values[0]
    return combine(values)
