"""Explanations of the winner: complete, and safe against untrusted text."""

import re
from dataclasses import replace

import pytest
from hypothesis import example, given, strategies as st

from fairtrial.arena import (
    Basis,
    Benchmark,
    Check,
    CodeProblem,
    Estimate,
    FileState,
    Judgement,
    Measurement,
    Pair,
    Timing,
    TotalCheck,
    TotalVerdict,
    Verdict,
    delivery,
)
from fairtrial.arena.delivery.coverage import Coverage, LineSpan
from fairtrial.arena.delivery.edits import FileEdit, find_differing
from fairtrial.arena.delivery.explanation import WinnerEvidence
from fairtrial.arena.delivery.markdown_quoting import as_message, cells, code, plain, quote, word
from fairtrial.arena.delivery.profile import HotLine, Profile, ProfileEntry, ProfileSide

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
    total=Estimate(1.47, 1.36, 1.58, 10, 0.9),
    notes=("the machine was busy; `fairtrial doctor` says what disturbs",),
)
TOTAL_CHECK = TotalCheck(
    "sort",
    TotalVerdict.CONFIRMED,
    *(7e-4, 2.3e-3, 1.6e-3, 2.2e-3, 1.5e-3, 0.97, 0.9, 1.04, 0.99),
    "cpu",
    3,
    120,
    2.5,
)
EDITS = delivery.FileEdits(
    {
        "src/a.py": FileEdit(FileState(b"x\ny\n", False), FileState(b"x\nz\nw\n", False)),
        "src/new.py": FileEdit(None, FileState(b"1\n", False)),
        "src/old.py": FileEdit(FileState(b"1\n2\n", False), None),
        "data.bin": FileEdit(FileState(b"\0", False), FileState(b"\0\1", False)),
    },
    b"",
)
SIDE = ProfileSide((HotLine("src/a.py", 2, "y | z", 1000, 0.5, 0.9),), 1.0, 0.25, 20)
FINDING = WinnerEvidence(
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
    Measurement(
        Verdict.FASTER,
        ESTIMATE,
        True,
        timings=(TIMING,),
        is_confirmed=True,
        total_checks=(TOTAL_CHECK,),
    ),
    note="Uses a set.",
    origin="chat",
    is_rechecked=True,
    coverage=Coverage(10, 8, (LineSpan("src/a.py", 3, 4),)),
    profile=Profile((ProfileEntry("sort: a:sort", SIDE, replace(SIDE, plain_s=None)),), ("b: no",)),
    notes=("a test is unstable",),
)


def test_all_evidence_is_in_the_explanation():
    text = FINDING.explain()
    for words in (
        "# `toposort`: 1.50 times as fast",
        "- `src/a.py` (+2 -1)",
        "- `src/new.py` (new, +1 -0)",
        "- `src/old.py` (removed, +0 -2)",
        "- `data.bin` (not by lines)",
        "proposed by `chat`",
        "```text\nUses a set.\n```",
        "says of it, unchecked:",
        "**1.50 times as fast (1.40 to 1.60)**",
        "95% confidence interval for that ratio",
        "from 10 sessions",
        "fresh sessions, taken after",
        "\n`sort`: 1.50x by the median, 1.47x in total (all times added up).\n",
        "| `sort` | 1.50 | 1.40 to 1.60 | faster | 1.45 | 2.1 ms |",
        "Run again in whole processes, one at a time:\n\n- `sort`: 97 % of the saving of 700 µs "
        "per call appears in the total CPU time of whole processes [90 %, 104 %]",
        "**Compared results**",
        "- `python -m pytest`: every test that passed before passes",
        "`a:sort` gives and raises the same",
        "for 40 made inputs",
        "- `tool`: it prints the same",
        "inputs that no candidate had seen",
        "run 8 of 10 changed lines that have code (80%)",
        "**No check runs** `src/a.py:3-4` (lines of the changed file):\n\n```text\n3: w\n```",
        "memory 40 MB before, 44 MB with it; start-up 1.02 times as long as before",
        "### `sort: a:sort`",
        "Before (20 calls, 4.0 times as slow as without tracing):",
        "With it (20 calls):",
        "| 90% | 1,000 | `src/a.py:2` | `y \\| z` |",
        "Not profiled: b: no",
        "- Changed lines that no check runs are unproven.",
        "- `sort`: the machine was busy; `fairtrial doctor` says what disturbs",
        "In the folder of `problem.yaml`, with `best.patch` there.",
        "they must be there already",
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


def test_totals_of_all_benchmarks_share_a_line_and_unknown_ones_have_none():
    other = replace(TIMING, benchmark="merge", total=Estimate(1.2, 1.1, 1.3, 10, 0.9))
    unknown = replace(TIMING, benchmark="split", total=None)
    measured = replace(FINDING.measurement, timings=(TIMING, other, unknown))
    text = replace(FINDING, measurement=measured).explain()
    line = "1.50x by the median, 1.47x in total; `merge`: 1.50x by the median, 1.20x in total"
    assert f"\n`sort`: {line} (all times added up).\n" in text
    measured = replace(FINDING.measurement, timings=(unknown,))
    assert "in total" not in replace(FINDING, measurement=measured).explain()


def test_missing_evidence_is_stated():
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
    text = bare.explain()
    for words in (
        "the ratio may be a little too good",
        "**Tests only**: tests that run in the candidate's own process",
        "was not examined",
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
    assert "not timed long enough" in untimed.explain()


@pytest.mark.parametrize(
    ("coverage", "words"),
    [
        (Coverage(), "adds no line with code of its own"),
        (Coverage(notes=("check[0]: lost",)), "isn't known.\n- check\\[0\\]: lost"),
        (Coverage(unfollowed=("a.c",)), "Not Python, and not traced: `a.c`."),
        (Coverage(1, 0, tuple(LineSpan("a", n, n) for n in range(30))), "and 10 places more"),
    ],
)
def test_coverage_in_words(coverage, words):
    assert words in replace(FINDING, coverage=coverage).explain()


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((40.748, 36.741, 45.192), "40.7 times as fast (36.7 to 45.2)"),
        ((241.3, 198.2, 290.7), "241 times as fast (198 to 291)"),
        ((1.0213, 1.0204, 1.0222), "1.0213 times as fast (1.0204 to 1.0222)"),
    ],
)
def test_figures_have_as_many_digits_as_the_interval_supports(figures, words):
    estimate = Estimate(*figures, 10, 0.95)
    timing = replace(TIMING, estimate=estimate)
    measured = replace(FINDING.measurement, estimate=estimate, timings=(timing,))
    text = replace(FINDING, measurement=measured).explain()
    ratio, low, _, high = re.findall(r"[\d.]+|to", words)
    assert f"**{words}**" in text
    assert text.startswith(f"# `toposort`: {ratio} times as fast\n")
    assert f"| `sort` | {ratio} | {low} to {high} | faster |" in text


def test_uncovered_lines_are_quoted_up_to_five():
    lines = [f"    step({number})  # `{number}`" for number in range(1, 10)]
    lines[2] = ""
    edits = delivery.FileEdits(
        {"a.py": FileEdit(None, FileState("\n".join(lines).encode(), False))}, b""
    )
    missed = (LineSpan("a.py", 1, 4), LineSpan("a.py", 7, 9), LineSpan("gone.py", 1, 1))
    text = replace(FINDING, edits=edits, coverage=Coverage(9, 1, missed)).explain()
    told = text[text.index("**No check runs**") : text.index("## What else it costs")]
    assert "(lines of the changed file; the first 5 of 6):" in told
    quoted = [line for line in told.splitlines() if "step(" in line]
    assert quoted == [f"{number}: {lines[number - 1]}" for number in (1, 2, 4, 7, 8)]
    # Nothing to quote is no reason to say nothing.
    text = replace(FINDING, edits=delivery.FileEdits({}, b"")).explain()
    assert "**No check runs** `src/a.py:3-4` (lines of the changed file)." in text


def test_a_profile_that_is_mostly_overhead_is_left_out():
    slow = replace(SIDE, seconds=15.0)  # 60 times as slow
    kept = ProfileEntry("kept: a:sort", SIDE)
    text = replace(FINDING, profile=Profile((ProfileEntry("left: a:sort", slow, slow),))).explain()
    for side in ("Before", "With it"):
        assert f"{side}: left out. Tracing made it 60 times as slow, and shares" in text
    assert "| share |" not in text
    assert "shares are rough" not in text
    for parts in (
        (ProfileEntry("left: a:sort", slow, slow), kept),
        (ProfileEntry("one side: a:sort", slow, SIDE),),
        (ProfileEntry("one side: a:sort", SIDE, slow),),
    ):
        text = replace(FINDING, profile=Profile(parts)).explain()
        assert text.count("| share |") == 1
        assert "left out" in text
        assert "shares are rough" in text
    edge = replace(
        FINDING, profile=Profile((ProfileEntry("x", replace(SIDE, seconds=12.5)),))
    ).explain()
    assert "50.0 times as slow" in edge
    assert "left out" not in edge


def test_lines_that_take_nothing_are_left_out_of_a_profile():
    hot = [
        HotLine("a.py", line, f"x{line}", 1, 0.1, share)
        for line, share in enumerate([0.99, 0.006, 0.004, 0.0])
    ]
    text = replace(
        FINDING, profile=Profile((ProfileEntry("x", replace(SIDE, lines=tuple(hot))),))
    ).explain()
    assert "| 1% | 1 | `a.py:1` | `x1` |" in text
    assert "| 0%" not in text


RULES_NOTE = """set_beside: a.py, line 8: a set beside found says what is in it
asked_set: a.py, line 9: a set of returned
assumes: what is in it can be hashed
assumes: nobody <counts> on it
b.py is left alone: it can't be parsed"""


def test_assumptions_of_our_own_rules_are_doubts():
    text = replace(FINDING, origin="codemod", note=RULES_NOTE).explain()
    change, _, rest = text.partition("## What it gains")
    assert "unchecked" not in change
    assert "What its rules did, in order" in change
    assert "line 9: a set of returned\nb.py is left alone: it can't be parsed\n```" in change
    assert "assumes: " not in text
    doubts = rest[rest.index("## What could still be wrong") : rest.index("## What else to know")]
    assert "- The change assumes that what is in it can be hashed.\n" in doubts
    assert "- The change assumes that nobody \\<counts\\> on it.\n" in doubts
    # Others' words are not ours, whatever they look like.
    other = replace(FINDING, note=RULES_NOTE).explain()
    assert "The change assumes" not in other
    assert "\nassumes: what is in it can be hashed\n" in other


def test_as_a_message_no_line_is_a_comment():
    finding = replace(FINDING, note="# of mine\n```\n## and\n```", notes=("# a note",))
    text = finding.explain()
    message = as_message(text)
    assert not [line for line in message.splitlines() if line.startswith("#")]
    assert message.startswith("What changes\n------------\n\n- `src/a.py` (+2 -1)\n")
    assert "\n`sort: a:sort`\n..............\n" in message
    assert "\n    # of mine\n    ```\n    ## and\n    ```\n" in message
    assert "\n    # take it\n    git apply best.patch\n" in message
    assert "```text" not in message
    for line in text.splitlines()[1:]:  # nothing else is lost
        assert line.lstrip("# ") in message or line.startswith("```"), line


@given(st.text("#`-x\\ \n", max_size=80))
@example("## # of mine")
def test_a_message_never_has_comments(text):
    assert not re.search("^#", as_message(text), re.MULTILINE)


@given(st.text("`*_<\\ax |[]!", max_size=30).map(str.strip))
@example("ask `doctor` <now>")
def test_in_a_message_nothing_is_escaped(text):
    assert as_message(f"x {plain(text)} x") == f"x {' '.join(text.split())} x\n"
    assert as_message("- `a\\*b`") == "- `a\\*b`\n"  # what is code is as it was


HOSTILE = "```\n# owned <script> @everyone ![x](http://evil) | x |\n~~~\n``` `` `"


def test_untrusted_text_has_no_effect_in_markdown():
    hot = HotLine(HOSTILE, 1, HOSTILE, 1, 1.0, 1.0)
    text = replace(
        FINDING,
        name=HOSTILE,
        note=HOSTILE,
        origin=HOSTILE,
        edits=delivery.FileEdits({HOSTILE: FileEdit(None, FileState(b"", False))}, b""),
        coverage=Coverage(1, 0, (LineSpan(HOSTILE, 1, 1),), (HOSTILE,), (HOSTILE,)),
        profile=Profile(
            (ProfileEntry(HOSTILE, ProfileSide((hot,), 1.0, notes=(HOSTILE,))),), (HOSTILE,)
        ),
        notes=(HOSTILE,),
    ).explain()
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
