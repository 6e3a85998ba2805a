"""A snapshot holds the files on disk, and leaves no trace in the tree."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import anyio
import pytest
from repository_kit import fingerprint, make_repository, read_disk, read_tree, run_git, write_files

from fairtrial.arena.snapshot.commit_writer import write_commit
from fairtrial.arena.snapshot.disk_files import DiskFile
from fairtrial.arena.snapshot.git import git
from fairtrial.arena.snapshot.snapshot import find_top, take_snapshot
from fairtrial.core import LabError, StudyError


@pytest.fixture
def take(tmp_path_factory):
    """Return a function that takes a snapshot and checks that nothing else changed."""

    def take(top, folder=None, **options):
        home = tmp_path_factory.mktemp("home")
        before = fingerprint(top)
        snapshot = anyio.run(lambda: take_snapshot(folder or top, home, **options))
        assert fingerprint(top) == before
        assert [entry.name for entry in home.iterdir()] == ["repo"]
        return snapshot, read_tree(snapshot.repo, snapshot.tree)

    return take


def taken(files):
    """Return the contents of the files by path, without modes."""
    return {os.fsdecode(path): content for path, (_, content) in files.items()}


def test_staged_unstaged_untracked_deleted_and_renamed_files(take, tmp_path):
    top = make_repository(
        tmp_path / "a tree",
        {name: name for name in ("same", "staged", "edited", "both", "gone", "removed", "old")},
    )
    write_files(top, {"staged": "2", "both": "2", "sub/new": "new", "ignored": "", "added": "a"})
    write_files(
        top, {".gitignore": "ignored\n*.log\n", "sub/x.log": "", "sub/.gitignore": "!x.log"}
    )
    run_git(top, "add", "staged", "both", "added")
    write_files(top, {"edited": "2", "both": "3"})
    (top / "gone").unlink()
    run_git(top, "rm", "--quiet", "removed")
    run_git(top, "mv", "old", "renamed")
    snapshot, files = take(top, top / "sub")
    assert taken(files) == {
        "same": b"same", "staged": b"2", "edited": b"2", "both": b"3", "renamed": b"old",
        "added": b"a", "sub/new": b"new", "sub/x.log": b"", "sub/.gitignore": b"!x.log",
        ".gitignore": b"ignored\n*.log\n",
    }  # fmt: skip
    assert snapshot.source == top
    assert snapshot.notes == ()
    assert run_git(snapshot.repo, "rev-list", "--all") == f"{snapshot.commit}\n".encode()


def test_a_clean_tree_has_the_tree_of_its_commit(take, tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1", "b/c": "2"})
    snapshot, _ = take(top)
    assert snapshot.tree == run_git(top, "rev-parse", "HEAD^{tree}").decode().strip()


def test_the_same_tree_gives_the_same_commit_at_any_time(take, tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1"})
    assert take(top)[0].commit == take(top)[0].commit


def test_names_of_all_sorts(take, tmp_path):
    names = [
        b"with space", b'"quoted"', b"back\\slash", b"new\nline", b"tab\t", b"\xff\xfe raw",
        "größe ☃".encode(), b"-n", b"--stdin", b":(glob)x", b"#hash", b"~", b"'", b"\x01\x7f",
        b"dir with \n and \"/" + b"x", b"!bang", b"*", b"trailing ", b"\\n",
    ]  # fmt: skip
    top = tmp_path / 'a "tree"\n with ü'
    for number, committed in enumerate((True, False)):
        files = {os.fsdecode(b"%d/%s" % (number, name)): name for name in names}
        if committed:
            make_repository(top, files)
        else:
            write_files(top, files)
    _, files = take(top)
    assert {path: content for path, (_, content) in files.items()} == {
        b"%d/%s" % (number, name): name for name in names for number in (0, 1)
    }


def test_modes_links_and_binaries(take, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("secret")
    top = make_repository(
        tmp_path / "top", {"program": "", "plain": "", "empty": "", "folder/x": "x"}
    )
    (top / "program").chmod(0o755)
    (top / "plain").chmod(0o600)
    write_files(top, {"binary": bytes(range(256)) * 50})
    links = {"dangling": "no/where", "to_folder": "folder/", "out": str(outside), "odd": "./a//b"}
    for name, target in links.items():
        for place in (top / name, top / "folder" / name):
            os.symlink(target, place)  # noqa: PTH211 - `Path` would normalize the target
    run_git(top, "add", "dangling", "out")
    _, files = take(top)
    expected = {b"program": (0o100755, b""), b"plain": (0o100644, b""), b"empty": (0o100644, b"")}
    expected |= {b"folder/x": (0o100644, b"x"), b"binary": (0o100644, bytes(range(256)) * 50)}
    for name, target in links.items():
        expected[name.encode()] = (0o120000, target.encode())
        expected[b"folder/" + name.encode()] = (0o120000, target.encode())
    assert files == expected


def test_files_become_folders_and_links_and_back(take, tmp_path):
    top = make_repository(tmp_path / "top", {"file": "1", "d/x": "1", "linked/x": "1", "Case": "1"})
    write_files(tmp_path, {"elsewhere/x": "not in the tree"})
    (top / "file").unlink()
    write_files(top, {"file/inner": "2"})
    (top / "d" / "x").unlink()
    (top / "d").rmdir()
    write_files(top, {"d": "2"})
    (top / "linked" / "x").unlink()
    (top / "linked").rmdir()
    (top / "linked").symlink_to("../elsewhere")
    (top / "Case").rename(top / "case")
    _, files = take(top)
    assert taken(files) == {"file/inner": b"2", "d": b"2", "linked": b"../elsewhere", "case": b"1"}


def test_files_behind_a_link_are_not_in_the_tree(take, tmp_path):
    # The link is ignored, so nothing but the tracked path leads there.
    top = make_repository(tmp_path / "top", {"d/x": "1", "deep/er/x": "1"})
    write_files(top, {".gitignore": "/d\n/deep\n"})
    write_files(tmp_path, {"elsewhere/x": "secret", "elsewhere/er/x": "secret"})
    for name in ("d", "deep"):
        shutil.rmtree(top / name)
        (top / name).symlink_to("../elsewhere")
    assert set(taken(take(top)[1])) == {".gitignore"}


def test_names_that_differ_by_case_whatever_the_configuration_says(take, tmp_path):
    top = make_repository(tmp_path / "top", {"readme": "1"})
    run_git(top, "config", "core.ignoreCase", "true")
    write_files(top, {"README": "2", "Sub/x": "1", "sub/x": "2"})
    assert set(taken(take(top)[1])) == {"readme", "README", "Sub/x", "sub/x"}


def test_tracked_files_stay_though_they_are_ignored(take, tmp_path):
    top = make_repository(tmp_path / "top", {".gitignore": "*.bin\nout/\n"})
    write_files(top, {"a.bin": "1", "out/b": "1", "c.bin": "1", "out/d": "1"})
    run_git(top, "add", "--force", "a.bin", "out/b")
    write_files(top, {"a.bin": "2"})
    assert taken(take(top)[1]) == {".gitignore": b"*.bin\nout/\n", "a.bin": b"2", "out/b": b"1"}


def test_all_ignore_rules_of_the_user_hold(take, tmp_path, monkeypatch):
    home = tmp_path / "user"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    write_files(home, {".config/git/ignore": "*.default\n", "mine": "*.own\n"})
    top = make_repository(tmp_path / "top")
    names = ["a.default", "a.own", "a.local", "a.info", "a.xdg"]
    write_files(top, dict.fromkeys(names, ""))
    (top / ".git" / "info").mkdir(exist_ok=True)
    (top / ".git" / "info" / "exclude").write_text("*.info\n")
    left = {"a.own", "a.local", "a.xdg"}
    assert set(taken(take(top)[1])) == left
    write_files(home, {".gitconfig": "[core]\nexcludesFile = ~/mine\n"})
    assert set(taken(take(top)[1])) == left - {"a.own"} | {"a.default"}
    write_files(tmp_path, {"other": "*.local\n"})
    run_git(top, "config", "core.excludesFile", "../other")
    assert set(taken(take(top)[1])) == left - {"a.local"} | {"a.default"}
    run_git(top, "config", "--unset", "core.excludesFile")
    (home / ".gitconfig").unlink()
    write_files(home, {"xdg/git/ignore": "*.xdg\n"})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    assert set(taken(take(top)[1])) == left - {"a.xdg"} | {"a.default"}


def test_an_edit_of_the_same_size_in_the_same_second_is_not_lost(take, tmp_path):
    # According to git's index, the file is unchanged.
    top = make_repository(tmp_path / "top", {"a": "1111"})
    place = top / "a"
    long_ago = 1_000_000_000_000_000_000
    os.utime(place, ns=(long_ago, long_ago))
    run_git(top, "update-index", "--refresh")
    with place.open("r+") as file:
        file.write("2222")
    os.utime(place, ns=(long_ago, long_ago))
    assert taken(take(top)[1]) == {"a": b"2222"}


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_files_that_git_was_told_not_to_look_at_are_taken_from_disk(take, tmp_path, flag):
    top = make_repository(tmp_path / "top", {"a": "1", "b": "1"})
    run_git(top, "update-index", flag, "a", "b")
    write_files(top, {"a": "2"})
    (top / "b").unlink()
    assert taken(take(top)[1]) == {"a": b"2"}


def test_intent_to_add_and_unmerged_files(take, tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1\n", "other": "1\n"})
    run_git(top, "switch", "--quiet", "--create", "side")
    write_files(top, {"a": "2\n"})
    run_git(top, "commit", "--quiet", "--all", "--message", "side")
    run_git(top, "switch", "--quiet", "main")
    write_files(top, {"a": "3\n"})
    run_git(top, "commit", "--quiet", "--all", "--message", "main")
    with pytest.raises(subprocess.CalledProcessError):
        run_git(top, "merge", "--quiet", "side")
    write_files(top, {"new": "new"})
    run_git(top, "add", "--intent-to-add", "new")
    snapshot, files = take(top)
    assert taken(files)["new"] == b"new"
    assert taken(files)["a"] == (top / "a").read_bytes()
    assert b"<<<<<<<" in taken(files)["a"]
    assert snapshot.notes == ("unmerged files are taken as they are on disk: a",)


@pytest.mark.parametrize(
    "settings",
    [
        {"core.autocrlf": "true"},
        {"core.eol": "crlf", "core.autocrlf": "input", "core.safecrlf": "true"},
        {},
    ],
)
def test_bytes_are_taken_without_conversion(take, tmp_path, settings):
    top = make_repository(tmp_path / "top", {"a.txt": "one\ntwo\n", "b.txt": "one\r\ntwo\r\n"})
    for name, value in settings.items():
        run_git(top, "config", name, value)
    mark = tmp_path / "filter ran"
    run_git(top, "config", "filter.odd.clean", f"touch '{mark}'; tr a-z A-Z")
    run_git(top, "config", "filter.odd.required", "true")
    attributes = (
        "*.txt text eol=crlf\n*.id ident\n*.odd filter=odd\n*.u working-tree-encoding=UTF-16\n"
    )
    contents = {
        ".gitattributes": attributes, "c.txt": "x\ny\n", "d.txt": "x\r\ny\n",
        "e.id": "$Id$ $Id: 123 $", "f.odd": "abc", "g.u": "text".encode("utf-16"), "h.u": b"x",
    }  # fmt: skip
    write_files(top, contents)
    _, files = take(top)
    assert files == read_disk(top, files)
    assert set(taken(files)) == {*contents, "a.txt", "b.txt"}
    assert not mark.exists()


def test_bytes_come_out_of_the_private_repository_as_they_went_in(take, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    write_files(tmp_path, {"xdg/git/attributes": "* text eol=crlf\n"})
    attributes = "* text eol=crlf ident filter=odd working-tree-encoding=UTF-16 -diff merge=union\n"
    files = {".gitattributes": attributes, "a": "one\ntwo\r\n$Id$\n", "b": bytes(range(256))}
    top = make_repository(tmp_path / "top", commit=False)
    write_files(top, files)
    snapshot, held = take(top)
    slot = tmp_path / "slot"
    slot.mkdir()
    index = tmp_path / "index"

    async def check_out():
        await git("read-tree", snapshot.tree, repo=snapshot.repo, worktree=slot, index=index)
        await git("checkout-index", "-a", repo=snapshot.repo, worktree=slot, index=index)
        await git("add", "--all", repo=snapshot.repo, worktree=slot, index=index)
        return await git("write-tree", repo=snapshot.repo, index=index)

    assert anyio.run(check_out).decode().strip() == snapshot.tree
    assert read_disk(slot, held) == held == read_disk(top, held)


def test_modes_where_the_file_system_has_none(take, tmp_path):
    top = make_repository(tmp_path / "top", {"tool": "", "text": "", "link": "target"})
    run_git(top, "config", "core.fileMode", "false")
    run_git(top, "config", "core.symlinks", "false")
    run_git(top, "update-index", "--chmod=+x", "tool")
    name = run_git(top, "hash-object", "link").decode().strip()
    run_git(top, "update-index", "--cacheinfo", f"120000,{name},link")
    write_files(top, {"new": ""})
    for name in ("text", "new"):
        (top / name).chmod(0o777)
    modes = {path: mode for path, (mode, _) in take(top)[1].items()}
    assert modes == {b"tool": 0o100755, b"text": 0o100644, b"new": 0o100644, b"link": 0o120000}


def test_pipes_and_sockets_are_left_out_and_named(take, tmp_path, monkeypatch):
    top = make_repository(tmp_path / "top", {"was": "1", "sub/x": "1", ".gitignore": "*.sock\n"})
    (top / "was").unlink()
    os.mkfifo(top / "was")
    os.mkfifo(top / "sub" / "pipe")
    monkeypatch.chdir(top)  # names of sockets must be short
    for name in ("listening", "ignored.sock"):
        with socket.socket(socket.AF_UNIX) as place:
            place.bind(name)
    snapshot, files = take(top)
    assert set(taken(files)) == {"sub/x", ".gitignore"}
    assert snapshot.notes == ("left out, neither file nor link: listening, sub/pipe, was",)


def test_a_folder_named_like_gits_own_is_refused(take, tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1"})
    write_files(top, {"x/.Git/config": "1", ".github/y": "1", "z.git/HEAD": "1"})
    with pytest.raises(StudyError, match=r"named like its own: x/\.Git/config; rename it"):
        take(top)


def test_untracked_data_over_the_limit_is_refused_by_name(take, tmp_path):
    top = make_repository(tmp_path / "top", {"tracked": bytes(3_000_000)})
    write_files(top, {"small": "1", "large data": bytes(1_500_000), "more": bytes(600_000)})
    with pytest.raises(StudyError) as caught:
        take(top, largest_mb=2)
    message = str(caught.value)
    for part in ("2.1 MB", "2 MB", "large data (1.5 MB), more (0.6 MB)", ".gitignore", "git add"):
        assert part in message
    assert "largest_mb" in message
    take(top, largest_mb=3)
    write_files(top, {".gitignore": "large*\n"})
    assert "large data" not in taken(take(top, largest_mb=2)[1])
    run_git(top, "add", "--force", "large data")
    assert "large data" in taken(take(top, largest_mb=2)[1])


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n".format("0" * 64)


def test_pointers_of_git_lfs_that_are_not_filled_are_refused_by_name(take, tmp_path):
    lines = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
    top = make_repository(tmp_path / "top", {"fixture.txt": POINTER, ".gitattributes": lines})
    write_files(top, {"data/full.bin": b"\0" * 2000})
    take(top)  # a text that only looks like a pointer, and a file that is there
    inner = make_repository(top / "inner", {"in.bin": POINTER})
    take(top)  # the rules of the outer repository don't hold in the inner one
    write_files(inner, {".gitattributes": lines})
    write_files(top, {"data/one.bin": POINTER, "two.bin": POINTER})
    with pytest.raises(StudyError) as caught:
        take(top)
    message = str(caught.value)
    assert "inner/in.bin, data/one.bin, two.bin" in message
    assert "git lfs pull" in message
    assert "full.bin" not in message


def test_large_files_are_read_in_pieces(tmp_path, monkeypatch):
    read, counts = os.read, []
    monkeypatch.setattr("fairtrial.arena.snapshot.commit_writer._CHUNK_BYTES", 1000)
    monkeypatch.setattr(os, "read", lambda file, count: counts.append(count) or read(file, count))
    content = os.urandom(10_500)
    top = make_repository(tmp_path / "top", {"large": content, "exact": bytes(1000), "after": "x"})
    home = tmp_path / "home"
    home.mkdir()
    snapshot = anyio.run(take_snapshot, top, home)
    held = taken(read_tree(snapshot.repo, snapshot.tree))
    assert held == {"large": content, "exact": bytes(1000), "after": b"x"}
    assert counts.count(1000) >= 10


def test_a_file_that_grows_while_it_is_read(take, tmp_path, monkeypatch):
    top = make_repository(tmp_path / "top", {"log": "1", "zzz": "2"})
    read = os.read

    def read_slowly(file, count):
        place = Path(f"/proc/self/fd/{file}").readlink()
        content = read(file, count)
        if place == top / "log" and not content and place.stat().st_size == 1:
            with place.open("a") as log:
                log.write("23")
        return content

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(os, "read", read_slowly)
    snapshot = anyio.run(take_snapshot, top, home)
    assert taken(read_tree(snapshot.repo, snapshot.tree)) == {"log": b"123", "zzz": b"2"}


def test_a_repository_that_cannot_be_written_is_a_lab_error(tmp_path):
    # More than a pipe holds, so that writing fails before the end.
    write_files(tmp_path, {f"top/{number}": os.urandom(100_000) for number in range(20)})
    files = [DiskFile(b"%d" % number, 0o100644, 100_000, False) for number in range(20)]
    with pytest.raises(LabError, match=r"can't be written to .*not a git repository"):
        write_commit(tmp_path, os.fsencode(tmp_path / "top"), files, lambda: None)


def test_cancelling_ends_the_writing_at_once(tmp_path, monkeypatch):
    class Cancelled(BaseException):
        pass

    class Popen(subprocess.Popen):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            started.append(self.pid)

    started = []

    def cancel():
        calls.append(1)
        if len(calls) == 3:
            raise Cancelled

    calls = []
    write_files(tmp_path, {f"top/{number}": "x" for number in range(500)})
    files = [DiskFile(b"%d" % number, 0o100644, 1, False) for number in range(500)]
    repo = make_repository(tmp_path / "repo") / ".git"
    monkeypatch.setattr(subprocess, "Popen", Popen)
    with pytest.raises(Cancelled):
        write_commit(repo, os.fsencode(tmp_path / "top"), files, cancel)
    assert run_git(repo, "for-each-ref", "refs/heads/base") == b""
    assert started
    for pid in started:
        with pytest.raises(ChildProcessError):  # it was waited for
            os.waitpid(pid, os.WNOHANG)


def test_a_home_inside_the_tree_is_refused(tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1"})
    (top / "home").mkdir()
    with pytest.raises(LabError, match="inside the tree"):
        anyio.run(take_snapshot, top, top / "home")


def test_the_top_is_found_from_anywhere_in_the_tree(tmp_path):
    top = make_repository(tmp_path / "top", {"a/b/c": "1"})
    (tmp_path / "link").symlink_to(top / "a")
    for place in (top, top / "a", top / "a/b/c", tmp_path / "link" / "b"):
        assert anyio.run(find_top, place) == top
