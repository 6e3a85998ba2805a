"""Candidates from files and folders, resolved against the base."""

import errno
import os
import socket
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from candidate_kit import EVERYTHING, FILES, contents, encode, make_snapshot, resolve_candidate
from repository_kit import write_files

from fairtrial.arena import Candidate, FileState, Reason, Rejection, read_candidate
from fairtrial.arena.candidates.folders import MAX_CANDIDATE_MB, MB, disambiguate_names
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.candidates.resolution import editable_files, resolve
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.core import LabError, StudyError

ORDINARY = PathRules(("**/*.py",))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return make_snapshot(tmp_path_factory.mktemp("base"))


def test_a_diff_is_read_from_a_file(tmp_path):
    for name in ("x.diff", "x.patch", "X.DIFF"):
        path = tmp_path / name
        path.write_bytes(b"--- a\n")
        candidate = read_candidate(path)
        assert (candidate.name, candidate.diff) == (name, b"--- a\n")
        assert candidate.origin == str(path)


def test_a_folder_overlays(tmp_path):
    folder = tmp_path / "better"
    write_files(
        folder,
        {
            "src/a.py": "a",
            "b.bin": b"\0\xff",
            ".git/config": "x",
            "src/__pycache__/a.pyc": "x",
            "src/b.pyc": "x",
            ".gitignore": "x",
        },
    )
    (folder / "src/a.py").chmod(0o755)
    (folder / "inside").symlink_to("src")
    (folder / "missing").symlink_to("/nowhere")
    candidate = read_candidate(folder)
    assert candidate.name == "better"
    assert candidate.diff is None
    assert candidate.files == {
        "src/a.py": FileState(b"a", True),
        "b.bin": FileState(b"\0\xff"),
        ".gitignore": FileState(b"x"),
        "inside": FileState(b"src", is_link=True),
        "missing": FileState(b"/nowhere", is_link=True),
    }


def test_a_folder_is_known_by_its_own_name(tmp_path, monkeypatch):
    folder = tmp_path / "better"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert read_candidate(type(folder)(".")).name == "better"
    (tmp_path / "best").symlink_to(folder)
    assert read_candidate(tmp_path / "best").name == "best"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/best.patch", "b/best.patch"], ["a/best.patch", "b/best.patch"]),
        (["a/x/b.diff", "c/x/b.diff", "c/y/b.diff"], ["a/x/b.diff", "c/x/b.diff", "y/b.diff"]),
        (["a/one.diff", "b/two.diff"], ["one.diff", "two.diff"]),
        (["a/one.diff", "a/one.diff"], ["one.diff", "one.diff"]),
        (["a/one.diff", "a/./one.diff", "b/one.diff"], ["a/one.diff", "a/one.diff", "b/one.diff"]),
        (["a/one", "a/b/one"], ["a/one", "b/one"]),
    ],
)
def test_candidates_of_one_name_are_named_by_their_paths(tmp_path, paths, names):
    given = [Candidate(Path(path).name, "", origin=str(tmp_path / path)) for path in paths]
    assert [candidate.name for candidate in disambiguate_names(given)] == names
    candidates = [Candidate("same", "x", origin="me"), Candidate("same", "y")]
    assert disambiguate_names(candidates) == candidates


def test_a_file_that_is_no_candidate_is_refused(tmp_path):
    (tmp_path / "x.py").write_text("x")
    with pytest.raises(StudyError, match=r"x\.py: this is not a candidate; a candidate is a diff"):
        read_candidate(tmp_path / "x.py")
    with pytest.raises(StudyError, match=r"none\.diff: there is no such file"):
        read_candidate(tmp_path / "none.diff")


def test_what_is_too_large_or_no_file_is_refused(tmp_path):
    with (tmp_path / "x.diff").open("wb") as file:
        file.truncate(MAX_CANDIDATE_MB * MB + 1)
    with pytest.raises(StudyError, match=f"{MAX_CANDIDATE_MB} MB in all"):
        read_candidate(tmp_path / "x.diff")
    folder = tmp_path / "large"
    folder.mkdir()
    for name in ("a", "b"):
        with (folder / name).open("wb") as file:
            file.truncate(MAX_CANDIDATE_MB * MB // 2 + 1)
    with pytest.raises(StudyError, match=f"{MAX_CANDIDATE_MB} MB in all"):
        read_candidate(folder)
    odd = tmp_path / "odd"
    odd.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(odd / "socket"))
        with pytest.raises(StudyError, match="neither a file nor a folder"):
            read_candidate(odd)
    os.mkfifo(tmp_path / "pipe.diff")
    with pytest.raises(StudyError, match="not a candidate"):
        read_candidate(tmp_path / "pipe.diff")


def test_files_that_can_not_be_read_are_named(tmp_path, monkeypatch):
    folder = tmp_path / "shut"
    write_files(folder, {"a.py": "a"})

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    # Root may read everything, so the system can't be asked to refuse.
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(StudyError, match=r"a\.py: can't be read: Permission denied"):
        read_candidate(folder)


def test_files_that_equal_the_base_are_left_out(base):
    copy = {path: encode(content) for path, content in FILES.items()}
    result = resolve_candidate(base, {**copy, "src/pkg/core.py": "x = 1\n"}, ORDINARY)
    assert contents(result) == {"src/pkg/core.py": b"x = 1\n"}
    same = resolve_candidate(base, copy, ORDINARY)
    assert (dict(same.files), same.digest) == ({}, "")


def test_modes_that_are_left_open_are_those_of_the_base(base):
    result = resolve_candidate(base, {"run.sh": FileState(b"new\n"), "new.sh": FileState(b"new\n")})
    assert result.files == {
        "run.sh": FileState(b"new\n", True),
        "new.sh": FileState(b"new\n", False),
    }
    mode = resolve_candidate(base, {"run.sh": FileState(encode(FILES["run.sh"]), False)})
    assert [state.executable for state in mode.files.values()] == [False]
    assert mode.digest
    rejected = resolve_candidate(
        base, {"tests/test_core.py": FileState(encode(FILES["tests/test_core.py"]), True)}, ORDINARY
    )
    assert rejected.reason == Reason.OUTSIDE


def test_the_digest_does_not_depend_on_how_it_was_given(base):
    diff = (
        "--- a/src/pkg/core.py\n+++ b/src/pkg/core.py\n@@ -5,2 +5,2 @@\n"
        "-    total = a + b\n-    return total\n+    both = a - b\n+    return both\n"
    )
    other = FILES["src/pkg/core.py"].replace("a + b", "(a - b)  # quicker").replace("total", "x")
    by_diff, by_files = (
        resolve_candidate(base, diff),
        resolve_candidate(base, {"src/pkg/core.py": other}),
    )
    assert by_diff.digest == by_files.digest != ""
    assert by_diff.files != by_files.files


def test_formatting_alone_is_the_base(base):
    other = FILES["src/pkg/core.py"].replace("total", "result").replace("\n\n\n", "\n\n# add\n")
    result = resolve_candidate(base, {"src/pkg/core.py": other})
    assert list(result.files) == ["src/pkg/core.py"]
    assert result.digest == ""


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"../x": "x"}, "leads out by '..'"),
        ({"/etc/x": "x"}, "is absolute"),
        ({"a/.git/config": "x"}, "lies in .git"),
        ({"link/core.py": "x"}, "leads through link, which is a symbolic link"),
        ({"run.sh/x": "x"}, "leads through run.sh, which is a file"),
        ({"new": FileState(b"src", is_link=True), "new/x": "x"}, "leads through new, which is"),
        ({"src/pkg": "x"}, "is a folder in the base"),
        ({"l": FileState(b"../x", is_link=True)}, "leads out of the tree"),
        ({"l": FileState(b"/etc", is_link=True)}, "absolute"),
        ({"a/l": FileState(b"../link/../../../x", is_link=True)}, "leads out"),
        ({"x": b"x" * (MAX_CANDIDATE_MB * MB + 1)}, f"larger than {MAX_CANDIDATE_MB} MB"),
        ({"x\0": "x"}, "null"),
    ],
)  # fmt: skip
def test_files_that_can_not_be_written_safely_are_refused(base, files, words):
    result = resolve_candidate(base, files)
    assert result.reason == Reason.UNUSABLE
    assert words in result.message


def test_links_inside_the_tree_are_kept_as_links(base):
    result = resolve_candidate(base, {"src/again": FileState(b"pkg/core.py", is_link=True)})
    assert result.files["src/again"] == FileState(b"pkg/core.py", False, is_link=True)


def test_paths_outside_editable_are_named_all(base):
    files = {"tests/test_core.py": "x", "pyproject.toml": "x", "src/pkg/core.py": "x = 1\n"}
    result = resolve_candidate(base, files, ORDINARY)
    assert result.reason == Reason.OUTSIDE
    assert [failure.what for failure in result.failures] == ["pyproject.toml", "tests/test_core.py"]
    assert "pyproject.toml is not among the editable files (**/*.py), and 1 more" in result.message


def test_removing_and_renaming_count_as_changes(base):
    rename = "diff --git a/tests/test_core.py b/src/pkg/core2.py\nsimilarity index 100%\n"
    rename += "rename from tests/test_core.py\nrename to src/pkg/core2.py\n"
    result = resolve_candidate(base, rename, ORDINARY)
    assert result.reason == Reason.OUTSIDE
    assert "removed: tests/test_core.py" in result.failures[0].message


def test_a_new_module_that_hides_another_is_refused(base):
    assert resolve_candidate(base, {"src/random.py": "x = 1\n"}, ORDINARY).reason == Reason.OUTSIDE
    assert contents(resolve_candidate(base, {"src/pkg/random.py": "x = 1\n"}, ORDINARY))


def test_a_candidate_is_a_diff_or_files(base):
    both = Candidate("both", diff=b"", files={"x.py": FileState(b"")})
    assert resolve_candidate(base, both).reason == Reason.UNUSABLE
    assert resolve_candidate(base, Candidate("empty", files={})).digest == ""


def test_editable_files(base):
    result = anyio.run(editable_files, base, ORDINARY)
    assert set(result) == {"src/pkg/__init__.py", "src/pkg/core.py", "projects/one/src/mod.py"}
    assert result["src/pkg/core.py"] == FileState(encode(FILES["src/pkg/core.py"]), False)


def test_many_candidates_are_resolved_at_once(base):
    """Candidates are resolved at the same time with separate indexes and objects."""
    results = {}

    async def one(number):
        diff = (
            f"--- a/src/pkg/ten.txt\n+++ b/src/pkg/ten.txt\n@@ -4 +4 @@\n-line 4\n+LINE {number}\n"
        )
        candidate = Candidate(str(number), diff=diff.encode())
        results[number] = await resolve(candidate, base, EVERYTHING)

    async def all_of_them():
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(one, number)

    anyio.run(all_of_them)
    for number in range(12):
        assert f"LINE {number}\n".encode() in contents(results[number])["src/pkg/ten.txt"]


def test_a_broken_repository_is_not_the_candidates_fault(tmp_path):
    snapshot = make_snapshot(tmp_path, {"a.txt": "only here\n"})
    (snapshot.repo / "HEAD").unlink()
    diff = b"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-only here\n+x\n"
    with pytest.raises(LabError):
        anyio.run(partial(resolve, Candidate("x", diff=diff), snapshot, EVERYTHING))


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_disk_without_room_is_not_the_candidates_failure(base, monkeypatch, is_cached):
    import fairtrial.arena.candidates.base_files as module

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "_cache", {})
    if is_cached:
        anyio.run(module.list_base, base)
    monkeypatch.setattr(module, "TemporaryDirectory", fail)
    with pytest.raises(NoRoomError, match="No space left on device; make room there"):
        resolve_candidate(base, {"src/pkg/core.py": "N = 1\n"})


@pytest.mark.parametrize(
    "message",
    [
        "fatal: unable to write loose object file: No space left on device",
        "fatal: sha1 file 'x/index.lock' write error. Out of diskspace",
        "error: unable to create 'x/index.lock': Disk quota exceeded\nfatal: that was all",
    ],
)
def test_a_full_disk_during_git_is_not_the_candidates_fault(base, monkeypatch, message):
    import fairtrial.arena.snapshot.git as module

    async def fail(*_, **__):
        return SimpleNamespace(returncode=128, stdout=b"", stderr=message.encode())

    monkeypatch.setattr(module, "run_trusted", fail)
    with pytest.raises(NoRoomError, match="make room"):
        anyio.run(lambda: module.git("apply", repo=base.repo))


@pytest.mark.parametrize(
    "name",
    [
        "No space left on device.py",
        "a: No space left on device",
        "Out of diskspace",
        "x. Out of diskspace",
    ],
)
@pytest.mark.parametrize("hunk", ["@@ -1 +1 @@\n-a\n+b\n", "@@ -0,0 +1,3 @@\n+b\n c\n"])
def test_a_path_that_reads_like_a_full_disk_is_a_path(base, name, hunk):
    diff = (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n{hunk}"
    )
    result = resolve_candidate(base, diff)
    assert isinstance(result, Rejection)
    assert result.reason == Reason.UNUSABLE
    assert name in result.message


@pytest.mark.parametrize("command", ["apply", "diff-index", "cat-file"])
def test_cancelling_leaves_nothing_behind(base, monkeypatch, command):
    """Cancelled while a git is at work; which one it is, is not left to chance."""
    import fairtrial.arena.candidates.base_files as module

    git, met = module.git, []
    anyio.run(module.list_base, base)

    async def cancelled():
        async def git_cancelled(*arguments, **more):
            if arguments[0] == command:
                met.extend(base.repo.glob("candidate-*"))
                scope.cancel()
            return await git(*arguments, **more)

        monkeypatch.setattr(module, "git", git_cancelled)
        with anyio.CancelScope() as scope:
            diff = b"--- a/run.sh\n+++ b/run.sh\n@@ -2 +2 @@\n-echo\n+true\n"
            await resolve(Candidate("x", diff=diff), base, EVERYTHING)

    anyio.run(cancelled)
    assert met
    assert not list(base.repo.glob("candidate-*"))


def test_rejections_are_data(base):
    assert isinstance(resolve_candidate(base, "nonsense"), Rejection)
