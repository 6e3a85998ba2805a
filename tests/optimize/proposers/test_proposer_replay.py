"""Records of replies: written, read back, found by their keys."""

import json
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given, strategies as st

from fairtrial.arena import Candidate, FileState, Verdict
from fairtrial.core import StudyError
from fairtrial.optimize import Brief, PreflightContext, Reply, Request, RequestKind, Tried, Usage
from fairtrial.optimize.proposers.replay import (
    Replay,
    find_record,
    read_records,
    write_records,
)
from fairtrial.optimize.replies import VERSION, make_record, read_record

BRIEF = Brief("slow", "Make it faster.", {"a.py": "x = 1\n"})
TEXT = st.text(st.characters(blacklist_categories=["Cs"]))
FILES = st.dictionaries(
    TEXT,
    st.builds(FileState, st.binary(), st.none() | st.booleans(), st.booleans()),
    max_size=3,
)
CANDIDATES = st.builds(
    Candidate, TEXT, st.none() | st.binary(), FILES, st.none() | TEXT, TEXT, TEXT
)
COUNTS = st.integers(0, 10**9)
AMOUNTS = st.floats(0, 1e9)
USAGES = st.builds(Usage, TEXT, COUNTS, COUNTS, st.none() | AMOUNTS, AMOUNTS)
EXCHANGES = st.lists(st.dictionaries(TEXT, st.none() | TEXT | COUNTS | st.lists(TEXT)), max_size=2)
REPLIES = st.builds(
    Reply,
    st.lists(st.none() | CANDIDATES, max_size=3).map(tuple),
    USAGES,
    TEXT,
    EXCHANGES.map(tuple),
)


def first(line=0, **fields):
    return Request(RequestKind.INITIAL, line, 0, **fields)


def reply(name="c"):
    return Reply((Candidate(name, files={"a.py": FileState(b"x = 2\n")}),), Usage("m", 3, 4, 0.5))


def ask(path, request):
    return anyio.run(Replay(path).propose, BRIEF, request)


@given(REPLIES)
def test_a_reply_survives_its_record(reply):
    record = make_record(first(), reply)
    assert read_record(record) == reply
    assert read_record(json.loads(json.dumps(record))) == reply
    assert read_record(msgspec.msgpack.decode(msgspec.msgpack.encode(record))) == reply


def test_a_record_says_what_was_asked_and_can_be_read():
    tried = Tried("c1", "d1", "diff", Verdict.FASTER)
    request = Request(RequestKind.REFINE, 2, 1, replicate=3, seed=4, about=(tried,))
    record = make_record(request, reply())
    assert (record["version"], record["key"]) == (VERSION, "refine/d1/1/3")
    assert record["request"]["about"] == [{"name": "c1", "digest": "d1"}]
    assert record["request"]["lineage"] == 2
    assert record["reply"]["candidates"][0]["files"]["a.py"]["content"] == "x = 2\n"


def test_answers_are_found_by_key(tmp_path):
    path = tmp_path / "record.jsonl"
    requests = [first(line) for line in range(3)]
    write_records(path, [make_record(each, reply(f"c{each.lineage}")) for each in requests])
    assert ask(path, requests[1]) == reply("c1")
    # Figures and seeds are not part of the key.
    assert ask(path, first(2, seed=99)) == reply("c2")


def test_an_unknown_key_is_refused_by_name(tmp_path):
    path = tmp_path / "record.jsonl"
    write_records(path, [make_record(first(), reply())])
    answer = ask(path, first(7, replicate=2))
    assert answer.candidates == ()
    assert "initial/line 7/0/2" in answer.refusal
    assert str(path) in answer.refusal
    assert answer.usage.cost_usd == 0


def test_the_last_record_of_a_key_counts_and_changes_are_seen(tmp_path):
    path = tmp_path / "record.jsonl"
    write_records(path, [make_record(first(), reply("old")), make_record(first(), reply("new"))])
    assert ask(path, first()).candidates[0].name == "new"
    write_records(path, [make_record(first(), reply("newest of all"))])
    assert ask(path, first()).candidates[0].name == "newest of all"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{half", "is not JSON"),
        ("[]", "expected a record of version 1, got none"),
        ("{}", "expected a record of version 1, got none"),
        ('{"version": 2}', "expected a record of version 1, got 2"),
        ('{"version": 1}', "is no record of a reply"),
        ('{"version": 1, "key": 5, "reply": {}}', "is no record of a reply"),
        ('{"version": 1, "key": "k", "reply": {"candidates": [5]}}', "is no record of a reply"),
    ],
)
def test_a_damaged_record_is_named_with_its_line(tmp_path, line, why):
    path = tmp_path / "record.jsonl"
    write_records(path, [make_record(first(), reply())])
    path.write_text(f"{path.read_text()}\n{line}\n")
    with pytest.raises(StudyError) as caught:
        Replay(path).preflight(PreflightContext(Path()))
    assert f"{path}:3: {why}" in str(caught.value)


def test_a_record_that_is_not_there(tmp_path):
    with pytest.raises(StudyError, match="can't be read: No such file"):
        read_records(tmp_path / "nope.jsonl")
    with pytest.raises(StudyError, match="can't be read: Is a directory"):
        read_records(tmp_path)


def test_it_can_do_everything_at_no_cost(tmp_path):
    proposer = Replay(tmp_path / "r")
    proposer.preflight(PreflightContext(max_cost_usd=0.0))
    assert all(proposer.can(kind) for kind in RequestKind)
    assert (proposer.name, proposer.can_batch) == ("replay", True)
    with pytest.raises(StudyError, match="most_at_once"):
        Replay(tmp_path / "r", most_at_once=0)


def test_an_output_directory_stands_for_its_record(tmp_path):
    record = tmp_path / "workspaces/run-1/attempt-10/replies.jsonl"
    for attempt in ("10", "9", "9.2", "1.3"):  # the last two began again after a kill
        write_records(tmp_path / f"workspaces/run-1/attempt-{attempt}/replies.jsonl", [])
    assert find_record(tmp_path) == find_record(record) == record
    Replay(tmp_path).preflight(PreflightContext(Path()))
    write_records(tmp_path / "workspaces/run-2/attempt-1/replies.jsonl", [])
    with pytest.raises(StudyError, match="holds records of 2 runs; name one: "):
        Replay(tmp_path).preflight(PreflightContext(Path()))
    with pytest.raises(StudyError, match="holds no record"):
        Replay(tmp_path / "workspaces").preflight(PreflightContext(Path()))
