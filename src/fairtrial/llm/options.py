"""Options of a model behind a chat-completions endpoint, and the requests that they make."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from fairtrial.core import LabError, Mistake, Record, StudyError
from fairtrial.llm.answer_cache import AnswerCache, answer_key, default_folder
from fairtrial.llm.dialect import TOKEN_LIMIT_FIELDS, TokensField
from fairtrial.llm.endpoint import Endpoint
from fairtrial.llm.prices import PRICES_DATE, Price, cost_usd, find_price, price_mistakes
from fairtrial.llm.secret import Secret

Message = Mapping[str, Any]
"""One message of a conversation: `role` and `content`, which is text or a list of parts."""
CacheMode = Literal["none", "keep", "replay"]
_OWN_FIELDS = (
    "model",
    "messages",
    "stream",
    "stream_options",
    "temperature",
    *TOKEN_LIMIT_FIELDS,
    "n",
    "tools",
    "response_format",
)


@dataclass(frozen=True, slots=True)
class ChatOptions(Record):
    """How a model behind an OpenAI-compatible chat-completions endpoint is asked.

    base_url: the endpoint, without `/chat/completions`: https://api.openai.com/v1
    model: the model's name, as the endpoint knows it
    key_variable: the name of the environment variable that holds the key; empty for a server that
        needs none. Never the key itself. A value of fewer than 8 characters counts as a
        placeholder, not as a secret.
    temperature: how much answers vary; not sent unless given
    max_tokens: how long an answer may be, reasoning included; null sends no bound
    tokens_field: the name of that field: `max_tokens` or `max_completion_tokens`; `either`
        tries the first and follows the endpoint's complaint
    timeout_s: how long one attempt may take in all
    retries: how many further attempts there are when the endpoint is busy, broken or out of reach;
        one at most until it was reached once
    backoff_s: the wait before the first of them; it doubles each time. What the endpoint asks for
        has priority: Retry-After, or the reset of a rate limit of which nothing is left
    longest_wait_s: the longest wait between attempts, whatever the endpoint asks for
    most_at_once: how many requests may be under way at the same time
    requests_per_minute: how many requests may start in a minute; all requests of this process to
        the endpoint share this limit
    tokens_per_minute: how many tokens requests and answers may take in a minute, likewise shared
    stream: whether answers are streamed, as server-sent events
    cache: `keep` records answers on disk, and doesn't ask again for one that is there; `replay`
        takes recorded answers only and never calls the endpoint
    cache_dir: the folder of recorded answers; by default one in the user's cache folder
    prices: US dollars for a million tokens of prompt and of answer, by model; has priority over
        the built-in table
    extra: further fields of the request: reasoning_effort, top_p, ...
    """

    base_url: str
    model: str
    key_variable: str = ""
    temperature: float | None = None
    max_tokens: int | None = 8_192
    tokens_field: TokensField = "either"
    timeout_s: float = 300.0
    retries: int = 4
    backoff_s: float = 1.0
    longest_wait_s: float = 60.0
    most_at_once: int = 4
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    stream: bool = False
    cache: CacheMode = "none"
    cache_dir: str = ""
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("model")
        yield from list_url_mistakes(self.base_url)
        yield from list_variable_mistakes(self.key_variable)
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            yield Mistake(("temperature",), f"must be 0 or more, got {self.temperature:g}")
        for name, least in (("retries", 0), ("most_at_once", 1)):
            if getattr(self, name) < least:
                yield Mistake((name,), f"must be {least} or more, got {getattr(self, name)}")
        if self.max_tokens is not None and self.max_tokens < 1:
            yield Mistake(("max_tokens",), f"must be 1 or more, or null; got {self.max_tokens}")
        if not (self.timeout_s > 0 and math.isfinite(self.timeout_s)):
            yield Mistake(("timeout_s",), f"must be more than 0 seconds, got {self.timeout_s:g}")
        for name in ("backoff_s", "longest_wait_s"):
            if not (getattr(self, name) >= 0 and math.isfinite(getattr(self, name))):
                yield Mistake((name,), f"must be 0 seconds or more, got {getattr(self, name):g}")
        for name in ("requests_per_minute", "tokens_per_minute"):
            rate = getattr(self, name)
            if rate is not None and not 0 < rate < math.inf:
                yield Mistake((name,), f"must be more than 0, got {rate:g}")
        yield from _extra_mistakes(self.extra)
        yield from price_mistakes(self.prices)

    @property
    def host(self) -> str:
        """Host and port of the endpoint."""
        return urlsplit(self.base_url).netloc

    @property
    def price(self) -> Price | None:
        """The price of the model's tokens; None if that isn't known."""
        return find_price(self.model, self.prices)

    def cost_usd(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Return the cost of an answer; None if the price, or a count it needs, is unknown."""
        return cost_usd(self.price, prompt_tokens, completion_tokens)

    def require_key(self) -> None:
        """Raise `StudyError` if the environment variable of the key isn't set, or holds no key."""
        if self.cache == "replay":
            return
        try:
            Secret.from_environment(self.key_variable)
        except LabError as error:
            raise StudyError(Mistake(("key_variable",), str(error))) from None

    def require_price(self, ceiling: str) -> None:
        """Raise `StudyError` if the model's price isn't known.

        ceiling: the ceiling that can't be kept without a price, as text
        """
        if self.price is None:
            message = (
                f"the price of the model '{self.model}' is not known (table of {PRICES_DATE}), so "
                f"that a ceiling of {ceiling} can't be kept"
            )
            hint = (
                f"add `prices: {{{self.model}: [input, output]}}`, in US dollars for a million "
                "tokens ([0, 0] for a server of your own), or leave out the ceiling"
            )
            raise StudyError(Mistake(("prices",), message, hint))

    def make_endpoint(self) -> Endpoint:
        """Return the endpoint, with the key; raise `LabError` if the key is missing."""
        is_offline = self.cache == "replay"
        return Endpoint(
            self.base_url,
            Secret() if is_offline else Secret.from_environment(self.key_variable),
            self.timeout_s,
            self.retries,
            self.backoff_s,
            self.longest_wait_s,
        )

    def make_cache(self) -> AnswerCache | None:
        """Return the recorded answers; None if none are used."""
        if self.cache == "none":
            return None
        return AnswerCache(
            Path(self.cache_dir).expanduser() if self.cache_dir else default_folder()
        )

    def answer_key(self, body: Mapping[str, Any], seed: int, replicate: int) -> str:
        """Return the key of a recorded answer: the digest of all that the answer depends on."""
        return answer_key(self.base_url, body, seed, replicate)

    def make_body(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON body of a request; the limit of the answer is named `max_tokens`.

        tools: the tools that the model may call: `name`, `description`, `parameters`
        schema: the JSON schema that the answer must follow
        """
        body: dict[str, Any] = {**self.extra, "model": self.model, "messages": list(messages)}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if tools:
            body["tools"] = [{"type": "function", "function": dict(tool)} for tool in tools]
        if schema is not None:
            form = {"name": "answer", "schema": dict(schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


def list_url_mistakes(url: str, *, may_have_query: bool = False) -> Iterator[Mistake]:
    """Yield what is wrong with the address of an endpoint."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_address = is_address and (parts.port is None or parts.port > 0) and url.isprintable()
    except ValueError:
        is_address = False
    if not is_address or " " in url:
        hint = "for example https://api.openai.com/v1"
        yield Mistake(("base_url",), "must be an http:// or https:// address", hint)
    elif "@" in parts.netloc or (parts.query and not may_have_query) or parts.fragment:
        message = "must hold no user name, password, query or fragment"
        yield Mistake(("base_url",), message, "name the key's variable in `key_variable`")


def _extra_mistakes(extra: Mapping[str, Any]) -> Iterator[Mistake]:
    for name, value in extra.items():
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError):  # a date or a .nan of YAML; its value isn't repeated
            message = "can't be sent: JSON has no such value"
            yield Mistake(("extra", name), message, "put texts into quotes")
        if name in _OWN_FIELDS:
            yield Mistake(("extra", name), "has an option of its own, or can't be changed")


def list_variable_mistakes(name: str) -> Iterator[Mistake]:
    """Yield what is wrong with the name of the environment variable of a key."""
    # What is no name may be the key itself, so it isn't repeated.
    if name and not (name.isascii() and name.isidentifier()):
        yield Mistake(
            ("key_variable",),
            "must be the name of an environment variable, such as OPENAI_API_KEY",
            "put the key into that variable, not here",
        )
