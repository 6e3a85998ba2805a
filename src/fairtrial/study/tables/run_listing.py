"""Lists of runs: selected by an expression over all that is known of a run, and sorted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.design.agent_options import select_assignments
from fairtrial.study.design.expressions import Expression
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.tables.primary_outcome import primary_outcome
from fairtrial.study.tables.results import Results

_FAILED = (RunStatus.FAILED, RunStatus.BROKEN)
_SCALARS = (bool, int, float, str)
NO_FACTS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run of a list.

    facts: ids, status, times and costs, by the names of the columns of runs.csv
    factors: the factors that apply to it
    metrics: its metrics and evaluations that are scalars
    outputs: the parts of its output that are scalars
    """

    facts: Mapping[str, Any]
    factors: Mapping[str, Any]
    metrics: Mapping[str, Any]
    outputs: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.facts["run_id"])

    def scope(self) -> dict[str, Any]:
        """Return what names stand for in expressions: of equal names the first of these counts.

        Facts, factors, metrics, outputs; `factors.x`, `metrics.x` and `outputs.x` say which. A
        factor `agents.a.options.model` is `model`, too, unless another factor is.
        """
        named = {"factors": self.factors, "metrics": self.metrics, "outputs": self.outputs}
        last = [name.rpartition(".")[2] for name in self.factors]
        short = {
            key: value
            for key, value in zip(last, self.factors.values(), strict=True)
            if last.count(key) == 1
        }
        return {**self.outputs, **self.metrics, **short, **self.factors, **self.facts, **named}

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        parts = {"factors": self.factors, "metrics": self.metrics, "outputs": self.outputs}
        return {**self.facts, **{name: dict(part) for name, part in parts.items()}}


def list_runs(
    results: Results, *, where: str | None = None, failed: bool = False, sort: str | None = None
) -> list[ListedRun]:
    """Return the runs that are done, in plan order.

    where: an expression that a run must meet: `accuracy < 0.5 and model == 'x'`. A run without a
        value for one of its names doesn't meet it
    failed: whether only failed and broken runs are listed
    sort: the name that they are sorted by; descending with a minus before it. Runs without a value
        come last

    Raises `StudyError` for an expression that can't be read or evaluated, and for a name that no
    run has.
    """
    condition = None if where is None else _Condition(where)
    wanted = set() if condition is None else condition.names
    key = (sort or "").removeprefix("-")
    known: set[str] = set()
    listed = []
    for run in _read_runs(results):
        scope = run.scope()
        known.update(scope)
        if failed and run.facts["status"] not in _FAILED:
            continue
        if condition is not None and not condition.is_met(scope):
            continue
        listed.append(run)
    if condition is not None:
        condition.refuse_if_never_evaluated()
    _refuse_unknown(known, {"--where": wanted, "--sort": {key} if key else set()})
    if key:
        listed = _sort(listed, key, is_descending=str(sort).startswith("-"))
    return listed


def _read_runs(results: Results) -> Iterator[ListedRun]:
    study = results.study
    conditions = {item.condition_id: item.factor_assignments for item in results.conditions}
    for result in results:
        spec = result.run_spec
        assert spec is not None
        assigned = conditions.get(spec.condition_id, {})
        factors = select_assignments(study, spec.agent_spec_ref, assigned)
        scores = {
            str(row.get("metric_name")): row.get("metric_value") for row in result.evaluator_outputs
        }
        primary = primary_outcome(result.metrics, result.evaluator_outputs, study.outcomes)
        yield ListedRun(
            _facts(result, primary),
            factors,
            _scalars({**scores, **result.metrics}),
            _scalars(result.outputs),
        )


def _facts(result: RunResult, primary: Any) -> dict[str, Any]:
    spec = result.run_spec
    assert spec is not None
    return {
        "run_id": result.run_id,
        "status": result.status.value,
        "failure_kind": None if result.failure_kind is None else result.failure_kind.value,
        "agent_id": spec.agent_spec_ref,
        "problem_id": spec.problem_id or None,
        "problem_family": spec.execution_metadata.get("problem_family"),
        "model_name": spec.execution_metadata.get("model_name"),
        "replicate": spec.replicate,
        "condition_id": spec.condition_id,
        "primary_outcome": primary if isinstance(primary, _SCALARS) else None,
        "latency_s": result.latency,
        "cost_usd": result.cost,
        "input_tokens": result.metrics.get("input_tokens", 0),
        "output_tokens": result.metrics.get("output_tokens", 0),
        "attempt": result.attempt,
        "error": result.error_info,
    }


def _scalars(values: Any) -> dict[str, Any]:
    pairs = values.items() if isinstance(values, Mapping) else ()
    return {str(name): value for name, value in pairs if isinstance(value, _SCALARS)}


class _Condition:
    """An expression, met by runs that have a value for each of its names."""

    def __init__(self, text: str) -> None:
        self._expression = Expression(text)
        self.names = set(self._expression.names)
        self._was_evaluated = False
        self._error: StudyError | None = None

    def is_met(self, scope: Mapping[str, Any]) -> bool:
        """Return whether a run meets the expression."""
        if any(name not in scope for name in self.names):
            return False
        try:
            is_met = self._expression.holds(scope, NO_FACTS)
        except StudyError as error:
            # Such as 0.5 < None: the run has no value. If it has them all, it is a mistake.
            self._error = error
            return False
        self._was_evaluated = True
        return is_met

    def refuse_if_never_evaluated(self) -> None:
        """Raise the `StudyError` of an expression that could be evaluated for no run."""
        if self._error is not None and not self._was_evaluated:
            raise StudyError([mistake.under(("--where",)) for mistake in self._error.mistakes])


def _refuse_unknown(known: set[str], names: Mapping[str, set[str]]) -> None:
    if not known:
        return  # nothing is done yet, so nothing is known
    mistakes = [
        Mistake((option,), f"no run has a '{name}'", did_you_mean(name, sorted(known)))
        for option, wanted in names.items()
        for name in sorted(wanted - known)
    ]
    if mistakes:
        raise StudyError(mistakes)


def _sort(runs: Sequence[ListedRun], name: str, *, is_descending: bool) -> list[ListedRun]:
    """Sort runs by a value; those without one come last, texts after numbers."""
    values = [(run.scope().get(name), run) for run in runs]
    given = [pair for pair in values if isinstance(pair[0], _SCALARS)]
    given.sort(
        key=lambda pair: (isinstance(pair[0], str), pair[0]),
        reverse=is_descending,
    )
    return [run for _, run in given] + [
        run for value, run in values if not isinstance(value, _SCALARS)
    ]
