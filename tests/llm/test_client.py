"""The client against an endpoint on loopback: tools, schemas, recorded answers, shared limits."""

import asyncio
import json
from dataclasses import replace

import pytest
from llm_kit import (
    breaks_off,
    event,
    fails,
    hangs_up,
    says,
    sends,
    serving,
    start_stream,
)

from fairtrial import LabError
from fairtrial.llm import ChatClient, ChatOptions, RequestLog
from fairtrial.llm.rate_limit import RateLimit

QUESTION = [{"role": "user", "content": "2 + 2?"}]
ADD = {"name": "add", "description": "Add", "parameters": {"type": "object", "properties": {}}}


def make_options(server, **fields):
    return ChatOptions(server.base_url, "kit-1", **{"backoff_s": 0.0, **fields})


def ask(options, *, log=None, seed=1, messages=QUESTION, **arguments):
    async def go():
        log_ = RequestLog() if log is None else log
        return await ChatClient(options).ask(messages, seed=seed, log=log_, **arguments)

    return asyncio.run(go())


def test_tools_are_sent_and_tool_calls_are_read():
    calls = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}]
    with serving(says(None, finish="tool_calls", tool_calls=calls)) as server:
        answer = ask(make_options(server), tools=[ADD])
    assert server.seen[0].body["tools"] == [{"type": "function", "function": ADD}]
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [
        ("c1", "add", '{"a": 2}')
    ]
    assert answer.finish == "tool_calls"


def test_tool_calls_are_put_together_from_a_stream():
    parts = [
        {"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a"'}},
        {"index": 0, "function": {"arguments": ": 2}"}},
        {"index": 1, "id": "c2", "function": {"name": "sub", "arguments": "{}"}},
    ]

    def streams(handler, seen, server):
        start_stream(handler)
        for part in parts:
            handler.wfile.write(event(choices=[{"delta": {"tool_calls": [part]}}]))
        handler.wfile.write(event(choices=[{"delta": {}, "finish_reason": "tool_calls"}]))
        handler.wfile.write(b"data: [DONE]\n\n")

    with serving(streams) as server:
        answer = ask(make_options(server, stream=True), tools=[ADD])
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [
        ("add", '{"a": 2}'),
        ("sub", "{}"),
    ]


def test_a_schema_is_sent_as_the_form_of_the_answer():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with serving(says('{"n": 4}')) as server:
        assert ask(make_options(server), schema=schema).text == '{"n": 4}'
    form = server.seen[0].body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == schema


def test_pieces_of_a_streamed_answer_arrive_one_by_one():
    pieces = []
    with serving(says("one two three four")) as server:
        answer = ask(make_options(server, stream=True), on_text=pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == answer.text == "one two three four"


@pytest.mark.parametrize(
    "trouble",
    [
        fails(429, "slow down", {"Retry-After": "0"}),
        fails(500),
        sends(b"{not JSON"),
        breaks_off("four"),
        hangs_up(),
        hangs_up(after=event(choices=[{"delta": {"content": "fo"}}])),
    ],
    ids=["429", "500", "bad JSON", "half a body", "no response", "half a stream"],
)
def test_a_passing_trouble_is_retried(trouble):
    log = RequestLog()
    with serving(trouble, says("four")) as server:
        assert ask(make_options(server), log=log).text == "four"
    assert len(log.entries) == len(server.seen) == 2


def test_a_recorded_answer_is_not_asked_for_again_and_replays_offline(tmp_path):
    with serving(says("four"), says("five"), says("six")) as server:
        options = make_options(server, cache="keep", cache_dir=str(tmp_path))
        first = ask(options)
        again = ask(options)
        assert ask(options, replicate=1).text == "five"
        assert ask(options, seed=2).text == "six"
        assert len(server.seen) == 3
    assert not first.is_cached
    assert again == replace(first, is_cached=True)
    offline = replace(options, cache="replay", key_variable="NOT_SET")
    assert ask(offline) == again  # nobody listens any more
    with pytest.raises(LabError, match="no recorded answer"):
        ask(offline, seed=3)


def test_a_damaged_record_is_asked_for_again(tmp_path):
    with serving(says("four"), says("four")) as server:
        options = make_options(server, cache="keep", cache_dir=str(tmp_path))
        ask(options)
        (path,) = tmp_path.rglob("*.json")
        path.write_text("{", "utf-8")
        assert not ask(options).is_cached
    assert json.loads(path.read_text("utf-8"))["answer"]["text"] == "four"


def test_requests_are_spaced_and_a_servers_wait_holds_everybody_back():
    now = 100.0
    limit = RateLimit(requests_per_minute=60, clock=lambda: now)
    assert [limit.reserve(5) for _ in range(3)] == [0.0, 1.0, 2.0]
    limit.hold(10.0)
    assert limit.reserve(5) == 10.0
    assert limit.reserve(5) == 11.0


def test_tokens_are_spaced_by_what_they_really_took():
    now = 0.0
    limit = RateLimit(tokens_per_minute=600, clock=lambda: now)
    assert limit.reserve(10) == 0.0
    limit.correct(20)
    assert limit.reserve(10) == 3.0


def test_clients_of_one_endpoint_share_its_limit():
    with serving(otherwise=says("four")) as server:
        slow = make_options(server, requests_per_minute=6_000)
        one, other = (_limit_of(options) for options in (slow, make_options(server)))
    assert one is other
    assert one.requests_per_minute == 6_000


def _limit_of(options):
    async def go():
        return ChatClient(options)._limit

    return asyncio.run(go())


def test_an_address_that_was_never_reached_is_given_up_after_one_retry():
    with serving(says("four")) as server:
        options = make_options(server, retries=4)
    log = RequestLog()  # the server is gone, and nobody has asked it yet
    with pytest.raises(LabError, match=r"2 attempts.*does the server run, and is `base_url` right"):
        ask(options, log=log)
    assert len(log.entries) == 2


def test_an_address_that_was_reached_before_gets_all_retries():
    with serving(says("four")) as server:
        options = make_options(server, retries=4)
        assert ask(options).text == "four"
    with pytest.raises(LabError, match="5 attempts"):
        ask(options)
