"""An HTTP service that is asked with JSON and answers with JSON: key, retries, rate limit."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fairtrial.core import LabError, Mistake, Record, StudyError, on_one_line
from fairtrial.llm.endpoint import MAX_REASON_CHARS, Endpoint, open_client
from fairtrial.llm.options import list_url_mistakes, list_variable_mistakes
from fairtrial.llm.rate_limit import shared_limit
from fairtrial.llm.responses import MAX_RESPONSE_BYTES, AttemptError, read_error
from fairtrial.llm.secret import Secret

if TYPE_CHECKING:
    import httpx

__all__ = ["ServiceAnswer", "ServiceOptions", "ask_service"]

_KEY_HEADERS = ("authorization", "x-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class ServiceOptions(Record):
    """How an HTTP service is asked.

    url: its address
    headers: further headers of each request; never a key
    key_variable: the name of the environment variable that holds the key; empty for a service that
        needs none. Never the key itself
    key_header: the header that the key is sent in
    key_prefix: what stands before the key there
    timeout_s: how long one attempt may take in all
    retries: how many further attempts there are when the service is busy, broken or out of reach;
        one at most until it was reached once
    backoff_s: the wait before the first of them; it doubles each time. What the service asks for
        has priority
    longest_wait_s: the longest wait between attempts, whatever the service asks for
    requests_per_minute: how many requests may start in a minute, for all of this process together
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    key_variable: str = ""
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    timeout_s: float = 300.0
    retries: int = 4
    backoff_s: float = 1.0
    longest_wait_s: float = 60.0
    requests_per_minute: float | None = None

    def _mistakes(self) -> Iterator[Mistake]:
        for mistake in list_url_mistakes(self.url, may_have_query=True):
            yield Mistake(("url",), mistake.message, mistake.hint)
        yield from list_variable_mistakes(self.key_variable)
        for name in self.headers:
            if name.lower() in _KEY_HEADERS:
                hint = "`key_variable` names the environment variable of the key"
                yield Mistake(("headers", name), "may hold a key, and is stored", hint)
        if not (self.timeout_s > 0 and math.isfinite(self.timeout_s)):
            yield Mistake(("timeout_s",), f"must be more than 0 seconds, got {self.timeout_s:g}")
        if self.retries < 0:
            yield Mistake(("retries",), f"must be 0 or more, got {self.retries}")
        for name in ("backoff_s", "longest_wait_s"):
            if not (getattr(self, name) >= 0 and math.isfinite(getattr(self, name))):
                yield Mistake((name,), f"must be 0 seconds or more, got {getattr(self, name):g}")
        rate = self.requests_per_minute
        if rate is not None and not 0 < rate < math.inf:
            yield Mistake(("requests_per_minute",), f"must be more than 0, got {rate:g}")

    @property
    def host(self) -> str:
        """Host and port of the service."""
        return urlsplit(self.url).netloc

    def require_key(self) -> None:
        """Raise `StudyError` if the environment variable of the key isn't set, or holds no key."""
        try:
            Secret.from_environment(self.key_variable)
        except LabError as error:
            raise StudyError(Mistake(("key_variable",), str(error))) from None


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """What a service answered.

    status: the status of its response
    text: the response, without the key
    attempts: how many requests it took
    """

    status: int
    text: str
    attempts: int


async def ask_service(options: ServiceOptions, body: Any, *, seed: int) -> ServiceAnswer:
    """Post JSON to a service, and return its answer, also a refusal (status 400 to 499).

    seed: seeds the random part of the waits between attempts

    Raises `LabError` if it can't be reached, rejects the key or the address, or is still busy or
    broken after the last attempt.
    """
    import anyio

    endpoint = Endpoint(
        options.url,
        Secret.from_environment(options.key_variable),
        options.timeout_s,
        options.retries,
        options.backoff_s,
        options.longest_wait_s,
    )
    limit = shared_limit(options.url, options.key_variable, options.requests_per_minute, None)
    rng, wait_s = random.Random(seed), 0.0
    async with open_client(endpoint) as client:
        for attempt in range(1, options.retries + 2):
            await anyio.sleep(wait_s)
            await anyio.sleep(limit.reserve(0))
            outcome = await _attempt(client, endpoint, options, body)
            is_unreached = isinstance(outcome, AttemptError) and outcome.is_unreached
            endpoint.note_attempt(is_unreached=is_unreached)
            if not isinstance(outcome, AttemptError):
                status, text = outcome
                return ServiceAnswer(status, endpoint.secret.redact(text), attempt)
            if not outcome.is_retryable or attempt > endpoint.retries_now:
                raise LabError(_explain(endpoint, outcome, attempt))
            wait_s = endpoint.wait_before(attempt - 1, outcome.wait_s, rng)
            if outcome.wait_s is not None:
                limit.hold(min(outcome.wait_s, endpoint.longest_wait_s))
    raise AssertionError("the last attempt returns or raises")


async def _attempt(
    client: httpx.AsyncClient, endpoint: Endpoint, options: ServiceOptions, body: Any
) -> tuple[int, str] | AttemptError:
    """Send one request; returns status and text, or the error for anything that goes wrong."""
    import anyio
    import httpx

    headers = {"Accept-Encoding": "identity", **options.headers}
    if endpoint.secret.value:
        headers[options.key_header] = f"{options.key_prefix}{endpoint.secret.value}"
    outcome: tuple[int, str] | AttemptError
    outcome = AttemptError(f"no complete answer within {endpoint.timeout_s:g} s")
    started = time.monotonic()
    with anyio.move_on_after(endpoint.timeout_s):
        try:
            async with client.stream("POST", options.url, json=body, headers=headers) as response:
                data = bytearray()
                async for part in response.aiter_bytes():
                    data += part
                    if len(data) > MAX_RESPONSE_BYTES:
                        text = f"the response is longer than {MAX_RESPONSE_BYTES:,} bytes"
                        return AttemptError(text, is_retryable=False)
            status = response.status_code
            error = read_error(status, bytes(data), response.headers)
            is_refusal = 400 <= status < 500 and status not in (401, 403, 404, 407)
            if 200 <= status < 300 or (is_refusal and not error.is_retryable):
                return status, data.decode("utf-8", "replace")
            if 300 <= status < 400:
                error.message = "it redirects, which is not followed; set `url` to the new address"
            outcome = error
        except (httpx.RequestError, httpx.InvalidURL) as error:
            message = f"{type(error).__name__}: {error}".removesuffix(": ")
            if isinstance(error, httpx.TimeoutException):
                message = f"no answer within {time.monotonic() - started:.1f} s"
            outcome = AttemptError(
                message,
                is_retryable=isinstance(error, httpx.TransportError),
                is_unreached=isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)),
            )
    return outcome


def _explain(endpoint: Endpoint, error: AttemptError, attempts: int) -> str:
    reason = on_one_line(endpoint.secret.redact(error.message), MAX_REASON_CHARS)
    status = f"{error.status} " if error.status else ""
    tries = f" ({attempts} attempts)" if attempts > 1 else ""
    text = f"{endpoint.host} gave no answer{tries}: {status}{reason}".rstrip()
    if error.status in (401, 403):
        variable = endpoint.secret.variable
        where = f"the environment variable {variable}" if variable else "`key_variable` (not given)"
        return f"{text}; the key comes from {where}: is it right for this service?"
    if error.is_unreached:
        return f"{text}; does the service run, and is `url` right?"
    if error.status == 404:
        return f"{text}; is `url` right?"
    return text
