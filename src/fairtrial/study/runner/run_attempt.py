"""Attempt one run: call the agent, evaluate its output, and return the outcome.

`StudyWork.attempt` catches everything but KeyboardInterrupt: whatever the subject's code does, an
attempt has an outcome.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairtrial.core import LabError, events
from fairtrial.study.agents.call_forms import returns_at_once
from fairtrial.study.agents.events import EventStream, now
from fairtrial.study.agents.journal import Journal
from fairtrial.study.agents.output import ReadOutput, read_output
from fairtrial.study.agents.task import Task
from fairtrial.study.agents.workspace import Workspace, usable_folder
from fairtrial.study.evaluators.case import EvaluationRun
from fairtrial.study.evaluators.evaluator_set import EvaluatorSet
from fairtrial.study.event_loop import resolve
from fairtrial.study.ledger.packing import Body, UnwritableError, pack
from fairtrial.study.model.expenses import NO_EXPENSE, Expense
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.resources import NO_NEEDS, WorkNeeds
from fairtrial.study.model.runs import (
    EVALUATOR_FAILED,
    Assignment,
    FailureKind,
    Outcome,
    RunResult,
    RunSpec,
    RunStatus,
)
from fairtrial.study.problems.hooks import ProblemHooks
from fairtrial.study.problems.packet import ProblemPacket
from fairtrial.study.problems.run_copies import (
    copy_condition,
    copy_problem,
    copy_spec,
    copy_value,
)
from fairtrial.study.problems.scoring import Row, read_verdict
from fairtrial.study.protocols import AsyncWork, InThread, Problem, Send
from fairtrial.study.runner.bindings import Bindings
from fairtrial.study.runner.failures import (
    MAX_ERROR_LENGTH,
    classify_error,
    describe_error,
    drop_unwritable,
    failure_status,
    format_trace,
    make_writable,
)
from fairtrial.study.runner.metrics import add_judge_costs, compose_metrics
from fairtrial.study.runner.seeding import global_seeder
from fairtrial.study.tables.spending import count_tokens

METADATA_COLUMNS = (
    "model_name",
    "model_provider",
    "agent_kind",
    "pattern_name",
    "request_id",
    "trace_dir",
    "trace_path",
)
"""The keys of an agent's metadata that have columns in tables and provenance."""
_NO_METADATA = dict.fromkeys(("problem_family", *METADATA_COLUMNS))


def evaluate_output(
    problem: Problem, output: Mapping[str, Any], run: EvaluationRun | None = None
) -> list[Row]:
    """Return a problem's verdict on an output, as rows of evaluations.

    The evaluator gets a copy of the output: what it changes there is not stored.

    run: the run that the output comes from
    """
    evaluators = _find_evaluators(problem)
    if evaluators is None:
        return read_verdict(resolve(problem.evaluate(copy_value(output))))
    return _read_rows(problem, resolve(_evaluate(problem, output, run)))


def _evaluate(problem: Problem, output: Mapping[str, Any], run: EvaluationRun | None) -> Any:
    """Return what a problem's evaluators return, which may be an awaitable."""
    evaluators = _find_evaluators(problem)
    if evaluators is None:
        return problem.evaluate(copy_value(output))
    assert isinstance(problem, ProblemPacket)
    return evaluators.evaluate(problem, copy_value(output), run)


def _read_rows(problem: Problem, verdict: Any) -> list[Row]:
    rows: list[Row] = read_verdict(verdict) if _find_evaluators(problem) is None else verdict
    return rows


def _find_evaluators(problem: Problem) -> EvaluatorSet | None:
    """Return the evaluators that a study names for a problem; None for one of its own."""
    evaluator = problem.evaluator if isinstance(problem, ProblemPacket) else None
    return evaluator if isinstance(evaluator, EvaluatorSet) else None


def evaluate_rescored(problem: ProblemHooks, result: RunResult) -> list[Row]:
    """Return a problem's verdict on a stored result, as rows of evaluations."""
    return read_verdict(resolve(problem.rescore(result)))


async def _settle(value: Any) -> Any:
    """Return the result of an awaitable; any other value is returned unchanged."""
    return await value if hasattr(type(value), "__await__") else value


def _refuse_entry(data: bytes) -> None:
    # Raises, since an entry must not be reported as durable when it isn't.
    raise LabError("this executor can't keep a journal; use serial, threads or processes")


class _RunRecord:
    """The record of a run while it executes; it is kept however the run ends."""

    __slots__ = (
        "error_info",
        "evaluations",
        "evaluator_failed",
        "events",
        "execution_metadata",
        "failure_kind",
        "is_evaluating",
        "journal",
        "metrics",
        "outputs",
        "trace_refs",
        "traceback",
        "workspace",
    )

    def __init__(self, events: EventStream, workspace: Workspace, journal: Journal) -> None:
        self.events = events
        self.workspace = workspace
        self.journal = journal
        self.outputs: Mapping[str, Any] | None = None
        self.metrics: Mapping[str, Any] = {}
        self.evaluations: list[Row] = []
        self.trace_refs: list[str] = []
        self.execution_metadata: dict[str, Any] = {}
        self.is_evaluating = False
        self.evaluator_failed = False
        self.failure_kind: FailureKind | None = None
        self.error_info: str | None = None
        self.traceback: str | None = None

    def add_output(self, output: ReadOutput) -> None:
        """Add what the agent returned."""
        self.outputs = output.output
        self.metrics = output.metrics
        self.trace_refs = output.trace_refs
        if output.metadata:
            self._add_metadata(output.metadata)
        for event in output.events:
            self.events.add(event)
        if not output.success:
            self.failure_kind = FailureKind.REPORTED
            message = output.error or "the agent says that it failed, not why"
            self.error_info = make_writable(message, MAX_ERROR_LENGTH)

    def _add_metadata(self, metadata: Mapping[str, Any]) -> None:
        facts = {name: metadata.get(name) for name in METADATA_COLUMNS}
        rest = {name: value for name, value in metadata.items() if name not in METADATA_COLUMNS}
        self.execution_metadata |= {
            name: value for name, value in facts.items() if value not in (None, "")
        }
        if rest:
            self.execution_metadata["agent_metadata"] = rest

    @property
    def has_output(self) -> bool:
        """Whether the agent returned, or has an output."""
        return bool(self.outputs) or self.failure_kind in (None, FailureKind.REPORTED)

    def fail(self, error: BaseException) -> None:
        """Record an exception of the agent or the evaluator."""
        self.failure_kind = classify_error(error)
        text = describe_error(error)
        self.evaluator_failed = self.is_evaluating
        self.error_info = f"{EVALUATOR_FAILED}{text}" if self.evaluator_failed else text
        self.traceback = format_trace(error)

    def close(self) -> None:
        """Refuse further events and journal entries, and remove a temporary workspace."""
        self.events.close()
        self.journal.close()
        self.workspace.close()


class StudyWork(AsyncWork):
    """The work of a study: attempts runs with bound agents and problems; see `protocols.Work`.

    bindings: the agents and problems
    outcomes: the outcomes of the study; the first primary one is shown as `primary_outcome`
    seed_globals: whether each run seeds `random` and `numpy.random`, which requires an executor
        that runs one at a time in a process
    workspaces: the folder of the runs' workspaces; None for temporary ones
    emit_progress: called with progress events of runs in this process; worker processes drop theirs
    needs: what runs need of their machines; not known in worker processes
    session_host: the machine of the session; on another one, results say which
    """

    def __init__(
        self,
        bindings: Bindings,
        *,
        outcomes: Sequence[OutcomeSpec] = (),
        seed_globals: bool = True,
        workspaces: Path | None = None,
        emit_progress: events.Emit = events.ignore_event,
        needs: WorkNeeds = NO_NEEDS,
        session_host: str | None = None,
    ) -> None:
        self.needs = needs
        self._bindings = bindings
        self._outcomes = tuple(outcomes)
        self._seed = global_seeder() if seed_globals else None
        self._workspaces = workspaces
        self._emit_progress, self._process = emit_progress, os.getpid()
        host = socket.gethostname()
        self._session_host = session_host or host
        self._other_host = host if host != self._session_host else None
        pack({})  # imports its libraries now, so that the first run isn't slower

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (
            self._bindings,
            self._outcomes,
            self._seed is not None,
            None if self._workspaces is None else str(self._workspaces),  # never that of a copy
            self._session_host,
        )

    def emit_progress(self, event: events.Event, /) -> None:
        """Pass a progress event on; in worker processes it goes nowhere."""
        if os.getpid() == self._process:
            self._emit_progress(event)

    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        """Attempt a run and return its outcome; raises nothing but KeyboardInterrupt.

        emit: called with each packed event
        note: called with each packed journal entry; returns when it is durable
        """
        spec = assignment.spec
        run = self._begin(assignment, emit, note)
        started_at, started_s = now(), time.perf_counter()
        try:
            if self._seed is not None:
                self._seed(spec.seed)
            if self._bindings.condition_runner is None:
                self._run_agent(run, assignment)
            else:
                run.add_output(read_output(resolve(self._call_agent(run, assignment))))
        except KeyboardInterrupt:
            run.close()
            raise
        except BaseException as error:
            run.fail(error)
        latency_s = time.perf_counter() - started_s
        run.close()
        return self._outcome(run, spec, started_at, latency_s)

    async def attempt_async(
        self, assignment: Assignment, emit: Send, note: Send, in_thread: InThread
    ) -> Outcome:
        """Attempt a run in an event loop; raises nothing but KeyboardInterrupt and CancelledError.

        What isn't async of agent and evaluator is called by `in_thread`.
        """
        run = self._begin(assignment, emit, note)
        started_at, started_s = now(), time.perf_counter()
        try:
            call = self._bindings.agents.get(assignment.spec.agent_spec_ref or "")
            if call is not None and returns_at_once(call):
                output = self._call_agent(run, assignment)
            else:
                output = await in_thread(self._call_agent, run, assignment)
            run.add_output(read_output(await _settle(output)))
            problem = self._bindings.problems.get(assignment.spec.problem_id)
            if self._bindings.condition_runner is not None:
                problem = None
            if problem is not None and run.failure_kind is None and run.outputs is not None:
                run.is_evaluating = True
                origin = EvaluationRun(copy_spec(assignment.spec), run.journal)
                verdict = await in_thread(_evaluate, problem, run.outputs, origin)
                run.evaluations = _read_rows(problem, await _settle(verdict))
        except (KeyboardInterrupt, asyncio.CancelledError):
            run.close()
            raise
        except BaseException as error:
            run.fail(error)
        latency_s = time.perf_counter() - started_s
        run.close()
        return self._outcome(run, assignment.spec, started_at, latency_s)

    def _begin(self, assignment: Assignment, emit: Send, note: Send | None) -> _RunRecord:
        """Return the record of a run that starts."""
        return _RunRecord(
            EventStream(emit),
            Workspace(self._workspaces, assignment.spec.run_id, assignment.attempt),
            Journal(assignment.journal, note or _refuse_entry),
        )

    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        """Return the outcome of an attempt whose worker did not report one."""
        failure = FailureKind(kind)
        problem = self._bindings.problems.get(assignment.spec.problem_id)
        facts = {} if problem is None else {"problem_family": problem.family}
        started = datetime.now(UTC) - timedelta(seconds=latency_s)
        body: Body = {
            "outputs": {},
            "metrics": {"latency_s": latency_s},
            "evaluations": [],
            "trace_refs": [],
            "artifact_refs": [],
            "error_info": make_writable(message, MAX_ERROR_LENGTH),
            "traceback": None,
            "provenance": self._provenance(assignment.spec, facts),
            "execution_metadata": facts,
            "started_at": started.isoformat(timespec="milliseconds"),
            "evaluator_failed": False,
        }
        return Outcome(failure_status(failure), failure, 0.0, 0, latency_s, pack(body))

    def _run_agent(self, run: _RunRecord, assignment: Assignment) -> None:
        """Run the agent on its problem, then evaluate its output."""
        problem = self._bindings.problems[assignment.spec.problem_id]
        run.add_output(read_output(resolve(self._call_agent(run, assignment))))
        if run.failure_kind is None and run.outputs is not None:
            run.is_evaluating = True
            named = _find_evaluators(problem) is not None  # others aren't told about the run
            origin = EvaluationRun(copy_spec(assignment.spec), run.journal) if named else None
            run.evaluations = evaluate_output(problem, run.outputs, origin)

    def _call_agent(self, run: _RunRecord, assignment: Assignment) -> Any:
        """Return what the agent or the condition runner returns, which may be an awaitable."""
        spec = assignment.spec
        if self._bindings.condition_runner is not None:
            given = copy_spec(spec), copy_condition(assignment.condition)
            return self._bindings.condition_runner(*given)
        problem = self._bindings.problems[spec.problem_id]
        run.execution_metadata["problem_family"] = problem.family
        assert spec.agent_spec_ref is not None
        call = self._bindings.agents[spec.agent_spec_ref]
        parts = run.events, run.workspace, run.journal, self.emit_progress
        # Copies, so that what the agent changes there is seen by no other run and in no table.
        condition = copy_condition(assignment.condition)
        return call(Task(copy_problem(problem), condition, copy_spec(spec), *parts))

    def _outcome(
        self, run: _RunRecord, spec: RunSpec, started_at: str, latency_s: float
    ) -> Outcome:
        before, since = run.journal.paid()
        has_paid = before is not NO_EXPENSE or since is not NO_EXPENSE
        paid = before.plus(since) if has_paid else NO_EXPENSE
        metrics = self._metrics(run, latency_s, paid)
        folder = run.workspace.reference
        body: Body = {
            "outputs": {} if run.outputs is None else run.outputs,
            "metrics": metrics,
            "evaluations": run.evaluations,
            "trace_refs": run.trace_refs,
            "artifact_refs": [] if folder is None else [folder],
            "error_info": run.error_info,
            "traceback": run.traceback,
            "provenance": self._provenance(spec, run.execution_metadata),
            "execution_metadata": run.execution_metadata,
            "started_at": started_at,
            "evaluator_failed": run.evaluator_failed,
        }
        if self._other_host is not None:
            body["host"] = self._other_host
        # Only these come from agents and evaluators: checking the rest would double the time.
        unchecked = [run.outputs, run.evaluations, run.trace_refs]
        if run.metrics:
            unchecked.append(metrics)
        if len(run.execution_metadata) > ("problem_family" in run.execution_metadata):
            unchecked.append(run.execution_metadata)
        try:
            packed = pack(body, unchecked)
        except UnwritableError:
            run.failure_kind = run.failure_kind or FailureKind.UNWRITABLE
            packed = pack(drop_unwritable(body))
        kind = run.failure_kind
        status = RunStatus.SUCCESS if kind is None else failure_status(kind)
        # Metrics cover the whole run; the costs of earlier attempts were counted with those.
        cost_usd = max(float(metrics["cost_usd"]) - before.cost_usd, since.cost_usd)
        tokens = max(count_tokens(metrics) - before.tokens, since.tokens)
        return Outcome(status, kind, cost_usd, tokens, latency_s, packed)

    def _metrics(self, run: _RunRecord, latency_s: float, paid: Expense) -> dict[str, Any]:
        own, rows, outcomes = run.metrics, run.evaluations, self._outcomes
        has_output = run.has_output
        try:
            metrics = compose_metrics(
                own, rows, run.events, latency_s, outcomes, has_output=has_output, paid=paid
            )
            # Judges' costs are in the journal; what the agent reports doesn't include them.
            return add_judge_costs(metrics, own, run.journal) if rows else metrics
        except Exception as error:  # such as a mean beyond the range of floats
            run.fail(error)
            return compose_metrics({}, [], run.events, latency_s, (), paid=paid)

    def _provenance(self, spec: RunSpec, metadata: Mapping[str, Any]) -> dict[str, Any]:
        if self._bindings.condition_runner is not None:
            return {"execution_mode": "condition_runner"}
        ids = {"agent_id": spec.agent_spec_ref, "problem_id": spec.problem_id}
        facts = {**ids, **_NO_METADATA, **metadata}
        facts.pop("agent_metadata", None)
        return facts


def _unpickle(
    bindings: Bindings,
    outcomes: Sequence[OutcomeSpec],
    seed_globals: bool,
    workspaces: str | None,
    session_host: str | None,
) -> StudyWork:
    return StudyWork(
        bindings,
        outcomes=outcomes,
        seed_globals=seed_globals,
        workspaces=None if workspaces is None else usable_folder(Path(workspaces)),
        session_host=session_host,
    )
