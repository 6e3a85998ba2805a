"""Folders of pools: their location, their locks, and the removal of orphans."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from repository_kit import write_files

from fairtrial.arena.slots import pool_folders
from fairtrial.core import LabError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "arena"


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def start(code, **options):
    """Start a Python process that runs `code`."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


HOLDER = """
    import sys
    from pathlib import Path
    from fairtrial.arena.slots.pool_folders import create_pool_folder
    home = create_pool_folder(Path("/nowhere"))
    (home.path / "slot").mkdir()
    print(home.path, flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_killed_process_is_removed_and_one_in_use_is_not(home):
    with start(HOLDER) as live, start(HOLDER) as dead:
        kept, orphan = Path(live.stdout.readline().strip()), Path(dead.stdout.readline().strip())
        assert pool_folders.remove_orphaned_pools() == ([], [])
        dead.kill()
        dead.wait()
        folders = {info.path: info for info in pool_folders.find_pool_folders()}
        assert folders[kept].is_alive
        assert folders[kept].pid == live.pid
        assert folders[kept].repository == "/nowhere"
        assert not folders[orphan].is_alive
        assert pool_folders.remove_orphaned_pools() == ([orphan], [])
        assert (kept / "slot").is_dir()
        live.stdin.close()
    assert pool_folders.remove_orphaned_pools() == ([kept], [])
    assert list(home.iterdir()) == []


def test_the_lock_is_not_inherited_by_programs_that_the_owner_starts(home):
    with start(
        """
        import subprocess, sys
        from pathlib import Path
        from fairtrial.arena.slots.pool_folders import create_pool_folder
        home = create_pool_folder(Path("/nowhere"))
        child = subprocess.Popen([sys.executable, "-c", "input()"], close_fds=False)
        print(home.path, flush=True)
        child.wait()
        """
    ) as owner:
        path = Path(owner.stdout.readline().strip())
        owner.kill()
        owner.wait()
        try:
            assert pool_folders.remove_orphaned_pools() == ([path], [])
        finally:
            owner.stdin.close()  # ends the child


def test_concurrent_starts_never_remove_each_others_folders(home):
    racer = """
        import sys
        from pathlib import Path
        from fairtrial.arena.slots.pool_folders import create_pool_folder, remove_orphaned_pools
        sys.stdin.readline()
        for _ in range(60):
            remove_orphaned_pools()
            home = create_pool_folder(Path("/nowhere"))
            (home.path / "slot").mkdir()
            remove_orphaned_pools()
            assert (home.path / "slot").is_dir() and (home.path / "lock").exists()
            assert home.remove() == []
        print("fine")
    """
    racers = [start(racer) for _ in range(3)]
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    assert [racer.communicate()[0] for racer in racers] == ["fine\n"] * 3
    pool_folders.remove_orphaned_pools()  # removes folders that lost the race for their lock
    assert list(home.iterdir()) == []


def test_a_folder_that_is_not_locked_yet_may_be_removed_and_its_maker_takes_another(
    home, tree, monkeypatch
):
    real, calls = pool_folders._try_lock, []

    def too_late(path):
        calls.append(path)
        if len(calls) == 1:  # another process removes it as an orphan
            pool_folders.PoolFolder(path, real(path)).remove()
        return real(path)

    monkeypatch.setattr(pool_folders, "_try_lock", too_late)
    folder = pool_folders.create_pool_folder(tree)
    assert folder.path == calls[1] != calls[0]
    assert folder.remove() == []
    assert list(home.iterdir()) == []


def test_a_lock_on_a_file_that_is_no_longer_there_is_none(home, tree, monkeypatch):
    folder = pool_folders.create_pool_folder(tree)
    os.close(folder.lock)
    real = pool_folders.fcntl.flock

    def replaced(lock, how):
        (folder.path / "lock").unlink()  # another process removes the folder
        (folder.path / "lock").write_text("")  # and a third one creates it again
        real(lock, how)

    monkeypatch.setattr(pool_folders.fcntl, "flock", replaced)
    assert pool_folders._try_lock(folder.path) is None


def test_a_folder_that_is_gone_before_we_come_to_it_is_no_failure(home, tree, monkeypatch):
    gone = home / "gone"
    monkeypatch.setattr(pool_folders, "_list_folders", lambda: [gone])
    assert pool_folders.remove_orphaned_pools() == ([], [])
    assert pool_folders.find_pool_folders() == []


def test_folders_are_in_the_cache_unless_it_is_in_the_tree_or_can_not_be_written(
    tmp_path, tree, monkeypatch
):
    monkeypatch.delenv("FAIRTRIAL_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    temp = tmp_path / "temp" / f"fairtrial-{os.getuid()}"

    def place():
        folder = pool_folders.create_pool_folder(tree)
        assert folder.remove() == []
        return folder.path.parent

    assert place() == tmp_path / "cache/fairtrial/arena"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tree / ".cache"))
    assert place() == temp
    assert not (tree / ".cache").exists()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert place() == temp
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert place() == tmp_path / "me/.cache/fairtrial/arena"


def test_a_folder_of_another_user_is_refused(tmp_path, tree, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/arena").symlink_to(tree)
    with pytest.raises(LabError, match="not a folder of yours"):
        pool_folders.create_pool_folder(tmp_path / "other")
    assert list(tree.iterdir()) == []


def test_a_missing_location_is_one_clear_error(tree, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tree / "inside"))
    with pytest.raises(LabError, match=r"lies in the tree itself.*set FAIRTRIAL_HOME"):
        pool_folders.create_pool_folder(tree)


def test_folders_are_private(home, tree):
    folder = pool_folders.create_pool_folder(tree)
    assert folder.path.stat().st_mode & 0o077 == 0
    folder.remove()


def test_what_can_not_be_removed_is_reported_and_the_rest_is_removed(home, tree, monkeypatch):
    folder, other = pool_folders.create_pool_folder(tree), pool_folders.create_pool_folder(tree)
    write_files(folder.path, {"1/stuck": "", "2/fine": ""})
    real = os.unlink

    def stubborn(name, **options):
        if name == "stuck":
            raise PermissionError(1, "Operation not permitted", name)
        real(name, **options)

    monkeypatch.setattr(os, "unlink", stubborn)
    os.close(folder.lock), os.close(other.lock)
    removed, failures = pool_folders.remove_orphaned_pools()
    assert removed == [other.path]
    assert failures == [f"{folder.path}/stuck: Operation not permitted"]
    assert not list(folder.path.rglob("fine"))
    monkeypatch.undo()


@pytest.mark.parametrize("content", ["", "[]", "{broken", json.dumps({"pid": "x"})])
def test_a_damaged_note_of_the_owner_is_no_obstacle(home, tree, content):
    folder = pool_folders.create_pool_folder(tree)
    os.close(folder.lock)
    (folder.path / "owner.json").write_text(content)
    [info] = pool_folders.find_pool_folders()
    assert (info.pid, info.repository, info.is_alive) == (None, None, False)
    assert pool_folders.remove_orphaned_pools() == ([folder.path], [])
