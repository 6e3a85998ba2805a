"""The primary outcome of a run, found among its metrics and evaluations."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study.model.hypotheses import OutcomeSpec

PRIMARY = "primary_outcome"
_AGGREGATIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
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
    """Return the primary outcome of a run; None if it has none.

    This is the metric `primary_outcome`, which an agent may set itself; else the column of the
    study's first primary outcome, among metrics or evaluations; else the first evaluation.
    """
    own = metrics.get(PRIMARY)
    if own is not None:
        return own
    primary = next((outcome for outcome in outcomes if outcome.primary), None) if outcomes else None
    if primary is not None:
        metric = metrics.get(primary.column)
        scores = [
            row.get("metric_value")
            for row in evaluations
            if row.get("metric_name") == primary.column
        ]
        if scores and (metric is None or primary.source_table == "evaluations"):
            return _aggregate(scores, primary.aggregation)
        if metric is not None:
            return metric
    return evaluations[0].get("metric_value") if evaluations else None


def _aggregate(values: Sequence[Any], aggregation: str) -> Any:
    """Aggregate several values; returns the first one if they are not all numbers."""
    aggregate = _AGGREGATIONS.get(aggregation)
    if aggregate is None or (len(values) == 1 and aggregation != "count"):
        return values[0]
    if aggregation != "count" and any(plain_number(value) is None for value in values):
        return values[0]
    return aggregate(values)
