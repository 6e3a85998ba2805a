"""Runs as log files of Inspect: one file for each agent under each condition.

Samples are runs: a problem is a sample's id, a replicate its epoch. `inspect view` shows the files,
and `inspect_ai.log.read_eval_log` reads them.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial.study.agents.transcript import TranscriptRecord
from fairtrial.study.exports.records import ExportedRun, read_runs, write_lines
from fairtrial.study.model.study import Study
from fairtrial.study.tables.results import Results
from fairtrial.study.tables.rows import as_json

LOG_VERSION = 2
LONGEST_NAME = 60


@dataclass(slots=True)
class _Log:
    """The runs of one agent under one condition, ready to be written."""

    agent: str
    condition_id: str
    factors: Mapping[str, Any]
    model: str = ""
    samples: list[dict[str, Any]] = field(default_factory=list)
    scores: dict[str, list[float]] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    failed: int = 0


def export_inspect(results: Results, folder: str | Path) -> list[Path]:
    """Write the runs that are done as log files of Inspect; returns their paths.

    A file of an earlier export is replaced. Raises `LabError` if one can't be written.
    """
    logs: dict[tuple[str, str], _Log] = {}
    for run in read_runs(results):
        key = run.agent, run.spec.condition_id
        log = logs.setdefault(key, _Log(run.agent, run.spec.condition_id, run.factors))
        _add(log, run)
    target, written = Path(folder), []
    for log in logs.values():
        time, name = _file_name(results.study, log)
        path = target / f"{time}_{name}.json"
        text = as_json(_document(results.study, log))
        write_lines(path, iter([text]))
        for other in target.glob(f"*_{name}.json"):
            if other != path:
                other.unlink()  # of an export when another run was the first
        written.append(path)
    return written


def _add(log: _Log, run: ExportedRun) -> None:
    result = run.result
    log.model = log.model or run.model
    log.samples.append(_sample(run))
    log.started += [result.started_at] if result.started_at else []
    log.ended += [result.ended_at] if result.ended_at else []
    log.failed += result.error_info is not None
    for name, value in run.scores.items():
        log.scores.setdefault(name, []).append(value)


def _document(study: Study, log: _Log) -> dict[str, Any]:
    started = min(log.started, default="1970-01-01T00:00:00+00:00")
    ended = max(log.ended, default=started)
    ids = list(dict.fromkeys(sample["id"] for sample in log.samples))
    model = log.model or "none/none"
    return {
        "version": LOG_VERSION,
        "status": "success",
        "eval": {
            "eval_id": f"{study.study_id}-{log.agent}-{log.condition_id}",
            "run_id": study.study_id,
            "created": started,
            "task": study.study_id,
            "task_id": f"{study.study_id}-{log.condition_id}",
            "task_version": 0,
            "task_display_name": study.title,
            "task_args": dict(log.factors),
            "solver": log.agent,
            "model": model,
            "dataset": {"name": study.study_id, "samples": len(ids), "sample_ids": ids},
            "config": {"epochs": max(sample["epoch"] for sample in log.samples)},
            "metadata": {"condition_id": log.condition_id, "factors": dict(log.factors)},
        },
        "plan": {"name": log.agent, "steps": [{"solver": log.agent, "params": {}}]},
        "results": {
            "total_samples": len(log.samples),
            "completed_samples": len(log.samples) - log.failed,
            "scores": [
                {
                    "name": name,
                    "scorer": name,
                    "metrics": {"mean": {"name": "mean", "value": statistics.fmean(values)}},
                }
                for name, values in log.scores.items()
            ],
        },
        "stats": {"started_at": started, "completed_at": ended, "model_usage": _usage(log)},
        "samples": log.samples,
    }


def _usage(log: _Log) -> dict[str, Any]:
    totals: dict[str, dict[str, int]] = {}
    for sample in log.samples:
        for model, usage in sample["model_usage"].items():
            total = totals.setdefault(model, dict.fromkeys(usage, 0))
            for name, value in usage.items():
                total[name] += value
    return totals


def _sample(run: ExportedRun) -> dict[str, Any]:
    result, spec = run.result, run.spec
    messages = list(_messages(run.transcript, result.run_id))
    asked = [message for message in messages if message["role"] == "user"]
    sample: dict[str, Any] = {
        "id": spec.problem_id or "problem",
        "epoch": spec.replicate,
        "input": asked[0]["content"] if asked else spec.problem_id or "",
        "target": "",
        "messages": messages,
        "output": _output(run, messages),
        "scores": {
            name: {"value": value, "answer": _answer(run)} for name, value in run.scores.items()
        },
        "metadata": {
            "run_id": result.run_id,
            "status": result.status.value,
            "seed": spec.seed,
            "outputs": result.outputs,
        },
        "store": {},
        "events": [],
        "attachments": {},
        "uuid": result.run_id,
        "model_usage": _sample_usage(run),
        "total_time": result.latency,
    }
    sample |= {"started_at": result.started_at} if result.started_at else {}
    sample |= {"completed_at": result.ended_at} if result.ended_at else {}
    if result.error_info is not None:
        trace = result.traceback or ""
        error = {"message": result.error_info, "traceback": trace, "traceback_ansi": trace}
        sample["error"] = error
    return sample


def _answer(run: ExportedRun) -> str | None:
    outputs: Any = run.result.outputs
    answer = outputs.get("answer", outputs.get("text")) if isinstance(outputs, Mapping) else outputs
    if answer is None:
        return None
    return answer if isinstance(answer, str) else as_json(answer)


def _output(run: ExportedRun, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    answers = [message for message in messages if message["role"] == "assistant"]
    text = {"role": "assistant", "content": _answer(run) or "", "id": f"{run.result.run_id}-output"}
    last = answers[-1] if answers else text
    choice = {"message": last, "stop_reason": "stop"}
    return {
        "model": run.model or "none/none",
        "choices": [choice],
        "completion": last["content"] if isinstance(last["content"], str) else "",
        "time": run.result.latency,
    }


def _sample_usage(run: ExportedRun) -> dict[str, dict[str, int]]:
    usage: dict[str, dict[str, int]] = {}
    for item in run.transcript:
        if item.kind == "model_call":
            total = usage.setdefault(
                item.text, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
            )
            tokens = [int(item.facts.get(f"{way}_tokens") or 0) for way in ("input", "output")]
            for name, count in zip(total, [*tokens, sum(tokens)], strict=True):
                total[name] += count
    return usage


def _messages(records: Sequence[TranscriptRecord], run_id: str) -> Iterator[dict[str, Any]]:
    """Yield the messages of a transcript in Inspect's form; tool results once."""
    results = {item.facts.get("call_id") for item in records if item.kind == "tool_result"}
    for number, item in enumerate(records):
        id = f"{run_id}-{number}"
        if item.kind == "tool_result":
            error = {"error": {"type": "unknown", "message": item.text}}
            yield {
                "id": id,
                "role": "tool",
                "content": item.text,
                "function": item.tool_name,
                "tool_call_id": item.facts.get("call_id"),
                **(error if item.facts.get("is_error") else {}),
            }
        elif item.kind == "message" and not (
            item.role == "tool" and item.facts.get("tool_call_id") in results
        ):
            message: dict[str, Any] = {"id": id, "role": item.role, "content": item.text}
            calls = [_tool_call(call) for call in item.facts.get("tool_calls") or ()]
            if item.role == "assistant":
                message |= {"source": "generate", "model": item.facts.get("model")}
                message |= {"tool_calls": calls} if calls else {}
            elif item.role == "tool":
                message["tool_call_id"] = item.facts.get("tool_call_id")
            yield message


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    given = call.get("arguments")
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        arguments = None
    named = {"id": str(call.get("id") or ""), "function": str(call.get("name") or "")}
    if isinstance(arguments, Mapping):
        return {**named, "arguments": dict(arguments), "type": "function"}
    return {**named, "arguments": {}, "parse_error": str(given), "type": "function"}


def _file_name(study: Study, log: _Log) -> tuple[str, str]:
    """Return the parts of a file's name, which Inspect reads: time, and task with id."""
    started = min(log.started, default="1970-01-01T00:00:00+00:00")[:19].replace(":", "-")
    names = [re.sub(r"[^A-Za-z0-9.-]+", "-", name) for name in (study.study_id, log.agent)]
    task, agent = (name[:LONGEST_NAME] for name in names)
    return started, f"{task}_{agent}-{log.condition_id}"
