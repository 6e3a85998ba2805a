"""Import the results of studies that design-research-experiments ran: its checkpoint files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial import (
    ProblemPacket,
    RunResult,
    RunStatus,
    Study,
    build_design,
    plan_runs,
    resume_study,
    run_study,
)
from fairtrial.core import LedgerError, Mistake, StudyError
from fairtrial.study import executors

CHECKPOINTS = Path("artifacts", "checkpoints")
"""Where the checkpoints are below an output directory."""
_EVENT_FIELDS = ("timestamp", "event_type", "text", "actor_id", "level", "record_id", "session_id")
_OPTIONAL_EVENT_FIELDS = ("trial_id", "step_id", "tool_name", "evaluation_id")
_RESERVED_METADATA = ("agent_id", "problem_id", "condition_fingerprint")


def import_checkpoints(study: Any, folder: str | os.PathLike[str]) -> Sequence[RunResult]:
    """Store the results of an output directory of design-research-experiments in a ledger, as if
    fairtrial had run them, and return them. `resume_study` then does what is left.

    Successes and failures are taken over with outputs, metrics, evaluations, events, cost and
    times; skipped runs stay to be done. The study's hypotheses are exploratory: nothing shows that
    they were laid down before these results.

    study: the study, or the path of its file; its own output directory gets the ledger
    folder: the directory that design-research-experiments wrote

    Raises `StudyError` if the directory has no checkpoints, if one can't be read, or if none
    belongs to the study; `LedgerError` if the study's output directory has results already.
    """
    study = Study.from_yaml(Path(study)) if isinstance(study, (str, os.PathLike)) else study
    found = {record.run_id: record for record in _read_checkpoints(Path(folder))}
    specs = list(plan_runs(study, build_design(study)))
    known = [spec.run_id for spec in specs if spec.run_id in found]
    if not known:
        message = f"none of the {len(found)} results in {folder} is of a run of this study"
        hint = "ids depend on study_id, factors, blocks, agents and problems: load the same study"
        raise StudyError(Mistake((), message, hint))
    if Path(study.output_dir or ".").resolve() == Path(folder).resolve():
        hint = "give the study another `output_dir`, so that the earlier files stay as they are"
        raise LedgerError(f"{folder} holds the earlier tables; {hint}")
    settings: dict[str, Any] = {
        "agent_bindings": dict.fromkeys(filter(None, (s.agent_spec_ref for s in specs)), _refuse),
        "problem_registry": {
            spec.problem_id: ProblemPacket(spec.problem_id) for spec in specs if spec.problem_id
        },
        "executor": _Importer(found),
        "only": f"run_id in {json.dumps(known)}",
        "keep_going": True,
        "show_progress": False,
    }
    # Claims are added when results are known, which the ledger records and reports say.
    results = run_study(replace(study, hypotheses=(), analysis_plans=()), **settings)
    if study.hypotheses or study.analysis_plans:
        results = resume_study(study, **settings)
    return results


def _refuse(task: Any) -> Any:
    raise AssertionError("imported runs aren't executed")


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """One stored result.

    run_id: its run
    data: the content of its file
    """

    run_id: str
    data: Mapping[str, Any]

    def outcome(self) -> executors.Outcome:
        """Return the result as a worker would have reported it."""
        data = self.data
        failed = data.get("status") == "failed"
        metrics = dict(data.get("metrics") or {})
        facts = {
            **((data.get("run_spec") or {}).get("execution_metadata") or {}),
            **(data.get("observed_execution_metadata") or {}),
        }
        body = {
            "outputs": data.get("outputs") or {},
            "metrics": metrics,
            "evaluations": [
                {name: value for name, value in row.items() if name != "run_id"}
                for row in data.get("evaluator_outputs") or []
            ],
            "trace_refs": data.get("trace_refs") or [],
            "artifact_refs": data.get("artifact_refs") or [],
            "error_info": data.get("error_info"),
            "traceback": None,
            "provenance": {
                **(data.get("provenance_info") or {}),
                "imported_from": CHECKPOINTS.name,
            },
            "execution_metadata": {
                name: value for name, value in facts.items() if name not in _RESERVED_METADATA
            },
            "started_at": data.get("started_at") or data.get("ended_at") or "",
            "evaluator_failed": False,
        }
        kind = executors.FailureKind.EXCEPTION if failed else None
        status = RunStatus.FAILED if failed else RunStatus.SUCCESS
        tokens = sum(int(metrics.get(name) or 0) for name in ("input_tokens", "output_tokens"))
        cost, latency = float(data.get("cost") or 0.0), float(data.get("latency") or 0.0)
        return executors.Outcome(status, kind, cost, tokens, latency, executors.pack(body))

    def events(self) -> Iterator[bytes]:
        """Yield its events, packed; those that stand for an agent without any are left out."""
        for row in self.data.get("observations") or []:
            meta = row.get("meta_json") or {}
            if meta.get("auto_generated"):
                continue
            event = {name: str(row.get(name) or "") for name in _EVENT_FIELDS}
            more = {name: str(row[name]) for name in _OPTIONAL_EVENT_FIELDS if row.get(name)}
            yield executors.pack({**event, **more, "meta": meta})


def _read_checkpoints(folder: Path) -> Iterator[_Checkpoint]:
    """Yield the finished results of an output directory; raises `StudyError` for a broken file."""
    paths = sorted((folder / CHECKPOINTS).glob("*.json"))
    if not paths:
        hint = "name the directory that design-research-experiments wrote"
        raise StudyError(Mistake((), f"there are no checkpoints in {folder / CHECKPOINTS}", hint))
    for path in paths:
        try:
            data = json.loads(path.read_text("utf-8"))
            run_id, status = str(data["run_id"]), data["status"]
        except (OSError, ValueError, TypeError, KeyError) as error:
            hint = "remove it: its run will be done again"
            message = f"{path} can't be read: {type(error).__name__}: {error}"
            raise StudyError(Mistake((), message, hint)) from None
        if status in ("success", "failed"):
            yield _Checkpoint(run_id, data)


@dataclass(frozen=True)
class _Importer(executors.Executor):
    """An executor that reports stored results instead of executing runs."""

    checkpoints: Mapping[str, _Checkpoint]

    @property
    def name(self) -> str:
        return "imported"

    @property
    def is_reproducible(self) -> bool:
        return False

    @property
    def is_isolated(self) -> bool:
        return True

    def execute(self, work: Any, feed: Any, slots: int) -> Iterator[executors.Report | None]:
        """Yield the stored events and outcome of each assignment."""
        while (answer := feed()) is not None:
            if not isinstance(answer, executors.Assignment):
                yield None
                continue
            checkpoint = self.checkpoints[answer.spec.run_id]
            key = answer.execution_index, answer.attempt
            for data in checkpoint.events():
                yield executors.Emitted(*key, data)
            yield executors.Finished(*key, checkpoint.outcome())
