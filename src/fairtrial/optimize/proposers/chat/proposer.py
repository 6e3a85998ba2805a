"""The proposer `chat`: a language model behind an OpenAI-compatible chat-completions endpoint."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from fairtrial.core import LabError, Mistake, Record, StudyError
from fairtrial.llm import (
    PRICES_DATE,
    TOKEN_LIMIT_FIELDS,
    Dialect,
    Endpoint,
    Price,
    Secret,
    TokensField,
    cost_usd,
    find_price,
    price_mistakes,
)
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind, Usage
from fairtrial.optimize.proposer import KeepStep, PreflightContext, Proposer, run_checks
from fairtrial.optimize.proposers.chat.conversation import (
    Conversation,
    ConversationSettings,
    keep_nothing,
)
from fairtrial.optimize.proposers.chat.prompts import Form, Message, write_messages
from fairtrial.study import spell_cost

if TYPE_CHECKING:
    import anyio

_OWN_FIELDS = (
    "model",
    "messages",
    "stream",
    "stream_options",
    "temperature",
    *TOKEN_LIMIT_FIELDS,
    "n",
)


@dataclass(frozen=True, slots=True)
class Chat(Proposer, Record):
    """A language model, asked by chat completions for whole files or search/replace blocks.

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
    retries: how many further attempts there are when the endpoint is busy, broken or out of reach
    backoff_s: the wait before the first of them; it doubles each time. A Retry-After header has
        priority
    longest_wait_s: the longest wait between attempts, whatever the endpoint asks for
    most_at_once: how many requests may be under way at the same time
    stream: whether answers are streamed, as server-sent events
    answer: `whole_file`: the complete text of each changed file; `search_replace`: blocks with the
        lines to be replaced, which is shorter for large files and fails more often
    longest_prompt: how many characters a prompt may have; a longer one is refused, not sent
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
    stream: bool = False
    answer: Form = "whole_file"
    longest_prompt: int = 400_000
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    name = "chat"
    can_batch = True
    incidental_options: ClassVar[frozenset[str]] = frozenset(
        (
            *("timeout_s", "retries", "backoff_s", "longest_wait_s", "most_at_once", "stream"),
            *("key_variable", "prices"),
        )
    )

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("model")
        yield from _url_mistakes(self.base_url)
        yield from _variable_mistakes(self.key_variable)
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            yield Mistake(("temperature",), f"must be 0 or more, got {self.temperature:g}")
        for name, least in (("retries", 0), ("most_at_once", 1), ("longest_prompt", 1)):
            if getattr(self, name) < least:
                yield Mistake((name,), f"must be {least} or more, got {getattr(self, name)}")
        if self.max_tokens is not None and self.max_tokens < 1:
            yield Mistake(("max_tokens",), f"must be 1 or more, or null; got {self.max_tokens}")
        if not (self.timeout_s > 0 and math.isfinite(self.timeout_s)):
            yield Mistake(("timeout_s",), f"must be more than 0 seconds, got {self.timeout_s:g}")
        for name in ("backoff_s", "longest_wait_s"):
            if not (getattr(self, name) >= 0 and math.isfinite(getattr(self, name))):
                yield Mistake((name,), f"must be 0 seconds or more, got {getattr(self, name):g}")
        yield from _extra_mistakes(self.extra)
        yield from price_mistakes(self.prices)

    @property
    def price(self) -> Price | None:
        """The price of the model's tokens; None if that isn't known."""
        return find_price(self.model, self.prices)

    def preflight(self, context: PreflightContext) -> None:
        """Raise a `StudyError` for a ceiling that can't be kept, or if the key isn't set."""
        run_checks(lambda: self._check_ceiling(context.max_cost_usd), self._check_key)

    def _check_ceiling(self, max_cost_usd: float | None) -> None:
        if max_cost_usd is not None and self.price is None:
            model = self.model
            raise StudyError(
                Mistake(
                    ("prices",),
                    f"the price of the model '{model}' is not known (table of {PRICES_DATE}), so "
                    f"that a ceiling of {spell_cost(max_cost_usd)} can't be kept",
                    f"add `prices: {{{model}: [input, output]}}`, in US dollars for a million "
                    "tokens ([0, 0] for a server of your own), or leave out the ceiling",
                )
            )

    def estimate(self, brief: Brief) -> Usage:
        """Return roughly what a first reply takes, if it is as long as the largest file."""
        messages = write_messages(brief, Request(RequestKind.INITIAL, 0, 0), self.answer)
        prompt = _estimate_tokens(sum(len(message["content"]) for message in messages))
        longest = max(map(len, brief.files.values()), default=0)
        answer = _estimate_tokens(longest) + 200
        if self.max_tokens is not None:
            answer = min(answer, self.max_tokens)
        return Usage(self.model, prompt, answer, cost_usd(self.price, prompt, answer))

    def _check_key(self) -> None:
        try:
            Secret.from_environment(self.key_variable)
        except LabError as error:
            raise StudyError(Mistake(("key_variable",), str(error))) from None

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Ask the model; ask once more if its answer can't be used."""
        return await self.propose_in_steps(brief, request, None, keep_nothing)

    async def propose_in_steps(
        self, brief: Brief, request: Request, earlier: Reply | None, keep: KeepStep
    ) -> Reply:
        """Ask the model; keep a first answer that can't be used before asking once more."""
        messages = write_messages(brief, request, self.answer)
        size = sum(len(message["content"]) for message in messages)
        if size > self.longest_prompt:
            return Reply(
                usage=Usage(self.model),
                refusal=f"the prompt has {size:,} characters, more than `longest_prompt` "
                f"({self.longest_prompt:,}): narrow `editable` to what matters",
            )
        shared = _get_shared(self)
        async with shared.gate:
            settings = self._settings(shared.dialect)
            return await Conversation(settings, brief, request, earlier, keep).hold(messages)

    def _settings(self, dialect: Dialect) -> ConversationSettings:
        endpoint = Endpoint(
            self.base_url,
            Secret.from_environment(self.key_variable),
            self.timeout_s,
            self.retries,
            self.backoff_s,
            self.longest_wait_s,
        )
        return ConversationSettings(
            self.model, endpoint, self.answer, self.price, self._body, dialect
        )

    def _body(self, messages: list[Message]) -> dict[str, Any]:
        """Return the body of a request to the endpoint."""
        body: dict[str, Any] = {**self.extra, "model": self.model, "messages": messages}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


@dataclass(frozen=True, slots=True)
class _SharedState:
    """What the requests of one proposer share in one event loop.

    chat: the proposer; kept, so that no other object gets its id
    gate: admits as many requests at once as the options allow
    dialect: which fields the endpoint understands, as far as that is known
    """

    chat: Chat
    gate: anyio.Semaphore
    dialect: Dialect


def _get_shared(chat: Chat) -> _SharedState:
    import anyio

    states: dict[int, _SharedState] | None = _shared_states().get(None)
    if states is None:
        states = {}
        _shared_states().set(states)
    if id(chat) not in states:
        gate, dialect = anyio.Semaphore(chat.most_at_once), Dialect.from_option(chat.tokens_field)
        states[id(chat)] = _SharedState(chat, gate, dialect)
    return states[id(chat)]


@functools.cache
def _shared_states() -> Any:
    from anyio.lowlevel import RunVar

    return RunVar[Any]("fairtrial chats")


def _estimate_tokens(characters: int) -> int:
    """Return about how many tokens code of this length has: some three characters each."""
    return math.ceil(characters / 3)


def _url_mistakes(url: str) -> Iterator[Mistake]:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_address = is_address and (parts.port is None or parts.port > 0) and url.isprintable()
    except ValueError:
        is_address = False
    if not is_address or " " in url:
        hint = "for example https://api.openai.com/v1"
        yield Mistake(("base_url",), "must be an http:// or https:// address", hint)
    elif "@" in parts.netloc or parts.query or parts.fragment:
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


def _variable_mistakes(name: str) -> Iterator[Mistake]:
    # What is no name may be the key itself, so it isn't repeated.
    if name and not (name.isascii() and name.isidentifier()):
        yield Mistake(
            ("key_variable",),
            "must be the name of an environment variable, such as OPENAI_API_KEY",
            "put the key into that variable, not here",
        )
