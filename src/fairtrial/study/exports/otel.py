"""Runs as OpenTelemetry spans, by the conventions for generative AI: one line of OTLP/JSON a run.

A run is a trace: a span `invoke_agent`, and below it a span for each model call (`chat`) and each
tool call (`execute_tool`). Ids are digests of the id of the run: the same run gets the same ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtrial.study.agents.transcript import TranscriptRecord
from fairtrial.study.exports.records import ExportedRun, nanoseconds, read_runs, write_lines
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.tables.results import Results
from fairtrial.study.tables.rows import as_json

INTERNAL, CLIENT = 1, 3
"""Kinds of spans."""
OK, ERROR = 1, 2
"""Codes of a span's status."""


def export_otel(results: Results, path: str | Path) -> int:
    """Write the runs that are done as spans, one line of OTLP/JSON for each; returns how many.

    An OpenTelemetry collector reads the file with its receiver `otlpjsonfile`. Raises `LabError` if
    it can't be written.
    """
    study_id = results.study.study_id
    lines = (json.dumps(_document(study_id, run), ensure_ascii=False) for run in read_runs(results))
    return write_lines(Path(path), lines)


def _document(study_id: str, run: ExportedRun) -> dict[str, Any]:
    resource = _attributes({"service.name": "fairtrial", "fairtrial.study_id": study_id})
    scope = {"scope": {"name": "fairtrial"}, "spans": list(_spans(run))}
    return {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scope]}]}


def _spans(run: ExportedRun) -> Iterator[dict[str, Any]]:
    result, spec = run.result, run.spec
    start = nanoseconds(result.started_at)
    end = max(nanoseconds(result.ended_at, start), start)
    messages = [item for item in run.transcript if item.kind == "message"]
    facts = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run.agent,
        "gen_ai.conversation.id": result.run_id,
        "gen_ai.request.model": run.model or None,
        "gen_ai.usage.input_tokens": int(result.metrics.get("input_tokens") or 0),
        "gen_ai.usage.output_tokens": int(result.metrics.get("output_tokens") or 0),
        "gen_ai.input.messages": _messages([m for m in messages if m.role != "assistant"][:1]),
        "gen_ai.output.messages": _messages([m for m in messages if m.role == "assistant"][-1:]),
        "error.type": None if result.failure_kind is None else result.failure_kind.value,
        "fairtrial.run_id": result.run_id,
        "fairtrial.status": result.status.value,
        "fairtrial.problem_id": spec.problem_id or None,
        "fairtrial.condition_id": spec.condition_id,
        "fairtrial.replicate": spec.replicate,
        "fairtrial.seed": str(spec.seed),
        "fairtrial.cost_usd": result.cost,
        **{f"fairtrial.factor.{name}": value for name, value in run.factors.items()},
        **{f"fairtrial.score.{name}": value for name, value in run.scores.items()},
    }
    is_ok = result.status is RunStatus.SUCCESS
    status = {"code": OK} if is_ok else {"code": ERROR, "message": result.error_info or ""}
    root = _span(run, 0, f"invoke_agent {run.agent}", INTERNAL, (start, end), facts)
    yield {**root, "status": status}
    yield from _children(run, start, end)


def _children(run: ExportedRun, start: int, end: int) -> Iterator[dict[str, Any]]:
    """Yield the spans of model calls and tool calls."""
    asked: list[TranscriptRecord] = []
    calls: dict[str, tuple[int, TranscriptRecord]] = {}
    for number, item in enumerate(run.transcript, start=1):
        at = min(max(nanoseconds(item.timestamp, start), start), end)
        following = run.transcript[number : number + 1]
        if item.kind == "model_call":
            answers = [span for span in following if span.role == "assistant"]
            yield _chat_span(run, number, item, at, asked, answers)
        elif item.kind == "tool_call":
            calls[str(item.facts.get("call_id"))] = (at, item)
        elif item.kind == "tool_result":
            began, call = calls.pop(str(item.facts.get("call_id")), (at, item))
            yield _tool_span(run, number, call, item, (began, at))
        if item.kind == "message":
            asked.append(item)
    for number, (began, call) in enumerate(calls.values()):  # tools that never returned
        yield _tool_span(run, -number - 1, call, None, (began, end))


def _chat_span(
    run: ExportedRun,
    number: int,
    item: TranscriptRecord,
    at: int,
    asked: Sequence[TranscriptRecord],
    answers: Sequence[TranscriptRecord],
) -> dict[str, Any]:
    known = item.facts
    seconds = known.get("seconds")
    began = at - round(seconds * 1e9) if isinstance(seconds, (int, float)) else at
    reason = known.get("finish_reason")
    facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": item.text,
        "gen_ai.response.model": item.text,
        "gen_ai.provider.name": known.get("endpoint") or None,
        "server.address": known.get("endpoint") or None,
        "gen_ai.usage.input_tokens": known.get("input_tokens"),
        "gen_ai.usage.output_tokens": known.get("output_tokens"),
        "gen_ai.response.finish_reasons": [reason] if reason else None,
        "gen_ai.input.messages": _messages(asked),
        "gen_ai.output.messages": _messages(answers, finish_reason=str(reason or "stop")),
        "fairtrial.cost_usd": known.get("cost_usd"),
        "fairtrial.cached": known.get("cached"),
        "fairtrial.attempts": known.get("attempts"),
    }
    return _span(run, number, f"chat {item.text}", CLIENT, (max(began, 0), at), facts)


def _tool_span(
    run: ExportedRun,
    number: int,
    call: TranscriptRecord,
    result: TranscriptRecord | None,
    times: tuple[int, int],
) -> dict[str, Any]:
    is_error = result is not None and bool(result.facts.get("is_error"))
    facts = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool_name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": str(call.facts.get("call_id") or "") or None,
        "gen_ai.tool.call.arguments": call.text if call.kind == "tool_call" else None,
        "gen_ai.tool.call.result": None if result is None else result.text,
        "error.type": "tool_error" if is_error else None,
    }
    span = _span(run, number, f"execute_tool {call.tool_name}", INTERNAL, times, facts)
    return {**span, "status": {"code": ERROR if is_error else OK}}


def _span(
    run: ExportedRun,
    number: int,
    name: str,
    kind: int,
    times: tuple[int, int],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    run_id, attempt = run.result.run_id, run.result.attempt
    parent = {} if number == 0 else {"parentSpanId": _digest(16, run_id, attempt, 0)}
    return {
        "traceId": _digest(32, run_id, attempt),
        "spanId": _digest(16, run_id, attempt, number),
        **parent,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(times[0]),
        "endTimeUnixNano": str(max(times)),
        "attributes": _attributes(facts),
    }


def _messages(items: Sequence[TranscriptRecord], finish_reason: str = "") -> str | None:
    """Return messages in the form of the conventions: roles with parts, as JSON."""
    if not items:
        return None
    messages = []
    for item in items:
        parts: list[dict[str, Any]] = []
        if item.role == "tool":
            call_id = item.facts.get("tool_call_id")
            parts.append({"type": "tool_call_response", "id": call_id, "response": item.text})
        elif item.text:
            parts.append({"type": "text", "content": item.text})
        for call in item.facts.get("tool_calls") or ():
            named = {"id": call.get("id"), "name": call.get("name")}
            parts.append({"type": "tool_call", **named, "arguments": call.get("arguments")})
        reason = {"finish_reason": finish_reason} if finish_reason else {}
        messages.append({"role": item.role, "parts": parts, **reason})
    return json.dumps(messages, ensure_ascii=False, default=str)


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": _value(value)} for name, value in facts.items() if value is not None
    ]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return {"intValue": str(value)}
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value if isinstance(value, str) else as_json(value)}


def _digest(length: int, *parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:length]
