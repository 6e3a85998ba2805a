"""The winner in words: all that is known is said, and others' words mean nothing."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.arena.handover.coverage import Coverage, Span
from fairtrial.arena.handover.edits import Edit, Edits, find_differing
from fairtrial.arena.handover.explanation import Finding, explain
from fairtrial.arena.handover.profile import HotLine, Part, Profile, Side
from fairtrial.arena.handover.quoting import cells, code, plain, quote, word
from fairtrial.model.candidates import FileState
from fairtrial.model.code import Benchmark, Check, CodeProblem
from fairtrial.model.judgements import Judgement
from fairtrial.model.timings import Estimate, Measurement, Pair, Timing
from fairtrial.model.verdicts import Basis, Verdict

ESTIMATE = Estimate(1.5, 1.4, 1.6, 10, 0.95)
TIMING = Timing(
    "sort",
    Verdict.FASTER,
    ESTIMATE,
    cpu_ratio=1.45,
    base_s=0.0021,
    startup=1.02,
    outside=0.011,
    peak_rss_mb=Pair(40.0, 44.0),
    notes=("the machine was busy",),
)
EDITS = Edits(
    {
        "src/a.py": Edit(FileState(b"x\ny\n", False), FileState(b"x\nz\nw\n", False)),
        "src/new.py": Edit(None, FileState(b"1\n", False)),
        "src/old.py": Edit(FileState(b"1\n2\n", False), None),
        "data.bin": Edit(FileState(b"\0", False), FileState(b"\0\1", False)),
    },
    b"",
)
SIDE = Side((HotLine("src/a.py", 2, "y | z", 1000, 0.5, 0.9),), 1.0, 0.25, 20)
FINDING = Finding(
    CodeProblem(
        "toposort",
        check=(
            Check(command=("{python}", "-m", "pytest")),
            Check(function="a:sort", inputs="make.py:make", cases=40),
            Check(command=("tool",), compare="output"),
        ),
        bench=(Benchmark("sort", "a:sort", "make.py:make"),),
    ),
    "line 3, step 2",
    EDITS,
    Judgement("c", "d", Verdict.FASTER, Basis.COMPARED),
    Measurement(Verdict.FASTER, ESTIMATE, True, timings=(TIMING,), is_confirmed=True),
    note="Uses a set.",
    origin="chat",
    is_rechecked=True,
    coverage=Coverage(10, 8, (Span("src/a.py", 3, 4),)),
    profile=Profile((Part("sort: a:sort", SIDE, replace(SIDE, plain_s=None)),), ("b: no",)),
    notes=("a test is unstable",),
)


def test_all_that_is_known_is_said():
    text = explain(FINDING)
    for words in (
        "# `toposort`: 1.50 times as fast",
        "- `src/a.py` (+2 -1)",
        "- `src/new.py` (new, +1 -0)",
        "- `src/old.py` (removed, +0 -2)",
        "- `data.bin` (not by lines)",
        "proposed by `chat`",
        "```text\nUses a set.\n```",
        "**1.500 times as fast (1.400 to 1.600)**",
        "95% confidence interval for that ratio",
        "from 10 sessions",
        "fresh sessions, taken after",
        "| `sort` | 1.500 | 1.400 to 1.600 | faster | 1.450 | 2.1 ms |",
        "**Compared results**",
        "- `{python} -m pytest`: every test that passed before passes",
        "`a:sort` gives and raises the same",
        "for 40 made inputs",
        "- `tool`: it prints the same",
        "inputs that no candidate had seen",
        "run 8 of 10 changed lines that have code (80%)",
        "**No check runs** `src/a.py:3-4`.",
        "memory 40 MB before, 44 MB with it; start-up 1.02 times as long as before",
        "### `sort: a:sort`",
        "Before (20 calls, 4.0 times as slow as when nobody looks on):",
        "With it (20 calls):",
        "| 90% | 1,000 | `src/a.py:2` | `y \\| z` |",
        "Not profiled: b: no",
        "- Changed lines that no check runs are unproven.",
        "- the machine was busy",
        "fairtrial evaluate problem.yaml best.patch",
    ):
        assert words in text, words
    assert re.findall("^## (.*)", text, re.MULTILINE) == [
        "What changes",
        "What it gains",
        "What the verdict rests on",
        "What else it costs",
        "Where the time goes",
        "What could still be wrong",
        "What else to know",
        "How to reproduce",
    ]


def test_what_is_not_known_is_said_too():
    bare = replace(
        FINDING,
        judgement=Judgement("c", "d", Verdict.FASTER, Basis.TESTS, not_exercised=("src/b.py",)),
        measurement=Measurement(Verdict.FASTER, ESTIMATE, True, vetoes=("more memory",)),
        note="",
        is_rechecked=False,
        coverage=None,
        profile=None,
        problem=replace(FINDING.problem, file="my problem.yaml"),
    )
    text = explain(bare)
    for words in (
        "the ratio may be a little too good",
        "**Tests only**: tests that run in the candidate's own process",
        "was not looked at",
        "No result was compared outside of the candidate's reach",
        "not made again with inputs",
        "No check loaded `src/b.py`",
        "- more memory",
        "fairtrial evaluate 'my problem.yaml' best.patch",
    ):
        assert words in text, words
    assert "What else it costs" not in text
    assert "its proposer says" not in text
    untimed = replace(bare, measurement=Measurement(Verdict.INCONCLUSIVE, None))
    assert "not timed long enough" in explain(untimed)


@pytest.mark.parametrize(
    ("coverage", "words"),
    [
        (Coverage(), "adds no line with code of its own"),
        (Coverage(notes=("check[0]: lost",)), "isn't known.\n- check\\[0\\]: lost"),
        (Coverage(unfollowed=("a.c",)), "Not Python, and not followed: `a.c`."),
        (Coverage(1, 0, tuple(Span("a", n, n) for n in range(30))), "and 10 places more"),
    ],
)
def test_coverage_in_words(coverage, words):
    assert words in explain(replace(FINDING, coverage=coverage))


HOSTILE = "```\n# owned <script> @everyone ![x](http://evil) | x |\n~~~\n``` `` `"


def test_nothing_that_others_say_means_anything():
    hot = HotLine(HOSTILE, 1, HOSTILE, 1, 1.0, 1.0)
    text = explain(
        replace(
            FINDING,
            name=HOSTILE,
            note=HOSTILE,
            origin=HOSTILE,
            edits=Edits({HOSTILE: Edit(None, FileState(b"", False))}, b""),
            coverage=Coverage(1, 0, (Span(HOSTILE, 1, 1),), (HOSTILE,), (HOSTILE,)),
            profile=Profile((Part(HOSTILE, Side((hot,), 1.0, notes=(HOSTILE,))),), (HOSTILE,)),
            notes=(HOSTILE,),
        )
    )
    outside = without_code(text)
    assert "\n# owned" not in outside
    assert not re.search(r"(?<!\\)<script|@everyone|://evil|(?<!\\)!\[|(?<!\\)\[x", outside)


def without_code(text):
    """What is left of Markdown when code, blocks and spans, is taken out."""
    kept, fence = [], ""
    for line in text.splitlines():
        run = re.match("`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif run and "`" not in line[run.end() :]:
            fence = run[0]
        else:
            kept.append(re.sub(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", line))
    assert not fence
    return "\n".join(kept)


@given(st.text())
def test_code_is_one_span(text):
    found = code(text)
    fence = re.match("`+", found)[0]
    assert found.endswith(fence)
    assert "\n" not in found
    inner = found[len(fence) : -len(fence)]
    assert fence not in re.findall("`+", inner)
    assert not inner.startswith("`")
    assert not inner.endswith("`")


@given(st.text())
def test_a_block_ends_where_it_should(text):
    first, *lines, last = quote(text)
    assert first.startswith(last)
    assert not any(line.strip().startswith(last) for line in lines)


@given(st.text())
def test_plain_text_is_one_line_without_links(text):
    found = plain(text)
    assert found.isprintable() or "\N{ZERO WIDTH SPACE}" in found
    assert not re.search(r"@\w|#\w|://|www\.", found)
    assert not re.search(r"(?<!\\)(\\\\)*[<`\[]", found)


def test_cells_and_words():
    assert cells("a|b", "c\\|d") == "| a\\|b | c\\ \\|d |"
    assert word("a/b-c.yaml") == "a/b-c.yaml"
    assert word("it's") == "'it'\\''s'"


LINES = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=12)


@given(LINES, LINES)
def test_differing_lines_are_all_that_differs(before, after):
    left = list(before)
    for old, new in reversed(find_differing(before, after)):
        left[old.start : old.stop] = [after[line] for line in new]
    assert left == after
