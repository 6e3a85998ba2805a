"""Runs and their results: what a study becomes when it is planned and run.

Plain frozen dataclasses, without the checks of `Record`: there are many of them, and only
fairtrial makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class RunStatus(StrEnum):
    """How far a run has come. `broken` means that we failed, not the subject."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"


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
class RunResult:
    """What came of a run."""

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
    observations: tuple[Any, ...] = ()
    run_spec: RunSpec | None = None
    started_at: str | None = None
    ended_at: str | None = None
