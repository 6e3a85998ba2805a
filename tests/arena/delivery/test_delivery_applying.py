"""Applying edits to the user's files: changed, merged or left alone; all or none."""

import errno
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from delivery_kit import TEN, make_user, run
from hypothesis import given, settings, strategies as st

from fairtrial.arena import FileState
from fairtrial.arena.delivery import file_swap as disk
from fairtrial.arena.delivery.apply import apply_to_tree, write_patch
from fairtrial.arena.delivery.edits import merge
from fairtrial.core import LabError, StudyError

WON = TEN.replace("line 2\n", "LINE 2\n")


@pytest.fixture
def user(tmp_path):
    return make_user(tmp_path)


def listing(user):
    """All below the top but git's own, with what it holds."""
    found = {}
    for place in sorted(user.top.rglob("*")):
        if ".git" in place.relative_to(user.top).parts:
            continue
        mode = place.lstat().st_mode
        content = place.readlink() if place.is_symlink() else None
        found[str(place.relative_to(user.top))] = (
            mode,
            place.read_bytes() if content is None and place.is_file() else content,
        )
    return found


def test_files_are_changed_added_and_removed_and_the_index_is_not_touched(user):
    user.write("src/pkg/dirty.py", "D = 1\n")  # untracked, and part of the base
    user.write("other.txt", "edited and staged\n")
    user.git("add", "other.txt")
    user.snap()
    index, head = (user.top / ".git/index").read_bytes(), user.git("rev-parse", "HEAD")
    edits = user.edits(
        {
            "src/ten.txt": WON,
            "src/pkg/dirty.py": "D = 2\n",
            "new/deep/file.py": "N = 1\n",
            "src/pkg/mod.py": None,
            "other.txt": "won\n",
        }
    )
    applied = run(apply_to_tree, user.top, edits)
    assert sorted(applied.changed) == sorted(edits.files)
    assert applied.merged == applied.already == ()
    assert user.read("src/ten.txt") == WON
    assert user.read("src/pkg/dirty.py") == "D = 2\n"
    assert user.read("new/deep/file.py") == "N = 1\n"
    assert user.read("other.txt") == "won\n"
    assert not (user.top / "src/pkg/mod.py").exists()
    assert (user.top / ".git/index").read_bytes() == index
    assert user.git("rev-parse", "HEAD") == head
    assert not list(user.top.rglob(".fairtrial-*"))
    again = run(apply_to_tree, user.top, edits)
    assert again.changed == ()
    assert sorted(again.already) == sorted(edits.files)


def test_what_was_edited_elsewhere_in_the_file_is_merged(user):
    user.snap()
    edits = user.edits({"src/ten.txt": WON})
    user.write("src/ten.txt", TEN.replace("line 9\n", "mine\n"))
    applied = run(apply_to_tree, user.top, edits)
    assert applied.merged == applied.changed == ("src/ten.txt",)
    assert applied.describe() == ["merged with your edits, which was not measured: src/ten.txt"]
    assert user.read("src/ten.txt") == WON.replace("line 9\n", "mine\n")
    # A second time there is nothing to do, and that is said.
    before = user.own()
    again = run(apply_to_tree, user.top, edits)
    assert again.changed == again.merged == ()
    assert again.describe() == ["was in already: src/ten.txt"]
    assert user.own() == before


def test_a_merged_file_that_lost_its_mode_gets_it_again(user):
    user.snap()
    edits = user.edits({"src/ten.txt": FileState(WON.encode(), True)})
    user.write("src/ten.txt", TEN.replace("line 9\n", "mine\n"))
    run(apply_to_tree, user.top, edits)
    place = user.top / "src/ten.txt"
    assert place.stat().st_mode & 0o100
    place.chmod(0o644)
    assert run(apply_to_tree, user.top, edits).merged == ("src/ten.txt",)
    assert place.stat().st_mode & 0o100
    assert run(apply_to_tree, user.top, edits).already == ("src/ten.txt",)


def test_each_file_is_named_once(user):
    user.snap()
    edits = user.edits({"src/ten.txt": WON, "other.txt": "won\n", "src/pkg/mod.py": "A = 2\n"})
    user.write("src/ten.txt", TEN.replace("line 9\n", "mine\n"))
    user.write("src/pkg/mod.py", "A = 2\n")
    assert run(apply_to_tree, user.top, edits).describe() == [
        "changed: other.txt",
        "merged with your edits, which was not measured: src/ten.txt",
        "was in already: src/pkg/mod.py",
    ]


def remove(user):
    (user.top / "src/ten.txt").unlink()


def link(user):
    remove(user)
    (user.top / "src/ten.txt").symlink_to("../other.txt")


def folder(user):
    remove(user)
    user.write("src/ten.txt/inner", "x")


def link_above(user):
    (user.top / "src").rename(user.top / "elsewhere")
    (user.top / "src").symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("meanwhile", "wanted", "words"),
    [
        (lambda u: u.write("src/ten.txt", TEN.replace("line 2", "mine")), WON, "conflict"),
        (lambda u: u.write("src/ten.txt", TEN + "mine\n"), None, "the winner removes it"),
        (remove, WON, "you have removed it"),
        (link, WON, "symbolic link"),
        (folder, WON, "a folder is there now"),
        (link_above, WON, "symbolic link: its target is not changed"),
        (lambda u: u.write("src/ten.txt", TEN.replace("\n", "\r\n")), WON, "conflict"),
        (lambda u: u.write("src/ten.txt", b"\0" + TEN.encode()), WON, "conflict"),
    ],
)
def test_what_can_not_be_merged_is_refused_and_nothing_is_changed(user, meanwhile, wanted, words):
    user.snap()
    edits = user.edits({"src/ten.txt": wanted, "other.txt": "won\n", "src/fresh.py": "F = 1\n"})
    meanwhile(user)
    before = listing(user)
    with pytest.raises(StudyError) as refused:
        run(apply_to_tree, user.top, edits)
    assert words in str(refused.value)
    assert "src/ten.txt" in str(refused.value)
    assert listing(user) == before


@pytest.mark.parametrize("is_committed", [False, True])
def test_the_way_out_that_a_refusal_names_works(user, is_committed, tmp_path, monkeypatch):
    """Also in a tree that was not clean, whose files git itself has never seen."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # who runs this may want other line ends
    mine = TEN.replace("line 9\n", "line 9, not committed\n")
    user.write("src/ten.txt", mine)
    user.snap()
    won = mine.replace("line 2\n", "LINE 2\n").replace("line 8\n", "LINE 8\n")
    edits = user.edits({"src/ten.txt": won, "other.txt": "won\n"})
    patch = tmp_path / "results of it" / "best.patch"
    write_patch(patch, edits.patch)
    edited = mine.replace("line 2\n", "mine\n")
    user.write("src/ten.txt", edited)
    if is_committed:
        user.git("commit", "-qam", "mine")
    with pytest.raises(StudyError) as refused:
        run(apply_to_tree, user.top, edits, patch)
    assert user.read("src/ten.txt") == edited
    message = str(refused.value)
    assert "3way" not in message
    command = shlex.split(message[message.index("git -C ") :])
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert told.returncode == 1, told.stderr  # something was left over
    assert user.read("other.txt") == "won\n"
    assert "line 9, not committed\n" in user.read("src/ten.txt")
    assert "mine\n" in user.read("src/ten.txt")
    assert "+LINE 2" in user.read("src/ten.txt.rej")


def test_the_way_out_is_named_once(user):
    user.snap()
    edits = user.edits({"src/ten.txt": WON, "other.txt": "won\n"})
    user.write("src/ten.txt", TEN.replace("line 2", "mine"))
    user.write("other.txt", "mine\n")
    with pytest.raises(StudyError) as refused:
        run(apply_to_tree, user.top, edits, Path("best.patch"))
    assert str(refused.value).count("git -C") == 1
    assert f"--reject {Path.cwd()}/best.patch" in str(refused.value)
    with pytest.raises(StudyError, match=r"undo what you did there and give the command again$"):
        run(apply_to_tree, user.top, edits)


def test_every_file_in_the_way_is_named_at_once(user):
    user.snap()
    edits = user.edits({"src/ten.txt": WON, "other.txt": "won\n", "made.py": "x = 1\n"})
    user.write("src/ten.txt", TEN.replace("line 2", "mine"))
    user.write("made.py", "y = 1\n")
    with pytest.raises(StudyError) as refused:
        run(apply_to_tree, user.top, edits)
    assert [mistake.path for mistake in refused.value.mistakes] == [("made.py",), ("src/ten.txt",)]
    assert user.read("other.txt") == "o\n"


def test_modes_are_the_users_but_for_what_the_winner_changes(user):
    user.write("run.sh", "#!/bin/sh\n", 0o750)
    user.write("secret.py", "S = 1\n", 0o600)
    user.write("tool.py", "T = 1\n", 0o640)
    user.snap()
    edits = user.edits(
        {
            "run.sh": "#!/bin/sh\ntrue\n",
            "secret.py": "S = 2\n",
            "tool.py": FileState(b"T = 2\n", True),
            "new.sh": FileState(b"n\n", True),
        }
    )
    mask = os.umask(0o027)
    try:
        run(apply_to_tree, user.top, edits)
    finally:
        os.umask(mask)
    modes = {name: (user.top / name).stat().st_mode & 0o777 for name in edits.files}
    assert modes == {"run.sh": 0o750, "secret.py": 0o600, "tool.py": 0o750, "new.sh": 0o750}
    off = user.snap().edits({"run.sh": FileState(b"off\n", False)})
    run(apply_to_tree, user.top, off)
    assert (user.top / "run.sh").stat().st_mode & 0o777 == 0o640


def test_a_mode_alone_is_a_change(user):
    user.snap()
    edits = user.edits({"src/pkg/mod.py": FileState(b"A = 1\n", True)})
    assert run(apply_to_tree, user.top, edits).changed == ("src/pkg/mod.py",)
    assert os.access(user.top / "src/pkg/mod.py", os.X_OK)


def test_line_ends_stay_as_they_are(user):
    crlf = TEN.replace("\n", "\r\n")
    user.git("config", "core.autocrlf", "true")
    user.write("src/ten.txt", crlf)
    user.snap()
    won = crlf.replace("line 2", "LINE 2")
    edits = user.edits({"src/ten.txt": FileState(won.encode())})
    user.write("src/ten.txt", crlf.replace("line 9", "mine"))
    run(apply_to_tree, user.top, edits)
    expected = won.replace("line 9", "mine").encode()
    assert (user.top / "src/ten.txt").read_bytes() == expected


def test_files_and_folders_take_each_others_place(user):
    user.snap()
    edits = user.edits(
        {
            "other.txt": None,
            "other.txt/inner.py": "I = 1\n",
            "src/pkg/mod.py": None,
            "src/pkg": "now a file\n",
            "link": FileState(b"src/ten.txt", False, is_link=True),
        }
    )
    run(apply_to_tree, user.top, edits)
    assert user.read("other.txt/inner.py") == "I = 1\n"
    assert user.read("src/pkg") == "now a file\n"
    assert str((user.top / "link").readlink()) == "src/ten.txt"


def test_a_folder_with_files_of_the_user_is_not_removed(user):
    user.git("config", "core.excludesFile", os.devnull)
    user.write(".gitignore", "*.data\n")
    user.snap()
    user.write("src/pkg/mine.data", "precious")
    edits = user.edits({"src/pkg/mod.py": None, "src/pkg": "now a file\n", "other.txt": "won\n"})
    before = listing(user)
    with pytest.raises(LabError, match="nothing was changed"):
        run(apply_to_tree, user.top, edits)
    assert listing(user) == before


@pytest.fixture
def eight(user):
    """Eight changes of all sorts, and what the tree was before them."""
    user.write("extra/a.py", "a\n")
    user.snap()
    files = {f"new/{name}.py": f"{name}\n" for name in "abc"}
    files |= {"src/ten.txt": WON, "other.txt": None, "src/pkg/mod.py": None, "extra/a.py": None}
    return user, user.edits({**files, "src/pkg": "file\n"}), listing(user)


@pytest.mark.parametrize("kind", ["write", "rename", "keep"])
def test_a_full_disk_leaves_everything_unchanged(eight, monkeypatch, kind):
    user, edits, before = eight
    left = 0

    def failing(real):
        def work(*given, **named):
            nonlocal left
            left -= 1
            if left == -1:
                raise OSError(errno.ENOSPC, "No space left on device", str(given[0]))
            return real(*given, **named)

        return work

    if kind == "write":
        monkeypatch.setattr(disk.os, "fsync", failing(os.fsync))
    elif kind == "keep":
        monkeypatch.setattr(disk, "_keep", failing(disk._keep))
    else:
        monkeypatch.setattr(Path, "replace", failing(Path.replace))
        monkeypatch.setattr(Path, "rename", failing(Path.rename))
    failures = 0
    while True:  # a little more room every time
        left = failures
        try:
            run(apply_to_tree, user.top, edits)
            break
        except LabError as error:
            said = str(error)
        assert "nothing was changed" in said
        assert "No space left" in said
        assert listing(user) == before
        failures += 1
    assert failures == {"write": 5, "rename": 8, "keep": 1}[kind]
    assert run(apply_to_tree, user.top, edits).changed == ()
    assert not list(user.top.rglob(".fairtrial-*"))


def test_a_file_system_without_second_names_will_do(eight, monkeypatch):
    user, edits, _ = eight

    def refuse(*_, **__):
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(disk.os, "link", refuse)
    run(apply_to_tree, user.top, edits)
    assert user.read("src/ten.txt") == WON
    assert user.read("src/pkg") == "file\n"
    assert not list(user.top.rglob(".fairtrial-*"))


def test_a_file_edited_meanwhile_is_not_overwritten(user, monkeypatch):
    user.snap()
    edits = user.edits({"src/ten.txt": WON})
    real = disk._write

    def write(*given):
        user.write("src/ten.txt", "just now\n")
        return real(*given)

    monkeypatch.setattr(disk, "_write", write)
    with pytest.raises(LabError, match="changed just now"):
        run(apply_to_tree, user.top, edits)
    assert user.read("src/ten.txt") == "just now\n"


LINES = st.lists(st.sampled_from("abcdef"), max_size=6)


@settings(max_examples=12, deadline=None)
@given(LINES, LINES, LINES)
def test_a_merge_keeps_both_sides_or_says_that_it_can_not(base, ours, theirs):
    texts = ["".join(f"{line}\n" for line in lines).encode() for lines in (ours, base, theirs)]
    found = run(merge, *texts)
    if ours in (base, theirs):
        assert found == texts[2]
    elif theirs == base:
        assert found == texts[0]
    elif found is not None:
        assert b"<<<<" not in found
        assert b">>>>" not in found


def test_a_patch_is_written_whole_and_applies(user, tmp_path):
    user.write("bytes.bin", b"\0\xff" * 50)
    user.snap()
    edits = user.edits(
        {"src/ten.txt": WON, "bytes.bin": FileState(b"\xfe\0new"), "t.txt": FileState(b"\xe9\n")}
    )
    place = tmp_path / "out" / "best.patch"
    write_patch(place, b"old")
    place.chmod(0o640)
    write_patch(place, edits.patch)
    assert place.read_bytes() == edits.patch
    assert place.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in place.parent.iterdir()] == ["best.patch"]
    user.git("apply", str(place))
    assert user.read("src/ten.txt") == WON
    assert (user.top / "bytes.bin").read_bytes() == b"\xfe\0new"
    assert (user.top / "t.txt").read_bytes() == b"\xe9\n"


def test_a_patch_that_can_not_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="can't be written"):
        write_patch(tmp_path / "file" / "best.patch", b"x")


def test_a_patch_may_go_where_there_is_no_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ear = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_patch(pipe, b"x")
        assert os.read(ear, 10) == b"x"
    finally:
        os.close(ear)
    assert pipe.is_fifo()
    with pytest.raises(StudyError, match="can't be written"):
        write_patch(tmp_path, b"x")
