"""One number per run for each outcome: where it is found, and why it may not be there."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fairtrial.design.table import LARGEST
from fairtrial.errors import did_you_mean
from fairtrial.model.claims import SOURCE_TABLES, OutcomeSpec
from fairtrial.model.conditions import Condition
from fairtrial.model.foreign import plain_number
from fairtrial.model.runs import RunResult
from fairtrial.model.study import Study
from fairtrial.prospect.statements import YES_OR_NO
from fairtrial.tables.outcome import PRIMARY, primary_outcome

NUMERIC_TYPES = frozenset(
    {"", "float", "int", "integer", "number", "numeric", "double", "bool", "boolean", "binary"}
)
_COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
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
    """Reads an outcome's value from one result after the other.

    reason: why it can't be read from any; empty if it can
    unreadable: what stood there instead of a number, and how often
    from_evaluations: how many values of an outcome of the runs were found among the evaluations
    """

    def __init__(self, study: Study, spec: OutcomeSpec) -> None:
        self.spec = spec
        self.reason = _why_unreadable(study, spec)
        self.unreadable: Counter[str] = Counter()
        self.from_evaluations = 0
        self._table = spec.source_table.strip().lower()
        self._how = spec.aggregation.strip().lower()
        self._outcomes = study.outcomes
        self._is_binary = spec.expected_type.strip().lower() in YES_OR_NO

    def read(self, result: RunResult, condition: Condition) -> float:
        """The value of a run that succeeded; nan if it has none."""
        if self.reason:
            return math.nan
        values = [
            number for value in self._find(result, condition) if (number := self._number(value))
        ]
        numbers = [number for (number,) in values]
        if self._how == "count" and self._table != "events":
            return float(len(numbers))
        return float(_COMBINE[self._how](numbers)) if numbers else math.nan

    def _find(self, result: RunResult, condition: Condition) -> Iterator[Any]:
        if self._table == "runs":
            yield from self._in_runs(result)
        elif self._table == "evaluations":
            yield from find_evaluations(result, self.spec.column)
        elif self._table == "events":
            yield from self._in_events(result)
        else:
            yield _assigned(condition, self.spec.column)

    def _in_runs(self, result: RunResult) -> Iterator[Any]:
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
            found = list(find_evaluations(result, column))
            self.from_evaluations += bool(found)
            yield from found

    def _in_events(self, result: RunResult) -> Iterator[Any]:
        """How many events there are of a type; or, for `type.key`, what their `meta` says."""
        kind, dot, key = self.spec.column.rpartition(".")
        if not dot or self._how == "count":
            yield count_events(result, self.spec.column)
            return
        for event in result.observations:
            meta = event.get("meta")
            if event.get("event_type") == kind and isinstance(meta, Mapping) and key in meta:
                yield meta[key]

    def _number(self, value: Any) -> tuple[float] | None:
        """A number that can be reckoned with, in a tuple, so that 0 is not taken for nothing."""
        if value is None:
            return None
        plain = plain_number(value)
        if plain is not None:
            try:
                number = float(plain)
            except OverflowError:
                number = math.inf
            # Beyond LARGEST squares are no numbers any more.
            if abs(number) <= LARGEST and (not self._is_binary or number in (0.0, 1.0)):
                return (number,)
        self.unreadable[repr(value)[:40]] += 1
        return None


def find_evaluations(result: RunResult, name: str) -> Iterator[Any]:
    """The values of a metric among a run's evaluations."""
    rows = result.evaluator_outputs
    return (row.get("metric_value") for row in rows if row.get("metric_name") == name)


def count_events(result: RunResult, kind: str) -> int:
    """How many events of a type a run has; its output is one where it emitted nothing."""
    if not result.observations:
        return int(kind == "assistant_output")
    return sum(event.get("event_type") == kind for event in result.observations)


def _assigned(condition: Condition, column: str) -> Any:
    if column in condition.factor_assignments:
        return condition.factor_assignments[column]
    name = column.removeprefix("block_")
    return condition.block_assignments.get(column, condition.block_assignments.get(name))


def _why_unreadable(study: Study, spec: OutcomeSpec) -> str:
    table = spec.source_table.strip().lower()
    how = spec.aggregation.strip().lower()
    if spec.derivation:
        return (
            f"outcome '{spec.name}' is derived ({spec.derivation}), which fairtrial doesn't "
            "compute; let the agent or the evaluator give it as a number"
        )
    if table not in SOURCE_TABLES:
        hint = did_you_mean(table, SOURCE_TABLES)
        return f"outcome '{spec.name}': there is no table '{spec.source_table}'; {hint}"
    if how not in _COMBINE:
        hint = did_you_mean(how, _COMBINE)
        return f"outcome '{spec.name}': no such aggregation: '{spec.aggregation}'; {hint}"
    if spec.expected_type.strip().lower() not in NUMERIC_TYPES:
        return f"outcome '{spec.name}' is {spec.expected_type}, not a number"
    if table == "conditions":
        names = [factor.name for factor in study.factors]
        names += [name for block in study.blocks for name in (block.name, f"block_{block.name}")]
        if spec.column not in names:
            hint = did_you_mean(spec.column, names)
            return f"outcome '{spec.name}': conditions have no column '{spec.column}'; {hint}"
    return ""
