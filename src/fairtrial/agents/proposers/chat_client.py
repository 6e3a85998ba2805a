"""One question to a chat-completions endpoint: sent, waited for, tried again, written down.

The key goes into one header of requests to one address. Redirects are not followed, so that no
other host gets it; whatever comes back is searched for it before anybody else sees it.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fairtrial.agents.proposers.chat_wire import (
    MOST_BYTES,
    Answer,
    Stream,
    Trouble,
    read_error,
    read_whole,
)
from fairtrial.agents.proposers.secret import Secret
from fairtrial.errors import LabError, on_one_line

if TYPE_CHECKING:
    import ssl

    import httpx

LONGEST_BODY, LONGEST_REASON = 4_000, 500


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where questions go, and how long we try.

    base_url: the address, to which `/chat/completions` is added
    secret: the key
    timeout_s: how long one attempt may take, from the first byte to the last
    retries: how many further attempts there are
    backoff_s: the wait before the first of them; it doubles each time
    longest_wait_s: the longest wait, whatever the server asks for
    """

    base_url: str
    secret: Secret = field(default_factory=Secret)
    timeout_s: float = 300.0
    retries: int = 4
    backoff_s: float = 1.0
    longest_wait_s: float = 60.0

    @property
    def host(self) -> str:
        """What messages call it."""
        return urlsplit(self.base_url).netloc

    def wait_before(self, retry: int, asked_s: float | None, rng: random.Random) -> float:
        """How long to wait before a retry, the first being 0.

        Never shorter than the server asks, unless that is longer than we wait at all; spread, so
        that many who were turned away together don't come back together.
        """
        doubled = self.backoff_s * 2.0 ** min(retry, 30)
        if asked_s is None:
            return min(doubled, self.longest_wait_s) * rng.uniform(0.5, 1.0)
        return min(asked_s + rng.uniform(0.0, 0.5) * self.backoff_s, self.longest_wait_s)


@dataclass(slots=True)
class Log:
    """What was sent and received, attempt by attempt.

    entries: plain data, without the key
    has_lost_answers: whether answers had begun that never arrived: nobody knows what they cost
    """

    entries: list[Mapping[str, Any]] = field(default_factory=list)
    has_lost_answers: bool = False


class Refused(Exception):  # noqa: N818 - an answer, if not the one hoped for
    """The endpoint won't answer this request, but may answer others."""


async def ask(endpoint: Endpoint, body: Mapping[str, Any], seed: int, log: Log) -> Answer:
    """The answer to a request; every attempt is added to the log.

    Raises `Refused` where the endpoint won't answer this very request, and `LabError` where it
    can't be reached, won't have us, or doesn't get an answer through.
    """
    import anyio
    import httpx

    rng = random.Random(seed)
    attempt, wait_s = 0, 0.0
    async with httpx.AsyncClient(
        verify=_trusted(), timeout=endpoint.timeout_s, follow_redirects=False
    ) as client:
        while True:
            await anyio.sleep(wait_s)
            attempt += 1
            started = time.monotonic()
            outcome = await _attempt(client, endpoint, body)
            times = {"waited_s": wait_s, "seconds": time.monotonic() - started}
            sent = {"request": endpoint.secret.redact_all(body)} if attempt == 1 else {}
            entry = _entry(endpoint, outcome)
            log.entries.append({"attempt": attempt, **times, **sent, **entry})
            if isinstance(outcome, Answer):
                return outcome
            log.has_lost_answers |= outcome.is_paid
            if outcome.is_refusal:
                raise Refused(_explain(endpoint, outcome, attempt))
            if not outcome.may_pass or attempt > endpoint.retries:
                raise LabError(_explain(endpoint, outcome, attempt))
            wait_s = endpoint.wait_before(attempt - 1, outcome.wait_s, rng)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates count: read once, which takes as long as a short question."""
    import httpx

    return httpx.create_ssl_context()


def _entry(endpoint: Endpoint, outcome: Answer | Trouble) -> dict[str, Any]:
    """An attempt for the record."""
    redact = endpoint.secret.redact
    if isinstance(outcome, Trouble):
        # First without the key, then shorter: half a key is no better.
        return {"status": outcome.status, "error": redact(outcome.message)[:LONGEST_BODY]}
    usage = {
        "prompt_tokens": outcome.prompt_tokens,
        "completion_tokens": outcome.completion_tokens,
    }
    said = {"response": redact(outcome.text), "finish_reason": redact(outcome.finish)}
    refusal = {"refusal": redact(outcome.refusal)} if outcome.refusal else {}
    return {"status": 200, **said, **refusal, "model": redact(outcome.model), "usage": usage}


def _explain(endpoint: Endpoint, trouble: Trouble, attempts: int) -> str:
    reason = on_one_line(endpoint.secret.redact(trouble.message), LONGEST_REASON)
    status = f"{trouble.status} " if trouble.status else ""
    tries = f" ({attempts} attempts)" if attempts > 1 else ""
    text = f"{endpoint.host} gave no answer{tries}: {status}{reason}".rstrip()
    if trouble.status in (401, 403):
        variable = endpoint.secret.variable
        where = f"the environment variable {variable}" if variable else "`key_variable` (not given)"
        return f"{text}; the key comes from {where}: is it right for this endpoint?"
    if trouble.status == 404:
        return f"{text}; is `base_url` right (often it ends in /v1), and `model`?"
    return text


async def _attempt(
    client: httpx.AsyncClient, endpoint: Endpoint, body: Mapping[str, Any]
) -> Answer | Trouble:
    """One request; whatever goes wrong with it is the result."""
    import anyio
    import httpx

    late = f"no complete answer within {endpoint.timeout_s:g} s"
    # A server that we no longer wait for goes on, and counts.
    outcome: Answer | Trouble = Trouble(late, is_paid=True)
    with anyio.move_on_after(endpoint.timeout_s):
        try:
            outcome = await _exchange(client, endpoint, body)
        except Trouble as trouble:
            outcome = trouble
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            outcome = Trouble(f"no connection within {endpoint.timeout_s:g} s")
        except httpx.TimeoutException:
            pass
        except (httpx.RequestError, httpx.InvalidURL) as error:
            # What httpx says comes of the operating system or of the protocol; it may be empty.
            message = f"{type(error).__name__}: {error}".removesuffix(": ")
            outcome = Trouble(message, may_pass=isinstance(error, httpx.TransportError))
    return outcome


async def _exchange(
    client: httpx.AsyncClient, endpoint: Endpoint, body: Mapping[str, Any]
) -> Answer:
    import httpx

    key = endpoint.secret.value
    headers = {"Accept-Encoding": "identity"}  # so that what is counted is what is read
    if key:
        headers["Authorization"] = f"Bearer {key}"
    url = f"{endpoint.base_url.rstrip('/')}/chat/completions"
    async with client.stream("POST", url, json=body, headers=headers) as response:
        try:
            return await _read_response(response)
        except Trouble as trouble:
            trouble.status = response.status_code
            raise
        except httpx.TimeoutException:
            raise
        except httpx.TransportError as error:
            is_paid = response.status_code == 200
            raise Trouble(
                f"the response broke off: {error}", status=response.status_code, is_paid=is_paid
            ) from None


async def _read_response(response: httpx.Response) -> Answer:
    status = response.status_code
    if 300 <= status < 400:
        raise Trouble(_redirection(response), may_pass=False)
    if status != 200:
        raise read_error(status, await _read(response), response.headers)
    if "text/event-stream" in response.headers.get("content-type", ""):
        return await _read_stream(response)
    return read_whole(await _read(response))


def _redirection(response: httpx.Response) -> str:
    target = urlsplit(response.headers.get("location", ""))
    place = f"{target.scheme}://{target.hostname}:{target.port}" if target.netloc else "elsewhere"
    return (
        f"it redirects to {place.removesuffix(':None')}, and a key is not sent on; "
        "set `base_url` to the right address"
    )


async def _read(response: httpx.Response) -> bytes:
    data = bytearray()
    async for part in response.aiter_bytes():
        data += part
        if len(data) > MOST_BYTES:
            raise Trouble(f"the response is longer than {MOST_BYTES:,} bytes", is_paid=True)
    return bytes(data)


async def _read_stream(response: httpx.Response) -> Answer:
    import httpx

    stream, size = Stream(), 0
    try:
        async for part in response.aiter_bytes():
            size += len(part)
            if size > MOST_BYTES:
                raise Trouble(f"the response is longer than {MOST_BYTES:,} bytes", is_paid=True)
            stream.feed(part)
            if stream.is_done:
                break
    except httpx.TimeoutException:
        raise Trouble("the stream stood still for too long", is_paid=True) from None
    except httpx.TransportError:
        pass  # what came may be all there is
    return stream.finish()
