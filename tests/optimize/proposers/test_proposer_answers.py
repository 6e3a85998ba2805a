"""Models' answers become files, or a reason that a model can act on."""

import pytest
from hypothesis import assume, given, strategies as st

from fairtrial.optimize.proposers.chat.answers import read_answer
from fairtrial.optimize.proposers.chat.edits import EditBlock, apply_edits
from fairtrial.optimize.proposers.prompt_parts import fence_text

BASE = "import os\n\n\ndef f(x):\n    return x in [1, 2]\n\n\ndef g(x):\n    return x\n"
FILES = {"src/slow.py": BASE, "src/other.py": "y = 1\n", "README.md": "# Slow\n"}
LINES = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]))


def read(text, form="whole_file", files=FILES, **options):
    [draft] = read_answer(text, files, form, **options)
    return draft


def files_of(text, form="whole_file", files=FILES):
    draft = read(text, form, files)
    assert draft.problems == ()
    return dict(draft.files)


def problem_of(text, form="whole_file", files=FILES):
    draft = read(text, form, files)
    assert draft.files == {}
    [problem] = draft.problems
    return problem


def edit(search, replacement, path="FILE: src/slow.py\n"):
    return f"{path}<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"


# -- whole files --


@pytest.mark.parametrize(
    "text",
    [
        "FILE: src/slow.py\n```python\nx = 1\n```",
        "FILE: src/slow.py\n\n```python\nx = 1\n```",
        "File: `src/slow.py`\n```\nx = 1\n```",
        "**FILE: src/slow.py**\n~~~\nx = 1\n~~~",
        "### src/slow.py\n```py\nx = 1\n```",
        "`./src/slow.py`:\n```py\nx = 1\n```",
        "Here is the new text of `src/slow.py`:\n```py\nx = 1\n```",
        "```python src/slow.py\nx = 1\n```",
        "```python:src/slow.py\nx = 1\n```",
        '```python title="src/slow.py"\nx = 1\n```',
        "FILE: src/slow.py\r\n```\r\nx = 1\r\n```\r\n",
        "Instead of this:\n```\nx in [1]\n```\nI do that.\n\nFILE: src/slow.py\n```\nx = 1\n```",
        "CANDIDATE 1\nFILE: src/slow.py\n```\nx = 1\n```",
        "<thinking>FILE: src/slow.py\n```\nx = 9\n```</thinking>FILE: src/slow.py\n```\nx = 1\n```",
    ],
)
def test_the_many_ways_of_naming_a_file(text):
    assert files_of(text) == {"src/slow.py": "x = 1\n"}


def test_several_files():
    text = "FILE: src/slow.py\n```\na\n```\n\nFILE: src/other.py\n```\nb\n```\n"
    assert files_of(text) == {"src/slow.py": "a\n", "src/other.py": "b\n"}


def test_a_file_that_stays_as_it_is_is_left_out():
    text = f"FILE: src/slow.py\n```\n{BASE}```\nFILE: src/other.py\n```\nb\n```"
    assert files_of(text) == {"src/other.py": "b\n"}


def test_one_file_and_one_block_need_no_name():
    assert files_of("```\nx = 1\n```", files={"a.py": "x = 2\n"}) == {"a.py": "x = 1\n"}


def test_a_longer_fence_holds_a_shorter_one():
    content = "def f():\n    '''\n    ```\n    f()\n    ```\n    '''\n"
    assert files_of(f"FILE: src/slow.py\n{fence_text(content)}") == {"src/slow.py": content}


def test_line_ends_and_marks_stay_as_they_are():
    files = {"a.py": "\ufeffx = 1\r\ny = 2\r\n"}
    text = "FILE: a.py\n```\nx = 1\ny = 3\n```"
    assert files_of(text, files=files) == {"a.py": "\ufeffx = 1\r\ny = 3\r\n"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("FILE: src/slwo.py\n```\nx\n```", "src/slwo.py is not one of the files that may be chan"),
        ("FILE: ../../etc/passwd\n```\nx\n```", "../../etc/passwd is not one of the files"),
        ("```python src/nope.py\nx\n```", "src/nope.py is not one of the files"),
        ("FILE: src/slow.py\n```\nx = 1\n", "the fence is never closed"),
        ("```\nx = 1\n```", "doesn't say which file"),
        ("Use a set.", "there is no fenced block"),
        ("", "there is no fenced block"),
        (
            "FILE: src/slow.py\n```\na\n```\nFILE: src/slow.py\n```\nb\n```",
            "src/slow.py is given twice",
        ),
    ],
)
def test_what_is_wrong_with_whole_files(text, problem):
    assert problem in problem_of(text)


def test_a_path_that_is_nearly_right_is_suggested():
    assert "did you mean 'src/slow.py'?" in problem_of("FILE: src/slwo.py\n```\nx\n```")


def test_one_bad_file_spoils_the_others():
    draft = read("FILE: src/slow.py\n```\na\n```\nFILE: nope.py\n```\nb\n```")
    assert (dict(draft.files), len(draft.problems)) == ({}, 1)


@given(st.dictionaries(st.sampled_from(list(FILES)), st.lists(LINES, min_size=1), min_size=1))
def test_an_answer_in_the_requested_form_is_read_back(texts):
    contents = {path: "".join(f"{line}\n" for line in lines) for path, lines in texts.items()}
    assume(all(contents[path] != FILES[path] for path in contents))
    # A file may well begin with what we take for thoughts, but not as the answer's first word.
    answer = "I did this.\n\n" + "\n\n".join(
        f"FILE: {path}\n{fence_text(content, 'python')}" for path, content in contents.items()
    )
    assert files_of(answer) == contents


# -- search and replace --


def test_an_edit():
    text = edit("    return x in [1, 2]\n", "    return x in {1, 2}\n")
    expected = BASE.replace("[1, 2]", "{1, 2}")
    assert files_of(text, "search_replace") == {"src/slow.py": expected}
    assert files_of(f"```python\n{text}```\n", "search_replace") == {"src/slow.py": expected}


def test_edits_of_one_file_and_of_others():
    text = edit("import os\n", "") + edit("    return x\n", "    return +x\n", path="")
    text += edit("y = 1\n", "y = 2\ny = 3\n", path="src/other.py\n")
    changed = BASE.replace("import os\n", "").replace("return x\n", "return +x\n")
    expected = {"src/slow.py": changed, "src/other.py": "y = 2\ny = 3\n"}
    assert files_of(text, "search_replace") == expected


def test_edits_do_not_see_each_other():
    text = edit("import os\n", "import sys\n") + edit("import sys\n", "import re\n")
    assert "are not in src/slow.py" in problem_of(text, "search_replace")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (edit("def f(y):\n", "x\n"), "no line 'def f(y):' (the nearest is 'def f(x):')"),
        (edit("def h\n", "x\n", path=""), "block 1 doesn't say which file it is about"),
        (edit("def f(x):\n    return x\n", "x\n"), "each line is, but not one after the other"),
        (edit("\n\n", "x\n"), "are empty"),
        (edit("", "x\n"), "are empty"),
        (edit("x\n", "y\n", path="FILE: nope.py\n"), "nope.py is not one of the files"),
        ("FILE: src/slow.py\n<<<<<<< SEARCH\nimport os\n", "no line >>>>>>> REPLACE"),
        ("FILE: src/slow.py\n<<<<<<< SEARCH\nimport os\n>>>>>>> REPLACE", "no line ======="),
        (edit("import os\n", "") + edit("import os\n", "x\n"), "blocks 1 and 2 change the same"),
        ("FILE: src/slow.py\n```\nx = 1\n```", "there is no SEARCH/REPLACE block"),
    ],
)
def test_what_is_wrong_with_edits(text, problem):
    assert problem in problem_of(text, "search_replace")


def test_lines_that_occur_twice_are_refused():
    files = {"a.py": "x = 1\ny = 2\nx = 1\n"}
    text = edit("x = 1\n", "x = 2\n", path="FILE: a.py\n")
    assert "occur 2 times in a.py" in problem_of(text, "search_replace", files)
    text = edit("x = 1\ny = 2\n", "x = 2\ny = 2\n", path="FILE: a.py\n")
    assert files_of(text, "search_replace", files) == {"a.py": "x = 2\ny = 2\nx = 1\n"}


def test_a_part_of_a_line_is_not_found():
    files = {"a.py": "xx = 1\n"}
    text = edit("x = 1\n", "x = 2\n", path="FILE: a.py\n")
    assert "are not in a.py" in problem_of(text, "search_replace", files)


def test_a_heading_that_looks_like_the_divider():
    text = edit("Heading\n=======\n", "Caption\n=======\n", path="FILE: a.py\n")
    files = {"a.py": "Heading\n-------\nHeading\n=======\n"}
    changed = files_of(text, "search_replace", files)["a.py"]
    assert changed == "Heading\n-------\nCaption\n=======\n"
    files = {"a.py": "Heading\n=======\n"}
    assert "in more than one way" in problem_of(text, "search_replace", files)


def test_line_ends_stay_where_they_are():
    files = {"a.py": "\ufeffa\r\nb\nc\r\nd"}
    text = edit("a\n", "A\nAA\n", path="FILE: a.py\n") + edit("d\n", "D\n", path="")
    changed = files_of(text, "search_replace", files)["a.py"]
    assert changed == "\ufeffA\r\nAA\r\nb\nc\r\nD"


@given(
    st.lists(LINES.filter(lambda line: "\ufeff" not in line), min_size=1, max_size=12, unique=True),
    st.data(),
)
def test_an_edit_changes_its_lines_and_no_others(lines, data):
    ends = data.draw(st.sampled_from(["", "\n"]))
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    new = data.draw(st.lists(LINES, max_size=4))
    assume(any(lines[start:stop]) and lines[-1] != "")
    body = (*lines[start:stop], "=======", *new)
    text, problems = apply_edits(
        "a", "\n".join(lines) + ends, [EditBlock(1, body, (stop - start,))]
    )
    after = [*lines[:start], *new, *lines[stop:]]
    assert problems == []
    assert text == ("\n".join(after) + ends if after else "")


# -- several, cut off, nothing --


def test_several_candidates_by_their_numbers():
    one, two = (f"FILE: src/slow.py\n```\nx = {n}\n```\n" for n in (1, 2))
    drafts = read_answer(
        f"Well.\n## Candidate 2:\n{two}\n**CANDIDATE 1**\n{one}", FILES, "whole_file", 3
    )
    assert [dict(draft.files) for draft in drafts[:2]] == [
        {"src/slow.py": "x = 1\n"},
        {"src/slow.py": "x = 2\n"},
    ]
    assert drafts[2].problems == ("there is no answer under CANDIDATE 3",)


def test_a_headline_within_a_block_is_text():
    text = "CANDIDATE 1\nFILE: src/slow.py\n```\nCANDIDATE 2\n```\n"
    first, second = read_answer(text, FILES, "whole_file", 2)
    assert first.files == {"src/slow.py": "CANDIDATE 2\n"}
    assert second.problems


def test_the_same_number_twice_is_refused():
    one = "CANDIDATE 1\nFILE: src/slow.py\n```\nx = 1\n```\n"
    first, _ = read_answer(one + one, FILES, "whole_file", 2)
    assert first.problems == ("there is 2 answers under CANDIDATE 1",)


def test_several_without_headlines_are_refused():
    drafts = read_answer("FILE: src/slow.py\n```\nx = 1\n```\n", FILES, "whole_file", 2)
    assert all("no line CANDIDATE 1 to CANDIDATE 2" in draft.problems[0] for draft in drafts)


def test_the_last_draft_of_a_truncated_answer_is_not_used():
    one = "FILE: src/slow.py\n```\nx = 1\n```\n"
    drafts = read_answer(
        f"CANDIDATE 1\n{one}CANDIDATE 2\n{one}", FILES, "whole_file", 2, is_cut=True
    )
    assert [bool(draft.files) for draft in drafts] == [True, False]
    assert "cut off" in read(one, is_cut=True).problems[0]


def test_nothing_to_propose():
    draft = read("**NO CHANGE**\nIt is as fast as it gets.")
    assert draft.is_declined
    assert "as fast as it gets" in draft.note
    assert read(f"FILE: src/slow.py\n```\n{BASE}```").is_declined


def test_nothing_to_propose_for_any_of_several():
    drafts = read_answer("NO CHANGE: they are as fast as it gets.", FILES, "whole_file", 2)
    assert all(draft.is_declined for draft in drafts)


def test_the_note_is_what_stands_before_the_blocks():
    draft = read("A set.\nIt is faster.\n\nFILE: src/slow.py\n```\nx\n```\nThat's it.")
    assert draft.note == "A set.\nIt is faster."


@given(
    st.lists(
        st.sampled_from(
            [
                "```",
                "````python",
                "~~~",
                "FILE: src/slow.py",
                "FILE:",
                "<<<<<<< SEARCH",
                "=======",
                ">>>>>>> REPLACE",
                "CANDIDATE 1",
                "CANDIDATE 2",
                "import os",
                "",
                "<think>",
                "</think>",
            ]
        )
        | LINES,
        max_size=14,
    ),
    st.sampled_from(["whole_file", "search_replace"]),
    st.integers(1, 3),
    st.booleans(),
)
def test_whatever_a_model_writes_is_files_of_the_brief_or_a_reason(lines, form, wanted, is_cut):
    drafts = read_answer("\n".join(lines), FILES, form, wanted, is_cut=is_cut)
    assert len(drafts) == wanted
    for draft in drafts:
        assert set(draft.files) <= set(FILES)
        assert bool(draft.files) + bool(draft.problems) + draft.is_declined == 1
        assert all(FILES[path] != text for path, text in draft.files.items())
