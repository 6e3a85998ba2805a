"""Answers are looked at before they are kept: rubbish costs its line, and nobody else anything."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from fairtrial import Candidate, Reply
from fairtrial.arena import FileState
from fairtrial.optimize import Request, RequestKind, Usage
from fairtrial.optimize.replies import LARGEST_MB, check_reply, make_record, read_record
from fairtrial.study.agents.journal import Journal

GOOD = Reply((Candidate("c", files={"m.py": FileState(b"x")}), None), Usage("m", 1, 2, 0.1, 3.0))


def forge(**fields):
    """A candidate that nobody has looked at: what is made otherwise than by its constructor."""
    made = Candidate("c", files={})
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def test_a_good_answer_is_kept_as_it_is():
    assert check_reply(GOOD, "mine") is GOOD
    assert check_reply(Reply(usage=Usage(cost_usd=None)), "mine").usage.cost_usd is None


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (Usage("m", cost_usd=math.nan), "usage.cost_usd is nan"),
        (Usage("m", cost_usd=math.inf), "usage.cost_usd is inf"),
        (Usage("m", cost_usd=-1), "usage.cost_usd is -1"),
        (Usage("m", prompt_tokens=-3), "usage.prompt_tokens is -3"),
        (Usage("m", completion_tokens=1.5), "usage.completion_tokens is 1.5"),
        (Usage("m", prompt_tokens=True), "usage.prompt_tokens is True"),
        (Usage("m", seconds="2 s"), "usage.seconds is '2 s'"),
        (Usage(7), "usage.model is no text"),
        (7, "its usage is a int"),
    ],
)
def test_invalid_numbers_in_a_usage_are_refused(usage, told):
    found = check_reply(replace(GOOD, usage=usage), "mine")
    assert found.candidates == ()
    assert found.refusal == f"mine gave an answer that can't be used: {told}"
    if "cost" in told or usage == 7:
        assert found.usage.cost_usd is None  # unknown, not nothing
    assert check_reply(found, "mine") is found


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"candidates": [None]}, "its candidates are a list, not a tuple"),
        ({"candidates": ("diff",)}, "candidate 0 is a str"),
        ({"candidates": (forge(name=5, diff=b""),)}, "candidate 0: its name is no text"),
        ({"candidates": (Candidate("\udce9", diff=b""),)}, "candidate 0: its name is no text"),
        ({"candidates": (forge(diff="+x"),)}, "candidate 0: its diff is a str, not bytes"),
        (
            {"candidates": (Candidate("c", files={"d\udce9.py": FileState(b"")}),)},
            "candidate 0: the name of a file is no text",
        ),
        (
            {"candidates": (forge(files={"m.py": "text"}),)},
            "candidate 0: the content of m.py is no FileState",
        ),
        ({"refusal": None}, "its refusal is no text"),
        ({"exchange": {"x": 1}}, "its exchange is a dict, not a tuple"),
    ],
)
def test_an_invalid_reply_is_refused_with_the_reason(changed, told):
    found = check_reply(replace(GOOD, **changed), "mine")
    assert (found.candidates, found.usage) == ((), GOOD.usage)
    assert told in found.refusal


def test_an_answer_that_is_too_large_costs_its_line_only():
    large = FileState(b"x" * (LARGEST_MB * 1_000_000))
    found = check_reply(Reply((Candidate("c", files={"a": large, "b": large}),)), "mine")
    assert found.refusal == "mine gave 16 MB, and an answer may have 8 MB"
    assert check_reply(Reply((Candidate("c", files={"a": large}),)), "mine").candidates


@pytest.mark.parametrize("given", [None, "text", {"candidates": []}, Candidate("c", diff=b"")])
def test_something_else_is_refused(given):
    found = check_reply(given, "mine")
    assert found.refusal == f"mine answered with a {type(given).__name__}"
    assert found.usage.cost_usd is None


RUBBISH = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=3),
    st.binary(max_size=3),
    st.just(object()),
    st.lists(st.integers(), max_size=2),
)


@given(*[RUBBISH] * 9)
def test_any_checked_reply_can_be_written_to_the_journal(
    name, diff, path, content, cost, tokens, refusal, note, place
):
    files = {path: content} if isinstance(path, str) else {}
    candidate = forge(name=name, diff=diff, files=files, note=note)
    given = Reply((candidate, place), Usage("m", tokens, 0, cost), refusal)
    record = make_record(Request(RequestKind.INITIAL, 0, 0), check_reply(given, "mine"))
    journal = Journal()
    journal.append("reply", record)
    assert read_record(journal.entries()[0].data) == check_reply(given, "mine")
