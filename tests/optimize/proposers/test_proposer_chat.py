"""The chat proposer against a real endpoint on loopback: answers, failures, money, the key."""

import contextlib
import json
import logging
import random
import socket
import threading
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime

import anyio
import pytest
from hypothesis import given, strategies as st
from llm_kit import (
    KEY,
    KEY_VARIABLE,
    Server,
    breaks_off,
    busy_until,
    completion,
    echoes_key,
    event,
    events,
    fails,
    hangs,
    hangs_up,
    reasons,
    redirects,
    says,
    says_key,
    sends,
    serving,
    waits_for,
)

from fairtrial.arena import Verdict
from fairtrial.core import LabError, StudyError, build_record
from fairtrial.llm import ChatAnswer, Secret, endpoint as chat_endpoint
from fairtrial.llm.endpoint import Endpoint
from fairtrial.llm.responses import (
    AttemptError,
    EventStreamReader,
    read_response_body,
    read_usage,
)
from fairtrial.llm.waits import read_wait
from fairtrial.optimize import Brief, PreflightContext, Reply, Request, RequestKind, Tried, Usage
from fairtrial.optimize.proposers.chat.proposer import Chat
from fairtrial.optimize.replies import make_record, read_record

BASE = "def f(x):\n    return x in [1, 2, 3]\n"
BETTER = "def f(x):\n    return x in {1, 2, 3}\n"
BRIEF = Brief("slow", "Make f faster.", {"src/slow.py": BASE, "src/other.py": "y = 1\n"})
FIRST = Request(RequestKind.INITIAL, lineage=2, step=0, seed=7)
GOOD = f"A set is faster.\n\nFILE: src/slow.py\n```python\n{BETTER}```\n"


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """A key, and no proxy between us and loopback."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def chat(server, **options):
    """A proposer that doesn't wait for long."""
    given = {"backoff_s": 0.001, "longest_wait_s": 0.01, "retries": 2, "timeout_s": 60.0}
    options = {"key_variable": KEY_VARIABLE, "prices": {"kit": (2.0, 10.0)}, **given, **options}
    return Chat(server.base_url, "kit", **options)


def ask(proposer, request=FIRST, brief=BRIEF):
    return anyio.run(proposer.propose, brief, request)


def tell(*turns, request=FIRST, **options):
    """The reply of an endpoint that takes these turns, and what it was sent."""
    with serving(*turns) as server:
        reply = ask(chat(server, **options), request)
        assert server.turns == [], "it was asked less often than expected"
        return reply, server.seen


def lose(*turns, **options):
    """The message of the `LabError` that comes of these turns."""
    with serving(*turns) as server:
        with pytest.raises(LabError) as caught:
            ask(chat(server, **options))
        assert server.turns == []
        return str(caught.value), server


# -- answers --


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_becomes_a_candidate_with_its_usage(stream):
    reply, [seen] = tell(says(GOOD), stream=stream, temperature=0.5, max_tokens=99)
    [candidate] = reply.candidates
    assert {path: state.content.decode() for path, state in candidate.files.items()} == {
        "src/slow.py": BETTER
    }
    assert (candidate.note, candidate.parent) == ("A set is faster.", None)
    assert candidate.origin == "chat: kit"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1_000, 200)
    assert reply.usage.cost_usd == pytest.approx((1_000 * 2 + 200 * 10) / 1e6)
    assert (reply.refusal, reply.usage.model) == ("", "kit")
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert (seen.body["temperature"], seen.body["max_tokens"]) == (0.5, 99)
    assert seen.body.get("stream", False) is stream


def test_search_and_replace():
    block = "FILE: src/slow.py\n<<<<<<< SEARCH\n    return x in [1, 2, 3]\n=======\n"
    block += "    return x in {1, 2, 3}\n>>>>>>> REPLACE\n"
    reply, [seen] = tell(says(block), answer="search_replace")
    assert reply.candidates[0].files["src/slow.py"].content.decode() == BETTER
    assert "<<<<<<< SEARCH" in seen.body["messages"][1]["content"]


def test_options_that_are_not_given_are_not_sent():
    reply, [seen] = tell(says(GOOD), max_tokens=None, key_variable="", extra={"top_p": 0.9})
    assert set(seen.body) == {"model", "messages", "top_p"}
    assert "authorization" not in seen.headers
    assert reply.candidates


def test_the_exchange_holds_what_was_sent_and_received():
    reply, _ = tell(fails(500), says(GOOD))
    first, second = reply.exchange
    assert (first["attempt"], first["status"]) == (1, 500)
    assert first["error"] == "something went wrong"
    assert first["request"]["messages"][0]["role"] == "system"
    assert (second["attempt"], second["status"], second["response"]) == (2, 200, GOOD)
    assert "request" not in second, "it is the same as before"
    json.dumps(reply.exchange, allow_nan=False)


def test_several_candidates_in_one_answer():
    tried = [Tried(f"c{n}", f"d{n}", "diff", Verdict.FASTER) for n in range(3)]
    request = Request(RequestKind.REFINE, lineage=0, step=1, about=tuple(tried), wanted=3)
    other = "FILE: src/other.py\n```\ny = 2\n```\n"
    reply, _ = tell(says(f"CANDIDATE 1\n{GOOD}\nCANDIDATE 3\n{other}"), request=request)
    first, second, third = reply.candidates
    assert second is None
    assert (first.parent, third.parent) == ("d0", "d2")
    assert third.files["src/other.py"].content == b"y = 2\n"
    assert first.name != third.name


def test_a_server_that_streams_unasked_or_does_not_stream_when_asked():
    stream = sends(b"".join(events(GOOD)), headers={"Content-Type": "text/event-stream"})
    assert tell(stream)[0].candidates
    assert tell(sends(completion(GOOD)), stream=True)[0].candidates


def test_thoughts_before_the_answer_are_not_the_answer():
    draft = "FILE: src/slow.py\n```\nraise NotImplementedError\n```"
    reply, _ = tell(says(f"<think>\n{draft}\n</think>\n{GOOD}"))
    assert reply.candidates[0].files["src/slow.py"].content.decode() == BETTER


# -- answers that can't be used --


def test_a_malformed_answer_is_repaired_once():
    reply, [_, seen] = tell(says("FILE: src/nope.py\n```\nx = 1\n```"), says(GOOD))
    assert reply.candidates
    assert reply.usage.prompt_tokens == 2_000, "both are paid for"
    assert reply.usage.cost_usd == pytest.approx(2 * 0.004)
    roles = [message["role"] for message in seen.body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    complaint = seen.body["messages"][-1]["content"]
    assert "src/nope.py is not one of the files that may be changed" in complaint
    assert [entry["attempt"] for entry in reply.exchange] == [1, 1]
    assert len(reply.exchange[1]["request"]["messages"]) == 4


def test_a_second_malformed_answer_is_refused_with_why():
    reply, _ = tell(says("I would use a set."), says("A set, I say."))
    assert reply.candidates == ()
    assert "there is no fenced block" in reply.refusal
    assert reply.usage.completion_tokens == 400


def test_a_truncated_answer_is_said_to_be_truncated():
    reply, [_, seen] = tell(says(GOOD, finish="length"), says(GOOD, finish="length"))
    assert reply.candidates == (), "what looks complete may not be"
    assert "cut off" in reply.refusal
    assert "finish_reason: length" in seen.body["messages"][-1]["content"]


def test_when_asking_once_more_fails_the_first_answer_is_not_lost():
    reply, _ = tell(says("Hm."), fails(400, "no more"))
    assert "no fenced block" in reply.refusal
    assert "400 no more" in reply.refusal
    assert reply.usage.prompt_tokens == 1_000
    assert reply.usage.cost_usd == pytest.approx(0.004)
    reply, _ = tell(says("Hm."), *[hangs_up()] * 3)
    assert "no fenced block" in reply.refusal
    assert reply.usage.prompt_tokens == 1_000
    assert reply.usage.cost_usd is None, "the second may be on the bill as well"
    assert [entry["attempt"] for entry in reply.exchange] == [1, 1, 2, 3]


# -- an answer that can't be used is kept before a complaint goes out --

UNUSABLE = "FILE: src/nope.py\n```\nx = 1\n```"


def tell_on(*turns, earlier=None, keep=None, **options):
    """The same as `tell`, of one who keeps what comes on the way, or has it already."""
    with serving(*turns) as server:
        steps = earlier, keep or (lambda reply: None)
        reply = anyio.run(chat(server, **options).propose_in_parts, BRIEF, FIRST, *steps)
        assert server.turns == []
        return reply, server.seen


def but_for_time(reply):
    """What doesn't differ from one time to the next."""
    told = [{**entry, "seconds": 0, "waited_s": 0} for entry in reply.exchange]
    return replace(reply, usage=replace(reply.usage, seconds=0.0), exchange=tuple(told))


def test_an_answer_is_kept_before_it_is_complained_about():
    kept, known = [], []

    def second(handler, seen, server):
        known.extend(kept)
        says(GOOD)(handler, seen, server)

    tell_on(says(UNUSABLE), second, keep=kept.append)
    [step] = kept
    assert known == [step], "when it was asked again"
    assert step.candidates == ()
    assert "src/nope.py is not one of the files" in step.refusal
    assert (step.usage.tokens, step.usage.cost_usd) == (1_200, pytest.approx(0.004))


@pytest.mark.parametrize(
    "turn", [says(GOOD), says("NO CHANGE"), says_key(), fails(400, code="content_filter")]
)
def test_an_answer_that_nothing_comes_after_is_no_step(turn):
    tell_on(turn, keep=lambda reply: pytest.fail("it is the reply"))


@pytest.mark.parametrize("second", [GOOD, UNUSABLE])
@pytest.mark.parametrize("stream", [False, True])
def test_a_kept_first_answer_is_continued_with_the_complaint(second, stream):
    kept, options = [], {"retries": 1, "stream": stream}
    turns = fails(500, "again"), says(UNUSABLE), says(second)
    expected, [*_, complaint] = tell_on(*turns, keep=kept.append, **options)
    # As a journal gives it back.
    step = read_record(json.loads(json.dumps(make_record(FIRST, kept[0]))))
    reply, [seen] = tell_on(says(second), earlier=step, keep=pytest.fail, **options)
    assert seen.body == complaint.body
    assert but_for_time(reply) == but_for_time(expected)
    assert reply.usage.cost_usd == pytest.approx(2 * 0.004)


def test_an_unknown_usage_of_the_first_answer_stays_unknown():
    kept = []
    tell_on(hangs_up(), says(UNUSABLE), says(GOOD), keep=kept.append)
    reply, _ = tell_on(says(GOOD), earlier=kept[0])
    assert (reply.usage.cost_usd, reply.usage.tokens) == (None, 2_400)


def test_a_first_answer_that_cannot_be_read_is_asked_for_again():
    step = Reply(usage=Usage("kit", 1, 1, 0.5), refusal="another version's")
    reply, [_] = tell_on(says(GOOD), earlier=step)
    assert reply.candidates
    assert reply.usage.cost_usd == pytest.approx(0.504)  # it was paid for all the same


def test_an_answer_that_cannot_be_kept_is_not_complained_about():
    def keep(reply):
        raise LabError("the journal is full")

    with pytest.raises(LabError, match="journal is full"):
        tell_on(says(UNUSABLE), keep=keep)


def test_a_model_that_has_nothing_to_propose_is_not_asked_again():
    reply, [_] = tell(says("NO CHANGE\nIt is a set already."))
    assert "changes nothing" in reply.refusal
    assert "set already" in reply.refusal
    reply, [_] = tell(says(f"FILE: src/slow.py\n```\n{BASE}```"))
    assert "changes nothing" in reply.refusal


def test_a_refusal_is_reported():
    reply, [_] = tell(says(None, refusal="I can't help with that."))
    assert reply.refusal == "the model refuses: I can't help with that."
    assert reply.usage.cost_usd == pytest.approx(0.004)
    reply, [_] = tell(says("", finish="content_filter"))
    assert "content_filter" in reply.refusal


def test_a_request_that_is_too_long_is_refused_not_broken():
    reply, [_] = tell(fails(400, "too many tokens", code="context_length_exceeded"))
    assert "too many tokens" in reply.refusal
    reply, seen = tell(longest_prompt=100)
    assert (seen, reply.exchange) == ([], ())
    assert "longest_prompt" in reply.refusal


# -- endpoints that want it in other words --


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_models_get_the_bound_by_its_other_name(stream):
    with serving(otherwise=reasons(GOOD)) as server:
        proposer = chat(server, retries=0, stream=stream, max_tokens=99)

        async def ask_twice():
            first = await proposer.propose(BRIEF, FIRST)
            return first, await proposer.propose(BRIEF, FIRST)

        replies = anyio.run(ask_twice)
    sent = [{name: seen.body.get(name) for name in BOUNDS} for seen in server.seen]
    old, new = {"max_tokens": 99}, {"max_completion_tokens": 99}
    absent = dict.fromkeys(BOUNDS)
    # Asked again at once, though there are no retries; the second request knows already.
    assert sent == [absent | old, absent | new, absent | new]
    for reply in replies:
        assert reply.candidates
        assert reply.usage.cost_usd == pytest.approx(0.004), "a refusal costs nothing"
        json.dumps(reply.exchange)
    told = [(entry["attempt"], entry["status"]) for entry in replies[0].exchange]
    assert told == [(1, 400), (1, 200)]
    assert replies[0].exchange[0]["request"]["max_tokens"] == 99
    assert replies[0].exchange[1]["tokens_field"] == "max_completion_tokens"
    assert replies[1].exchange[0]["request"]["max_completion_tokens"] == 99


BOUNDS = ("max_tokens", "max_completion_tokens")


def test_all_that_were_under_way_are_sent_again():
    with serving(otherwise=reasons(GOOD)) as server:
        proposer, replies = chat(server, retries=0, most_at_once=5), []

        async def ask_one(line):
            replies.append(await proposer.propose(BRIEF, Request(RequestKind.INITIAL, line, 0)))

        async def ask_all():
            async with anyio.create_task_group() as group:
                for line in range(5):
                    group.start_soon(ask_one, line)

        anyio.run(ask_all)
    assert len(replies) == 5
    assert all(reply.candidates for reply in replies)


def test_the_name_of_the_bound_can_be_said_outright():
    reply, [seen] = tell(reasons(GOOD), tokens_field="max_completion_tokens", max_tokens=99)
    assert reply.candidates
    assert (seen.body["max_completion_tokens"], "max_tokens" in seen.body) == (99, False)
    message, server = lose(reasons(GOOD), tokens_field="max_tokens")
    assert len(server.seen) == 1
    assert message.endswith(
        "; set `tokens_field: max_completion_tokens`, or `max_tokens: null` for no bound"
    )


def test_a_gateway_that_repeats_the_words_alone():
    said = "Unsupported parameter: 'max_tokens' is not supported with this model."
    for data in (
        json.dumps({"error": {"message": said, "code": "invalid_request_body"}}),
        json.dumps({"error": f"upstream: {said}"}),
        json.dumps({"message": f'400 {{"message": "{said}"}}'}),
    ):
        reply, [_, seen] = tell(sends(data.encode(), 400), says(GOOD))
        assert reply.candidates
        assert "max_completion_tokens" in seen.body


def test_a_bound_that_is_too_large_is_not_called_otherwise():
    error = {"message": "max_tokens is too large: 8192", "param": "max_tokens", "code": "invalid"}
    message, server = lose(sends(json.dumps({"error": error}).encode(), 400))
    assert len(server.seen) == 1
    assert message.endswith("400 max_tokens is too large: 8192")


def test_an_endpoint_that_wants_neither_is_asked_once_each():
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    message, server = lose(*[fails(400, said)] * 2)
    assert len(server.seen) == 2
    assert said in message


def test_a_temperature_that_is_refused_is_named():
    message, server = lose(*[reasons(GOOD)] * 2, temperature=0.2)
    assert len(server.seen) == 2
    assert "does not support 0.2 with this model" in message
    assert message.endswith("; leave out `temperature`: this model has its own")
    reply, _ = tell(*[reasons(GOOD)] * 2, temperature=1.0)
    assert reply.candidates
    message, _ = lose(fails(400, "Unsupported parameter: 'top_p'"), extra={"top_p": 0.9})
    assert message.endswith("; leave `top_p` out of `extra`")


# -- an endpoint in trouble --


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_transient_errors_are_retried(status):
    reply, seen = tell(fails(status), fails(status), says(GOOD))
    assert len(seen) == 3
    assert [entry["status"] for entry in reply.exchange] == [status, status, 200]
    assert reply.usage.cost_usd == pytest.approx(0.004), "errors cost nothing"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 422])
def test_permanent_errors_are_not_retried(status):
    message, server = lose(fails(status, "no, thank you"))
    assert len(server.seen) == 1
    assert f"{status} no, thank you" in message
    if status in (401, 403):
        assert KEY_VARIABLE in message
    if status == 404:
        assert "base_url" in message


def test_an_account_without_money_is_not_tried_again():
    message, server = lose(fails(429, "You exceeded your quota", code="insufficient_quota"))
    assert len(server.seen) == 1
    assert "quota" in message


def test_the_number_of_retries_is_limited():
    message, server = lose(fails(503), fails(503), fails(503))
    assert len(server.seen) == 3
    assert "(3 attempts): 503 something went wrong" in message
    assert server.base_url.removeprefix("http://").removesuffix("/v1") in message


@pytest.mark.parametrize("turn", [fails(429, headers={"Retry-After": "7"}), busy_until(7)])
def test_retry_after_is_honoured_up_to_a_cap(turn):
    reply, _ = tell(turn, says(GOOD), longest_wait_s=0.02)
    assert reply.exchange[1]["waited_s"] == 0.02


def test_retry_after_goes_before_our_own_wait():
    now = fails(503, headers={"Retry-After": "0"})
    reply, _ = tell(now, says(GOOD), backoff_s=0.002, longest_wait_s=60)
    assert reply.exchange[1]["waited_s"] <= 0.001


def test_waits_follow_from_the_seed_of_the_request():
    def waits(seed):
        request = Request(RequestKind.INITIAL, 0, 0, seed=seed)
        reply, _ = tell(fails(500), fails(500), says(GOOD), request=request)
        return [entry["waited_s"] for entry in reply.exchange]

    assert waits(1) == waits(1)
    assert waits(1) != waits(2)


def tell_in_time(turn, **options):
    """The same as `tell`, where the first turn takes too long and the second should not."""
    for limit_s in (0.4, 4, 40):  # on a busy machine it may, too
        with serving(turn, says(GOOD)) as server, contextlib.suppress(LabError):
            reply = ask(chat(server, timeout_s=limit_s, **options))
            if len(server.seen) == 2:
                break
    assert len(server.seen) == 2
    assert f"within {limit_s} s" in reply.exchange[0]["error"]
    return reply


def test_an_endpoint_that_does_not_answer_in_time():
    reply = tell_in_time(hangs())
    assert reply.candidates
    assert reply.usage.cost_usd is None, "the lost answer may be on the bill"


def test_a_stream_that_stands_still():
    start = b"".join(list(events(GOOD))[:5])
    assert tell_in_time(hangs(after=start), stream=True).candidates


def test_a_stream_that_ends_early_is_no_answer():
    start = b"".join(list(events(GOOD))[:-3])
    reply, _ = tell(hangs_up(after=start), says(GOOD), stream=True)
    assert "the stream ended early" in reply.exchange[0]["error"]
    assert reply.candidates
    assert reply.usage.cost_usd is None
    message, _ = lose(*[hangs_up(after=start)] * 3, stream=True)
    assert "ended early" in message
    assert message.endswith("; an answer was lost on its way, and may be on the bill")


def test_a_stream_without_its_last_line_is_whole():
    reply, _ = tell(hangs_up(after=b"".join(list(events(GOOD))[:-1])), stream=True)
    assert reply.candidates
    assert reply.usage.prompt_tokens == 1_000


def test_an_answer_that_breaks_off_and_a_connection_that_ends():
    reply, _ = tell(breaks_off(GOOD), hangs_up(), says(GOOD))
    assert reply.candidates
    assert "broke off" in reply.exchange[0]["error"]
    assert [entry["status"] for entry in reply.exchange] == [200, None, 200]
    reply, _ = tell(hangs_up(), says(GOOD))
    assert reply.usage.cost_usd is None, "it had the whole question"


@pytest.mark.parametrize(
    "data", [b"{not json", b"[]", b'"text"', b"", b"{}", b'{"choices": []}', b"[" * 100_000]
)
def test_a_response_that_is_no_answer(data):
    reply, _ = tell(sends(data), says(GOOD))
    assert reply.candidates
    assert reply.exchange[0]["error"]


def test_an_error_in_the_midst_of_a_stream():
    broken = event(error={"message": "overloaded", "code": 502})
    reply, _ = tell(hangs_up(after=broken), says(GOOD), stream=True)
    assert reply.exchange[0]["error"] == "overloaded"
    assert reply.usage.cost_usd == pytest.approx(0.004), "nothing had begun"
    begun = b"".join(list(events(GOOD))[:4])
    reply, _ = tell(hangs_up(after=begun + broken), says(GOOD), stream=True)
    assert reply.exchange[0]["error"] == "overloaded"
    assert reply.usage.cost_usd is None, "what had been written may be on the bill"
    final = hangs_up(after=event(error={"message": "bad model", "code": 400}))
    message, _ = lose(final, stream=True)
    assert "bad model" in message


def test_an_endpoint_that_refuses_connections_is_a_lab_error():
    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))  # so that nobody else listens there either
        server = Server([], says(GOOD), f"http://127.0.0.1:{ours.getsockname()[1]}/v1")
        with pytest.raises(LabError, match=r"gave no answer \(2 attempts\): ConnectError"):
            ask(chat(server, retries=1))


def test_an_address_that_can_not_be():
    with pytest.raises(LabError, match="InvalidURL"):
        ask(Chat(f"http://{'a' * 70}.example-\u2014/v1", "kit", retries=0))


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": -5, "completion_tokens": 10},
        {"prompt_tokens": "many", "completion_tokens": 10},
        {"prompt_tokens": None, "completion_tokens": True},
        {"prompt_tokens": 1e300, "completion_tokens": 10},
        [1, 2],
        "1000",
    ],
)
def test_usage_that_is_wrong_makes_the_cost_unknown(usage):
    reply, _ = tell(says(GOOD, usage=usage))
    assert reply.candidates, "the answer is good nevertheless"
    assert reply.usage.cost_usd is None
    assert reply.usage.prompt_tokens == 0
    free, _ = tell(says(GOOD, usage=usage), prices={"kit": (0, 0)})
    assert free.usage.cost_usd == 0


def test_a_stream_without_usage():
    reply, _ = tell(says(GOOD, usage=None), stream=True)
    assert reply.usage.cost_usd is None


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=3))
def test_usage_is_a_count_or_nothing(value):
    for count in read_usage({"prompt_tokens": value, "completion_tokens": value}):
        assert count is None or (type(count) is int and count >= 0)


def test_no_more_at_once_than_allowed_and_no_fewer():
    go = threading.Event()
    with serving(*[waits_for(go, GOOD)] * 6) as server:
        proposer = chat(server, most_at_once=2)

        async def ask_all():
            async with anyio.create_task_group() as group:
                for line in range(6):
                    group.start_soon(proposer.propose, BRIEF, Request(RequestKind.INITIAL, line, 0))
                with anyio.fail_after(60):
                    while server.inside < 2:
                        await anyio.sleep(0.001)
                await anyio.wait_all_tasks_blocked()
                go.set()

        anyio.run(ask_all)
        assert server.most_inside == 2
        assert len(server.seen) == 6


# -- the key --


def everything_of(reply):
    return repr(reply) + repr(reply.exchange) + repr(reply.candidates)


def test_the_key_is_in_the_header_and_nowhere_else(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with serving(echoes_key(500), says("Hm."), says(GOOD)) as server:
        proposer = chat(server)
        reply = ask(proposer)
        assert all(KEY in seen.headers["authorization"] for seen in server.seen)
        assert all(KEY not in json.dumps(seen.body) for seen in server.seen)
    assert "[key removed]" in reply.exchange[0]["error"]
    shown = capfd.readouterr()
    for text in (everything_of(reply), repr(proposer), caplog.text, shown.out, shown.err):
        assert KEY not in text


@pytest.mark.parametrize("status", [400, 401, 403, 500])
def test_the_key_is_not_in_error_messages(status):
    count = 3 if status == 500 else 1
    with serving(*[echoes_key(status)] * count) as server, pytest.raises(LabError) as caught:
        ask(chat(server))
    text = ""
    error = caught.value
    while error is not None:
        text += f"{error!r} {getattr(error, 'args', '')}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    # The message is cut somewhere behind 500 characters: half a key is no better.
    assert KEY[:12] not in text


def test_an_answer_with_the_key_in_it_is_refused():
    reply, _ = tell(says_key())
    assert reply.candidates == ()
    assert KEY_VARIABLE in reply.refusal
    assert KEY not in everything_of(reply)


def test_a_base_with_the_key_in_it_makes_no_candidate():
    brief = Brief("slow", "Faster.", {"src/slow.py": f"KEY = '{KEY}'\nx = 1\n"})
    block = "FILE: src/slow.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE"
    with serving(says(block)) as server:
        reply = ask(chat(server, answer="search_replace"), brief=brief)
    assert "src/slow.py holds the value of" in reply.refusal
    assert KEY not in everything_of(reply)


def test_a_redirect_is_not_followed():
    with serving() as other:
        message, server = lose(redirects(f"{other.base_url}/chat/completions?next=1"))
        assert other.seen == []
        place = other.base_url.removesuffix("/v1")
    assert len(server.seen) == 1
    assert f"redirects to {place}, " in message


@pytest.mark.parametrize("place", ["http://h:99999/", "http://[::1", "/v2", "", "http://h:x/"])
def test_a_redirect_to_no_address_is_reported(place):
    message, _ = lose(redirects(place))
    assert "307 it redirects to elsewhere, and a key is not sent on" in message


# -- what the environment says --


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_key_is_not_sent_in_clear_to_a_proxy(monkeypatch, host):
    with serving() as proxy, serving(says(GOOD)) as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        url = server.base_url.replace("127.0.0.1", host)
        assert ask(Chat(url, "kit", KEY_VARIABLE, retries=0)).candidates
        assert (len(server.seen), proxy.seen) == (1, [])


def test_a_proxy_sees_where_to_and_no_more(monkeypatch):
    with serving() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.base_url.removesuffix("/v1"))
        with pytest.raises(LabError, match="ProxyError: 502"):
            ask(Chat("https://api.example/v1", "kit", KEY_VARIABLE, retries=0))
        [seen] = proxy.seen
    assert seen.path == "api.example:443"
    assert "authorization" not in seen.headers


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://api.example/v1", True),
        ("https://10.0.0.1/v1", True),
        ("http://api.example/v1", False),
        ("https://localhost:8000/v1", False),
        ("https://model.localhost./v1", False),
        ("https://127.3.2.1/v1", False),
        ("https://[::1]:80/v1", False),
    ],
)
def test_proxies_are_used_for_https_to_other_hosts_only(url, may):
    assert Endpoint(url).may_use_proxy is may


@pytest.mark.parametrize(
    "proxy", ["socks4://me:hunter2@h:1", "socks5://me:hunter2@h:1", "http://h:port", "gopher://h"]
)
def test_a_proxy_that_can_not_be_used_is_reported(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(LabError, match=r"^api\.example can't be asked: .*ALL_PROXY") as caught:
        ask(Chat("https://api.example/v1", "kit", KEY_VARIABLE))
    assert "hunter2" not in str(caught.value)


def test_certificates_that_can_not_be_read_are_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    chat_endpoint._load_certificates.cache_clear()
    with pytest.raises(LabError, match=r"FileNotFoundError.*SSL_CERT_FILE"):
        ask(Chat("https://api.example/v1", "kit", KEY_VARIABLE))


def test_a_key_that_is_missing_or_impossible(monkeypatch):
    with serving() as server:
        for value, why in (("", "not set"), (" ", "not set"), ("sk-12345\n678", "ASCII")):
            monkeypatch.setenv(KEY_VARIABLE, value)
            with pytest.raises(LabError, match=f"{KEY_VARIABLE}.*{why}") as caught:
                ask(chat(server))
            assert "12345" not in str(caught.value)
            with pytest.raises(StudyError, match=why):
                chat(server).preflight(PreflightContext())
        assert server.seen == []
        monkeypatch.setenv(KEY_VARIABLE, f"{KEY}\n")
        chat(server).preflight(PreflightContext())


def test_a_key_that_stands_where_its_variables_name_belongs_is_not_repeated():
    mistakes = []
    given = {"base_url": "http://localhost/v1", "model": "m", "key_variable": KEY}
    build_record(Chat, given, (), mistakes)
    assert [mistake.path for mistake in mistakes] == [("key_variable",)]
    assert KEY not in str(mistakes)


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60),
    st.text(),
)
def test_nothing_of_a_key_survives_redaction(key, text):
    secret = Secret("X", key)
    message = json.dumps({"said": f"{text} Bearer {key}"})
    redacted = secret.redact(message)
    assert not secret.is_in(redacted.replace("[key removed]", ""))
    assert secret.is_in(message)
    assert key not in repr(secret) or key in repr(Secret("X", "other-key"))


# -- options --


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"base_url": "api.openai.com/v1"}, ("base_url",)),
        ({"base_url": "ftp://host/"}, ("base_url",)),
        ({"base_url": "http://host:99999/"}, ("base_url",)),
        ({"base_url": "https://me:secret@host/v1"}, ("base_url",)),
        ({"base_url": "https://host/v1?key=secret"}, ("base_url",)),
        ({"model": " "}, ("model",)),
        ({"temperature": -1}, ("temperature",)),
        ({"temperature": float("nan")}, ("temperature",)),
        ({"temperature": float("inf")}, ("temperature",)),
        ({"max_tokens": 0}, ("max_tokens",)),
        ({"timeout_s": 0}, ("timeout_s",)),
        ({"retries": -1}, ("retries",)),
        ({"backoff_s": -1}, ("backoff_s",)),
        ({"most_at_once": 0}, ("most_at_once",)),
        ({"answer": "diff"}, ("answer",)),
        ({"prices": {"m": [1]}}, ("prices", "m")),
        ({"prices": {"m": [1, -1]}}, ("prices", "m", 1)),
        ({"extra": {"messages": []}}, ("extra", "messages")),
        ({"extra": {"max_completion_tokens": 9}}, ("extra", "max_completion_tokens")),
        ({"extra": {"top_p": float("nan")}}, ("extra", "top_p")),
        ({"extra": {"since": datetime(2026, 1, 1, tzinfo=UTC)}}, ("extra", "since")),
        ({"extra": {"user": "a\udcff"}}, ("extra", "user")),
        ({"tokens_field": "tokens"}, ("tokens_field",)),
        ({"modle": "m"}, ("modle",)),
    ],
)
def test_options_are_checked_when_they_are_read(options, place):
    mistakes = []
    build_record(Chat, {"base_url": "http://localhost/v1", "model": "m", **options}, (), mistakes)
    assert [mistake.path for mistake in mistakes] == [place]
    assert "secret" not in str(mistakes)


def test_it_can_do_everything():
    proposer = Chat("http://localhost/v1", "m")
    assert all(proposer.can(kind) for kind in RequestKind)
    assert (proposer.name, proposer.can_batch, proposer.most_at_once) == ("chat", True, 4)


# -- the pieces --


@given(
    st.integers(0, 50),
    st.none() | st.floats(0, 1e6),
    st.floats(0, 100),
    st.floats(0, 100),
    st.integers(),
)
def test_waits_are_bounded_and_never_shorter_than_asked(retry, asked, backoff, longest, seed):
    endpoint = Endpoint("http://h", backoff_s=backoff, longest_wait_s=longest)
    wait = endpoint.wait_before(retry, asked, random.Random(seed))
    assert 0 <= wait <= longest
    if asked is not None:
        assert wait >= min(asked, longest)


def test_waits_double():
    endpoint = Endpoint("http://h", backoff_s=1, longest_wait_s=1e9)
    for retry in range(8):
        wait = endpoint.wait_before(retry, None, random.Random(retry))
        assert 2**retry / 2 <= wait <= 2**retry


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("12", 12),
        (" 0.5 ", 0.5),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 37),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 37),
        ("Sun Nov  6 08:49:37 1994", 37),
        ("Sun, 06 Nov 1994 08:48:00 GMT", 0),
        ("Sun, 06 Nov 1994 09:49:37 +0100", 37),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("", None),
    ],
)
def test_retry_after_is_read(header, expected):
    now = datetime(1994, 11, 6, 8, 49, tzinfo=UTC)
    assert read_wait({"retry-after": header}, now) == expected
    # The server's own clock, where it tells the time.
    told = {"retry-after": header, "date": format_datetime(now, usegmt=True)}
    assert read_wait(told, datetime(2020, 1, 1, tzinfo=UTC)) == expected


@given(st.text(), st.integers(1, 9), st.data())
def test_a_stream_may_be_cut_anywhere(text, size, data):
    whole = b"".join(events(text, size=size))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    stream = EventStreamReader()
    for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        stream.feed(whole[start:stop])
    answer = stream.finish()
    assert answer.text == text
    assert (answer.finish, answer.prompt_tokens, answer.model) == ("stop", 1_000, "kit-1")


def test_lines_of_a_stream_may_end_in_crlf_and_hold_other_line_ends():
    text = "a\u2028b\x85c\x0bd"
    stream = EventStreamReader()
    stream.feed(b"".join(events(text)).replace(b"\n", b"\r\n"))
    assert stream.finish().text == text


@given(st.binary(max_size=200))
def test_whatever_a_server_sends_is_an_answer_or_trouble(data):
    for read in (
        read_response_body,
        lambda data: (stream := EventStreamReader()).feed(data) or stream.finish(),
    ):
        with contextlib.suppress(AttemptError):
            assert isinstance(read(data), ChatAnswer)


def test_half_a_surrogate_pair_is_spelled_out():
    answer = read_response_body(b'{"choices": [{"message": {"content": "a\\ud800b"}}]}')
    assert answer.text == "a\\ud800b"


def test_a_message_in_parts():
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, "x", {"type": "text", "text": "b"}]
    assert read_response_body(completion(parts)).text == "ab"
