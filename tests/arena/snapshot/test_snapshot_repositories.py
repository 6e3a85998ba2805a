"""Snapshots of all kinds of repositories, none of which is changed."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import pytest
from repository_kit import fingerprint, make_repository, read_tree, run_git, write_files

from fairtrial.arena.snapshot.included_paths import find_included
from fairtrial.arena.snapshot.snapshot import find_top, take_snapshot
from fairtrial.core import StudyError


@pytest.fixture
def take(tmp_path, tmp_path_factory):
    """Return a function that takes a snapshot and checks that nothing else changed."""

    def take(top, folder=None):
        home = tmp_path_factory.mktemp("home")
        before = fingerprint(tmp_path)
        snapshot = anyio.run(take_snapshot, folder or top, home)
        assert fingerprint(tmp_path) == before
        files = read_tree(snapshot.repo, snapshot.tree)
        return snapshot, {os.fsdecode(path): content for path, (_, content) in files.items()}

    return take


def test_folders_without_a_tree_are_refused_with_what_to_do(tmp_path):
    run_git(tmp_path, "init", "--quiet", "--bare", "bare.git")
    top = make_repository(tmp_path / "top", {"a": "1"})
    marked = make_repository(tmp_path / "marked", {"a": "1"})
    run_git(marked, "config", "core.bare", "true")
    cases = {
        Path("/"): "no git repository.*git init /",
        tmp_path / "nowhere": "can't be read: No such file",
        tmp_path / "bare.git": "bare repository.*clone it",
        tmp_path / "bare.git" / "objects": "bare repository.*clone it",
        top / ".git": "repository's own folder.*name the tree",
        top / ".git" / "hooks": "repository's own folder.*name the tree",
        marked: "bare repository.*clone it",
    }
    for folder, message in cases.items():
        with pytest.raises(StudyError, match=message):
            anyio.run(find_top, folder)


def test_a_folder_in_no_repository_is_taken_without_environments_and_caches(tmp_path, take):
    files = {
        "pkg/mod.py": "1",
        "pkg/__pycache__/mod.pyc": "2",
        "env/pyvenv.cfg": "3",
        "skip.py": "4",
        ".gitignore": "skip.py",
    }
    plain = tmp_path / "plain"
    write_files(plain, {name: files[name] for name in files})
    _, taken = take(plain)
    assert sorted(taken) == [".gitignore", "pkg/mod.py"]


def test_the_top_of_a_folder_in_no_repository_is_where_its_packaging_is(tmp_path):
    write_files(tmp_path / "a", {"pyproject.toml": "", "src/pkg/__init__.py": ""})
    write_files(tmp_path / "b", {"pkg/__init__.py": "", "pkg/inner/__init__.py": ""})
    assert anyio.run(find_top, tmp_path / "a" / "src" / "pkg") == tmp_path / "a"
    assert anyio.run(find_top, tmp_path / "b" / "pkg" / "inner") == tmp_path / "b"


def test_a_configuration_that_git_cannot_read_is_reported(tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1"})
    (top / ".git" / "config").write_text("[core\n")
    with pytest.raises(StudyError, match=r"git can't read it: .*bad config"):
        anyio.run(find_top, top)
    other = make_repository(tmp_path / "other", {"a": "1"})
    (other / ".git" / "index").write_bytes(b"rubbish" * 10)
    with pytest.raises(StudyError, match=r"git can't read it: .*index"):
        anyio.run(take_snapshot, other, make_home(tmp_path))


def make_home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_a_repository_without_commits(take, tmp_path):
    top = make_repository(tmp_path / "top", {"staged": "1"}, commit=False)
    write_files(top, {"new": "2"})
    assert take(top)[1] == {"staged": b"1", "new": b"2"}
    empty = make_repository(tmp_path / "empty", commit=False)
    assert take(empty)[1] == {}


def test_a_linked_worktree(take, tmp_path):
    main = make_repository(tmp_path / "main tree", {"a": "1", ".gitignore": "*.o\n"})
    top = tmp_path / "linked"
    run_git(main, "worktree", "add", "--quiet", str(top), "-b", "other")
    write_files(top, {"a": "2", "b": "3", "c.o": "", "d.info": ""})
    run_git(top, "add", "b")
    (main / ".git" / "info").mkdir(exist_ok=True)
    (main / ".git" / "info" / "exclude").write_text("*.info\n")
    snapshot, files = take(top)
    assert files == {"a": b"2", "b": b"3", ".gitignore": b"*.o\n"}
    assert snapshot.source == top
    # of a bare repository, as some people keep all their worktrees
    run_git(main, "config", "core.bare", "true")
    assert take(top)[1] == files


def test_a_tree_that_lies_elsewhere_than_its_repository(take, tmp_path):
    place = make_repository(tmp_path / "place", {"a": "1"})
    (tmp_path / "top").mkdir()
    run_git(place, "config", "core.worktree", str(tmp_path / "top"))
    write_files(tmp_path / "top", {"a": "2"})
    snapshot, files = take(place)
    assert (snapshot.source, files) == (tmp_path / "top", {"a": b"2"})
    separate = make_repository(tmp_path / "sep", {"a": "1"}, f"--separate-git-dir={tmp_path / 'g'}")
    assert take(separate)[1] == {"a": b"1"}


@pytest.fixture
def family(tmp_path):
    """A repository with submodules: `lib` (in it `lib/deep`), and `absent`, never initialized."""
    deep = make_repository(tmp_path / "origins" / "deep", {"deep.py": "1", ".gitignore": "*.o\n"})
    lib = make_repository(tmp_path / "origins" / "lib", {"lib.py": "1"})
    run_git(lib, "submodule", "--quiet", "add", str(deep), "deep")
    run_git(lib, "commit", "--quiet", "--message", "deep")
    origin = make_repository(tmp_path / "origins" / "top", {"a": "1", ".gitignore": "*.log\n"})
    for name, source in {"lib": lib, "absent": deep}.items():
        run_git(origin, "submodule", "--quiet", "add", str(source), name)
    run_git(origin, "commit", "--quiet", "--message", "modules")
    top = tmp_path / "top"
    run_git(tmp_path, "clone", "--quiet", str(origin), str(top))
    run_git(top, "submodule", "--quiet", "update", "--init", "--recursive", "lib")
    return top


def without(files, *names):
    return {path: content for path, content in files.items() if not path.endswith(names)}


def test_submodules_are_taken_as_their_files_by_their_own_rules(take, family):
    write_files(family, {"lib/lib.py": "2", "lib/new.log": "3", "lib/deep/x.o": "", "x.log": ""})
    write_files(family, {"lib/deep/y.log": "4", "lib/.git2": "5"})
    snapshot, files = take(family)
    assert without(files, ".gitmodules", ".gitignore") == {
        "a": b"1", "lib/lib.py": b"2", "lib/new.log": b"3", "lib/deep/deep.py": b"1",
        "lib/deep/y.log": b"4", "lib/.git2": b"5",
    }  # fmt: skip
    assert snapshot.notes == (
        "repositories in the tree are taken as the files on disk: lib",
        "repositories in the tree are taken as the files on disk: lib/deep",
    )


def test_a_submodule_as_the_users_own_tree(take, family):
    for name in ("lib", "lib/deep"):
        snapshot, files = take(family / name)
        assert snapshot.source == family / name
    assert without(files, ".gitignore") == {"deep.py": b"1"}


def test_submodules_that_are_something_else_on_disk(take, family):
    write_files(family, {"absent/left.py": "1", "absent/left.log": ""})  # files, no repository
    shutil.rmtree(family / "lib")
    write_files(family, {"lib": "a file"})
    files = take(family)[1]
    assert without(files, ".gitmodules", ".gitignore") == {
        "a": b"1", "absent/left.py": b"1", "lib": b"a file",
    }  # fmt: skip
    (family / "lib").unlink()
    (family / "lib").symlink_to("absent")
    assert take(family)[1]["lib"] == b"absent"
    (family / "lib").unlink()
    assert "lib" not in take(family)[1]


def test_a_submodule_whose_repository_is_gone(take, family):
    shutil.rmtree(family / ".git" / "modules")
    files = take(family)[1]
    assert files["lib/lib.py"] == b"1"
    assert not [path for path in files if path.endswith(".git")]


def test_embedded_repositories_are_taken_as_their_files(take, tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1", ".gitignore": "*.log\nbuild/\n"})
    outer = make_repository(top / "vendor" / "o ü\n", {"o.py": "1", ".gitignore": "*.o\n"})
    write_files(outer, {"o.py": "2", "x.log": "3", "y.o": ""})
    make_repository(outer / "inner", {"i.py": "4"}, commit=False)
    recorded = make_repository(top / "recorded", {"r.py": "5"})
    run_git(top, "-c", "advice.addEmbeddedRepo=false", "add", "recorded")
    write_files(recorded, {"new.py": "6"})
    make_repository(top / "build" / "ignored", {"x": ""})
    run_git(top, "worktree", "add", "--quiet", "wt")
    snapshot, files = take(top, outer.parent)
    assert without(files, ".gitignore") == {
        "a": b"1", "vendor/o ü\n/o.py": b"2", "vendor/o ü\n/x.log": b"3",
        "vendor/o ü\n/inner/i.py": b"4", "recorded/r.py": b"5", "recorded/new.py": b"6",
        "wt/a": b"1",
    }  # fmt: skip
    assert "recorded, vendor/o ü\n, wt" in snapshot.notes[0]


def test_a_repository_in_the_place_of_a_file(take, tmp_path):
    # git itself doesn't list what is in it: the path is tracked
    top = make_repository(tmp_path / "top", {"a": "1", "b/c": "1"})
    for name, committed in {"a": True, "b/c": False}.items():
        (top / name).unlink()
        make_repository(top / name, {"x": "1"}, commit=committed)
    assert take(top)[1] == {"a/x": b"1", "b/c/x": b"1"}


def test_repositories_inside_that_are_mere_files(take, tmp_path):
    # bare repositories as test data, and a .git that is none
    top = make_repository(tmp_path / "top", {"a": "1"})
    run_git(top, "init", "--quiet", "--bare", "--template=", "data/x.git")
    write_files(top, {"empty/file": "1"})
    (top / "empty" / ".git").mkdir()
    files = take(top)[1]
    assert {"data/x.git/HEAD", "data/x.git/config", "empty/file"} <= set(files)


def test_repositories_may_use_sha256(take, tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1", "b": "1"}, "--object-format=sha256")
    make_repository(top / "inner", {"c": "1"})
    write_files(top, {"a": "2"})
    snapshot, files = take(top)
    assert files == {"a": b"2", "b": b"1", "inner/c": b"1"}
    assert len(snapshot.commit) == 64


def test_a_shallow_clone_and_borrowed_objects(take, tmp_path):
    origin = make_repository(tmp_path / "origin", {"a": "1"})
    run_git(origin, "commit", "--quiet", "--allow-empty", "--message", "second")
    run_git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", "shallow")
    run_git(tmp_path, "clone", "--quiet", "--shared", str(origin), "shared")
    for name in ("shallow", "shared"):
        write_files(tmp_path / name, {"b": "2"})
        assert take(tmp_path / name)[1] == {"a": b"1", "b": b"2"}


@pytest.fixture
def wide(tmp_path):
    """A repository with folders to leave out."""
    files = {f"{folder}/{name}": folder for folder in ("in", "out/deep") for name in "ab"}
    origin = make_repository(tmp_path / "origin", {"a": "1", **files})
    run_git(origin, "config", "uploadpack.allowFilter", "true")
    return origin


@pytest.mark.parametrize("kept", ["blob:none", "tree:0"])
def test_a_partial_clone_is_taken_without_asking_the_server(take, tmp_path, wide, kept):
    top = tmp_path / "top"
    run_git(
        tmp_path, "clone", "--quiet", f"--filter={kept}", "--sparse", f"file://{wide}", str(top)
    )
    run_git(top, "sparse-checkout", "set", "--sparse-index", "in")
    asked = tmp_path / "asked"
    run_git(top, "config", "remote.origin.uploadpack", f"touch '{asked}'; false")
    write_files(top, {"in/a": "2", "out/deep/new": "3"})
    (top / "in" / "b").unlink()
    snapshot, files = take(top)
    assert files == {"a": b"1", "in/a": b"2", "out/deep/new": b"3"}
    assert "the checkout is sparse: only what is on disk is taken" in snapshot.notes
    assert not asked.exists()
    with pytest.raises(subprocess.CalledProcessError):
        run_git(top, "cat-file", "-p", "HEAD:out/deep/a")
    assert asked.exists()  # this is how asking would have shown


@pytest.mark.parametrize("options", [(), ("--sparse-index",), ("--no-cone",)])
def test_sparse_checkouts_are_taken_as_they_are_on_disk(take, tmp_path, wide, options):
    run_git(wide, "sparse-checkout", "set", *options, "in")
    present = {"in/a": b"in", "in/b": b"in"} | ({} if "--no-cone" in options else {"a": b"1"})
    assert take(wide)[1] == present
    write_files(wide, {"out/deep/a": "edited", "out/new": "new"})
    assert take(wide)[1] == present | {"out/deep/a": b"edited", "out/new": b"new"}


@pytest.mark.parametrize("feature", ["--split-index", "--untracked-cache", "--index-version=4"])
def test_indexes_of_other_kinds(take, tmp_path, feature):
    top = make_repository(tmp_path / "top", {f"d/{number}": "1" for number in range(50)})
    run_git(top, "update-index", *feature.split("=") if "=" in feature else (feature,))
    write_files(top, {"d/new": "1"})
    run_git(top, "add", "d/new")
    write_files(top, {"d/new": "2", "other": "3"})
    files = take(top)[1]
    assert len(files) == 52
    assert (files["d/new"], files["other"]) == (b"2", b"3")


def test_programs_that_a_repository_names_are_not_run(take, tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1", ".gitattributes": "* filter=f diff=d\n"})
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "filter.f.clean", "filter.f.process", "diff.d.textconv"):
        run_git(top, "config", name, str(program))
    hooks = top / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-commit", "pre-commit"):
        shutil.copy(program, hooks / name)
    mark.unlink(missing_ok=True)
    write_files(top, {"a": "2"})
    assert take(top)[1]["a"] == b"2"
    assert not mark.exists()


def test_variables_of_the_callers_git_do_not_leak_in(take, tmp_path, monkeypatch):
    # Without protection, git would use the caller's GIT_DIR and GIT_INDEX_FILE
    top = make_repository(tmp_path / "top", {"a": "1"})
    other = make_repository(tmp_path / "other", {"b": "1"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_PREFIX", "x/")
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare=true'")
    monkeypatch.setenv("GIT_NAMESPACE", "x")
    monkeypatch.setenv("GIT_TRACE", str(other / "trace"))
    assert take(top)[1] == {"a": b"1"}


def test_a_snapshot_can_be_taken_in_a_git_hook(tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1", "sub/b": "1"})
    home = make_home(tmp_path)
    hook = top / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!{sys.executable}\n"
        "import anyio, os, sys\n"
        "from pathlib import Path\n"
        "assert 'GIT_INDEX_FILE' in os.environ\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from fairtrial.arena.snapshot.snapshot import take_snapshot\n"
        f"shot = anyio.run(take_snapshot, Path.cwd(), Path({str(home)!r}))\n"
        f"Path({str(tmp_path / 'tree')!r}).write_text(shot.tree)\n"
    )
    hook.chmod(0o755)
    write_files(top, {"a": "2", "sub/b": "2", "new": "3"})
    run_git(top, "commit", "--quiet", "--message", "partial", "--only", "a")
    tree = read_tree(home / "repo", (tmp_path / "tree").read_text())
    assert {path: content for path, (_, content) in tree.items()} == {
        b"a": b"2", b"sub/b": b"2", b"new": b"3",
    }  # fmt: skip
    assert set(read_tree(top, "HEAD")) == {b"a", b"sub/b"}
    assert run_git(top, "show", "HEAD:sub/b") == b"1"
    run_git(top, "fsck", "--strict")


def test_later_changes_of_the_repository_do_not_affect_the_snapshot(take, tmp_path):
    # A commit amended, the index changed, everything pruned, and at last the repository removed.
    top = make_repository(tmp_path / "top", {"a": "1", "b": "1"})
    write_files(top, {"b": "staged", "c": "untracked"})
    run_git(top, "add", "b")
    run_git(top, "gc", "--quiet")
    snapshot, files = take(top)
    write_files(top, {"a": "other", "b": "other"})
    run_git(top, "add", "--all")
    run_git(top, "commit", "--quiet", "--amend", "--message", "again")
    run_git(top, "reflog", "expire", "--expire=now", "--all")
    run_git(top, "gc", "--quiet", "--prune=now")
    for remove in (False, True):
        if remove:
            shutil.rmtree(top)
        held = read_tree(snapshot.repo, snapshot.commit)
        assert {os.fsdecode(path): content for path, (_, content) in held.items()} == files
        run_git(snapshot.repo, "fsck", "--full", "--strict")
    assert files == {"a": b"1", "b": b"staged", "c": b"untracked"}


def test_git_is_asked_as_often_for_many_files_as_for_few(tmp_path, monkeypatch):
    log = tmp_path / "log"
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\necho x >> '{log}'\nexec {shutil.which('git')} \"$@\"\n")
    shim.chmod(0o755)
    counts = []
    for number in (2, 300):
        top = make_repository(tmp_path / f"top{number}", {f"{n}/f": "1" for n in range(number)})
        write_files(top, {f"{n}/f": "2" for n in range(0, number, 2)})
        write_files(top, {f"{n}/g": "2" for n in range(number)})
        home = tmp_path / f"home{number}"
        home.mkdir()
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
            anyio.run(take_snapshot, top, home)
        counts.append(len(log.read_text().splitlines()))
        log.unlink()
    assert counts[0] == counts[1] <= 8


@contextlib.contextmanager
def as_other_user():
    """Become an ordinary user, if this is root, and yield a folder for them."""
    folder = Path(tempfile.mkdtemp(prefix="snapshot-test-"))
    is_root = os.geteuid() == 0
    if is_root:
        folder.chmod(0o777)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        for place in folder.rglob("*"):
            if place.is_dir():
                place.chmod(0o700)
        shutil.rmtree(folder)


def test_files_that_may_not_be_read_are_named(take, tmp_path, monkeypatch):
    # Imports all modules that an ordinary user can't read in the home of root.
    take(make_repository(tmp_path / "top"))
    with as_other_user() as folder:
        monkeypatch.setenv("HOME", str(folder))
        files = {"a": "1", "secret": "1", "closed/x": "1", "fine": "1"}
        top = make_repository(folder / "top", files)
        home = folder / "home"
        home.mkdir()
        (top / "secret").chmod(0)
        with pytest.raises(StudyError, match="files can't be read: secret; make them readable"):
            anyio.run(take_snapshot, top, home)
        shutil.rmtree(home / "repo")
        (top / "secret").chmod(0o600)
        (top / "closed").chmod(0)
        with pytest.raises(StudyError, match="files can't be read: closed/x"):
            anyio.run(take_snapshot, top, home)
        (top / "closed").chmod(0o700)
        write_files(top, {"untracked/x": "1"})
        (top / "untracked").chmod(0)
        notes = anyio.run(take_snapshot, top, home).notes
        assert notes == ("warning: could not open directory 'untracked/': Permission denied",)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_that_belongs_to_another_user(take, tmp_path):
    top = make_repository(tmp_path / "top", {"a": "1"})
    for place in (top, *top.rglob("*")):
        os.chown(place, 65534, 65534)
    with pytest.raises(subprocess.CalledProcessError):
        run_git(top, "status")  # git itself refuses
    assert take(top)[1] == {"a": b"1"}


def test_included_paths_are_those_that_slots_lack(tmp_path):
    top = make_repository(tmp_path / "top", {"src/a.py": "1", ".gitignore": "*.so\n/data/\n/out\n"})
    write_files(top, {"src/x.so": "12345", "src/deep/y.so": "123", "data/1": "1", "data/s/2": "22"})
    (top / "out").symlink_to(tmp_path)
    (top / "data" / "link").symlink_to("1")

    def find(*patterns):
        before = fingerprint(tmp_path)
        included = anyio.run(find_included, top, patterns)
        assert fingerprint(tmp_path) == before
        return [(path.path, path.size_bytes) for path in included]

    assert find() == []
    assert find("src/**/*.so") == [("src/deep/y.so", 3), ("src/x.so", 5)]
    assert find("data", "data/s", "src/x.so", "data/*") == [("data", 4), ("src/x.so", 5)]
    assert find("src/*") == [("src/deep", 3), ("src/x.so", 5)]
    wrong = {
        "nothing/*": "nothing in the tree matches",
        "src/a.py": "is not ignored: slots have it anyway",
        "src": r"holds files that are not ignored \(src/a.py\)",
        ".": "is the whole tree",
        "../x": "must be a path in the tree",
        "/etc": "must be a path in the tree",
        "": "must be a path in the tree",
        "out": "out leads out of the tree",
        "out/top": "leads out of the tree",
        ".git": "never shown",
        ".git/*": "never shown",
    }
    for pattern, message in wrong.items():
        with pytest.raises(StudyError, match=rf"include\[1\].*{message}"):
            find("data", pattern)
    with pytest.raises(StudyError) as caught:
        find(*wrong)
    assert len(caught.value.mistakes) == len(wrong)


def test_included_folders_hold_no_tracked_file(tmp_path):
    top = make_repository(tmp_path / "top", {".gitignore": "build/\n"})
    write_files(top, {"build/kept": "1", "build/x": "1", "inner/.keep": ""})
    run_git(top, "add", "--force", "build/kept")
    with pytest.raises(StudyError, match=r"build/kept\); name the ignored paths in it"):
        anyio.run(find_included, top, ["build"])
    assert [included.path for included in anyio.run(find_included, top, ["build/*"])] == ["build/x"]
    inner = make_repository(top / "inner", {"m.py": "1", ".gitignore": "*.so\n"})
    write_files(inner, {"m.so": "123"})
    assert [included.path for included in anyio.run(find_included, top, ["inner/*.so"])] == [
        "inner/m.so"
    ]


def test_the_private_repository_is_for_its_owner(take, tmp_path):
    snapshot, _ = take(make_repository(tmp_path / "top", {"a": "1"}))
    assert not (snapshot.repo / "objects" / "info" / "alternates").exists()
    assert not [path for path in snapshot.repo.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 2]
