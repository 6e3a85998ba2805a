"""Runs and their results: what a study becomes when it is planned and run.

Plain frozen dataclasses, without the checks of `Record`: there are many of them, and only
fairtrial makes them. What crosses between the engine and its executors is tuples: several are made
for each run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from fairtrial.study.model.conditions import Condition


class RunStatus(StrEnum):
    """How far a run has come. `broken` means that we failed, not the subject."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"


EVALUATOR_FAILED = "the evaluator failed: "
"""The start of `error_info` of a run whose evaluator failed; for readers only."""


class FailureKind(StrEnum):
    """Why a run did not succeed; the first five are the subject's doing, the others are ours."""

    EXCEPTION = "exception"
    """the agent, or the problem's evaluator, raised"""
    REPORTED = "reported"
    """the agent said itself that it failed"""
    EXIT = "exit"
    """the agent left the process: SystemExit, os._exit"""
    CRASH = "crash"
    """the process died of a signal that the subject can have caused: a segfault, an abort"""
    TIMEOUT = "timeout"
    """the run took longer than `timeout_s`"""
    BROKEN = "broken"
    """the agent or the problem raised `Broken`"""
    KILLED = "killed"
    """the process was killed from outside: out of memory, kill -9"""
    UNWRITABLE = "unwritable"
    """the result can't be written down"""
    CANCELLED = "cancelled"
    """the study was stopped while the run was under way; it stays pending"""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run that is to happen: who, on what, under which condition, with which seed."""

    run_id: str
    study_id: str
    condition_id: str
    problem_id: str
    replicate: int
    seed: int
    agent_spec_ref: str | None
    problem_spec_ref: str | None
    execution_metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunOutput:
    """What a condition runner returns: its outputs, and what it measured."""

    outputs: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)


class Assignment(NamedTuple):
    """One attempt at a run, as an executor is given it.

    execution_index: the run's position in the order of execution, and its key in the ledger
    attempt: 1 for the first
    spec: the run
    condition: the condition it happens under
    timeout_s: the longest it may take
    journal: what earlier attempts at the run have put into its journal, packed
    """

    execution_index: int
    attempt: int
    spec: RunSpec
    condition: Condition
    timeout_s: float | None = None
    journal: tuple[bytes, ...] = ()


class Outcome(NamedTuple):
    """What one attempt at a run came to, as it crosses from a worker to the ledger.

    body: all else that is known of it, packed (`fairtrial.study.ledger.packing`)
    """

    status: RunStatus
    failure_kind: FailureKind | None
    cost_usd: float
    tokens: int
    latency_s: float
    body: bytes


class Emitted(NamedTuple):
    """An event, as soon as the agent emits it; `data` is packed."""

    execution_index: int
    attempt: int
    data: bytes


class Noted(NamedTuple):
    """An entry for the run's journal; `data` is packed.

    Whoever is told makes it durable before asking for the next report: the run goes on only then.
    """

    execution_index: int
    attempt: int
    data: bytes


class Finished(NamedTuple):
    """The end of an attempt, with what it printed: beginning and end, where that was much."""

    execution_index: int
    attempt: int
    outcome: Outcome
    stdout: bytes = b""
    stderr: bytes = b""


Report = Emitted | Noted | Finished


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    error_info: what went wrong, in a line
    traceback: where, in full
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
