"""Reading of chat-completions responses: JSON bodies, event streams, errors.

Servers are not trusted: JSON, figures and the completeness of streams are all checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fairtrial.llm.waits import read_wait

MAX_RESPONSE_BYTES = 16_000_000
"""How much of a response is read: far more than any model writes."""
MAX_TOKEN_COUNT = 10**9
_RETRYABLE_STATUSES = {408, 409, 425, 429}
_PERMANENT_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
"""Error codes with status 429 that a retry doesn't cure."""
_ACCESS_STATUSES = (401, 402, 403)
_REFUSAL_CODES = {"context_length_exceeded", "content_policy_violation", "content_filter"}
"""Error codes about the content of a request: other requests may be answered."""
_UNSUPPORTED_CODES = {"unsupported_parameter", "unsupported_value"}
_UNSUPPORTED_MESSAGE = re.compile(
    r"unsupported (?:parameter|value): ['\"`](\w{1,40})['\"`]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that a model asks for.

    id: the server's id of the call
    name: the tool
    arguments: its arguments as JSON, which the model may have got wrong
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A model's answer.

    text: the message
    finish: the server's reason for its end: `stop`, `length`, ...
    refusal: the model's refusal, if the server reports that separately
    model: the model's name, by the server
    prompt_tokens, completion_tokens: the server's counts; None if missing or not plausible
    tool_calls: the tools that the model wants to have called
    logprobs: the log probabilities of tokens as the server gives them; None if it gives none
    is_cached: whether it was recorded before, and was not asked for again
    """

    text: str
    finish: str = ""
    refusal: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: Any = None
    is_cached: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as plain data, without `is_cached`."""
        data = asdict(self)
        data["tool_calls"] = list(data["tool_calls"])
        del data["is_cached"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, is_cached: bool = False) -> ChatAnswer:
        """Return the answer that plain data describes; TypeError or KeyError if it is none."""
        calls = tuple(ToolCall(**call) for call in data["tool_calls"])
        return cls(**{**data, "tool_calls": calls, "is_cached": is_cached})


class AttemptError(Exception):
    """One attempt at a request failed.

    message: the cause
    is_retryable: whether another attempt may succeed
    is_refusal: whether the content of the request was refused
    status: the status of the response, if there was one
    wait_s: how long the server asks to wait
    is_paid: whether an answer had begun, and was probably charged
    is_access: whether the key was refused, or a quota is used up
    unsupported: the field of the request that the server doesn't support, if that is the cause
    is_unreached: whether there was no connection at all
    """

    def __init__(
        self,
        message: str,
        *,
        is_retryable: bool = True,
        is_refusal: bool = False,
        status: int | None = None,
        wait_s: float | None = None,
        is_paid: bool = False,
        is_access: bool = False,
        unsupported: str = "",
        is_unreached: bool = False,
    ) -> None:
        super().__init__(message)
        self.is_unreached = is_unreached
        self.message = message
        self.is_retryable = is_retryable
        self.is_refusal = is_refusal
        self.status = status
        self.wait_s = wait_s
        self.is_paid = is_paid
        self.is_access = is_access
        self.unsupported = unsupported


def read_response_body(data: bytes) -> ChatAnswer:
    """Read the answer from a JSON body; raises `AttemptError` if there is none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise AttemptError("the response is not JSON", is_paid=True) from None
    if not isinstance(document, Mapping):
        raise AttemptError("the response is not a JSON object", is_paid=True)
    _raise_embedded_error(document, is_paid=bool(document.get("choices")))
    choice = _first_choice(document.get("choices"))
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise AttemptError("the response holds no message (choices[0].message)", is_paid=True)
    prompt, completion = read_usage(document.get("usage"))
    return ChatAnswer(
        _join_content(message.get("content")),
        _clean_text(choice.get("finish_reason")),
        _clean_text(message.get("refusal")),
        _clean_text(document.get("model")),
        prompt,
        completion,
        _read_tool_calls(message.get("tool_calls")),
        choice.get("logprobs"),
    )


@dataclass(slots=True)
class EventStreamReader:
    """Reads an answer from server-sent events, chunk by chunk.

    Only line feeds end a line: JSON may hold other characters that `splitlines` splits at.

    on_text: called with each piece of text as it arrives
    is_done: whether the event that ends the stream was read
    """

    on_text: Callable[[str], None] | None = None

    _rest: bytearray = field(default_factory=bytearray)
    _data: list[bytes] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    _refusals: list[str] = field(default_factory=list)
    _finish: str = ""
    _model: str = ""
    _usage: tuple[int | None, int | None] = (None, None)
    _calls: dict[int, dict[str, str]] = field(default_factory=dict)
    _logprobs: list[Any] = field(default_factory=list)
    is_done: bool = False

    def feed(self, data: bytes) -> None:
        """Read more bytes; raises `AttemptError` for an event that can't be read."""
        self._rest += data
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            self._read_line(line.removesuffix(b"\r"))

    def finish(self) -> ChatAnswer:
        """Return the answer after the connection has ended; raises `AttemptError` if incomplete."""
        if not self.is_done:
            self.feed(b"\n\n")
        if not self.is_done and not self._finish:
            count = sum(map(len, self._texts))
            raise AttemptError(f"the stream ended early, after {count:,} characters", is_paid=True)
        calls = [self._calls[index] for index in sorted(self._calls)]
        return ChatAnswer(
            "".join(self._texts),
            self._finish,
            "".join(self._refusals),
            self._model,
            *self._usage,
            tuple(ToolCall(**call) for call in calls),
            {"content": self._logprobs} if self._logprobs else None,
        )

    def _read_line(self, line: bytes) -> None:
        if self.is_done:
            return
        if not line:
            data, self._data = b"\n".join(self._data), []
            if data:
                self._read_event(data)
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))

    def _read_event(self, data: bytes) -> None:
        if data.strip() == b"[DONE]":
            self.is_done = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise AttemptError("an event of the stream is not JSON", is_paid=True) from None
        if not isinstance(event, Mapping):
            raise AttemptError("an event of the stream is not a JSON object", is_paid=True)
        _raise_embedded_error(event, is_paid=any(self._texts))
        self._model = self._model or _clean_text(event.get("model"))
        if event.get("usage") is not None:
            self._usage = read_usage(event["usage"])
        choice = _first_choice(event.get("choices"))
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            text = _join_content(delta.get("content"))
            self._texts.append(text)
            if text and self.on_text is not None:
                self.on_text(text)
            self._refusals.append(_clean_text(delta.get("refusal")))
            self._add_tool_calls(delta.get("tool_calls"))
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, Mapping) and isinstance(logprobs.get("content"), list):
            self._logprobs.extend(logprobs["content"])
        self._finish = _clean_text(choice.get("finish_reason")) or self._finish

    def _add_tool_calls(self, parts: Any) -> None:
        """Add parts of tool calls: the first part has id and name, the others more arguments."""
        for part in parts if isinstance(parts, list) else ():
            if not isinstance(part, Mapping):
                continue
            index = _read_count(part.get("index")) or 0
            call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
            function = part.get("function")
            function = function if isinstance(function, Mapping) else {}
            call["id"] = call["id"] or _clean_text(part.get("id"))
            call["name"] = call["name"] or _clean_text(function.get("name"))
            call["arguments"] += _clean_text(function.get("arguments"))


def _read_tool_calls(calls: Any) -> tuple[ToolCall, ...]:
    read = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            parts = call.get("id"), function.get("name"), function.get("arguments")
            read.append(ToolCall(*map(_clean_text, parts)))
    return tuple(read)


def read_usage(usage: Any) -> tuple[int | None, int | None]:
    """Read the token counts of prompt and answer; None for a count that is not plausible."""
    if not isinstance(usage, Mapping):
        return None, None
    return _read_count(usage.get("prompt_tokens")), _read_count(usage.get("completion_tokens"))


def _read_count(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Compare first: it rules out NaN, infinity, and numbers for which int() takes very long.
    return int(value) if 0 <= value <= MAX_TOKEN_COUNT else None


def _first_choice(choices: Any) -> Mapping[str, Any]:
    """Return the first choice; an empty one if there is none, as in a stream's last event."""
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return {}


def _join_content(content: Any) -> str:
    """Return a message's text, which may be given in parts."""
    if isinstance(content, list):
        return "".join(
            _clean_text(part.get("text")) for part in content if isinstance(part, Mapping)
        )
    return _clean_text(content)


def _clean_text(value: Any) -> str:
    """Return a text with lone surrogates escaped; empty for other types."""
    if not isinstance(value, str):
        return ""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


# -- errors --


def read_error(status: int, data: bytes, headers: Mapping[str, str]) -> AttemptError:
    """Make the error for a response whose status isn't 200."""
    text = data.decode("utf-8", "replace")
    message, codes, unsupported = text, set[str](), ""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, Mapping):
        message, codes = _read_error_object(document)
        message = message or text
        unsupported = _find_unsupported(document, message, codes) if status in (400, 422) else ""
    return AttemptError(
        message.strip(),
        is_retryable=(status in _RETRYABLE_STATUSES or status >= 500)
        and not codes & _PERMANENT_CODES,
        is_refusal=status == 413 or bool(codes & _REFUSAL_CODES),
        is_access=status in _ACCESS_STATUSES or bool(codes & _PERMANENT_CODES),
        status=status,
        wait_s=read_wait(headers),
        unsupported=unsupported,
    )


def _read_error_object(document: Mapping[str, Any]) -> tuple[str, set[str]]:
    """Return an error's message, and its code and type."""
    error = document.get("error")
    if isinstance(error, str):
        return _clean_text(error), set()
    if not isinstance(error, Mapping):
        return _clean_text(document.get("message") or document.get("detail")), set()
    codes = {_clean_text(error.get("code")), _clean_text(error.get("type"))} - {""}
    return _clean_text(error.get("message")), codes


def _find_unsupported(document: Mapping[str, Any], message: str, codes: set[str]) -> str:
    """Return the request field that isn't supported; empty if the error has another cause.

    Read from OpenAI's `param`, or from the message, since some gateways pass on that alone. The
    code must be checked: `param` is also set for fields with wrong values.
    """
    match = _UNSUPPORTED_MESSAGE.search(message)
    error = document.get("error")
    field = _clean_text(error.get("param")) if isinstance(error, Mapping) else ""
    if codes & _UNSUPPORTED_CODES and field.isidentifier():
        return field[:40]
    return match[1] if match else ""


def _raise_embedded_error(document: Mapping[str, Any], *, is_paid: bool) -> None:
    """Raise the error in a document: some servers report errors with status 200, or in a stream."""
    if not document.get("error"):
        return
    message, codes = _read_error_object(document)
    error = document["error"]
    code = _read_count(error.get("code")) if isinstance(error, Mapping) else None
    is_final = code is not None and 400 <= code < 500 and code not in _RETRYABLE_STATUSES
    raise AttemptError(
        message or "an error without a message",
        is_retryable=not is_final and not codes & (_PERMANENT_CODES | _REFUSAL_CODES),
        is_refusal=bool(codes & _REFUSAL_CODES),
        is_access=code in _ACCESS_STATUSES or bool(codes & _PERMANENT_CODES),
        is_paid=is_paid,
    )
