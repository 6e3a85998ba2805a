"""What chat-completions endpoints send, read: whole answers, streams of events, errors.

Nothing that a server sends is taken for granted: its JSON, its figures, its stream's end.
"""

from __future__ import annotations

import email.utils
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

MOST_BYTES = 16_000_000
"""How much of an answer is read: far more than any model writes."""
MOST_TOKENS = 10**9
_RETRIED = {408, 409, 425, 429}
_HOPELESS = {"insufficient_quota", "billing_hard_limit_reached"}
"""Errors that come as 429 but don't pass by themselves."""
_REFUSALS = {"context_length_exceeded", "content_policy_violation", "content_filter"}
"""Errors that are about what was asked: another request may well be answered."""
_UNSUPPORTED = {"unsupported_parameter", "unsupported_value"}
_NAMED = re.compile(r"unsupported (?:parameter|value): ['\"`](\w{1,40})['\"`]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote.

    text: the message
    finish: why it ended, as the server says: `stop`, `length`, ...
    refusal: what the model says instead of an answer, where the server keeps that apart
    model: who answered, as the server says
    prompt_tokens, completion_tokens: as the server counts them; None where it doesn't, or where
        what it says is no such number
    """

    text: str
    finish: str = ""
    refusal: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Trouble(Exception):  # noqa: N818 - a value that happens to be raised
    """One attempt came to nothing.

    message: why
    may_pass: whether it makes sense to try again
    is_refusal: whether it is what was asked that is refused
    status: the status of the response, if there was one
    wait_s: how long the server says to wait
    is_paid: whether an answer had begun, so that it was probably paid for
    unsupported: the field of the request that the server doesn't take, if that is why
    """

    def __init__(
        self,
        message: str,
        *,
        may_pass: bool = True,
        is_refusal: bool = False,
        status: int | None = None,
        wait_s: float | None = None,
        is_paid: bool = False,
        unsupported: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.may_pass = may_pass
        self.is_refusal = is_refusal
        self.status = status
        self.wait_s = wait_s
        self.is_paid = is_paid
        self.unsupported = unsupported


def read_whole(data: bytes) -> Answer:
    """The answer in a body; raises `Trouble`."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise Trouble("the response is not JSON", is_paid=True) from None
    if not isinstance(document, Mapping):
        raise Trouble("the response is not a JSON object", is_paid=True)
    _refuse_error(document, is_paid=bool(document.get("choices")))
    choice = _first(document.get("choices"))
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise Trouble("the response holds no message (choices[0].message)", is_paid=True)
    prompt, completion = read_usage(document.get("usage"))
    return Answer(
        _text_of(message.get("content")),
        _word(choice.get("finish_reason")),
        _word(message.get("refusal")),
        _word(document.get("model")),
        prompt,
        completion,
    )


@dataclass(slots=True)
class Stream:
    """Server-sent events, read as they come.

    Lines end at line feeds alone: JSON may hold other characters that Python takes for line ends.
    """

    _rest: bytearray = field(default_factory=bytearray)
    _data: list[bytes] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    _refusals: list[str] = field(default_factory=list)
    _finish: str = ""
    _model: str = ""
    _usage: tuple[int | None, int | None] = (None, None)
    is_done: bool = False

    def feed(self, data: bytes) -> None:
        """Some more bytes; raises `Trouble` for an event that can't be read."""
        self._rest += data
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            self._read_line(line.removesuffix(b"\r"))

    def finish(self) -> Answer:
        """All that came, once the connection has ended; raises `Trouble` if that is not all."""
        if not self.is_done:
            self.feed(b"\n\n")
        if not self.is_done and not self._finish:
            count = sum(map(len, self._texts))
            raise Trouble(f"the stream ended early, after {count:,} characters", is_paid=True)
        return Answer(
            "".join(self._texts), self._finish, "".join(self._refusals), self._model, *self._usage
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
            raise Trouble("an event of the stream is not JSON", is_paid=True) from None
        if not isinstance(event, Mapping):
            raise Trouble("an event of the stream is not a JSON object", is_paid=True)
        _refuse_error(event, is_paid=any(self._texts))
        self._model = self._model or _word(event.get("model"))
        if event.get("usage") is not None:
            self._usage = read_usage(event["usage"])
        choice = _first(event.get("choices"))
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self._texts.append(_text_of(delta.get("content")))
            self._refusals.append(_word(delta.get("refusal")))
        self._finish = _word(choice.get("finish_reason")) or self._finish


def read_usage(usage: Any) -> tuple[int | None, int | None]:
    """Tokens of the prompt and of the answer; None for what is missing or can't be."""
    if not isinstance(usage, Mapping):
        return None, None
    return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))


def _count(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Comparing first keeps out NaN, infinity and whatever int() would take for ever to make.
    return int(value) if 0 <= value <= MOST_TOKENS else None


def _first(choices: Any) -> Mapping[str, Any]:
    """The first choice; an empty one where there is none, as in a stream's last event."""
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return {}


def _text_of(content: Any) -> str:
    """A message's text, whether it comes as one or in parts."""
    if isinstance(content, list):
        return "".join(_word(part.get("text")) for part in content if isinstance(part, Mapping))
    return _word(content)


def _word(value: Any) -> str:
    """Texts as they are, without halves of surrogate pairs; nothing for anything else."""
    if not isinstance(value, str):
        return ""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


# -- errors --


def read_error(status: int, data: bytes, headers: Mapping[str, str]) -> Trouble:
    """What a response with such a status says."""
    text = data.decode("utf-8", "replace")
    message, codes, unsupported = text, set[str](), ""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, Mapping):
        message, codes = _error_of(document)
        message = message or text
        unsupported = _find_unsupported(document, message, codes) if status in (400, 422) else ""
    return Trouble(
        message.strip(),
        may_pass=(status in _RETRIED or status >= 500) and not codes & _HOPELESS,
        is_refusal=status == 413 or bool(codes & _REFUSALS),
        status=status,
        wait_s=read_wait(headers),
        unsupported=unsupported,
    )


def _error_of(document: Mapping[str, Any]) -> tuple[str, set[str]]:
    """The message of an error, and the words that it goes by."""
    error = document.get("error")
    if isinstance(error, str):
        return _word(error), set()
    if not isinstance(error, Mapping):
        return _word(document.get("message") or document.get("detail")), set()
    codes = {_word(error.get("code")), _word(error.get("type"))} - {""}
    return _word(error.get("message")), codes


def _find_unsupported(document: Mapping[str, Any], message: str, codes: set[str]) -> str:
    """The field that isn't taken: as OpenAI says it, or a gateway that repeats its words alone.

    A field with too large a value is named in the same way, but not as unsupported.
    """
    named = _NAMED.search(message)
    error = document.get("error")
    field = _word(error.get("param")) if isinstance(error, Mapping) else ""
    if codes & _UNSUPPORTED and field.isidentifier():
        return field[:40]
    return named[1] if named else ""


def _refuse_error(document: Mapping[str, Any], *, is_paid: bool) -> None:
    """Some servers report errors with a status of 200, or in the midst of a stream."""
    if not document.get("error"):
        return
    message, codes = _error_of(document)
    error = document["error"]
    code = _count(error.get("code")) if isinstance(error, Mapping) else None
    is_final = code is not None and 400 <= code < 500 and code not in _RETRIED
    raise Trouble(
        message or "an error without a message",
        may_pass=not is_final and not codes & (_HOPELESS | _REFUSALS),
        is_refusal=bool(codes & _REFUSALS),
        is_paid=is_paid,
    )


def read_wait(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """How many seconds a server asks us to wait: Retry-After, as seconds or as a date.

    A date is compared with the server's own, where it tells: clocks differ.
    """
    asked = headers.get("retry-after", "").strip()
    if not asked:
        return None
    try:
        seconds = float(asked)
    except ValueError:
        until = _read_date(asked)
        now = _read_date(headers.get("date", "")) or now or datetime.now(UTC)
        return max((until - now).total_seconds(), 0.0) if until else None
    return seconds if 0 <= seconds < float("inf") else None


def _read_date(text: str) -> datetime | None:
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
