"""One question to a chat-completions endpoint: sent, waited for, tried again, written down.

The key goes into one header of requests to one address. Redirects are not followed, and proxies
are used only where they see nothing but encrypted bytes, so that no other host gets it; whatever
comes back is searched for it before anybody else sees it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fairtrial.core import LabError, on_one_line
from fairtrial.llm.dialect import Dialect, spell_hint
from fairtrial.llm.endpoint import LONGEST_REASON, Endpoint, open_client
from fairtrial.llm.secret import redact_all
from fairtrial.llm.wire import (
    MOST_BYTES,
    Answer,
    Stream,
    Trouble,
    read_error,
    read_whole,
)

if TYPE_CHECKING:
    import httpx

LONGEST_BODY = 4_000


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


async def ask(
    endpoint: Endpoint, body: Mapping[str, Any], seed: int, log: Log, dialect: Dialect
) -> Answer:
    """The answer to a request; every attempt is added to the log.

    Raises `Refused` where the endpoint won't answer this very request, and `LabError` where it
    can't be reached, won't have us, or doesn't get an answer through.
    """
    import anyio

    rng = random.Random(seed)
    attempt, wait_s = 1, 0.0
    told: dict[str, Any] | None = None
    async with open_client(endpoint) as client:
        # Before httpx looks at where to: it takes an address that is none for a broken answer.
        client.event_hooks = {"response": [_refuse_redirect]}
        while True:
            await anyio.sleep(wait_s)
            started, sent = time.monotonic(), dialect.speak(body)
            if told is None:
                told = {"request": redact_all(sent, endpoint.secret.redact)}
            outcome = await _attempt(client, endpoint, sent)
            times = {"waited_s": wait_s, "seconds": time.monotonic() - started}
            entry = _entry(endpoint, outcome)
            log.entries.append({"attempt": attempt, **times, **told, **entry})
            if isinstance(outcome, Answer):
                return outcome
            log.has_lost_answers |= outcome.is_paid
            if dialect.learns_from(outcome, sent):
                # The same attempt, in other words: nobody was busy, and nothing was paid for.
                wait_s, told = 0.0, {"tokens_field": dialect.field}
                continue
            if outcome.is_refusal:
                raise Refused(_explain(endpoint, outcome, attempt, log))
            if not outcome.may_pass or attempt > endpoint.retries:
                raise LabError(_explain(endpoint, outcome, attempt, log))
            wait_s, told = endpoint.wait_before(attempt - 1, outcome.wait_s, rng), {}
            attempt += 1


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


def answer_in(entries: Sequence[Mapping[str, Any]]) -> Answer | None:
    """The answer that a log ends with; None if it doesn't, or another version of ours wrote it."""
    try:
        last = entries[-1]
        said, usage = (last["response"], last["finish_reason"]), last["usage"]
        counted = usage["prompt_tokens"], usage["completion_tokens"]
        return Answer(*said, last.get("refusal", ""), last["model"], *counted)
    except (IndexError, KeyError, TypeError):
        return None


def _explain(endpoint: Endpoint, trouble: Trouble, attempts: int, log: Log) -> str:
    reason = on_one_line(endpoint.secret.redact(trouble.message), LONGEST_REASON)
    status = f"{trouble.status} " if trouble.status else ""
    tries = f" ({attempts} attempts)" if attempts > 1 else ""
    text = f"{endpoint.host} gave no answer{tries}: {status}{reason}".rstrip()
    if log.has_lost_answers:
        text += "; an answer was lost on its way, and may be on the bill"
    if trouble.status in (401, 403):
        variable = endpoint.secret.variable
        where = f"the environment variable {variable}" if variable else "`key_variable` (not given)"
        return f"{text}; the key comes from {where}: is it right for this endpoint?"
    if trouble.status == 404:
        return f"{text}; is `base_url` right (often it ends in /v1), and `model`?"
    if trouble.unsupported:
        return f"{text}; {spell_hint(endpoint.secret.redact(trouble.unsupported))}"
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
            # Who has the whole question and hangs up without a word may have been at work on it.
            is_paid = isinstance(error, (httpx.ReadError, httpx.RemoteProtocolError))
            may_pass = isinstance(error, httpx.TransportError)
            outcome = Trouble(message, may_pass=may_pass, is_paid=is_paid)
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
    if status != 200:
        raise read_error(status, await _read(response), response.headers)
    if "text/event-stream" in response.headers.get("content-type", ""):
        return await _read_stream(response)
    return read_whole(await _read(response))


async def _refuse_redirect(response: httpx.Response) -> None:
    if not 300 <= response.status_code < 400:
        return
    place = "elsewhere"
    try:
        target = urlsplit(response.headers.get("location", ""))
        if target.netloc:
            place = f"{target.scheme}://{target.hostname}:{target.port}".removesuffix(":None")
    except ValueError:
        pass  # no address at all
    why = f"it redirects to {place}, and a key is not sent on; set `base_url` to the right address"
    raise Trouble(why, may_pass=False, status=response.status_code)


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
