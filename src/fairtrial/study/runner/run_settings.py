"""The settings of one session of running a study, which are not part of the study itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fairtrial.core import events
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.protocols import Executor

EARLY_RESULT_COUNT = 10
ProgressMode = Literal["bar", "lines", "none"]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of one session; those that `run_study` takes have the same names there.

    conditions: conditions that replace those of the design
    agent_bindings: Python objects for names of agents in the study
    problem_registry: Python objects for names of problems in the study
    condition_runner: a function that runs a condition without agents and problems
    parallelism: how many runs execute at once; by default the study's value
    executor: where runs execute: a name, or an executor; by default worker processes, or this
        process for one run at a time
    output_dir: where results are written; by default the study's value
    checkpoint: whether the ledger is a file; else it is kept in memory
    resume: whether to continue with the results that are there
    retry: which runs to repeat on resume: `broken` ones, or `failed` ones as well
    only_reruns: whether to do nothing but those
    accept_changes: whether to resume although the study has changed
    only: an expression that selects the runs of this session
    limit: how many runs to do in this session
    retry_wait_s: how long to wait before a broken run is retried; doubles each time
    keep_going: whether to go on although the first runs of an agent all fail in the same way, or an
        endpoint refuses the key
    tables: whether to write the tables at the end
    include_sqlite: whether to write them as an SQLite file, too
    include_parquet: whether to write them as Parquet files, too
    progress: how to show the progress
    on_result: called with each result once it is committed
    on_event: called with each progress event of runs in this process (executor `serial` or
        `threads`)
    check_early_results: called once, with the first EARLY_RESULT_COUNT successful results; returns
        messages for the user
    notify: called with messages for the user
    """

    conditions: Sequence[Condition] | None = None
    agent_bindings: Mapping[str, Any] | None = None
    problem_registry: Mapping[str, Any] | None = None
    condition_runner: Callable[..., Any] | None = None
    parallelism: int | None = None
    executor: str | Executor | None = None
    output_dir: Path | None = None
    checkpoint: bool = True
    resume: bool = False
    retry: Literal["broken", "failed"] = "broken"
    only_reruns: bool = False
    accept_changes: bool = False
    only: str | None = None
    limit: int | None = None
    retry_wait_s: float = 1.0
    keep_going: bool = False
    tables: bool = True
    include_sqlite: bool = False
    include_parquet: bool = False
    progress: ProgressMode = "none"
    on_result: Callable[[RunResult], None] | None = None
    on_event: events.Emit = events.ignore_event
    check_early_results: Callable[[Sequence[RunResult]], Sequence[str]] | None = None
    notify: Callable[[str], None] = warnings.warn

    def apply(self, study: Study) -> Study:
        """Return the study with output directory and condition runner of these settings.

        A dataset is read again: that of a study from a ledger has the names of its problems only.
        """
        changes: dict[str, Any] = {}
        if study.dataset is not None and not study.dataset.table.is_open:
            changes["problems"] = study.dataset.reopened()
        if self.output_dir is not None:
            changes["output_dir"] = self.output_dir
        if self.condition_runner is not None and study.condition_runner is None:
            changes["condition_runner"] = _reference(self.condition_runner)
        return replace(study, **changes) if changes else study


def _reference(function: Callable[..., Any] | str) -> str:
    """Return `module:name` of a function."""
    if isinstance(function, str):
        return function
    cls = type(function)
    module = getattr(function, "__module__", None) or cls.__module__
    return f"{module}:{getattr(function, '__qualname__', cls.__qualname__)}"
