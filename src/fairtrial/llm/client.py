"""The client for chat-completions endpoints, with retries and a log of all attempts.

The key is sent in one header to one address. Redirects are not followed, and proxies are used only
for encrypted connections, so that no other host sees it. Responses are redacted before they are
logged or shown.
"""

from __future__ import annotations

import functools
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fairtrial.core import AccessError, LabError, on_one_line
from fairtrial.llm.answer_cache import answer_key
from fairtrial.llm.dialect import Dialect, hint_unsupported
from fairtrial.llm.endpoint import MAX_REASON_CHARS, Endpoint, open_client
from fairtrial.llm.options import ChatOptions, Message
from fairtrial.llm.rate_limit import CHARS_PER_TOKEN, shared_limit
from fairtrial.llm.responses import (
    MAX_RESPONSE_BYTES,
    AttemptError,
    ChatAnswer,
    EventStreamReader,
    read_error,
    read_response_body,
)
from fairtrial.llm.secret import Secret, redact_all

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)
MAX_LOGGED_CHARS = 4_000
PROBE_S = 15.0
"""How long a probe of an endpoint may take."""


@dataclass(slots=True)
class RequestLog:
    """The attempts of one or more requests.

    entries: one entry of plain data for each attempt, without the key
    has_lost_answers: whether answers broke off or timed out: their cost is unknown
    """

    entries: list[Mapping[str, Any]] = field(default_factory=list)
    has_lost_answers: bool = False

    def read_last_answer(self) -> ChatAnswer | None:
        """Return the answer in the last entry; None if it has none that can be read."""
        try:
            last = self.entries[-1]
            usage = last["usage"]
            return ChatAnswer(
                last["response"],
                last["finish_reason"],
                last.get("refusal", ""),
                last["model"],
                usage["prompt_tokens"],
                usage["completion_tokens"],
            )
        except (IndexError, KeyError, TypeError):
            return None


class RequestRefused(Exception):  # noqa: N818 - a valid result of a request
    """The endpoint refuses to answer this request, but may answer others."""


class ChatClient:
    """Asks one model behind a chat-completions endpoint; safe for concurrent callers.

    Give the client of one event loop to all callers there: it limits how many requests are under
    way at once, and remembers which fields the endpoint understands.
    """

    def __init__(self, options: ChatOptions) -> None:
        """Make a client; raise `LabError` if the key is missing in the environment.

        options: address, key, retries, prices, and what is sent
        """
        import anyio

        self.options = options
        self.endpoint = options.make_endpoint()
        self._dialect = Dialect.from_option(options.tokens_field)
        self._cache = options.make_cache()
        self._limit = shared_limit(
            options.base_url,
            options.key_variable,
            options.requests_per_minute,
            options.tokens_per_minute,
        )
        self._seats = anyio.Semaphore(options.most_at_once)

    @classmethod
    def of_event_loop(cls, options: ChatOptions) -> ChatClient:
        """Return the client that all requests with these options share in this event loop."""
        clients: dict[str, ChatClient] | None = _clients().get(None)
        if clients is None:
            clients = {}
            _clients().set(clients)
        key = repr(options)
        if key not in clients:
            clients[key] = cls(options)
        return clients[key]

    @property
    def secret(self) -> Secret:
        """The key."""
        return self.endpoint.secret

    async def probe(self) -> None:
        """Ask the endpoint for its models, which costs nothing, to see that it is there.

        Raises `LabError` if it can't be reached, and `AccessError` if it rejects the key. Whatever
        else it answers is enough: not all endpoints list models.
        """
        import anyio
        import httpx

        if self.options.cache == "replay":
            return
        endpoint, status, reason = self.endpoint, 0, f"no answer within {PROBE_S:g} s"
        key = endpoint.secret.value
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = f"{endpoint.base_url.rstrip('/')}/models"
        with anyio.move_on_after(PROBE_S):
            try:
                async with (
                    open_client(endpoint) as client,
                    client.stream("GET", url, headers=headers) as response,
                ):
                    status = response.status_code
            except (httpx.TransportError, httpx.InvalidURL) as error:
                reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        if status == 401:
            message = AttemptError("it rejects the key", status=status, is_access=True)
            raise AccessError(_explain_failure(endpoint, message, 1, RequestLog()))
        if not status:
            reason = on_one_line(endpoint.secret.redact(reason), MAX_REASON_CHARS)
            raise LabError(f"{endpoint.host} can't be reached ({reason}); is `base_url` right?")

    @asynccontextmanager
    async def seat(self) -> AsyncIterator[None]:
        """Wait until one more conversation may be under way, for the duration of the block."""
        async with self._seats:
            yield

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        seed: int,
        log: RequestLog,
        replicate: int = 0,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ChatAnswer:
        """Send messages, retry as needed, and return the model's answer.

        seed: seeds the random part of the waits between attempts; part of a recorded answer's key
        log: gets an entry for every attempt
        replicate: the other part of that key: replicates don't share answers
        tools: the tools that the model may call: `name`, `description`, `parameters`
        schema: the JSON schema that the answer must follow
        on_text: called with each piece of a streamed answer; after an attempt that broke off, the
            answer comes again from its beginning

        Raises `RequestRefused` if the endpoint refuses this request, `AccessError` if it rejects
        the key or a quota is used up, and `LabError` if it can't be reached or gives no complete
        answer; also if there is no recorded answer and `cache` is `replay`.
        """
        body = self.options.make_body(messages, tools, schema)
        if self._cache is None:
            return await self._send(body, seed, log, on_text)
        key = answer_key(self.endpoint.base_url, body, seed, replicate)
        answer = self._cache.find(key)
        if answer is None:
            if self.options.cache == "replay":
                raise LabError(
                    f"there is no recorded answer for this request to {self.options.model} in "
                    f"{self._cache.folder} (key {key[:12]}), and `cache: replay` asks nobody; "
                    "record it with `cache: keep`"
                )
            answer = await self._send(body, seed, log, on_text)
            self._cache.keep(key, body, answer, self.secret)
        return answer

    async def _send(
        self,
        body: Mapping[str, Any],
        seed: int,
        log: RequestLog,
        on_text: Callable[[str], None] | None,
    ) -> ChatAnswer:
        """Send a request until it is answered, refused, or out of attempts."""
        import anyio

        endpoint, dialect = self.endpoint, self._dialect
        rng = random.Random(seed)
        attempt, wait_s = 1, 0.0
        details: dict[str, Any] | None = None
        async with open_client(endpoint) as client:
            # A hook runs before httpx parses the redirect's target, which it may fail to do.
            client.event_hooks = {"response": [_refuse_redirect]}
            while True:
                await anyio.sleep(wait_s)
                guess = _guess_tokens(body)
                await anyio.sleep(self._limit.reserve(guess))
                started, sent = time.monotonic(), dialect.translate(body)
                if details is None:
                    details = {"request": redact_all(sent, endpoint.secret.redact)}
                outcome = await _attempt(client, endpoint, sent, on_text)
                times = {"waited_s": wait_s, "seconds": time.monotonic() - started}
                entry = _make_log_entry(endpoint, outcome)
                log.entries.append({"attempt": attempt, **times, **details, **entry})
                logger.debug(
                    "%s, attempt %s: status %s in %.3f s",
                    *(endpoint.host, attempt, entry["status"], times["seconds"]),
                )
                is_unreached = isinstance(outcome, AttemptError) and outcome.is_unreached
                endpoint.note_attempt(is_unreached=is_unreached)
                if isinstance(outcome, ChatAnswer):
                    self._limit.correct(_count_tokens(outcome, guess) - guess)
                    return outcome
                log.has_lost_answers |= outcome.is_paid
                if dialect.adapt_to(outcome, sent):
                    # The same attempt: the endpoint was not busy, and nothing was paid for.
                    wait_s, details = 0.0, {"tokens_field": dialect.field}
                    continue
                if outcome.is_refusal:
                    raise RequestRefused(_explain_failure(endpoint, outcome, attempt, log))
                if not outcome.is_retryable or attempt > endpoint.retries_now:
                    kind = AccessError if outcome.is_access else LabError
                    raise kind(_explain_failure(endpoint, outcome, attempt, log))
                wait_s, details = endpoint.wait_before(attempt - 1, outcome.wait_s, rng), {}
                if outcome.wait_s is not None:  # the server's own wait concerns all its clients
                    self._limit.hold(min(outcome.wait_s, endpoint.longest_wait_s))
                attempt += 1


def _guess_tokens(body: Mapping[str, Any]) -> int:
    """Return roughly how many tokens a request takes, its answer left out."""
    return len(json.dumps(body["messages"], default=str)) // CHARS_PER_TOKEN


def _count_tokens(answer: ChatAnswer, guess: int) -> int:
    prompt = guess if answer.prompt_tokens is None else answer.prompt_tokens
    return prompt + (answer.completion_tokens or 0)


@functools.cache
def _clients() -> Any:
    from anyio.lowlevel import RunVar

    return RunVar[Any]("fairtrial chat clients")


def _make_log_entry(endpoint: Endpoint, outcome: ChatAnswer | AttemptError) -> dict[str, Any]:
    """Return the result of an attempt as plain data, without the key."""
    redact = endpoint.secret.redact
    if isinstance(outcome, AttemptError):
        # Redact before cutting, so that no part of the key remains.
        return {"status": outcome.status, "error": redact(outcome.message)[:MAX_LOGGED_CHARS]}
    usage = {
        "prompt_tokens": outcome.prompt_tokens,
        "completion_tokens": outcome.completion_tokens,
    }
    response = {"response": redact(outcome.text), "finish_reason": redact(outcome.finish)}
    refusal = {"refusal": redact(outcome.refusal)} if outcome.refusal else {}
    calls = [asdict(call) for call in outcome.tool_calls]
    tools = {"tool_calls": redact_all(calls, redact)} if calls else {}
    return {
        "status": 200,
        **response,
        **refusal,
        **tools,
        "model": redact(outcome.model),
        "usage": usage,
    }


def _explain_failure(
    endpoint: Endpoint, error: AttemptError, attempts: int, log: RequestLog
) -> str:
    reason = on_one_line(endpoint.secret.redact(error.message), MAX_REASON_CHARS)
    status = f"{error.status} " if error.status else ""
    tries = f" ({attempts} attempts)" if attempts > 1 else ""
    text = f"{endpoint.host} gave no answer{tries}: {status}{reason}".rstrip()
    if log.has_lost_answers:
        text += "; an answer was lost on its way, and may be on the bill"
    if error.is_access:
        variable = endpoint.secret.variable
        where = f"the environment variable {variable}" if variable else "`key_variable` (not given)"
        question = "is it right for this endpoint"
        if error.status not in (401, 403):
            question = "is there credit left on its account"
        return f"{text}; the key comes from {where}: {question}?"
    if error.is_unreached:
        return f"{text}; does the server run, and is `base_url` right?"
    if error.status == 404:
        return f"{text}; is `base_url` right (often it ends in /v1), and `model`?"
    if error.unsupported:
        return f"{text}; {hint_unsupported(endpoint.secret.redact(error.unsupported))}"
    return text


async def _attempt(
    client: httpx.AsyncClient,
    endpoint: Endpoint,
    body: Mapping[str, Any],
    on_text: Callable[[str], None] | None,
) -> ChatAnswer | AttemptError:
    """Send one request; returns the answer, or the error for anything that goes wrong."""
    import anyio
    import httpx

    late = f"no complete answer within {endpoint.timeout_s:g} s"
    # The server probably keeps working after a timeout, and charges for the answer.
    outcome: ChatAnswer | AttemptError = AttemptError(late, is_paid=True)
    with anyio.move_on_after(endpoint.timeout_s):
        try:
            outcome = await _exchange(client, endpoint, body, on_text)
        except AttemptError as error:
            outcome = error
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            late = f"no connection within {endpoint.timeout_s:g} s"
            outcome = AttemptError(late, is_unreached=True)
        except httpx.TimeoutException:
            pass
        except (httpx.RequestError, httpx.InvalidURL) as error:
            # The text of httpx's errors may be empty.
            message = f"{type(error).__name__}: {error}".removesuffix(": ")
            # A server that closes the connection after the request may have worked on an answer.
            is_paid = isinstance(error, (httpx.ReadError, httpx.RemoteProtocolError))
            outcome = AttemptError(
                message,
                is_retryable=isinstance(error, httpx.TransportError),
                is_paid=is_paid,
                is_unreached=isinstance(error, httpx.ConnectError),
            )
    return outcome


async def _exchange(
    client: httpx.AsyncClient,
    endpoint: Endpoint,
    body: Mapping[str, Any],
    on_text: Callable[[str], None] | None,
) -> ChatAnswer:
    import httpx

    key = endpoint.secret.value
    headers = {"Accept-Encoding": "identity"}  # so that the size limit holds for what is decoded
    if key:
        headers["Authorization"] = f"Bearer {key}"
    url = f"{endpoint.base_url.rstrip('/')}/chat/completions"
    async with client.stream("POST", url, json=body, headers=headers) as response:
        try:
            return await _read_response(response, on_text)
        except AttemptError as error:
            error.status = response.status_code
            raise
        except httpx.TimeoutException:
            raise
        except httpx.TransportError as error:
            is_paid = response.status_code == 200
            raise AttemptError(
                f"the response broke off: {error}", status=response.status_code, is_paid=is_paid
            ) from None


async def _read_response(
    response: httpx.Response, on_text: Callable[[str], None] | None
) -> ChatAnswer:
    status = response.status_code
    if status != 200:
        raise read_error(status, await _read_body(response), response.headers)
    if "text/event-stream" in response.headers.get("content-type", ""):
        return await _read_stream(response, on_text)
    return read_response_body(await _read_body(response))


async def _refuse_redirect(response: httpx.Response) -> None:
    if not 300 <= response.status_code < 400:
        return
    address = "elsewhere"
    try:
        target = urlsplit(response.headers.get("location", ""))
        if target.netloc:
            address = f"{target.scheme}://{target.hostname}:{target.port}".removesuffix(":None")
    except ValueError:
        pass  # not a valid address
    reason = (
        f"it redirects to {address}, and a key is not sent on; set `base_url` to the right address"
    )
    raise AttemptError(reason, is_retryable=False, status=response.status_code)


async def _read_body(response: httpx.Response) -> bytes:
    data = bytearray()
    async for part in response.aiter_bytes():
        data += part
        if len(data) > MAX_RESPONSE_BYTES:
            raise AttemptError(
                f"the response is longer than {MAX_RESPONSE_BYTES:,} bytes", is_paid=True
            )
    return bytes(data)


async def _read_stream(
    response: httpx.Response, on_text: Callable[[str], None] | None
) -> ChatAnswer:
    import httpx

    stream, size = EventStreamReader(on_text), 0
    try:
        async for part in response.aiter_bytes():
            size += len(part)
            if size > MAX_RESPONSE_BYTES:
                raise AttemptError(
                    f"the response is longer than {MAX_RESPONSE_BYTES:,} bytes", is_paid=True
                )
            stream.feed(part)
            if stream.is_done:
                break
    except httpx.TimeoutException:
        raise AttemptError("the stream stood still for too long", is_paid=True) from None
    except httpx.TransportError:
        pass  # the answer may be complete; `finish` raises if it isn't
    return stream.finish()
