"""How a study is to be run this time: everything that isn't part of the study itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fairtrial.core import Emit, ignore_event
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.protocols import Executor

EARLY_RESULTS = 10
ProgressMode = Literal["bar", "lines", "none"]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a study is to be run this time.

    conditions: instead of those that the design gives
    agent_bindings, problem_registry, condition_runner: Python objects for names in the study
    parallelism: how many runs go on at once; by default the study's
    executor: where runs happen: a name, or an executor; by default processes, or this process for
        one run at a time
    output_dir: where results go; by default the study's
    checkpoint: whether the ledger is a file; else it is kept in memory
    resume: whether to go on with what is there
    retry: what to run again on resume: what broke, or what failed as well
    only_again: whether to do nothing but what is run again
    accept_changes: whether to go on though the study has changed
    only: an expression that says which runs to do this time
    limit: how many runs to do this time
    retry_wait_s: how long to wait before a broken run is tried again; doubles each time
    tables: whether to write the tables at the end
    sqlite, parquet: which further forms of them to write
    progress: how to tell how far it has come
    on_result: called with each result once it is safe
    on_event: called with each progress event of runs in this process (executor `serial` or
        `threads`)
    look_early: called with the first results that succeed (EARLY_RESULTS of them), once; says what
        the user should know while there is still time
    tell: called with what the user should know of how the results are kept
    """

    conditions: Sequence[Condition] | None = None
    agent_bindings: Mapping[str, Any] = field(default_factory=dict)
    problem_registry: Mapping[str, Any] = field(default_factory=dict)
    condition_runner: Callable[..., Any] | None = None
    parallelism: int | None = None
    executor: str | Executor | None = None
    output_dir: Path | None = None
    checkpoint: bool = True
    resume: bool = False
    retry: Literal["broken", "failed"] = "broken"
    only_again: bool = False
    accept_changes: bool = False
    only: str | None = None
    limit: int | None = None
    retry_wait_s: float = 1.0
    tables: bool = True
    sqlite: bool = False
    parquet: bool = False
    progress: ProgressMode = "none"
    on_result: Callable[[RunResult], None] | None = None
    on_event: Emit = ignore_event
    look_early: Callable[[Sequence[RunResult]], Sequence[str]] | None = None
    tell: Callable[[str], None] = warnings.warn

    def apply(self, study: Study) -> Study:
        """The study with what these settings say of it."""
        changes: dict[str, Any] = {}
        if self.output_dir is not None:
            changes["output_dir"] = self.output_dir
        if self.condition_runner is not None and study.condition_runner is None:
            changes["condition_runner"] = _name_of(self.condition_runner)
        return replace(study, **changes) if changes else study


def _name_of(function: Callable[..., Any] | str) -> str:
    if isinstance(function, str):
        return function
    kind = type(function)
    module = getattr(function, "__module__", None) or kind.__module__
    return f"{module}:{getattr(function, '__qualname__', kind.__qualname__)}"
