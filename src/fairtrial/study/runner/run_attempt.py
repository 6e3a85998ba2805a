"""One run: an agent meets a problem under a condition, and what comes of it.

Here is the only broad `except`: whatever the subject's code does, a run has an outcome.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairtrial.core import Emit, LabError, ignore_event
from fairtrial.study.agents.events import EventStream, now
from fairtrial.study.agents.journal import Journal
from fairtrial.study.agents.output import ReadOutput, read_output
from fairtrial.study.agents.task import Task
from fairtrial.study.agents.workspace import Workspace
from fairtrial.study.ledger.packing import Body, UnwritableError, pack
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.model.payments import Paid
from fairtrial.study.model.runs import (
    EVALUATOR_FAILED,
    Assignment,
    FailureKind,
    Outcome,
    RunSpec,
    RunStatus,
)
from fairtrial.study.problems.scoring import Row, read_verdict
from fairtrial.study.protocols import Problem, Send
from fairtrial.study.runner.bindings import Bindings
from fairtrial.study.runner.event_loop import settle
from fairtrial.study.runner.failures import (
    LONGEST_ERROR,
    describe_error,
    kind_of,
    leave_out_unwritable,
    status_of,
    trace_of,
    writable,
)
from fairtrial.study.runner.metrics import compose_metrics
from fairtrial.study.runner.seeding import global_seeder
from fairtrial.study.tables.spending import count_tokens

TOLD = (
    "model_name",
    "model_provider",
    "agent_kind",
    "pattern_name",
    "request_id",
    "trace_dir",
    "trace_path",
)
"""What an agent's metadata may tell of it that has a place in tables and provenance."""
_UNTOLD = dict.fromkeys(("problem_family", *TOLD))


def judge(problem: Problem, output: Mapping[str, Any]) -> list[Row]:
    """A problem's verdict on an output, as rows of evaluations."""
    return read_verdict(settle(problem.evaluate(output)))


def _refuse_entry(data: bytes) -> None:
    # To say that an entry is safe when it isn't would be worse.
    raise LabError("this executor can't keep a journal; use serial, threads or processes")


class _Run:
    """What is known of a run while it goes on; all of it is kept, however the run ends."""

    __slots__ = (
        "error_info",
        "evaluations",
        "events",
        "execution_metadata",
        "failure_kind",
        "is_judged",
        "journal",
        "metrics",
        "outputs",
        "trace",
        "trace_refs",
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
        self.is_judged = False
        self.failure_kind: FailureKind | None = None
        self.error_info: str | None = None
        self.trace: str | None = None

    def take(self, told: ReadOutput) -> None:
        """What the agent returned."""
        self.outputs = told.output
        self.metrics = told.metrics
        self.trace_refs = told.trace_refs
        if told.metadata:
            self._take_metadata(told.metadata)
        for event in told.events:
            self.events.add(event)
        if not told.success:
            self.failure_kind = FailureKind.REPORTED
            message = told.error or "the agent says that it failed, not why"
            self.error_info = writable(message, LONGEST_ERROR)

    def _take_metadata(self, metadata: Mapping[str, Any]) -> None:
        known = {name: metadata[name] for name in TOLD if metadata.get(name) not in (None, "")}
        rest = {name: value for name, value in metadata.items() if name not in TOLD}
        self.execution_metadata |= known
        if rest:
            self.execution_metadata["agent_metadata"] = rest

    @property
    def has_output(self) -> bool:
        """Whether the agent came to the end, or as far as an output."""
        return bool(self.outputs) or self.failure_kind in (None, FailureKind.REPORTED)

    def fail(self, error: BaseException) -> None:
        """Whatever was raised, by whomever."""
        self.failure_kind = kind_of(error)
        text = describe_error(error)
        self.error_info = f"{EVALUATOR_FAILED}{text}" if self.is_judged else text
        self.trace = trace_of(error)

    def close(self) -> None:
        """Nothing more happens."""
        self.events.close()
        self.journal.close()
        self.workspace.close()


class StudyWork:
    """The runs of a study: its agents and problems, bound; see `protocols.Work`.

    outcomes: the study's; the first primary one is what `primary_outcome` shows
    seed_globals: whether each run seeds `random` and `numpy.random`, which takes an executor that
        does one run at a time in a process
    workspaces: the folder that runs have their workspaces in; None for temporary ones
    emit_progress: takes progress events of runs in this process; worker processes drop theirs
    """

    def __init__(
        self,
        bindings: Bindings,
        *,
        outcomes: Sequence[OutcomeSpec] = (),
        seed_globals: bool = True,
        workspaces: Path | None = None,
        emit_progress: Emit = ignore_event,
    ) -> None:
        self._bindings = bindings
        self._outcomes = tuple(outcomes)
        self._seed = global_seeder() if seed_globals else None
        self._workspaces = workspaces
        self._emit_progress, self._process = emit_progress, os.getpid()
        pack({})  # imports what it needs: the first run is not to pay for that

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_again, (
            self._bindings,
            self._outcomes,
            self._seed is not None,
            self._workspaces,
        )

    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        """Do one run; `emit` takes each event, packed, as it happens, `note` journal entries."""
        spec, condition = assignment.spec, assignment.condition
        run = _Run(
            EventStream(emit),
            Workspace(self._workspaces, spec.run_id, assignment.attempt),
            Journal(assignment.journal, note or _refuse_entry),
        )
        started_at, begun_s = now(), time.perf_counter()
        try:
            if self._seed is not None:
                self._seed(spec.seed)
            if self._bindings.condition_runner is None:
                self._meet(run, assignment)
            else:
                run.take(read_output(settle(self._bindings.condition_runner(spec, condition))))
        except KeyboardInterrupt:
            run.close()
            raise
        except BaseException as error:
            run.fail(error)
        latency_s = time.perf_counter() - begun_s
        run.close()
        return self._outcome(run, spec, started_at, latency_s)

    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        """The outcome of an attempt that its worker didn't live to tell."""
        failure = FailureKind(kind)
        problem = self._bindings.problems.get(assignment.spec.problem_id)
        known = {} if problem is None else {"problem_family": problem.family}
        begun = datetime.now(UTC) - timedelta(seconds=latency_s)
        body: Body = {
            "outputs": {},
            "metrics": {"latency_s": latency_s},
            "evaluations": [],
            "trace_refs": [],
            "artifact_refs": [],
            "error_info": writable(message, LONGEST_ERROR),
            "traceback": None,
            "provenance": self._provenance(assignment.spec, known),
            "execution_metadata": known,
            "started_at": begun.isoformat(timespec="milliseconds"),
        }
        return Outcome(status_of(failure), failure, 0.0, 0, latency_s, pack(body))

    def _meet(self, run: _Run, assignment: Assignment) -> None:
        """The agent proposes, the problem judges."""
        spec = assignment.spec
        problem = self._bindings.problems[spec.problem_id]
        run.execution_metadata["problem_family"] = problem.family
        assert spec.agent_spec_ref is not None
        call = self._bindings.agents[spec.agent_spec_ref]
        emit_progress = self._emit_progress if os.getpid() == self._process else ignore_event
        given = run.events, run.workspace, run.journal, emit_progress
        run.take(read_output(settle(call(Task(problem, assignment.condition, spec, *given)))))
        if run.failure_kind is None and run.outputs is not None:
            run.is_judged = True
            run.evaluations = judge(problem, run.outputs)

    def _outcome(self, run: _Run, spec: RunSpec, started_at: str, latency_s: float) -> Outcome:
        before, since = run.journal.paid()
        metrics = self._metrics(run, latency_s, before.plus(since))
        folder = run.workspace.reference
        body: Body = {
            "outputs": {} if run.outputs is None else run.outputs,
            "metrics": metrics,
            "evaluations": run.evaluations,
            "trace_refs": run.trace_refs,
            "artifact_refs": [] if folder is None else [folder],
            "error_info": run.error_info,
            "traceback": run.trace,
            "provenance": self._provenance(spec, run.execution_metadata),
            "execution_metadata": run.execution_metadata,
            "started_at": started_at,
        }
        # What others made of it. The rest is ours, and looking at it takes as long as packing it.
        doubtful = [run.outputs, run.evaluations, run.trace_refs]
        if run.metrics:
            doubtful.append(metrics)
        if len(run.execution_metadata) > ("problem_family" in run.execution_metadata):
            doubtful.append(run.execution_metadata)
        try:
            packed = pack(body, doubtful)
        except UnwritableError:
            run.failure_kind = run.failure_kind or FailureKind.UNWRITABLE
            packed = pack(leave_out_unwritable(body))
        kind = run.failure_kind
        status = RunStatus.SUCCESS if kind is None else status_of(kind)
        # Metrics are of the whole run; what earlier attempts have paid was counted with them.
        cost_usd = max(float(metrics["cost_usd"]) - before.cost_usd, since.cost_usd)
        tokens = max(count_tokens(metrics) - before.tokens, since.tokens)
        return Outcome(status, kind, cost_usd, tokens, latency_s, packed)

    def _metrics(self, run: _Run, latency_s: float, paid: Paid) -> dict[str, Any]:
        told = run.metrics, run.evaluations, run.events, latency_s, self._outcomes
        try:
            return compose_metrics(*told, has_output=run.has_output, paid=paid)
        except Exception as error:  # numbers that can't be reckoned with: a mean beyond all floats
            run.fail(error)
            return compose_metrics({}, [], run.events, latency_s, (), paid=paid)

    def _provenance(self, spec: RunSpec, told: Mapping[str, Any]) -> dict[str, Any]:
        if self._bindings.condition_runner is not None:
            return {"execution_mode": "condition_runner"}
        known = {"agent_id": spec.agent_spec_ref, "problem_id": spec.problem_id, **_UNTOLD, **told}
        known.pop("agent_metadata", None)
        return known


def _make_again(
    bindings: Bindings, outcomes: Sequence[OutcomeSpec], seed_globals: bool, workspaces: Path | None
) -> StudyWork:
    return StudyWork(bindings, outcomes=outcomes, seed_globals=seed_globals, workspaces=workspaces)
