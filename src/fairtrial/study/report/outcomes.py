"""One number per run for each outcome: where it is found, and why it may not be there."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fairtrial.core import did_you_mean, plain_number
from fairtrial.study.design.rows import LARGEST
from fairtrial.study.hypotheses.outcomes import YES_OR_NO, why_unreadable
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.tables.primary_outcome import PRIMARY, primary_outcome

MOST_MET = 200
"""So many names are kept to find the one that may be meant."""
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
    found: how many values there were
    met: what the runs had in its table instead, as long as there was no value
    """

    def __init__(self, study: Study, spec: OutcomeSpec) -> None:
        self.spec = spec
        self.reason = why_unreadable(study, spec)
        self.unreadable: Counter[str] = Counter()
        self.from_evaluations = self.found = 0
        self.met: dict[str, None] = {}
        self._table = spec.source_table.strip().lower()
        self._how = spec.aggregation.strip().lower()
        self._outcomes = study.outcomes
        self._is_binary = spec.expected_type.strip().lower() in YES_OR_NO

    @property
    def is_of_runs(self) -> bool:
        """Whether it is something that runs give, not their conditions."""
        return self._table != "conditions"

    def read(self, result: RunResult, condition: Condition) -> float:
        """The value of a run that succeeded; nan if it has none."""
        if self.reason:
            return math.nan
        values = [
            number for value in self._find(result, condition) if (number := self._number(value))
        ]
        numbers = [number for (number,) in values]
        self.found += len(numbers)
        if not self.found and len(self.met) < MOST_MET:
            self.met.update(dict.fromkeys(map(str, _names(result, self._table))))
        if self._how == "count" and self._table != "events":
            return float(len(numbers))
        return float(_COMBINE[self._how](numbers)) if numbers else math.nan

    def why_nothing(self) -> str:
        """Why no run had a value, as far as that can be told."""
        name, column = self.spec.name, self.spec.column
        if self.unreadable:
            shown = ", ".join(text for text, _ in self.unreadable.most_common(3))
            return f"the values of '{name}' are not numbers: {shown}"
        where = f"{self.spec.source_table}.{column}"
        return f"no run has a value for '{name}' ({where}); {did_you_mean(column, self.met)}"

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


def unmeasured(study: Study, results: Iterable[RunResult]) -> list[str]:
    """A remark for each outcome that none of these results, which all succeeded, has a value of."""
    nowhere = Condition("", {}, {})
    readers = [OutcomeReader(study, each) for each in study.outcomes]
    # What conditions hold is known before; what can't be read at all was told before.
    readers = [each for each in readers if not each.reason and each.is_of_runs]
    looked_at = 0
    for result in results:
        looked_at += 1
        for reader in readers:
            reader.read(result, nowhere)
    return [each.why_nothing() for each in readers if not each.found] if looked_at else []


def _names(result: RunResult, table: str) -> Iterator[Any]:
    """What a run has in a table that an outcome could be called."""
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
