"""Transcripts: messages, tool calls and model calls of a run as typed events, and reading them.

The constructors return events that an agent records (`Task.record`) or returns
(`AgentOutput.events`). They are ordinary events of the run with these types:

- `message`: its text; `actor_id` is the role. Facts: `role`, and where they apply `content` (parts
  that are not plain text), `tool_calls`, `tool_call_id`, `name`, `model`.
- `tool_call`: its arguments as JSON, in `tool_name` the tool. Fact: `call_id`.
- `tool_result`: its result as text, in `tool_name` the tool. Facts: `call_id`, `is_error`.
- `model_call`: the model. Facts: `model`, `endpoint`, `input_tokens`, `output_tokens`, `cost_usd`,
  `seconds`, `cached`, `finish_reason`, `attempts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "TRANSCRIPT_TYPES",
    "TranscriptRecord",
    "message_event",
    "model_call_event",
    "read_transcript",
    "tool_call_event",
    "tool_result_event",
]

MESSAGE, TOOL_CALL, TOOL_RESULT, MODEL_CALL = "message", "tool_call", "tool_result", "model_call"
TRANSCRIPT_TYPES = (MESSAGE, TOOL_CALL, TOOL_RESULT, MODEL_CALL)
"""The types of events that make up a transcript."""
ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class TranscriptRecord:
    """One entry of a transcript.

    kind: `message`, `tool_call`, `tool_result` or `model_call`
    text: the text of a message or result, the arguments of a tool call, or the model
    role: who speaks in a message: system, user, assistant, tool; else empty
    tool_name: the tool that was called; else empty
    timestamp: when it happened
    facts: the further facts; see the module's text
    """

    kind: str
    text: str
    role: str = ""
    tool_name: str = ""
    timestamp: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def message_event(
    role: str,
    content: Any,
    *,
    tool_calls: Sequence[Mapping[str, Any]] = (),
    tool_call_id: str | None = None,
    name: str | None = None,
    model: str | None = None,
) -> dict[str, Any]:
    """Return the event of one message.

    role: system, user, assistant or tool
    content: text, or a list of parts as chat-completions endpoints take them
    tool_calls: the tools that the message calls: `id`, `name`, `arguments`
    tool_call_id: the call that a message of role `tool` answers
    name: the name of the speaker or tool
    model: the model that wrote it

    Raises ValueError for another role.
    """
    if role not in ROLES:
        raise ValueError(f"a message's role is one of {', '.join(ROLES)}; not {role!r}")
    is_text = content is None or isinstance(content, str)
    facts = {
        "content": None if is_text else list(content),
        "tool_calls": [dict(call) for call in tool_calls] or None,
        "tool_call_id": tool_call_id,
        "name": name,
        "model": model,
    }
    text = (content or "") if is_text else plain_text(content)
    return _event(MESSAGE, text, role, {"role": role, **_known(facts)})


def tool_call_event(tool_name: str, arguments: Any, call_id: str = "") -> dict[str, Any]:
    """Return the event of a call of a tool.

    arguments: its arguments: JSON text, or plain data
    """
    text = arguments if isinstance(arguments, str) else _as_json(arguments)
    return {**_event(TOOL_CALL, text, "assistant", {"call_id": call_id}), "tool_name": tool_name}


def tool_result_event(
    tool_name: str, result: Any, call_id: str = "", *, is_error: bool = False
) -> dict[str, Any]:
    """Return the event of a tool's result, which is text or plain data."""
    text = result if isinstance(result, str) else _as_json(result)
    facts = {"call_id": call_id, "is_error": is_error}
    return {**_event(TOOL_RESULT, text, "tool", facts), "tool_name": tool_name}


def model_call_event(
    model: str,
    *,
    endpoint: str = "",
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cost_usd: float | None = None,
    seconds: float | None = None,
    cached: bool = False,
    finish_reason: str = "",
    attempts: int = 1,
) -> dict[str, Any]:
    """Return the event of one request to a model.

    endpoint: its host
    input_tokens, output_tokens, cost_usd: what it took; None if that isn't known
    seconds: how long the answer took
    cached: whether the answer was recorded before, and was not asked for again
    finish_reason: why the answer ended: `stop`, `length`, `tool_calls`
    attempts: how many requests it took
    """
    facts = {
        "model": model,
        "endpoint": endpoint,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cost_usd": cost_usd,
        "seconds": seconds,
        "cached": cached,
        "finish_reason": finish_reason,
        "attempts": attempts,
    }
    return _event(MODEL_CALL, model, "agent", facts)


def read_transcript(events: Iterable[Mapping[str, Any]]) -> list[TranscriptRecord]:
    """Return the transcript in the events of a run, in order; other events are left out.

    events: events as results have them (`RunResult.observations`), or as an agent emits them
    """
    return [_read(event) for event in events if event.get("event_type") in TRANSCRIPT_TYPES]


def _read(event: Mapping[str, Any]) -> TranscriptRecord:
    facts = event.get("meta", event.get("meta_json"))
    facts = facts if isinstance(facts, Mapping) else {}
    kind = str(event["event_type"])
    role = str(facts.get("role") or event.get("actor_id") or "") if kind == MESSAGE else ""
    return TranscriptRecord(
        kind,
        str(event.get("text") or ""),
        role,
        str(event.get("tool_name") or ""),
        str(event.get("timestamp") or ""),
        facts,
    )


def plain_text(parts: Any) -> str:
    """Return the text of a message's parts; a part without text is named in brackets."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            texts.append(f"[{kind}]")
    return "\n".join(texts)


def _event(kind: str, text: str, actor_id: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"event_type": kind, "text": text, "actor_id": actor_id, "meta": dict(facts)}


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
