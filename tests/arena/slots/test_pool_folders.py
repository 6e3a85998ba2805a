"""Where pools live, whose they are, and what becomes of orphans (spec 8)."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pool_kit import write_files

from fairtrial.arena.slots import pool_folders as homes
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
    """A Python process that runs `code`."""
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
    from fairtrial.arena.slots.pool_folders import open_home
    home = open_home(Path("/nowhere"))
    (home.path / "slot").mkdir()
    print(home.path, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_owner_left_is_removed_and_a_live_one_is_not(home):
    with start(HOLDER) as live, start(HOLDER) as dead:
        kept, orphan = Path(live.stdout.readline().strip()), Path(dead.stdout.readline().strip())
        assert homes.remove_orphans() == ([], [])
        dead.kill()
        dead.wait()
        found = {each.path: each for each in homes.find_homes()}
        assert found[kept].is_alive
        assert found[kept].pid == live.pid
        assert found[kept].repository == "/nowhere"
        assert not found[orphan].is_alive
        assert homes.remove_orphans() == ([orphan], [])
        assert (kept / "slot").is_dir()
        live.stdin.close()
    assert homes.remove_orphans() == ([kept], [])
    assert list(home.iterdir()) == []


def test_the_lock_is_not_inherited_by_programs_that_the_owner_starts(home):
    with start(
        """
        import subprocess, sys
        from pathlib import Path
        from fairtrial.arena.slots.pool_folders import open_home
        home = open_home(Path("/nowhere"))
        child = subprocess.Popen([sys.executable, "-c", "input()"], close_fds=False)
        print(home.path, flush=True)
        child.wait()
        """
    ) as owner:
        path = Path(owner.stdout.readline().strip())
        owner.kill()
        owner.wait()
        try:
            assert homes.remove_orphans() == ([path], [])
        finally:
            owner.stdin.close()  # ends the child


def test_starters_that_race_never_remove_what_another_has_just_made(home):
    racer = """
        import sys
        from pathlib import Path
        from fairtrial.arena.slots.pool_folders import open_home, remove_orphans
        sys.stdin.readline()
        for _ in range(60):
            remove_orphans()
            home = open_home(Path("/nowhere"))
            (home.path / "slot").mkdir()
            remove_orphans()
            assert (home.path / "slot").is_dir() and (home.path / "lock").exists()
            assert home.remove() == []
        print("fine")
    """
    racers = [start(racer) for _ in range(3)]
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    assert [racer.communicate()[0] for racer in racers] == ["fine\n"] * 3
    homes.remove_orphans()  # folders that were taken for orphans before they were locked
    assert list(home.iterdir()) == []


def test_a_folder_that_is_not_locked_yet_may_be_removed_and_its_maker_takes_another(
    home, tree, monkeypatch
):
    real, calls = homes._try_lock, []

    def too_late(path):
        calls.append(path)
        if len(calls) == 1:  # somebody who looks for orphans comes first
            homes.Home(path, real(path)).remove()
        return real(path)

    monkeypatch.setattr(homes, "_try_lock", too_late)
    made = homes.open_home(tree)
    assert made.path == calls[1] != calls[0]
    assert made.remove() == []
    assert list(home.iterdir()) == []


def test_a_lock_on_a_file_that_is_no_longer_there_is_none(home, tree, monkeypatch):
    made = homes.open_home(tree)
    os.close(made.lock)
    real = homes.fcntl.flock

    def replaced(lock, how):
        (made.path / "lock").unlink()  # by somebody who removes the folder just then
        (made.path / "lock").write_text("")  # and is followed by a third one
        real(lock, how)

    monkeypatch.setattr(homes.fcntl, "flock", replaced)
    assert homes._try_lock(made.path) is None


def test_a_folder_that_is_gone_before_we_come_to_it_is_no_failure(home, tree, monkeypatch):
    gone = home / "gone"
    monkeypatch.setattr(homes, "_list_homes", lambda: [gone])
    assert homes.remove_orphans() == ([], [])
    assert homes.find_homes() == []


def test_homes_lie_in_the_cache_unless_it_is_in_the_tree_or_can_not_be_written(
    tmp_path, tree, monkeypatch
):
    monkeypatch.delenv("FAIRTRIAL_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    temp = tmp_path / "temp" / f"fairtrial-{os.getuid()}"

    def place():
        made = homes.open_home(tree)
        assert made.remove() == []
        return made.path.parent

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


def test_a_folder_that_somebody_else_put_there_is_refused(tmp_path, tree, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/arena").symlink_to(tree)
    with pytest.raises(LabError, match="not a folder of yours"):
        homes.open_home(tmp_path / "other")
    assert list(tree.iterdir()) == []


def test_nowhere_to_go_is_one_clear_error(tree, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tree / "inside"))
    with pytest.raises(LabError, match=r"lies in the tree itself.*set FAIRTRIAL_HOME"):
        homes.open_home(tree)


def test_homes_are_private(home, tree):
    made = homes.open_home(tree)
    assert made.path.stat().st_mode & 0o077 == 0
    made.remove()


def test_what_can_not_be_removed_is_told_and_the_rest_goes(home, tree, monkeypatch):
    made, other = homes.open_home(tree), homes.open_home(tree)
    write_files(made.path, {"1/stuck": "", "2/fine": ""})
    real = os.unlink

    def stubborn(name, **options):
        if name == "stuck":
            raise PermissionError(1, "Operation not permitted", name)
        real(name, **options)

    monkeypatch.setattr(os, "unlink", stubborn)
    os.close(made.lock), os.close(other.lock)
    removed, failures = homes.remove_orphans()
    assert removed == [other.path]
    assert failures == [f"{made.path}/stuck: Operation not permitted"]
    assert not list(made.path.rglob("fine"))
    monkeypatch.undo()


@pytest.mark.parametrize("content", ["", "[]", "{broken", json.dumps({"pid": "x"})])
def test_a_damaged_note_of_the_owner_is_no_obstacle(home, tree, content):
    made = homes.open_home(tree)
    os.close(made.lock)
    (made.path / "owner.json").write_text(content)
    [found] = homes.find_homes()
    assert (found.pid, found.repository, found.is_alive) == (None, None, False)
    assert homes.remove_orphans() == ([made.path], [])
