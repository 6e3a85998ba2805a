"""Planned runs, the messages between runner and executors, and results of runs.

These are plain frozen dataclasses without the checks of `Record`, since there can be very many of
them and only fairtrial creates them. Messages between the runner and its executors are named
tuples, which are cheaper: there are several for each run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, cast

from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.resources import Demand

T = TypeVar("T")


def quick_maker(cls: type[T]) -> Callable[..., T]:
    """Return a function that makes instances of a frozen class with slots in a third of the time.

    It takes all fields, in order. The constructor of a frozen class sets each field by a call; this
    one fills an instance of a class with the same fields that isn't frozen, then changes its class.
    """
    names = [item.name for item in fields(cast(Any, cls))]
    draft = make_dataclass(f"{cls.__name__}Draft", names, slots=True, eq=False)

    def make(*values: Any) -> T:
        instance: Any = draft(*values)
        instance.__class__ = cls
        return instance  # type: ignore[no-any-return]

    return make


class RunStatus(StrEnum):
    """The state of a run.

    `failed` means that the agent or its output failed, which is data; `broken` means that the
    system around it failed, so that the run says nothing about the agent.
    """

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"


EVALUATOR_FAILED = "the evaluator failed: "
"""How the error message of a run begins if the agent finished and only its evaluation failed; the
stored output can then be evaluated again."""


class FailureKind(StrEnum):
    """Why a run did not succeed.

    The first five kinds are failures of the agent (status `failed`), the others are failures of
    the system around it (status `broken`, or `pending` after a cancellation).
    """

    EXCEPTION = "exception"
    """the agent or the problem's evaluator raised an exception"""
    REPORTED = "reported"
    """the agent reported that it failed"""
    EXIT = "exit"
    """the agent ended the process: SystemExit, os._exit"""
    CRASH = "crash"
    """the process died of a signal that the agent can have caused: a segfault, an abort"""
    TIMEOUT = "timeout"
    """the run took longer than `timeout_s`"""
    BROKEN = "broken"
    """the agent or the problem raised `Broken`"""
    KILLED = "killed"
    """the process was killed from outside: out of memory, kill -9"""
    UNWRITABLE = "unwritable"
    """the result can't be stored"""
    CANCELLED = "cancelled"
    """the study was stopped during the run, which stays pending"""
    REFUSED = "refused"
    """an endpoint refused the key, the key is missing, or a quota is used up"""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One planned run: an agent on a problem under a condition, with a seed.

    run_id: a hash of study, condition, agent, problem and replicate
    study_id: the study it belongs to
    condition_id: the condition it runs under
    problem_id: the problem; empty for a condition runner
    replicate: the number of the replicate, from 1
    seed: the seed of its random numbers
    agent_spec_ref: the agent's name; None for a condition runner
    problem_spec_ref: the problem's name; None for a condition runner
    execution_metadata: agent and problem, and the fingerprint of the condition
    """

    run_id: str
    study_id: str
    condition_id: str
    problem_id: str
    replicate: int
    seed: int
    agent_spec_ref: str | None
    problem_spec_ref: str | None
    execution_metadata: Mapping[str, Any] = field(default_factory=dict)


make_spec = quick_maker(RunSpec)


@dataclass(frozen=True, slots=True)
class RunOutput:
    """What a condition runner returns.

    outputs: the output of the run
    metrics: the numbers that it measured
    """

    outputs: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)


class Assignment(NamedTuple):
    """One attempt at a run, as passed to an executor.

    execution_index: the run's position in the order of execution, which is its key in the ledger
    attempt: the number of the attempt, from 1
    spec: the run
    condition: the condition it runs under
    timeout_s: the longest it may take, in seconds
    journal: the packed journal entries of earlier attempts at the run
    demand: what the run needs of its machine
    """

    execution_index: int
    attempt: int
    spec: RunSpec
    condition: Condition
    timeout_s: float | None = None
    journal: tuple[bytes, ...] = ()
    demand: Demand = ()


class Outcome(NamedTuple):
    """The result of one attempt at a run, as a worker sends it to the ledger.

    status: how the attempt ended
    failure_kind: why it did not succeed
    cost_usd: its cost in US dollars
    tokens: the tokens it used
    latency_s: how long it took, in seconds
    body: everything else, packed (`fairtrial.study.ledger.packing`)
    """

    status: RunStatus
    failure_kind: FailureKind | None
    cost_usd: float
    tokens: int
    latency_s: float
    body: bytes


class Emitted(NamedTuple):
    """An event that an agent has emitted; `data` is packed. Sent without delay."""

    execution_index: int
    attempt: int
    data: bytes


class Noted(NamedTuple):
    """An entry for the run's journal; `data` is packed.

    The runner makes the entry durable before it asks for the next report; the run waits for that.
    """

    execution_index: int
    attempt: int
    data: bytes


class NotedTogether(NamedTuple):
    """Entries of several runs that wait at the same moment: one write makes all of them durable."""

    entries: tuple[Noted, ...]


class Finished(NamedTuple):
    """The end of an attempt, with what it printed; of long output the beginning and the end."""

    execution_index: int
    attempt: int
    outcome: Outcome
    stdout: bytes = b""
    stderr: bytes = b""


Report = Emitted | Noted | NotedTogether | Finished


@dataclass(frozen=True, slots=True)
class RunResult:
    """The stored result of a run.

    run_id: the run
    status: how it ended
    outputs: what the agent returned
    metrics: numbers by name, of the agent and of the evaluations
    evaluator_outputs: the rows of the evaluations
    cost: the cost in US dollars
    latency: the duration in seconds
    trace_refs, artifact_refs: references that the agent returned
    error_info: what went wrong, in one line
    provenance_info: what the result was made with: versions, host, model
    observations: the events that the agent emitted
    run_spec: the planned run
    started_at, ended_at: times in UTC, as ISO 8601
    failure_kind: why it did not succeed
    attempt: the number of the attempt that this is the result of
    executor: the executor that ran it
    host: the machine that ran it
    traceback: the full traceback of an exception
    stdout, stderr: what the run printed, up to a limit
    evaluator_failed: whether the agent had finished and its evaluator failed
    """

    run_id: str
    status: RunStatus
    outputs: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    evaluator_outputs: tuple[Mapping[str, Any], ...] = ()
    cost: float = 0.0
    latency: float = 0.0
    trace_refs: tuple[str, ...] = ()
    artifact_refs: tuple[str, ...] = ()
    error_info: str | None = None
    provenance_info: Mapping[str, Any] = field(default_factory=dict)
    observations: tuple[Mapping[str, Any], ...] = ()
    run_spec: RunSpec | None = None
    started_at: str | None = None
    ended_at: str | None = None
    failure_kind: FailureKind | None = None
    attempt: int = 1
    executor: str | None = None
    host: str | None = None
    traceback: str | None = None
    stdout: str = ""
    stderr: str = ""
    evaluator_failed: bool = False


make_result = quick_maker(RunResult)
