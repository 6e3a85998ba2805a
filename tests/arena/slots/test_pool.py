"""The pool: leases, candidates, hidden files, failures."""

import os
import stat
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest
from pool_kit import make_mixed_repository, memory_folder, read_contents
from repository_kit import run_git, write_files

from fairtrial import Candidate
from fairtrial.arena import Changes, FileState
from fairtrial.arena.slots import pool as worktrees, pool_folders
from fairtrial.arena.slots.pool import WorktreePool
from fairtrial.core import LabError, StudyError


@pytest.fixture
def quick():
    with memory_folder() as folder:
        yield folder


@pytest.fixture
def home(quick, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(quick / "home"))
    return quick / "home" / "arena"


@pytest.fixture
def repo(quick, home):
    before = os.umask(0o022)  # modes must not depend on the user's umask
    yield make_mixed_repository(quick / "repo")
    os.umask(before)


def git_text(folder, *arguments):
    """Return what a git command prints, as text."""
    return run_git(folder, *arguments).decode("utf-8", "replace")


def in_pool(repo, work, size=2, **options):
    """Run `work(pool)` in a pool; nothing is left on disk afterwards."""

    async def run():
        async with WorktreePool(repo, size, **options) as pool:
            return await work(pool)

    result = anyio.run(run)
    left = list((Path(os.environ["FAIRTRIAL_HOME"]) / "arena").iterdir())
    assert left == []
    return result


# --- leases ------------------------------------------------------------------------------------


def test_a_slot_holds_the_tree_as_it_is_and_no_repository(repo):
    write_files(repo, {"new": "untracked", "README": "changed"})
    (repo / "tests/test_mod.py").unlink()

    async def work(pool):
        async with pool.acquire() as slot:
            return read_contents(slot.path), slot.path

    contents, path = in_pool(repo, work)
    expected = {name: value for name, value in read_contents(repo).items() if not is_git(name)}
    del expected["tests"]  # an empty folder
    assert contents == expected
    assert not path.is_relative_to(repo)


def is_git(name):
    return name == ".git" or name.startswith(".git/")


def test_no_two_hold_the_same_slot_and_a_released_one_is_taken_again(repo):
    async def work(pool):
        holders, turns = [], []

        async def hold():
            async with pool.acquire() as slot:
                assert slot.path not in holders
                assert slot.path != pool.base
                holders.append(slot.path)
                turns.append(slot.number)
                await anyio.lowlevel.checkpoint()
                holders.remove(slot.path)

        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(hold)
        return turns

    turns = in_pool(repo, work, size=3)
    assert len(turns) == 12
    assert set(turns) == {1, 2, 3}


def test_acquire_waits_until_a_slot_is_free(repo):
    async def work(pool):
        order = []

        async def second(task_status):
            task_status.started()
            async with pool.acquire():
                order.append("second")

        async with anyio.create_task_group() as tasks, pool.acquire():
            await tasks.start(lambda task_status: second(task_status))
            await anyio.wait_all_tasks_blocked()
            order.append("first")
        return order

    assert in_pool(repo, work, size=1) == ["first", "second"]


def test_a_cancelled_batch_leaves_all_slots_free(repo):
    """Trap: the release awaited inside the cancelled scope, and all slots are lost (9)."""

    async def work(pool):
        for _ in range(3):
            async with anyio.create_task_group() as tasks:

                async def hold():
                    async with pool.acquire() as slot:
                        await slot.write_candidate(Changes({"new": FileState(b"x")}))
                        await anyio.sleep_forever()

                for _ in range(5):  # two hold a slot, three wait for one
                    tasks.start_soon(hold)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            async with AsyncExitStack() as stack:
                slots = [await stack.enter_async_context(pool.acquire()) for _ in range(2)]
                return [(slot.path / "new").exists() for slot in slots]

    assert in_pool(repo, work, size=2) == [False, False]


def test_cancelled_while_a_slot_is_handed_over_the_slot_is_not_lost(repo):
    async def work(pool):
        async with pool.acquire():
            scope = anyio.CancelScope()

            async def wait():
                with scope:
                    async with pool.acquire():
                        raise AssertionError("was cancelled before it could get one")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                pool._wake()
                scope.cancel()
        with anyio.fail_after(60):
            async with pool.acquire():
                pass

    in_pool(repo, work, size=1)


def test_a_slot_that_was_given_back_can_not_be_used_any_more(repo):
    """Trap: a path of the slot frozen in phase 1 leads to another candidate's code in phase 2."""

    async def work(pool):
        async with pool.acquire() as slot:
            pass
        with pytest.raises(LabError, match="released"):
            _ = slot.path
        with pytest.raises(LabError, match="released"):
            await slot.write_candidate(Changes())

    in_pool(repo, work)


def test_after_close_release_does_nothing_and_acquire_raises(repo, home):
    async def run():
        pool = WorktreePool(repo, 1)
        async with AsyncExitStack() as late:
            async with pool:
                await late.enter_async_context(pool.acquire())
            with pytest.raises(LabError, match="closed"):
                async with pool.acquire():
                    pass
        await pool.close()

    anyio.run(run)
    assert list(home.iterdir()) == []


def test_waiting_tasks_get_an_error_when_the_pool_closes(repo):
    async def run():
        failures = []

        async def wait(pool):
            try:
                async with pool.acquire():
                    pass
            except LabError as error:
                failures.append(str(error))

        async with anyio.create_task_group() as tasks:
            async with WorktreePool(repo, 1) as pool:
                held = pool.acquire()
                await held.__aenter__()
                tasks.start_soon(wait, pool)
                await anyio.wait_all_tasks_blocked()
            await held.__aexit__(None, None, None)
        return failures

    assert anyio.run(run) == ["the pool is closed"]


def test_modes_and_times_do_not_depend_on_who_runs_it_and_when(repo):
    async def work(pool):
        async with pool.acquire() as slot:
            places = [slot.path / path for path in read_contents(slot.path)]
            return (
                {stat.S_IMODE(place.lstat().st_mode) for place in places if not place.is_symlink()},
                {place.lstat().st_mtime_ns for place in places if not place.is_dir()},
            )

    before = os.umask(0o077)
    try:
        modes, times = in_pool(repo, work, python=Path(sys.executable))
    finally:
        os.umask(before)
    assert modes == {0o644, 0o755}
    assert len(times) == 1


# --- candidates --------------------------------------------------------------------------------


def write_and_list(repo, files, **options):
    async def work(pool):
        async with pool.acquire() as slot:
            await slot.write_candidate(Changes(files))
            first = read_contents(slot.path)
        async with pool.acquire() as slot:
            assert read_contents(slot.path) == read_contents(pool.base)
        return first

    return in_pool(repo, work, size=1, **options)


def test_a_candidate_is_written_with_folders_modes_and_links(repo):
    contents = write_and_list(
        repo,
        {
            "src/pkg/mod.py": FileState(b"VALUE = 2\n"),
            "run.sh": FileState(b"#!/bin/bash\n"),
            "deep/er/tool": FileState(b"#!", executable=True),
            "src/alias.py": FileState(b"pkg/mod.py", is_link=True),
            "tests/test_mod.py": None,
            "never/was": None,
        },
    )
    assert contents["src/pkg/mod.py"] == ("0o100644", b"VALUE = 2\n")
    assert contents["run.sh"] == ("0o100755", b"#!/bin/bash\n")  # kept
    assert contents["deep/er/tool"] == ("0o100755", b"#!")
    assert contents["src/alias.py"] == ("0o120777", "pkg/mod.py")
    assert "tests" not in contents  # nothing else was in it
    assert "never" not in contents


def test_a_file_takes_the_place_of_a_folder_and_the_other_way_round(repo):
    contents = write_and_list(
        repo,
        {
            "src": FileState(b"a file now"),
            "README/inside": FileState(b"a folder now"),
            "link": None,
            "link/inside": FileState(b"no link any more"),
        },
    )
    assert contents["src"] == ("0o100644", b"a file now")
    assert contents["README/inside"][1] == b"a folder now"
    assert contents["link/inside"][1] == b"no link any more"


def test_paths_that_lead_elsewhere_are_refused_before_anything_is_written(repo, quick):
    async def work(pool):
        async with pool.acquire() as slot:
            before = read_contents(slot.path)
            with pytest.raises(StudyError) as refusal:
                await slot.write_candidate(
                    Changes({"fine": FileState(b""), "../out": FileState(b""), "/out": None})
                )
            assert read_contents(slot.path) == before
            return len(refusal.value.mistakes)

    assert in_pool(repo, work) == 2
    assert not (quick / "out").exists()


def test_between_checks_a_slot_comes_back_to_base_candidate_and_build(repo):
    async def work(pool):
        async with pool.acquire() as slot:
            await slot.write_candidate(Changes({"src/pkg/mod.py": FileState(b"VALUE = 2\n")}))
            write_files(slot.path, {"build/out": "made"})
            await slot.keep()
            staged, print_before = read_contents(slot.path), await slot.fingerprint()
            write_files(
                slot.path,
                {
                    "src/pkg/mod.py": "VALUE = 3\n",
                    "tests/test_mod.py": "",
                    "build/out": "xxxx",
                    "n": "",
                },
            )
            assert await slot.fingerprint() != print_before
            touched = await slot.restage()
            assert read_contents(slot.path) == staged
            assert await slot.fingerprint() == print_before
            await slot.reset()
            assert read_contents(slot.path) == read_contents(pool.base)
            return touched

    assert in_pool(repo, work) == ("build/out", "src/pkg/mod.py", "tests/test_mod.py")


# --- what candidates see -----------------------------------------------------------------------


def test_hidden_files_are_in_trusted_slots_only_and_so_is_their_bytecode(repo):
    (repo / "recorded.json").symlink_to("tests/calls.json")
    write_files(repo, {"tests/calls.json": "[]", "secret/deep/x": "1"})
    hidden = ["benchmarks/inputs.py", "recorded.json", "secret"]

    async def work(pool):
        seen = []
        for trusted in (False, True, False):
            async with pool.acquire(trusted=trusted) as slot:
                seen.append(set(read_contents(slot.path)))
        assert "benchmarks/inputs.py" in read_contents(pool.base)
        return seen

    first, trusted, last = in_pool(repo, work, size=1, hidden=hidden, python=Path(sys.executable))
    assert first == last
    assert trusted - first == {
        "benchmarks/inputs.py",
        "recorded.json",
        "tests/calls.json",
        "secret",
        "secret/deep",
        "secret/deep/x",
    }
    assert not any("inputs" in path for path in first)


def test_included_paths_are_copied_and_the_size_is_reported(repo):
    write_files(repo, {"data/big": "x" * 1_500_000, "data/deep/y": "y"})
    os.mkfifo(repo / "data/pipe")
    (repo / "data/link").symlink_to("deep/y")

    async def work(pool):
        async with pool.acquire() as slot:
            (slot.path / "data/deep/y").unlink()
        async with pool.acquire() as slot:
            return read_contents(slot.path), pool.notes

    contents, notes = in_pool(repo, work, size=1, included=["data"])
    assert {path for path in contents if path.startswith("data/")} == {
        "data/big",
        "data/deep",
        "data/deep/y",
        "data/link",
    }
    assert any("1.5 MB" in note for note in notes)


def test_with_git_a_slot_is_a_repository_of_one_commit_that_reaches_no_other(repo):
    before = read_contents(repo / ".git")

    async def work(pool):
        private = read_contents(pool.snapshot.repo)
        async with pool.acquire() as slot:
            assert git_text(slot.path, "rev-list", "--all").count("\n") == 1
            assert git_text(slot.path, "status", "--porcelain") == ""
            assert "inputs.py" not in git_text(slot.path, "ls-files")
            objects = git_text(slot.path, "cat-file", "--batch-all-objects", "--batch")
            assert "SECRET" not in objects
            (slot.path / "README").write_text("other")
            assert git_text(slot.path, "status", "--porcelain") == " M README\n"
            git_text(slot.path, "commit", "-qam", "mine")
            git_text(slot.path, "tag", "mine")
            git_text(slot.path, "config", "user.name", "me")
            git_text(slot.path, "gc", "-q", "--prune=now")
        async with pool.acquire() as slot:
            assert read_contents(slot.path) == {
                path: value
                for path, value in read_contents(pool.base).items()
                if path != "benchmarks/inputs.py"
            }
            assert git_text(slot.path, "status", "--porcelain") == ""
            assert git_text(slot.path, "tag") == ""
        assert read_contents(pool.snapshot.repo) == private

    in_pool(
        repo, work, size=1, git=True, hidden=["benchmarks/inputs.py"], python=Path(sys.executable)
    )
    assert read_contents(repo / ".git") == before


def test_git_sees_an_edit_of_the_same_size_in_the_second_of_the_reset(repo):
    async def work(pool):
        async with pool.acquire() as slot:
            (slot.path / "README").write_text("READ ME\n")
            return git_text(slot.path, "status", "--porcelain")

    assert in_pool(repo, work, git=True) == " M README\n"


# --- failures ----------------------------------------------------------------------------------


FULL = OSError(28, "No space left on device", "x")


def failing_slots(monkeypatch, numbers, reason=FULL):
    real = worktrees._reset

    def reset(staging, wanted):
        if staging.folder.name in numbers:
            raise reason
        real(staging, wanted)

    monkeypatch.setattr(worktrees, "_reset", reset)


def test_without_one_slot_the_pool_works_with_the_rest_and_says_so(repo, monkeypatch):
    failing_slots(monkeypatch, {"2"})

    async def work(pool):
        async with AsyncExitStack() as stack:
            slots = [await stack.enter_async_context(pool.acquire()) for _ in range(pool.size)]
            return [slot.number for slot in slots], pool.notes

    numbers, notes = in_pool(repo, work, size=3)
    assert numbers == [1, 3]
    assert any("slot 2" in note and "No space left" in note for note in notes)


def test_without_any_slot_one_clear_error_says_why_and_what_to_do(repo, home, monkeypatch):
    failing_slots(monkeypatch, {"1", "2"})
    with pytest.raises(LabError, match=r"No space left on device; make room there, or set"):
        in_pool(repo, None)
    assert list(home.iterdir()) == []


def test_a_slot_that_can_not_be_reset_is_left_and_begun_anew_elsewhere(repo, monkeypatch):
    async def work(pool):
        async with pool.acquire() as slot:
            first = slot.path
        failing_slots(monkeypatch, {"1"}, PermissionError(1, "immutable", "x"))
        for _ in range(2):
            async with pool.acquire() as slot:
                assert read_contents(slot.path) == read_contents(pool.base)
                assert slot.path != first

    in_pool(repo, work, size=1)


def test_a_disk_that_is_full_gives_one_clear_error(repo, tmp_path, monkeypatch):
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", place], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root can make a small disk")
    monkeypatch.setenv("FAIRTRIAL_HOME", str(place))
    write_files(repo, {"large": "x" * 150_000})
    try:
        with pytest.raises(LabError, match=r"0\.0 MB are free|No space left"):
            in_pool(repo, None)
        assert list((place / "arena").iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)  # somebody may look at all disks


def test_a_path_that_is_too_long_for_slots_gives_one_clear_error(repo, tmp_path, monkeypatch):
    long_home = tmp_path.joinpath(*["h" * 200] * 17)
    write_files(repo, {"/".join(["d" * 200] * 4) + "/f": "x"})
    monkeypatch.setenv("FAIRTRIAL_HOME", str(long_home))
    with pytest.raises(LabError, match=r"[Nn]ame too long.*FAIRTRIAL_HOME"):
        in_pool(repo, None)


def test_cleanup_copes_with_read_only_files_and_folders(repo):
    async def work(pool):
        async with pool.acquire() as slot:
            write_files(slot.path, {"locked/deep/file": "x"})
            for path, mode in (("locked/deep/file", 0o400), ("locked/deep", 0o500), ("locked", 0)):
                (slot.path / path).chmod(mode)

    in_pool(repo, work)


def test_an_error_inside_the_block_is_raised_and_nothing_is_left_behind(repo):
    async def work(pool):
        async with pool.acquire():
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        in_pool(repo, work)
    assert pool_folders.find_pool_folders() == []


def test_kept_pools_stay_until_they_are_cleaned(repo, home):
    async def run():
        async with WorktreePool(repo, 1, keep=True) as pool:
            async with pool.acquire() as slot:
                write_files(slot.path, {"evidence": "x"})
            kept = pool.kept
        await pool.close()
        assert pool.kept == kept
        return kept

    kept = anyio.run(run)
    assert kept.parent == home
    assert pool_folders.remove_orphaned_pools() == ([], [])
    assert (kept / "1" / "evidence").exists()
    assert pool_folders.find_pool_folders()[0].is_kept
    assert pool_folders.remove_orphaned_pools(with_kept=True) == ([kept], [])


def test_a_pool_needs_a_slot(repo):
    with pytest.raises(StudyError, match="1 slot or more"):
        WorktreePool(repo, 0)


DIFF = """\
--- a/README
+++ b/README
@@ -1 +1 @@
-before
+after
"""


@pytest.fixture
def plain(tmp_path, home):
    """A repository of two files, by its path as text."""
    write_files(tmp_path / "plain", {"README": "before\n", "src/a.py": "A = 1\n"})
    run_git(tmp_path / "plain", "init", "-q")
    run_git(tmp_path / "plain", "add", ".")
    run_git(tmp_path / "plain", "commit", "-qm", "first")
    return str(tmp_path / "plain")


@pytest.mark.parametrize("wrap", [str, str.encode, lambda diff: Candidate("c", diff=diff)])
def test_a_diff_is_applied_to_the_slot(plain, wrap):
    async def work(pool):
        async with pool.acquire() as slot:
            await slot.write_candidate(wrap(DIFF))
            assert (slot.path / "README").read_text() == "after\n"

    in_pool(plain, work)


def test_a_pool_is_used_without_context_managers(plain):
    async def run():
        pool = WorktreePool(plain, 1)
        with pytest.raises(LabError, match="the pool is not open"):
            await pool.acquire()
        await pool.initialize()
        await pool.initialize()
        slot = await pool.acquire()
        await slot.write_candidate("src/a.py", "A = 2\n")
        await slot.write_candidate(Path("src/b.py"), b"B = 1\n")
        found = (slot.path / "src/a.py").read_text(), (slot.path / "src/b.py").read_text()
        assert found == ("A = 2\n", "B = 1\n")
        await pool.release(slot)
        with pytest.raises(LabError, match="is not leased"):
            await pool.release(slot)
        again = await pool.acquire()  # there is only one: it was given back, and holds the base
        assert (again.path / "src/a.py").read_text() == "A = 1\n"
        home = again.path.parent
        await pool.cleanup()
        assert not home.exists()

    anyio.run(run)


WRONG = {
    "text": (("README",), "is no diff; write_candidate.path, code. writes a file"),
    "no match": ((DIFF.replace("before", "other"),), "candidate: "),
    "nothing": ((DIFF.replace("after", "before"),), "candidate: "),
    "outside": (("../x", "1"), "x: "),
    "number": ((3,), "expected a path with code, a diff, Changes, or a Candidate, got"),
    "no path": ((3, "code"), "expected a path beside code"),
    "revision": ((Candidate("c", revision="HEAD"),), "takes no revision"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_candidate_is_refused_rather_than_dropped(plain, case):
    arguments, says = WRONG[case]

    async def work(pool):
        async with pool.acquire() as slot:
            before = await slot.fingerprint()
            with pytest.raises(StudyError, match=says):
                await slot.write_candidate(*arguments)
            assert await slot.fingerprint() == before

    in_pool(plain, work)


@pytest.mark.parametrize(("repo", "size"), [(3, 1), ("x", "2"), ("x", True), ("x", 0)])
def test_wrong_arguments_of_a_pool_are_named(repo, size):
    with pytest.raises(StudyError, match=r"repo|size|1 slot"):
        WorktreePool(repo, size)
