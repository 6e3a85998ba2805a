"""Reading of outcomes: one number per run, found in its metrics, evaluations or events."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fairtrial.core import did_you_mean, plain_number
from fairtrial.study.design.rows import LARGEST_NUMBER
from fairtrial.study.hypotheses.outcome_types import BINARY_TYPES, explain_unreadable
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.tables.primary_outcome import PRIMARY, primary_outcome

MAX_CANDIDATE_NAMES = 200
"""Number of names kept to suggest one for an outcome without values."""
TIME_ENDINGS = ("_s", "_ms", "_us", "_ns", "_seconds")
TIME_UNITS = frozenset(
    ("s", "ms", "us", "µs", "ns", "min", "h", "second", "seconds", "milliseconds", "times")
)
"""Units of times, and of the speed-ups of code problems."""
_AGGREGATIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "sum": math.fsum,
    "min": min,
    "max": max,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "count": len,
}


class OutcomeReader:
    """Reads the value of an outcome from one result after the other.

    spec: the outcome
    reason: why it can't be read from any result; empty if it can
    unreadable: values that are not numbers, and how often each occurred
    from_evaluations: number of values of the table of runs that were found in evaluations
    value_count: number of values
    candidate_names: names that the runs have in the outcome's table, while there is no value
    is_of_machine: whether values are times, or ratios of times, and so depend on the machine: by
        the outcome's name or the unit of its evaluations
    """

    def __init__(self, study: Study, spec: OutcomeSpec) -> None:
        self.spec = spec
        self.reason = explain_unreadable(study, spec)
        self.unreadable: Counter[str] = Counter()
        self.from_evaluations = self.value_count = 0
        self.candidate_names: dict[str, None] = {}
        self.is_of_machine = spec.column.endswith(TIME_ENDINGS)
        self._table = spec.source_table.strip().lower()
        self._aggregation = spec.aggregation.strip().lower()
        self._outcomes = study.outcomes
        self._is_binary = spec.expected_type.strip().lower() in BINARY_TYPES

    @property
    def is_of_runs(self) -> bool:
        """Whether its values come from runs, not from their conditions."""
        return self._table != "conditions"

    def read(self, result: RunResult, condition: Condition) -> float:
        """Return the value of a successful run; NaN if it has none."""
        if self.reason:
            return math.nan
        converted = [self._to_number(value) for value in self._find_values(result, condition)]
        numbers = [number for number in converted if number is not None]
        self.value_count += len(numbers)
        if not self.is_of_machine and result.evaluator_outputs:
            self.is_of_machine = self._has_time_unit(result.evaluator_outputs)
        if not self.value_count and len(self.candidate_names) < MAX_CANDIDATE_NAMES:
            names = map(str, _find_names(result, self._table))
            self.candidate_names.update(dict.fromkeys(names))
        if self._aggregation == "count" and self._table != "events":
            return float(len(numbers))
        return float(_AGGREGATIONS[self._aggregation](numbers)) if numbers else math.nan

    def _has_time_unit(self, evaluations: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the evaluations that have its values are times."""
        if self.spec.column == PRIMARY:  # of a study that declares no outcomes: the first one
            rows = evaluations[:1]
        else:
            rows = [row for row in evaluations if row.get("metric_name") == self.spec.column]
        return any(str(row.get("metric_unit")).lower() in TIME_UNITS for row in rows)

    def explain_missing(self) -> str:
        """Return why no run had a value, with a suggestion if possible."""
        name, column = self.spec.name, self.spec.column
        if self.unreadable:
            examples = ", ".join(text for text, _ in self.unreadable.most_common(3))
            return f"the values of '{name}' are not numbers: {examples}"
        source = f"{self.spec.source_table}.{column}"
        hint = did_you_mean(column, self.candidate_names)
        return f"no run has a value for '{name}' ({source}); {hint}"

    def _find_values(self, result: RunResult, condition: Condition) -> Iterator[Any]:
        if self._table == "runs":
            yield from self._find_in_runs(result)
        elif self._table == "evaluations":
            yield from find_evaluations(result, self.spec.column)
        elif self._table == "events":
            yield from self._find_in_events(result)
        else:
            yield _find_assignment(condition, self.spec.column)

    def _find_in_runs(self, result: RunResult) -> Iterator[Any]:
        column = self.spec.column
        if column == PRIMARY:
            yield primary_outcome(result.metrics, result.evaluator_outputs, self._outcomes)
        elif column in result.metrics:
            yield result.metrics[column]
        elif column == "latency_s":
            yield result.latency
        elif column == "cost_usd":
            yield result.cost
        else:
            values = list(find_evaluations(result, column))
            self.from_evaluations += bool(values)
            yield from values

    def _find_in_events(self, result: RunResult) -> Iterator[Any]:
        """Yield the number of events of a type; for `type.key`, the values of key in their meta."""
        kind, dot, key = self.spec.column.rpartition(".")
        if not dot or self._aggregation == "count":
            yield count_events(result, self.spec.column)
            return
        for event in result.observations:
            meta = event.get("meta")
            if event.get("event_type") == kind and isinstance(meta, Mapping) and key in meta:
                yield meta[key]

    def _to_number(self, value: Any) -> float | None:
        """Convert a value to a float; None if it is missing or not a number in the valid range."""
        if value is None:
            return None
        plain = plain_number(value)
        if plain is not None:
            try:
                number = float(plain)
            except OverflowError:
                number = math.inf
            # The squares of larger numbers would overflow.
            if abs(number) <= LARGEST_NUMBER and (not self._is_binary or number in (0.0, 1.0)):
                return number
        self.unreadable[repr(value)[:40]] += 1
        return None


def find_unmeasured_outcomes(study: Study, results: Iterable[RunResult]) -> list[str]:
    """Return a message for each outcome that has no value in any of the results.

    results: results of successful runs
    """
    condition = Condition("", {}, {})
    readers = [OutcomeReader(study, outcome) for outcome in study.outcomes]
    # Outcomes of conditions are known before any run; unreadable ones are reported by validation.
    readers = [reader for reader in readers if not reader.reason and reader.is_of_runs]
    count = 0
    for result in results:
        count += 1
        for reader in readers:
            reader.read(result, condition)
    if not count:
        return []
    return [reader.explain_missing() for reader in readers if not reader.value_count]


def _find_names(result: RunResult, table: str) -> Iterator[Any]:
    """Yield the names in a table of a run that an outcome could refer to."""
    evaluations = (row.get("metric_name") for row in result.evaluator_outputs)
    if table == "events":
        for event in result.observations:
            kind, meta = event.get("event_type"), event.get("meta")
            yield kind
            yield from (f"{kind}.{key}" for key in (meta if isinstance(meta, Mapping) else ()))
        return
    if table == "evaluations":
        yield from evaluations
    elif table == "runs":
        yield from result.metrics
        yield from evaluations
        yield from ("latency_s", "cost_usd")


def find_evaluations(result: RunResult, name: str) -> Iterator[Any]:
    """Return the values of a metric among a run's evaluations."""
    rows = result.evaluator_outputs
    return (row.get("metric_value") for row in rows if row.get("metric_name") == name)


def count_events(result: RunResult, kind: str) -> int:
    """Return the number of events of a type; a run without events has one `assistant_output`."""
    if not result.observations:
        return int(kind == "assistant_output")
    return sum(event.get("event_type") == kind for event in result.observations)


def _find_assignment(condition: Condition, column: str) -> Any:
    if column in condition.factor_assignments:
        return condition.factor_assignments[column]
    name = column.removeprefix("block_")
    return condition.block_assignments.get(column, condition.block_assignments.get(name))
