"""The winner on a branch: one commit, and no other change in the user's repository."""

import os
import time

import pytest
from delivery_kit import TEN, make_user, run
from repository_kit import run_git

from fairtrial.arena import FileState
from fairtrial.arena.delivery.branch import check_branch, put_on_branch
from fairtrial.arena.delivery.markdown_quoting import as_message
from fairtrial.core import StudyError

WON = TEN.replace("line 2\n", "LINE 2\n")
MESSAGE = "Twice as fast\n\nsaid by nobody ä\n"


@pytest.fixture
def user(tmp_path):
    return make_user(tmp_path)


def refs(user):
    return user.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()


def show(user, path, branch="won"):
    return run_git(user.top, "cat-file", "blob", f"{branch}:{path}")


def refuse(user, edits, name="won"):
    """What is said; nothing has changed."""
    before, known = user.own(), refs(user)
    objects = sorted((user.top / ".git/objects").rglob("*"))
    with pytest.raises(StudyError) as refused:
        run(put_on_branch, user.top, name, edits, MESSAGE)
    assert user.own() == before
    assert refs(user) == known
    assert sorted((user.top / ".git/objects").rglob("*")) == objects
    return str(refused.value)


def test_a_commit_on_a_new_branch_and_nothing_else(user):
    user.write("other.txt", "staged\n")
    user.git("add", "other.txt")
    user.write("other.txt", "and edited\n")
    user.write("untracked.py", "U = 1\n")
    user.snap()
    user.git("status")  # refreshes the index, so that nobody does so later
    before, parent = user.own(), user.git("rev-parse", "HEAD")
    edits = user.edits(
        {
            "src/ten.txt": WON,
            "src/pkg/mod.py": None,
            "new/deep.py": "N = 1\n",
            "run.sh": FileState(b"#!/bin/sh\n", True),
            "link": FileState(b"src/ten.txt", False, is_link=True),
        }
    )
    began = int(time.time()) - 1  # git's clock may be a tick behind
    made = run(put_on_branch, user.top, "fast/won", edits, MESSAGE)
    assert user.own() == before
    assert (made.branch, made.parent, made.merged) == ("fast/won", parent, ())
    assert made.missing == ("other.txt", "untracked.py")
    assert user.git("rev-parse", "refs/heads/fast/won") == made.commit
    assert user.git("rev-parse", f"{made.commit}^") == parent
    assert user.git("log", "-1", "--format=%B", "fast/won") == MESSAGE.strip()
    assert user.git("log", "-1", "--format=%an <%ae>", "fast/won") == "Ada <ada@example.org>"
    assert began <= int(user.git("log", "-1", "--format=%at", "fast/won")) <= time.time()
    changed = user.git("diff-tree", "-r", "--no-renames", "--name-status", parent, made.commit)
    assert changed.splitlines() == [
        "A\tlink",
        "A\tnew/deep.py",
        "M\trun.sh",
        "D\tsrc/pkg/mod.py",
        "M\tsrc/ten.txt",
    ]
    assert show(user, "src/ten.txt", "fast/won") == WON.encode()
    modes = user.git("ls-tree", "-r", "fast/won", "run.sh", "link").split()
    assert modes[0::4] == ["120000", "100755"]
    assert user.git("fsck", "--strict") == ""


def test_uncommitted_lines_stay_out_where_they_can_be_distinguished(user):
    user.write("src/ten.txt", TEN.replace("line 9\n", "uncommitted\n"))
    user.snap()
    edits = user.edits({"src/ten.txt": WON.replace("line 9\n", "uncommitted\n")})
    made = run(put_on_branch, user.top, "won", edits, MESSAGE)
    assert made.merged == ("src/ten.txt",)
    assert show(user, "src/ten.txt") == WON.encode()


def test_a_winner_that_needs_what_is_not_committed_is_refused(user):
    user.write("src/ten.txt", TEN.replace("line 2\n", "uncommitted\n"))
    user.write("untracked.py", "U = 1\n")
    (user.top / "other.txt").unlink()
    user.snap()
    edits = user.edits(
        {
            "src/ten.txt": WON,
            "untracked.py": "U = 2\n",
            "other.txt": "back again\n",
            "src/pkg/mod.py": "A = 2\n",
        }
    )
    said = refuse(user, edits)
    assert "src/ten.txt: the winner's changes conflict with yours" in said
    assert "untracked.py: it isn't in the last commit; commit it first" in said
    assert "other.txt: it is in the last commit, though not in your tree" in said
    assert "mod.py" not in said


def test_an_edited_file_is_not_removed(user):
    user.write("other.txt", "edited\n")
    user.snap()
    assert "other.txt: you have changed it" in refuse(user, user.edits({"other.txt": None}))


def test_a_file_that_the_commit_does_not_know_goes_without_a_word(user):
    user.write("untracked.py", "U = 1\n")
    user.snap()
    edits = user.edits({"untracked.py": None, "other.txt": "won\n"})
    run(put_on_branch, user.top, "won", edits, MESSAGE)
    assert user.git("diff-tree", "-r", "--name-only", "HEAD", "won") == "other.txt"


def test_names_that_no_branch_can_have(user):
    user.snap()
    edits = user.edits({"other.txt": "won\n"})
    odd = (
        "",
        "-d",
        "a..b",
        "a b",
        "HEAD",
        "x.lock",
        "a/",
        "/a",
        "a\nb",
        "@{-1}",
        "a~1",
        ".a",
        "\0",
    )
    for name in odd:
        assert "can't be the name of a branch" in refuse(user, edits, name)


def test_a_branch_that_is_there_stays(user):
    user.git("branch", "won")
    user.git("branch", "deep/er")
    user.snap()
    edits = user.edits({"other.txt": "won\n"})
    assert "has a branch won already" in refuse(user, edits)
    # Objects are written by then; no name leads to them.
    with pytest.raises(
        StudyError, match="has a branch deep/er, so that there can't be one named deep"
    ):
        run(put_on_branch, user.top, "deep", edits, MESSAGE)
    assert "refs/heads/deep" not in [line.split()[0] for line in refs(user)]


def test_no_commit_to_begin_at(tmp_path):
    user = make_user(tmp_path, {})
    user.git("update-ref", "-d", "HEAD")
    user.write("a.py", "A = 1\n")
    user.snap()
    assert "has no commit yet" in refuse(user, user.edits({"a.py": "A = 2\n"}))


def test_without_an_identity_the_branch_is_refused(user, monkeypatch):
    user.git("config", "--unset", "user.name")
    user.git("config", "--unset", "user.email")
    user.git("config", "user.useConfigOnly", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("NAME", "EMAIL"):
        for variable in (f"GIT_AUTHOR_{name}", f"GIT_COMMITTER_{name}", name):
            monkeypatch.delenv(variable, raising=False)
    user.snap()
    edits = user.edits({"other.txt": "won\n"})
    with pytest.raises(StudyError, match=r"tell it who you are"):
        run(put_on_branch, user.top, "won", edits, MESSAGE)
    with pytest.raises(StudyError, match=r"tell it who you are"):
        run(check_branch, user.top, "won")  # before any work
    assert len(refs(user)) == 1
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Eve")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "eve@example.org")
    run(check_branch, user.top, "won")
    run(put_on_branch, user.top, "won", edits, MESSAGE)
    assert user.git("log", "-1", "--format=%cn", "won") == "Eve"


def test_line_ends_are_stored_as_the_repository_wants_them(user):
    user.write(".gitattributes", "*.txt text eol=crlf\n")
    user.git("add", ".gitattributes")
    user.git("commit", "-qm", "attributes")
    user.write("src/ten.txt", TEN.replace("\n", "\r\n"))
    user.snap()
    edits = user.edits({"src/ten.txt": FileState(WON.replace("\n", "\r\n").encode())})
    made = run(put_on_branch, user.top, "won", edits, MESSAGE)
    assert made.merged == ()
    assert show(user, "src/ten.txt") == WON.encode()


def test_files_and_folders_take_each_others_place(user):
    user.snap()
    files = {
        "other.txt": None,
        "other.txt/in.py": "I = 1\n",
        "src/pkg/mod.py": None,
        "src/pkg": "f\n",
    }
    run(put_on_branch, user.top, "won", user.edits(files), MESSAGE)
    names = user.git("ls-tree", "-r", "--name-only", "won").splitlines()
    assert names == ["other.txt/in.py", "run.sh", "src/pkg", "src/ten.txt"]


def test_no_file_of_the_last_commit_is_removed_unasked(user):
    (user.top / "other.txt").unlink()
    (user.top / "src/pkg/mod.py").unlink()
    user.snap()
    said = refuse(user, user.edits({"other.txt/in.py": "I = 1\n", "src/pkg": "f\n"}))
    assert "other.txt is a file in the last commit" in said
    assert "a folder in the last commit, with src/pkg/mod.py in it" in said


def test_a_file_of_a_submodule_is_refused(user, tmp_path):
    inner = make_user(tmp_path / "inner", {"mod.py": "I = 1\n"})
    user.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub"
    )
    user.git("commit", "-qm", "sub")
    user.snap()
    assert "submodule" in refuse(user, user.edits({"sub/mod.py": "I = 2\n"}))


def test_odd_names_and_a_linked_worktree(user, tmp_path):
    odd = {"with space ä.txt": "1\n", ":(top)x": "2\n", "a[b]*.py": "3\n", 'q"\\.txt': "4\n"}
    for path, content in odd.items():
        user.write(path, content)
    user.git("add", "-A")
    user.git("commit", "-qm", "odd")
    user.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "there")
    user.top = tmp_path / "linked"
    user.snap()
    edits = user.edits({path: f"{content}more\n" for path, content in odd.items()})
    run(put_on_branch, user.top, "won", edits, MESSAGE)
    for path, content in odd.items():
        assert show(user, path) == f"{content}more\n".encode()


def test_not_the_top_of_a_repository(user):
    user.snap()
    edits = user.edits({"other.txt": "won\n"})
    with pytest.raises(StudyError, match="not the top of a git repository"):
        run(put_on_branch, user.top / "src", "won", edits, MESSAGE)


def test_a_message_survives_being_edited(user):
    """Git takes lines that begin with # for comments as soon as an editor was there."""
    explanation = "# `x`: fast\n\n## What changes\n\n- a\n\n```sh\n# take it\ngit apply x\n```\n"
    message = f"x: fast\n\n{as_message(explanation)}"
    user.snap()
    run(put_on_branch, user.top, "won", user.edits({"src/ten.txt": WON}), message)
    user.git("checkout", "-q", "won")
    run_git(user.top, "commit", "-q", "--amend", GIT_EDITOR="true")
    assert user.git("log", "-1", "--format=%B") == message.strip()
    assert "What changes\n------------" in message
    assert "\n    # take it\n" in message


def test_a_filter_that_is_not_installed_costs_a_remark_and_no_branch(user):
    user.write(".gitattributes", "*.bin filter=gone\n")
    user.write("large.bin", "as git has it\n")
    user.git("add", "--all")
    user.git("commit", "-m", "large")
    user.snap()
    edits = user.edits({"src/ten.txt": WON})
    user.git("config", "filter.gone.clean", "no-such-program")
    user.git("config", "filter.gone.required", "true")
    made = run(put_on_branch, user.top, "won", edits, MESSAGE)
    assert (made.branch, made.missing) == ("won", ())
    assert show(user, "src/ten.txt") == WON.encode()
