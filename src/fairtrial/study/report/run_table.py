"""The run table: results as columns of numbers, read in one pass.

Results are not kept, so that a million of them take no more memory than their numbers.
"""

from __future__ import annotations

import copy
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairtrial.study.design.look_schedule import LookSchedule, schedule_looks
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.extensions import extensions
from fairtrial.study.hypotheses.groups import Variable
from fairtrial.study.ledger.amendments import Amendment, read_amendments
from fairtrial.study.ledger.claim_history import ClaimHistory
from fairtrial.study.ledger.data_changes import base_version
from fairtrial.study.ledger.first_results import (
    FirstResultsReader,
    read_first_plan,
    take_claims,
)
from fairtrial.study.ledger.planned_looks import LookLog
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.report.judge_agreement import JudgeAgreement
from fairtrial.study.report.outcome_reader import OutcomeReader
from fairtrial.study.report.replicate_values import combine
from fairtrial.study.report.run_history import RunHistory, read_history, record_for
from fairtrial.study.report.subject_order import OrderCheck, SubjectOrder
from fairtrial.study.tables.primary_outcome import PRIMARY
from fairtrial.study.tables.results import Results
from fairtrial.study.tables.spending import Spending

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Codes, Values

REPLICATE = "replicate"
HOST = "host"
MAX_METRICS = 200
"""The codebook lists up to this many metrics that the study doesn't declare."""


@dataclass(slots=True)
class ReportTotals:
    """Totals over all results.

    planned: number of planned runs, without those that a balanced `max_runs` leaves out; None if
        unknown
    statuses, failures: number of runs by status, and by kind of failure
    without_condition: number of results whose condition is unknown, or that have no spec
    spent, input_tokens, output_tokens: cost of the results
    retried: number of runs with more than one attempt
    executors, hosts, models: number of runs of each
    metrics: number of runs that have each metric
    first_start, last_end: time of the first start and the last end
    """

    planned: int | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    without_condition: int = 0
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
        """The number of results."""
        return sum(self.statuses.values())

    def add(self, result: RunResult) -> None:
        """Add one result."""
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
            if name in self.metrics or len(self.metrics) < MAX_METRICS:
                self.metrics[name] += 1
        if result.started_at is not None:
            self.first_start = min(self.first_start or result.started_at, result.started_at)
        if result.ended_at is not None:
            self.last_end = max(self.last_end or result.ended_at, result.ended_at)


def _amount(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and value == value else 0.0


RunCell = tuple[int, str | None, str | None, int]
"""Index of the condition, agent, problem and replicate of a run."""


class RunTable:
    """The runs that succeeded or failed, as columns; failed runs have no values.

    Broken runs are kept apart: `with_broken` has them as rows.

    study, conditions: the study and its conditions
    totals: totals over all results
    readers: the reader of each outcome
    agents, problems: code of each name in the columns `agent` and `problem`
    amendments: changes of the plan after the first result
    record: how the hypotheses were registered and changed
    spent: cost of all attempts; None without a ledger
    history: how the runs came about; None without a ledger
    original: the first results of the first plan, with the first claims, if these or the data were
        changed later and the results are still there
    look_log: the planned looks that were made; None without a ledger
    look_tables: the runs that each of those looks saw which were the last for some claim
    notes: readers of extensions that add notes to the report
    broken: the broken runs
    agreement: scores of judges beside those of people
    order: when the subjects of repeated measures had their treatments
    """

    def __init__(self, study: Study, conditions: Sequence[Condition]) -> None:
        self.study = study
        self.conditions = conditions
        plan = RunPlan(study, conditions)
        self.totals = ReportTotals(planned=plan.runnable if conditions else None)
        self._left_out = len(plan) - plan.runnable
        self.readers = {spec.name: OutcomeReader(study, spec) for spec in study.outcomes}
        for name in _other_columns(study):
            self.readers.setdefault(name, OutcomeReader(study, OutcomeSpec(name)))
        self.agents: dict[str | None, int] = {}
        self.problems: dict[str | None, int] = {}
        self._condition_indices = {
            condition.condition_id: index for index, condition in enumerate(conditions)
        }
        self._values = {name: array("d") for name in self.readers}
        self.hosts: dict[str | None, int] = {}
        columns = ("condition", "agent", "problem", REPLICATE, HOST)
        self._columns = {name: array("q") for name in columns}
        self._failed = array("b")
        self._latency = array("d")
        self._variables: dict[str, tuple[Variable, Codes]] = {}
        self.amendments: tuple[Amendment, ...] = ()
        self.record = ClaimHistory()
        self.spent: Spending | None = None
        self.history: RunHistory | None = None
        self.original: RunTable | None = None
        self.look_log: LookLog | None = None
        self.look_tables: dict[int, RunTable] = {}
        self.notes = [extension.report_notes() for extension in extensions()]
        self.broken: list[RunCell] = []
        self.order = SubjectOrder(study)
        self.agreement = JudgeAgreement()

    def add(self, result: RunResult) -> None:
        """Add one result."""
        self.totals.add(result)
        spec = result.run_spec
        index = None if spec is None else self._condition_indices.get(spec.condition_id)
        if spec is not None and index is not None:
            self.order.add(result, self.conditions[index])
        if result.status not in (RunStatus.SUCCESS, RunStatus.FAILED):
            if result.status is RunStatus.BROKEN and spec is not None and index is not None:
                cell = (index, spec.agent_spec_ref, spec.problem_spec_ref, spec.replicate)
                self.broken.append(cell)
            return
        group = spec and index is not None and (index, spec.agent_spec_ref, spec.problem_spec_ref)
        for notes in self.notes:
            notes.add(group or None, result)
        if spec is None or index is None:
            self.totals.without_condition += 1
            return
        has_failed = result.status is RunStatus.FAILED
        self.agreement.add(result)
        cell = (index, spec.agent_spec_ref, spec.problem_spec_ref, spec.replicate)
        self._add_cell(cell, result.host)
        self._failed.append(has_failed)
        self._latency.append(result.latency)
        condition = self.conditions[index]
        for name, reader in self.readers.items():
            value = float("nan") if has_failed else reader.read(result, condition)
            self._values[name].append(value)

    def _add_cell(self, cell: RunCell, host: str | None = None) -> None:
        index, agent, problem, replicate = cell
        self._columns["condition"].append(index)
        self._columns["agent"].append(self.agents.setdefault(agent, len(self.agents)))
        self._columns["problem"].append(self.problems.setdefault(problem, len(self.problems)))
        self._columns[REPLICATE].append(replicate)
        self._columns[HOST].append(self.hosts.setdefault(host, len(self.hosts)))

    def _copy(self) -> RunTable:
        table = copy.copy(self)
        # Cached views of the original don't hold for the copy.
        for name in ("with_broken", "planned_cells"):
            vars(table).pop(name, None)
        table.agents, table.problems = dict(self.agents), dict(self.problems)
        table.hosts = dict(self.hosts)
        table._columns = {name: column[:] for name, column in self._columns.items()}
        table._values = {name: values[:] for name, values in self._values.items()}
        table._failed, table._latency = self._failed[:], self._latency[:]
        table._variables = {}
        return table

    def _add_empty(self, cells: Iterable[RunCell]) -> None:
        """Add runs without values, as failed ones."""
        for cell in cells:
            self._add_cell(cell)
            self._failed.append(True)
            self._latency.append(0.0)
            for values in self._values.values():
                values.append(float("nan"))

    @cached_property
    def order_check(self) -> OrderCheck | None:
        """Whether treatments ran in the planned order; None without repeated measures."""
        return self.order.check(self.conditions)

    @cached_property
    def with_broken(self) -> RunTable:
        """A copy of the table, with the broken runs at its end as rows without values."""
        table = self._copy()
        table._add_empty(self.broken)
        return table

    @cached_property
    def planned_cells(self) -> tuple[RunTable, Codes]:
        """A table with a row for each agent and problem under each condition, without values.

        Also returns the number of planned replicates of each row.
        """
        import numpy as np

        cells = list(RunPlan(self.study, self.conditions).cells())
        table = RunTable(self.study, self.conditions)
        table._add_empty((cell.condition, cell.agent, cell.problem, 0) for cell in cells)
        return table, np.asarray([cell.replicates for cell in cells], dtype=np.intp)

    def with_values(self, name: str, rows: Codes, values: Values) -> RunTable:
        """Return a copy in which some runs have other values of an outcome and did not fail."""
        table = self._copy()
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            table._values[name][row] = value
            table._failed[row] = False
        return table

    def over_replicates(self, outcome: OutcomeSpec) -> RunTable:
        """Return a table with one row for the replicates of each agent on each problem.

        An outcome without a rule for its replicates gets the table itself. Of other outcomes a row
        has the mean. Failed runs count as the outcome's policy says.
        """
        if not outcome.over_replicates:
            return self
        base, counts = self.planned_cells
        table = self._copy()
        table._columns = {name: array("q") for name in self._columns}
        table._values = {name: array("d") for name in self._values}
        table._failed, table._latency = array("b"), array("d")
        for cell, rows in self.cells_with_rows().items():
            table._add_cell((*cell, 1))
            for name, values in self._values.items():
                is_own = name == outcome.name
                zero = is_own and outcome.missing_data_policy == "zero"
                known = [
                    0.0 if self._failed[row] else values[row]
                    for row in rows
                    if zero or values[row] == values[row]
                ]
                rule = outcome.over_replicates if is_own else "mean"
                table._values[name].append(combine(rule, known))
            own = table._values[outcome.name][-1]
            table._failed.append(own != own and all(self._failed[row] for row in rows))
            table._latency.append(sum(self._latency[row] for row in rows))
        done = self.cells_with_rows().keys()
        lost = dict.fromkeys(cell[:3] for cell in self.broken)
        table.broken = [(*cell, 1) for cell in lost if cell not in done]
        broken = Counter({str(RunStatus.BROKEN): len(table.broken)})
        table.totals = replace(self.totals, planned=len(base), statuses=broken)
        table._left_out = 0
        vars(table)["planned_cells"] = base, counts * 0 + 1
        return table

    def cells_with_rows(self) -> dict[tuple[int, str | None, str | None], list[int]]:
        """Return the rows of each agent on each problem under each condition."""
        agents, problems = list(self.agents), list(self.problems)
        columns = (self._columns[name] for name in ("condition", "agent", "problem"))
        cells: dict[tuple[int, str | None, str | None], list[int]] = {}
        for row, (condition, agent, problem) in enumerate(zip(*columns, strict=True)):
            cells.setdefault((condition, agents[agent], problems[problem]), []).append(row)
        return cells

    def remarks(self) -> list[str]:
        """Return the remarks of extensions on how far the tests can be trusted."""
        return [remark for notes in self.notes for remark in notes.remarks()]

    def __len__(self) -> int:
        return len(self._failed)

    @property
    def pending(self) -> int:
        """The number of planned runs that are not done yet."""
        excluded = self.totals.statuses[str(RunStatus.BROKEN)] + self.skipped
        excluded += self.decided_early
        return max(0, (self.totals.planned or 0) + self._left_out - len(self) - excluded)

    @property
    def skipped(self) -> int:
        """The number of runs that a balanced `max_runs` leaves out."""
        # A ledger has no results of such runs; results from elsewhere may list them.
        return max(self._left_out, self.totals.statuses[str(RunStatus.SKIPPED)])

    @property
    def decided_early(self) -> int:
        """The number of planned runs that are not needed, because planned looks decided."""
        return 0 if self.look_log is None else self.look_log.skipped

    def values(self, name: str) -> Values:
        """Return the values of an outcome or covariate; NaN where a run has none."""
        import numpy as np

        return np.asarray(self._values[name])

    def count_missing(self, name: str) -> int:
        """Return the number of successful runs without a value of an outcome."""
        import numpy as np

        return int((np.isnan(self.values(name)) & ~self.failed).sum())

    def column(self, name: str) -> Codes:
        """Return a column of codes (condition, agent, problem, host) or of numbers (replicate)."""
        import numpy as np

        return np.asarray(self._columns[name], dtype=np.intp)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which runs failed."""
        import numpy as np

        return np.asarray(self._failed, dtype=bool)

    @property
    def latencies(self) -> Values:
        """The duration of each run in seconds."""
        import numpy as np

        return np.asarray(self._latency)

    def variable(self, name: str) -> tuple[Variable, Codes]:
        """Return a factor, block, agent or problem, and the level of each run.

        Levels are indices into the variable's `values`; -1 where it doesn't apply to a run, such
        as an option that only other agents have.
        """
        if name not in self._variables:
            self._variables[name] = self._make_variable(name)
        return self._variables[name]

    def _make_variable(self, name: str) -> tuple[Variable, Codes]:
        import numpy as np

        variable, codes = self.assigned(name)
        if variable.agents is not None:
            applies = np.asarray([agent in variable.agents for agent in self.agents], dtype=bool)
            codes = np.where(applies[self.column("agent")], codes, -1)
        return variable, codes

    def assigned(self, name: str) -> tuple[Variable, Codes]:
        """Return a variable and the level that the condition of each run assigns.

        Unlike `variable`, it has a level also for runs of agents without such an option.
        """
        import numpy as np

        variable = Variable(self.study, name)
        if variable.source in ("agent", "problem"):
            names = self.agents if variable.source == "agent" else self.problems
            levels = [variable.get_level(None, name, name) for name in names]
            codes = self.column(variable.source)
        else:
            levels = [variable.get_assigned_level(condition) for condition in self.conditions]
            codes = self.column("condition")
        ranks = {level: rank for rank, level in enumerate(variable.values)}
        level_ranks = [-1 if level is None else ranks[level] for level in levels]
        return variable, np.asarray(level_ranks, dtype=np.intp)[codes]


def collect_run_table(
    study: Study, conditions: Sequence[Condition], run_results: Iterable[RunResult]
) -> RunTable:
    """Read all results once, in any order, into a run table.

    Results of a ledger also have the history of the runs, and of changes of plan and hypotheses.
    """
    table = RunTable(study, conditions)
    if isinstance(run_results, Results):
        table.amendments = read_amendments(run_results.reader)
        table.record = record_for(run_results.reader, study)
        table.history = read_history(run_results.reader)
        table.spent = Spending.from_summary(run_results.reader.summary())
        table.original = _collect_original(run_results.reader, table.record)
        table.look_log = run_results.reader.look_log()
    schedule = _add_look_tables(table)
    for result in run_results:
        table.add(result)
        if schedule is not None and result.run_spec is not None:
            spec = result.run_spec
            batch = schedule.batch(spec.problem_spec_ref, spec.replicate)
            for number, seen in table.look_tables.items():
                if batch <= number:
                    seen.add(result)
    return table


def _collect_original(reader: LedgerReader, record: ClaimHistory) -> RunTable | None:
    """Return the first results of the first plan; None if nothing changed, or they are gone.

    Runs that were made before in another folder are left out.
    """
    first, base = record.first, base_version(record.first, record.later)
    left_out = {run_id for folder in record.folders for run_id in folder.shared_runs}
    if first is None or base is None or not (record.data or record.later or left_out):
        return None
    study = take_claims(base.study, first.study)
    plan = read_first_plan(reader, study)
    if plan is None:
        return None
    table = RunTable(study, plan.conditions)
    table.record = ClaimHistory(first)
    if plan.runnable < len(plan):  # max_runs left runs out that may have been made later
        left_out.update(
            spec.run_id for index, spec in enumerate(plan.specs()) if plan.is_skipped(index)
        )
    if left_out:
        table.totals.planned = sum(spec.run_id not in left_out for spec in plan.specs())
    for result in FirstResultsReader.from_reader(reader, plan).results():
        if result.run_id not in left_out:
            table.add(result)
    return table


def _add_look_tables(table: RunTable) -> LookSchedule | None:
    """Add an empty table for each look that was the last for some claim; None if there is none."""
    log = table.look_log
    schedule = schedule_looks(table.study, table.conditions)
    if log is None or schedule is None or not log.looks or log.is_void:
        return None
    if log.signature != schedule.signature(table.study, table.conditions):
        table.look_log = replace(log, is_void=True)
        return None
    numbers = {number for number, _ in log.last_tests().values()}
    table.look_tables = {number: RunTable(table.study, table.conditions) for number in numbers}
    return schedule


def _other_columns(study: Study) -> list[str]:
    """Return the columns that the report reads besides the declared outcomes."""
    names = [] if study.outcomes else [PRIMARY]
    for plan in study.analysis_plans:
        names += [name for name in plan.covariates if not Variable(study, name).source]
        names += list(plan.outcomes)
    for hypothesis in study.hypotheses:
        names += list(hypothesis.dependent_vars)
    return names
