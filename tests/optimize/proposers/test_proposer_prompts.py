"""What models are told."""

import re

import pytest
from hypothesis import given, strategies as st

from fairtrial.arena import Difference, Estimate, Failure, Verdict
from fairtrial.optimize import Brief, Request, RequestKind, Tried
from fairtrial.optimize.proposers.chat.prompts import write_complaint, write_messages
from fairtrial.optimize.proposers.command.prompt import write_prompt
from fairtrial.optimize.proposers.prompt_parts import fence_text

BRIEF = Brief(
    "slow",
    "Make toposort faster.",
    {"b.py": "B = 1\n", "a.py": "A = 1"},
    checks=("pytest tests", "toposort:sort gives what it gives now"),
    benchmarks=("toposort:sort on 1,000 nodes",),
    min_effect=0.03,
)
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-A = 1\n+A = 2\n"
FAILURE = Failure(
    "check[1]", "toposort:sort, case 7", "another result", (Difference("result[3]", "5", "6"),)
)


def tried(number, verdict=Verdict.FASTER, ratio=None, **fields):
    estimate = Estimate(ratio, ratio - 0.1, ratio + 0.1, 10, 0.95) if ratio else None
    return Tried(f"c{number}", f"d{number}", DIFF, verdict, estimate=estimate, **fields)


def told(request, form="whole_file", brief=BRIEF):
    system, user = write_messages(brief, request, form)
    assert (system["role"], user["role"]) == ("system", "user")
    return user["content"]


def test_every_request_says_what_is_asked_and_shows_the_files():
    text = told(Request(RequestKind.INITIAL, 0, 0))
    for part in (
        "Make toposort faster.",
        "- pytest tests",
        "- toposort:sort on 1,000 nodes",
        "3.0%",
        "FILE: a.py\n```python\nA = 1\n```",
        "FILE: b.py\n```python\nB = 1\n```",
    ):
        assert part in text
    assert text.index("FILE: a.py") < text.index("FILE: b.py")


def test_a_repair_shows_what_failed_with_expected_and_actual():
    about = tried(1, Verdict.REJECTED, why="different results", failures=(FAILURE,))
    text = told(Request(RequestKind.REPAIR, 0, 1, about=(about,)))
    for part in (DIFF, "different results", "case 7", "result[3]", "expected: 5", "actual:   6"):
        assert part in text


def test_a_repair_shows_no_more_than_can_be_read():
    failure = Failure("check[0]", "t", "m" * 9_999, (Difference("r", "e" * 9_999, "a"),) * 20)
    about = tried(1, Verdict.REJECTED, failures=(failure,) * 20)
    text = told(Request(RequestKind.REPAIR, 0, 1, about=(about,)))
    assert len(text) < 40_000
    assert "and 15 further failures" in text
    assert "and 15 more places" in text


def test_a_refinement_shows_the_ratio_with_its_interval():
    text = told(Request(RequestKind.REFINE, 0, 1, about=(tried(1, ratio=1.5),)))
    assert "1.500 times as fast as the original (95% interval 1.400 to 1.600)" in text
    assert DIFF in text


def test_adapting_shows_what_each_step_gained():
    history = (
        tried(1, ratio=1.5),
        tried(2, Verdict.REJECTED, why="tests fail"),
        tried(3, ratio=3.0),
    )
    text = told(Request(RequestKind.ADAPT, 0, 3, about=(history[-1],), history=history))
    steps = re.findall(r"^\d\. .*", text, re.MULTILINE)
    assert len(steps) == 3
    assert "by itself: 1.500 times" in steps[0]
    assert "rejected: tests fail" in steps[1]
    assert "by itself: 2.000 times" in steps[2]


def gains_in(text):
    found = re.findall(r"^(\d)\. (?:.*by itself: ([\d.]+) times)?", text, re.MULTILINE)
    return [(int(number), gain) for number, gain in found]


def test_gains_are_those_over_the_best_before_in_both_prompts():
    # A line goes on from its best: the third step is one of 1.1, not of 2.2.
    history = (
        tried(1, ratio=2.0),
        tried(2, Verdict.SLOWER, ratio=1.0),
        tried(3, ratio=2.2),
        tried(4, Verdict.REJECTED, ratio=9.0, why="tests fail"),
        tried(5, ratio=3.3, why="twice the memory"),
        tried(6, ratio=4.4),
    )
    gains = [(1, "2.000"), (2, "0.500"), (3, "1.100"), (4, ""), (5, "1.500"), (6, "2.000")]
    request = Request(RequestKind.ADAPT, 0, 6, about=(history[-1],), history=history)
    assert gains_in(told(request)) == gains_in(write_prompt(BRIEF, request)) == gains
    # What is told of by itself is left out, but counts.
    request = Request(RequestKind.REPAIR, 0, 6, about=(history[0],), history=history)
    assert gains_in(told(request)) == gains_in(write_prompt(BRIEF, request)) == gains[1:]


def test_adapting_shows_the_best_of_them():
    history = (tried(1, ratio=2.0), tried(2, Verdict.SLOWER, ratio=0.5))
    text = told(Request(RequestKind.ADAPT, 0, 2, about=history[:1], history=history))
    assert text.index("The best of them") < text.rindex("2.000 times as fast as the original")
    assert "last attempt" not in text


def test_several_are_asked_for_by_number():
    about = (tried(1, ratio=1.5), tried(2, Verdict.REJECTED, failures=(FAILURE,)))
    text = told(Request(RequestKind.REFINE, 0, 1, about=about, wanted=2))
    assert text.index("## Attempt 1") < text.index("1.500 times") < text.index("## Attempt 2")
    assert "CANDIDATE 1, CANDIDATE 2" in text
    assert "CANDIDATE" in write_complaint(["x"], 2)
    assert "CANDIDATE" not in write_complaint(["x"], 1)


@pytest.mark.parametrize("kind", list(RequestKind))
def test_equal_requests_are_nudged_in_different_ways(kind):
    about = () if kind == RequestKind.INITIAL else (tried(1, ratio=2.0),)
    requests = [Request(kind, 0, 0, replicate=n, about=about, history=about) for n in range(30)]
    texts = [told(request) for request in requests]
    assert len(set(texts)) == 30
    assert texts == [told(request) for request in requests]


def test_first_proposals_of_different_lines_differ():
    assert len({told(Request(RequestKind.INITIAL, line, 0)) for line in range(20)}) == 20


def test_the_seed_is_not_in_the_prompt():
    assert told(Request(RequestKind.INITIAL, 0, 0, seed=1)) == told(
        Request(RequestKind.INITIAL, 0, 0, seed=2)
    )


def test_the_form_of_the_answer():
    request = Request(RequestKind.INITIAL, 0, 0)
    assert "<<<<<<< SEARCH" in told(request, "search_replace")
    assert "SEARCH" not in told(request)
    brief = Brief("p", "t", {"a.py": "'''\n`````\n'''\n"})
    assert "``````python\n...the whole file...\n``````" in told(request, brief=brief)


def test_text_that_json_cannot_hold_is_escaped():
    about = tried(1, Verdict.REJECTED, why="no file a\udcffb")
    assert "no file a\\udcffb" in told(Request(RequestKind.REPAIR, 0, 1, about=(about,)))
    assert "- no file a\\udcffb" in write_complaint(["no file a\udcffb"], 1)


@given(st.text())
def test_a_fence_does_not_occur_in_what_it_holds(text):
    block = fence_text(text)
    fence = block.partition("\n")[0]
    assert block.count(fence) == 2
    assert block.endswith(f"\n{fence}")
