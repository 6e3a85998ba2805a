"""Results as columns of numbers: what the report keeps of each run, read in one pass.

A result itself is let go as soon as it is read, so that a million of them take no more memory than
their numbers.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairtrial.study.design.runs import count_runs
from fairtrial.study.extensions import extensions
from fairtrial.study.hypotheses.groups import Variable
from fairtrial.study.ledger.amendments import Amendment, Record, read_amendments
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.report.outcomes import OutcomeReader
from fairtrial.study.report.run_history import History, read_history, record_for
from fairtrial.study.tables.primary_outcome import PRIMARY
from fairtrial.study.tables.results import Results
from fairtrial.study.tables.spending import Spending

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Codes, Values

REPLICATE = "replicate"
MOST_METRICS = 200
"""The codebook lists so many metrics that the study doesn't declare."""


@dataclass(slots=True)
class Tally:
    """What is added up over all results.

    planned: the runs of the plan; None if that isn't known
    statuses, failures: how many runs ended how
    homeless: results whose condition is not among the conditions, or that have no spec
    spent, input_tokens, output_tokens: what the results say that they took
    metrics: names of metrics, and of how many runs
    """

    planned: int | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    homeless: int = 0
    spent: Spending = field(default_factory=Spending)
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    retried: int = 0
    executors: Counter[str] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    metrics: Counter[str] = field(default_factory=Counter)
    first_start: str | None = None
    last_end: str | None = None

    @property
    def total(self) -> int:
        """How many results there were."""
        return sum(self.statuses.values())

    def add(self, result: RunResult) -> None:
        """Count one result."""
        self.statuses[str(result.status)] += 1
        if result.failure_kind is not None:
            self.failures[str(result.failure_kind)] += 1
        self.spent.add(result)
        self.input_tokens += _amount(result.metrics.get("input_tokens"))
        self.output_tokens += _amount(result.metrics.get("output_tokens"))
        self.retried += result.attempt > 1
        for counter, name in ((self.executors, result.executor), (self.hosts, result.host)):
            if name:
                counter[name] += 1
        if result.run_spec and (model := result.run_spec.execution_metadata.get("model_name")):
            self.models[str(model)] += 1
        for name in result.metrics:
            if name in self.metrics or len(self.metrics) < MOST_METRICS:
                self.metrics[name] += 1
        if result.started_at is not None:
            self.first_start = min(self.first_start or result.started_at, result.started_at)
        if result.ended_at is not None:
            self.last_end = max(self.last_end or result.ended_at, result.ended_at)


def _amount(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and value == value else 0.0


class RunTable:
    """The runs that ended, in columns; those that succeeded have values, those that failed none."""

    def __init__(self, study: Study, conditions: Sequence[Condition]) -> None:
        self.study = study
        self.conditions = conditions
        self.tally = Tally(planned=count_runs(study, conditions) if conditions else None)
        self.readers = {spec.name: OutcomeReader(study, spec) for spec in study.outcomes}
        for name in _other_columns(study):
            self.readers.setdefault(name, OutcomeReader(study, OutcomeSpec(name)))
        self.agents: dict[str | None, int] = {}
        self.problems: dict[str | None, int] = {}
        self._places = {each.condition_id: place for place, each in enumerate(conditions)}
        self._values = {name: array("d") for name in self.readers}
        self._columns = {name: array("q") for name in ("condition", "agent", "problem", REPLICATE)}
        self._failed = array("b")
        self._latency = array("d")
        self._variables: dict[str, tuple[Variable, Codes]] = {}
        self.amendments: tuple[Amendment, ...] = ()
        """Changes of the plan that came after results."""
        self.record = Record()
        """How the claims came to be what they are."""
        self.spent: Spending | None = None
        """What all attempts took; None if no ledger tells."""
        self.history: History | None = None
        """How the runs came about; None if no ledger tells."""
        self.notes = [extension.report_notes() for extension in extensions()]
        """What extensions make of the results."""

    def add(self, result: RunResult) -> None:
        """Read one result."""
        self.tally.add(result)
        spec = result.run_spec
        if result.status not in (RunStatus.SUCCESS, RunStatus.FAILED):
            return
        place = None if spec is None else self._places.get(spec.condition_id)
        group = spec and place is not None and (place, spec.agent_spec_ref, spec.problem_spec_ref)
        for notes in self.notes:
            notes.add(group or None, result)
        if spec is None or place is None:
            self.tally.homeless += 1
            return
        agent, problem = spec.agent_spec_ref, spec.problem_spec_ref
        has_failed = result.status is RunStatus.FAILED
        self._columns["condition"].append(place)
        self._columns["agent"].append(self.agents.setdefault(agent, len(self.agents)))
        self._columns["problem"].append(self.problems.setdefault(problem, len(self.problems)))
        self._columns[REPLICATE].append(spec.replicate)
        self._failed.append(has_failed)
        self._latency.append(result.latency)
        condition = self.conditions[place]
        for name, reader in self.readers.items():
            value = float("nan") if has_failed else reader.read(result, condition)
            self._values[name].append(value)

    def remarks(self) -> list[str]:
        """Return what extensions say of how far the tests can be trusted."""
        return [remark for notes in self.notes for remark in notes.remarks()]

    def __len__(self) -> int:
        return len(self._failed)

    @property
    def pending(self) -> int:
        """How many runs of the plan are still to come."""
        statuses = self.tally.statuses
        aside = statuses[str(RunStatus.SKIPPED)] + statuses[str(RunStatus.BROKEN)]
        return max(0, (self.tally.planned or 0) - len(self) - aside)

    def values(self, name: str) -> Values:
        """The values of an outcome or covariate; nan where a run has none."""
        import numpy as np

        return np.asarray(self._values[name])

    def column(self, name: str) -> Codes:
        """condition, agent, problem: numbers that stand for them; replicate: the number itself."""
        import numpy as np

        return np.asarray(self._columns[name], dtype=np.intp)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which runs failed."""
        import numpy as np

        return np.asarray(self._failed, dtype=bool)

    @property
    def latencies(self) -> Values:
        """How long each run took, in seconds."""
        import numpy as np

        return np.asarray(self._latency)

    def variable(self, name: str) -> tuple[Variable, Codes]:
        """A factor, block, agent or problem, and the place of each run's level in its `values`.

        -1 where the variable doesn't apply to a run.
        """
        if name not in self._variables:
            self._variables[name] = self._make_variable(name)
        return self._variables[name]

    def _make_variable(self, name: str) -> tuple[Variable, Codes]:
        import numpy as np

        variable, codes = self.assigned(name)
        if variable.agents is not None:
            touched = np.asarray([agent in variable.agents for agent in self.agents], dtype=bool)
            codes = np.where(touched[self.column("agent")], codes, -1)
        return variable, codes

    def assigned(self, name: str) -> tuple[Variable, Codes]:
        """The same as conditions assign it, to runs of agents that have no such option, too."""
        import numpy as np

        variable = Variable(self.study, name)
        if variable.source in ("agent", "problem"):
            named = self.agents if variable.source == "agent" else self.problems
            levels = [variable.level(None, met, met) for met in named]
            codes = self.column(variable.source)
        else:
            levels = [variable.assigned(condition) for condition in self.conditions]
            codes = self.column("condition")
        ranks = {level: rank for rank, level in enumerate(variable.values)}
        rank_of = [-1 if level is None else ranks[level] for level in levels]
        return variable, np.asarray(rank_of, dtype=np.intp)[codes]


def collect(
    study: Study, conditions: Sequence[Condition], run_results: Iterable[RunResult]
) -> RunTable:
    """Read all results, once, in any order.

    Those of a ledger tell how plan and claims were changed after results were there, too.
    """
    table = RunTable(study, conditions)
    if isinstance(run_results, Results):
        table.amendments = read_amendments(run_results.reader)
        table.record = record_for(run_results.reader, study)
        table.history = read_history(run_results.reader)
        table.spent = Spending.of(run_results.reader.summary())
    for result in run_results:
        table.add(result)
    return table


def _other_columns(study: Study) -> list[str]:
    """Columns besides the outcomes that the report reads: the first outcome, and covariates."""
    names = [] if study.outcomes else [PRIMARY]
    for plan in study.analysis_plans:
        names += [name for name in plan.covariates if not Variable(study, name).source]
        names += list(plan.outcomes)
    for hypothesis in study.hypotheses:
        names += list(hypothesis.dependent_vars)
    return names
