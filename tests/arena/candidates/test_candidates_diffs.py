"""Diffs as tools, people and language models write them, against one base."""

import base64
import hashlib
import os
import subprocess
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from candidate_kit import FILES, TEN, contents, encode, git_diff, make_snapshot, resolve_candidate
from hypothesis import example, given, settings, strategies as st
from repository_kit import run_git

from fairtrial.arena import Reason, Rejection
from fairtrial.arena.candidates import diff_application
from fairtrial.arena.candidates.diff_parser import MAX_HUNKS, read_diff
from fairtrial.arena.candidates.diffs import UnreadableDiff
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.snapshot.git import GitError, git

CHANGED = TEN.replace("line 4\n", "LINE\n").encode()
BODY = " line 3\n-line 4\n+LINE\n line 5\n"
HUNK = "@@ -3,3 +3,3 @@\n" + BODY
GIT = "diff --git a/src/pkg/ten.txt b/src/pkg/ten.txt\n"
NAMES = "--- a/src/pkg/ten.txt\n+++ b/src/pkg/ten.txt\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return make_snapshot(tmp_path_factory.mktemp("base"))


WAYS = {
    "git's": GIT + "index 1111111..2222222 100644\n" + NAMES + HUNK,
    "plain": NAMES + HUNK,
    "without prefixes": NAMES.replace("a/", "").replace("b/", "") + HUNK,
    "git's without prefixes": (GIT + NAMES).replace("a/", "").replace("b/", "") + HUNK,
    "one prefix for both": NAMES.replace("b/", "a/") + HUNK,
    "other prefixes": NAMES.replace("a/", "proj.orig/").replace("b/", "proj/") + HUNK,
    "from the folder": NAMES.replace("a/", "./").replace("b/", "./") + HUNK,
    "a kept original": "--- src/pkg/ten.txt.orig\n+++ src/pkg/ten.txt\n" + HUNK,
    "times after tabs": NAMES.replace(".txt\n", ".txt\t2024-05-06 07:08:09.123 +0200\n") + HUNK,
    "times after blanks": NAMES.replace(".txt\n", ".txt  2024-05-06 07:08:09 +0200\n") + HUNK,
    "old times": NAMES.replace(".txt\n", ".txt\tThu May  6 07:08:09 2024\n") + HUNK,
    "counts too large": NAMES + "@@ -3,9 +3,12 @@\n" + BODY,
    "counts too small": NAMES + "@@ -3,1 +3,1 @@\n" + BODY,
    "no counts": NAMES + "@@ -3 +3 @@\n" + BODY,
    "no numbers": NAMES + "@@ ... @@\n" + BODY,
    "nothing but signs": NAMES + "@@\n" + BODY,
    "shifted numbers": NAMES + "@@ -8,3 +8,3 @@\n" + BODY,
    "numbers beyond the end": NAMES + "@@ -800,3 +900,3 @@\n" + BODY,
    "claims the first line": NAMES + "@@ -1,3 +1,3 @@\n" + BODY,
    "only the changed line": NAMES + "@@ -4 +4 @@\n-line 4\n+LINE\n",
    "no lines after": NAMES + "@@ -3,2 +3,2 @@\n line 3\n-line 4\n+LINE\n",
    "no lines before": NAMES + "@@ -4,2 +4,2 @@\n-line 4\n+LINE\n line 5\n",
    "no newline at its own end": (NAMES + HUNK).rstrip("\n"),
    "fenced": f"Here it is:\n\n```diff\n{NAMES}{HUNK}```\n\nIt is faster now.\n",
    "fenced, wrong counts": f"So:\n```diff\n{NAMES}@@ -3,7 +3,9 @@\n{BODY}```\nFaster - really.\n",
    "prose, wrong counts": f"Here:\n\n{NAMES}@@ -3,7 +3,9 @@\n{BODY}\nIt is faster now.\n",
    "bullets after it": f"{NAMES}{HUNK}\n- one line changed\n+ nothing else\n",
    "a mail": f"From 0123 Mon\nSubject: x\n\n---\n x | 2 +-\n\n{GIT}{NAMES}{HUNK}-- \n2.39.5\n",
    "a mail, wrong counts": f"{GIT}{NAMES}@@ -3,7 +3,9 @@\n{BODY}-- \n2.39.5\n\n",
    "CRLF throughout": (NAMES + HUNK).replace("\n", "\r\n"),
    "svn": f"Index: src/pkg/ten.txt\n{'=' * 67}\n{NAMES}{HUNK}",
    "empty hunk before": NAMES + "@@ -1,2 +1,2 @@\n line 1\n line 2\n" + HUNK,
    "blank line between": NAMES + "@@ -1,2 +1,2 @@\n line 1\n line 2\n\n" + HUNK,
}


@pytest.mark.parametrize("way", WAYS)
def test_one_change_in_many_spellings(base, way):
    assert contents(resolve_candidate(base, WAYS[way])) == {"src/pkg/ten.txt": CHANGED}


def test_one_change_has_one_digest(base):
    overlay = resolve_candidate(base, {"src/pkg/ten.txt": CHANGED})
    digests = {resolve_candidate(base, text).digest for text in [*list(WAYS.values())[:4]]}
    assert digests == {overlay.digest}


def test_a_diff_made_by_diff_itself(base, tmp_path):
    for side in ("old", "new"):
        (tmp_path / side / "src" / "pkg").mkdir(parents=True)
        (tmp_path / side / "data.txt").write_text("same\n")
    pkg = base.source / "src" / "pkg"
    for name in ("ten.txt", "crlf.txt", "unended.txt"):
        (tmp_path / "old/src/pkg" / name).write_bytes((pkg / name).read_bytes())
    changed = FILES["src/pkg/crlf.txt"].replace("line 4", "LINE").encode()
    (tmp_path / "new/src/pkg/crlf.txt").write_bytes(changed)
    (tmp_path / "new/src/pkg/unended.txt").write_text(TEN + "more")
    (tmp_path / "new/src/pkg/fresh.txt").write_text("fresh\n")
    done = subprocess.run(
        ["diff", "-ruN", "old", "new"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        env={**os.environ, "TZ": "America/New_York"},
    )
    assert contents(resolve_candidate(base, done.stdout)) == {
        "src/pkg/ten.txt": None,  # not in "new": dated at the epoch
        "src/pkg/crlf.txt": changed,
        "src/pkg/unended.txt": (TEN + "more").encode(),
        "src/pkg/fresh.txt": b"fresh\n",
    }


def test_renames_copies_modes_links_binaries_and_removals(base):
    def change(folder):
        (folder / "src/pkg/ten.txt").rename(folder / "src/pkg/moved.txt")
        (folder / "src/pkg/copy of core.py").write_bytes((folder / "src/pkg/core.py").read_bytes())
        (folder / "src/pkg/core.py").write_text("changed = True\n")
        (folder / "data.bin").write_bytes(bytes(range(255, -1, -1)) * 9)
        (folder / "new.bin").write_bytes(b"\0\1\2")
        (folder / "run.sh").chmod(0o644)
        (folder / "tool").write_text("#!/bin/sh\n")
        (folder / "tool").chmod(0o755)
        (folder / "src/pkg/__init__.py").unlink()
        (folder / "src/pkg/empty ü.txt").write_text("")
        (folder / "link2").symlink_to("src/pkg/core.py")
        (folder / "link").unlink()

    for options in (("-M", "-C", "--find-copies-harder"), ("--no-renames",), ("--no-prefix", "-M")):
        result = resolve_candidate(base, git_diff(base, change, "--binary", *options))
        assert contents(result) == {
            "src/pkg/ten.txt": None,
            "src/pkg/moved.txt": TEN.encode(),
            "src/pkg/copy of core.py": FILES["src/pkg/core.py"].encode(),
            "src/pkg/core.py": b"changed = True\n",
            "data.bin": bytes(range(255, -1, -1)) * 9,
            "new.bin": b"\0\1\2",
            "run.sh": FILES["run.sh"].encode(),
            "tool": b"#!/bin/sh\n",
            "src/pkg/__init__.py": None,
            "src/pkg/empty ü.txt": b"",
            "link2": b"src/pkg/core.py",
            "link": None,
        }
        assert result.files["run.sh"].executable is False
        assert result.files["tool"].executable is True
        assert result.files["link2"].is_link


def test_lines_that_look_like_a_diff_are_content(base):
    path = "src/pkg/marks.md"
    changed = FILES[path].replace("-- \nend\n--- a/x\n+++ b/y\n", "@@ -1 +1 @@\n--- a/y\n+++ b/z\n")
    diff = git_diff(base, lambda folder: (folder / path).write_text(changed))
    assert contents(resolve_candidate(base, diff)) == {path: changed.encode()}


def test_line_ends_of_the_file_are_kept(base):
    """CRLF files, with a diff that has them and with one that lost them."""
    text = FILES["src/pkg/crlf.txt"]
    wanted = {"src/pkg/crlf.txt": text.replace("line 4", "LINE").encode()}
    for body in (BODY, BODY.replace("\n", "\r\n")):
        diff = (NAMES + "@@ -3,3 +3,3 @@\n").replace("ten", "crlf") + body
        assert contents(resolve_candidate(base, diff)) == wanted


def test_missing_newline_at_the_end(base):
    path = "src/pkg/unended.txt"
    names = NAMES.replace("ten", "unended")
    marker = "\\ No newline at end of file\n"
    body = TEN.rstrip("\n").encode()

    def result(hunk):
        return contents(resolve_candidate(base, names + hunk))

    assert result(f"@@ -10 +10 @@\n-line 10\n{marker}+LINE\n") == {path: body[:-7] + b"LINE\n"}
    assert result("@@ -10 +10 @@\n-line 10\n+LINE\n") == {path: body[:-7] + b"LINE\n"}
    assert result("@@ -9,2 +9,3 @@\n line 9\n line 10\n+line 11\n") == {
        path: TEN.encode() + b"line 11\n"
    }
    assert result("@@ -9,2 +9,2 @@\n-line 9\n+LINE\n line 10\n") == {
        path: body.replace(b"line 9", b"LINE")
    }
    assert contents(
        resolve_candidate(base, f"{NAMES}@@ -10 +10 @@\n-line 10\n{marker}+LINE\n{marker}")
    ) == {"src/pkg/ten.txt": TEN.encode()[:-8] + b"LINE"}


def test_new_files_are_recognized_in_every_notation(base):
    for names in (
        "--- /dev/null\n+++ b/src/pkg/new.py\n",
        "--- /dev/null\n+++ src/pkg/new.py\n",
        "--- a/src/pkg/new.py\n+++ b/src/pkg/new.py\n",
        "diff --git a/src/pkg/new.py b/src/pkg/new.py\nnew file mode 100644\n"
        "--- /dev/null\n+++ b/src/pkg/new.py\n",
    ):
        diff = names + "@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n"
        assert contents(resolve_candidate(base, diff)) == {"src/pkg/new.py": b"x = 1\ny = 2\n"}


def test_paths_relative_to_the_projects_folder(base):
    rules = PathRules(("**",), unprotect=("**",), cwd="projects/one")
    body = "@@ -1,3 +1,3 @@\n x = 1\n-y = 2\n+y = 5\n z = 3\n"
    wanted = {"projects/one/src/mod.py": b"x = 1\ny = 5\nz = 3\n"}
    for name in ("a/src/mod.py", "src/mod.py", "a/projects/one/src/mod.py"):
        diff = f"--- {name}\n+++ {name.replace('a/', 'b/')}\n{body}"
        assert contents(resolve_candidate(base, diff, rules)) == wanted
    new = "--- /dev/null\n+++ b/src/other.py\n@@ -0,0 +1 @@\n+x = 1\n"
    moved = new + f"--- a/src/mod.py\n+++ b/src/mod.py\n{body}"
    assert "projects/one/src/other.py" in contents(resolve_candidate(base, moved, rules))


def test_a_diff_that_changes_nothing_is_the_base(base):
    same = NAMES + "@@ -3,2 +3,2 @@\n line 3\n-line 4\n+line 4\n"
    for text in ("", " \n\n", same, NAMES + "@@ -3,2 +3,2 @@\n line 3\n line 4\n", GIT):
        result = resolve_candidate(base, text)
        assert (dict(result.files), result.digest) == ({}, "")


def test_a_hunk_that_does_not_fit_is_explained_with_the_lines_of_the_file(base):
    bad = "@@ -3,3 +3,3 @@\n line 3\n-line four\n+LINE\n line 5\n"
    good = "@@ -8 +8 @@\n-line 8\n+EIGHT\n"
    result = resolve_candidate(base, NAMES + good + bad)
    assert result.reason == Reason.UNUSABLE
    assert "hunk 2 of src/pkg/ten.txt (line 3)" in result.message
    assert "line 4 of the base is `line 4`, the diff has `line four`" in result.message
    (failure,) = result.failures
    assert "    3 line 3\n    4 line 4\n    5 line 5" in failure.message
    (difference,) = failure.differences
    assert (difference.where, difference.expected, difference.actual) == (
        *("line 4", "line 4", "line four"),
    )


def test_every_file_and_hunk_that_does_not_fit_is_named(base):
    bad = "@@ -3 +3 @@\n-nothing like it\n+LINE\n@@ -300 +300 @@\n-nor this\n+LINE\n"
    result = resolve_candidate(base, NAMES + bad + NAMES.replace("ten", "crlf") + bad + bad)
    names = [failure.what.partition(" (")[0] for failure in result.failures]
    assert names == [
        *("hunk 1 of src/pkg/ten.txt", "hunk 2 of src/pkg/ten.txt"),
        *(f"hunk {number} of src/pkg/crlf.txt" for number in (1, 2, 3, 4)),
    ]


@pytest.mark.parametrize(
    ("diff", "words"),
    [
        ("Sorry, I can't.", "there is no diff in it"),
        (HUNK, "a hunk without the name of its file"),
        (NAMES, "no hunk follows"),
        (NAMES.replace("ten", "eleven") + HUNK, "src/pkg/eleven.txt is not in the base"),
        ("--- a/ten.txt\n+++ b/ten.txt\n" + HUNK, "did you mean src/pkg/ten.txt?"),
        ("--- /dev/null\n+++ b/src/pkg/ten.txt\n@@ -0,0 +1 @@\n+x\n", "in the base already"),
        (GIT + "Binary files a/src/pkg/ten.txt and b/src/pkg/ten.txt differ\n", "--binary"),
        (NAMES + "@@ -3,4 +3,4 @@\n line 3\n-line 4\nline 5\n+LINE\n", "starts with ' ', '+'"),
        (NAMES + "@@ -3,4 +3,4 @@\n line 3\n-line 4\n\nline 5\n+LINE\n", "starts with ' '"),
        (NAMES.replace("a/", "/").replace("b/", "/") + HUNK, "absolute"),
        (NAMES.replace("a/", "../").replace("b/", "../") + HUNK, "'..'"),
        (NAMES.replace("a/src", "a/../src").replace("b/src", "b/../src") + HUNK, "'..'"),
        ("--- /dev/null\n+++ b/.GIT/hooks/x\n@@ -0,0 +1 @@\n+x\n", ".git"),
        ("--- /dev/null\n+++ b/x/.git/config\n@@ -0,0 +1 @@\n+x\n", ".git"),
        ('--- /dev/null\n+++ "b/x\\000y"\n@@ -0,0 +1 @@\n+x\n', "null"),
        ("--- /dev/null\n+++ b/link/new.py\n@@ -0,0 +1 @@\n+x\n", "symbolic link"),
        ("--- /dev/null\n+++ b/run.sh/new.py\n@@ -0,0 +1 @@\n+x\n", "run.sh"),
        (
            "diff --git a/sub b/sub\nnew file mode 160000\n--- /dev/null\n+++ b/sub\n"
            f"@@ -0,0 +1 @@\n+Subproject commit {'1' * 40}\n",
            "repository of its own",
        ),
        (
            "diff --git a/out b/out\nnew file mode 120000\n--- /dev/null\n+++ b/out\n"
            "@@ -0,0 +1 @@\n+../../etc\n\\ No newline at end of file\n",
            "leads out of the tree",
        ),
        (
            "diff --git a/out b/out\nnew file mode 120000\n--- /dev/null\n+++ b/out\n"
            "@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
            "absolute",
        ),
    ],
)  # fmt: skip
def test_what_can_not_be_used_is_refused_with_its_reason(base, diff, words):
    result = resolve_candidate(base, diff)
    assert isinstance(result, Rejection)
    assert result.reason == Reason.UNUSABLE
    assert words in result.message


def bomb(size_mb):
    """A small binary patch that makes data.bin this large: the base, copied again and again."""
    source = FILES["data.bin"]
    count = size_mb * 1_000_000 // len(source)
    result = source * count
    copy = b"\xa0" + (len(source) >> 8).to_bytes(1, "big")  # from 0, and this many times 256
    delta = varint(len(source)) + varint(len(result)) + copy * count
    packed = zlib.compress(delta)
    lines = []
    for at in range(0, len(packed), 52):
        piece = packed[at : at + 52]
        letter = chr(ord("A") + len(piece) - 1 if len(piece) <= 26 else ord("a") + len(piece) - 27)
        lines.append(
            letter + base64.b85encode(piece.ljust(-(-len(piece) // 4) * 4, b"\0")).decode()
        )
    names = "diff --git a/data.bin b/data.bin\n"
    index = f"index {blob_id(source)}..{blob_id(result)} 100644\n"
    return names + index + f"GIT binary patch\ndelta {len(delta)}\n" + "\n".join(lines) + "\n\n"


def varint(number):
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def blob_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def test_binary_patches_that_unpack_to_more_than_they_should(base, monkeypatch):
    assert len(contents(resolve_candidate(base, bomb(2)))["data.bin"]) > 1_990_000
    assert "come to more than 20 MB" in resolve_candidate(base, bomb(30)).message
    monkeypatch.setattr(diff_application, "MAX_ALLOCATION_MB", 1)
    assert "unpacks to more than 1 MB" in resolve_candidate(base, bomb(2)).message
    lie = bomb(2).replace("delta ", "delta 9999")
    assert resolve_candidate(base, lie).reason == Reason.UNUSABLE


def test_a_full_disk_is_not_the_candidates_fault(base, monkeypatch):
    async def full(*arguments, **more):
        if arguments[0] != "apply":
            return await git(*arguments, **more)
        raise GitError(arguments, 128, "error: unable to write file: No space left on device")

    monkeypatch.setattr("fairtrial.arena.candidates.base_files.git", full)
    with pytest.raises(GitError):
        resolve_candidate(base, NAMES + HUNK)


def test_prefixes_are_told_from_folders(tmp_path):
    files = {"x/y.txt": "1\n", "y.txt": "1\n", "a/y.txt": "1\n"}
    snapshot = make_snapshot(tmp_path, files)
    hunk = "@@ -1 +1 @@\n-1\n+2\n"
    for names, path in (
        ("--- x/y.txt\n+++ x/y.txt\n", "x/y.txt"),
        ("--- a/y.txt\n+++ b/y.txt\n", "y.txt"),
        ("--- a/y.txt\n+++ a/y.txt\n", "a/y.txt"),
        ("--- a/a/y.txt\n+++ b/a/y.txt\n", "a/y.txt"),
    ):
        assert list(contents(resolve_candidate(snapshot, names + hunk))) == [path]


def test_line_ends_that_were_converted_with_the_diff_are_not_content(base):
    diff = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n".replace("\n", "\r\n")
    assert contents(resolve_candidate(base, diff)) == {"new.txt": b"one\ntwo\n"}


def test_a_flood_of_hunks_is_refused(base):
    result = resolve_candidate(base, NAMES + "@@ -4 +4 @@\n-line 4\n+LINE\n" * (MAX_HUNKS + 1))
    assert "more than 20,000 hunks" in result.message


def test_nothing_is_left_behind(base):
    def listing():
        return sorted(str(path) for path in base.repo.rglob("*"))

    before = listing()
    assert contents(resolve_candidate(base, NAMES + HUNK.replace("LINE", "seen nowhere else")))
    resolve_candidate(base, NAMES + HUNK.replace("line 4", "line 44"))
    resolve_candidate(base, {"src/new.py": "x = 1\n"})
    assert listing() == before


TRICKY = (
    *("", "x", "    y = 1", "@@ -1 +1 @@", "--- a/x", "+++ b/x", "-- ", "diff --git a/x b/x"),
    *("```", "\\ No newline at end of file", "+", "-", " ", "\r", "Index: x", "é", "2.39.5"),
)
LINES = st.lists(st.sampled_from(TRICKY), max_size=12)


@settings(max_examples=40, deadline=None)
@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 3))
def test_what_git_writes_is_read_as_git_reads_it(old, new, old_end, new_end, context):
    """Whatever stands in the files: `git diff` and back gives the same bytes."""

    def text(lines, is_ended):
        return ("\n".join(lines) + ("\n" if is_ended and lines else "")).encode()

    before, after = text(old, old_end), text(new, new_end)
    diff = make_diff(before, after, context)
    applied = before
    for file_diff in read_diff(diff):
        applied = apply_plainly(file_diff.hunks, before)
    assert applied == after


EDITS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(("same", "other", "new", None))), max_size=4
)


@settings(max_examples=20, deadline=None)  # git is asked four times per example
@given(EDITS, st.sampled_from((0, 0, 1, 3)))
@example([(4, "new")], 0)
@example([(4, None), (8, "new")], 0)
def test_lines_that_are_everywhere_change_where_the_diff_says(base, edits, context):
    path = "src/pkg/same.txt"
    lines = FILES[path].splitlines(keepends=True)
    for place, line in edits:
        lines[place : place + (line is None)] = [f"{line}\n"] if line else []
    after = "".join(lines).encode()
    diff = make_diff(FILES[path].encode(), after, context)
    diff = diff.replace(b"a/x", b"a/" + path.encode()).replace(b"b/y", b"b/" + path.encode())
    assert contents(resolve_candidate(base, diff)) == ({path: after} if diff else {})


def make_diff(before, after, context):
    with tempfile.TemporaryDirectory() as name:
        Path(name, "x").write_bytes(before)
        Path(name, "y").write_bytes(after)
        command = ("diff", "--no-index", "--text", f"-U{context}", "x", "y")
        return run_git(name, *command, check=False)


def apply_plainly(hunks, before):
    """Apply hunks at exactly the lines that they name."""
    lines = before.split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    for hunk in reversed(hunks):
        olds = hunk.before
        start = hunk.start - 1 if olds else hunk.start
        assert lines[start : start + len(olds)] == olds
        lines[start : start + len(olds)] = [text for sign, text in hunk.lines if sign != "-"]
    return b"".join(lines)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*WAYS.values(), *TRICKY])))
def test_parsing_any_text_raises_nothing_but_unreadable_diff(pieces):
    with suppress(UnreadableDiff):
        for file_diff in read_diff(encode("\n".join(pieces))):
            assert file_diff.write()
