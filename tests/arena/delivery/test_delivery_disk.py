"""Replacing files in the user's tree: all or none, and no former content is lost."""

import errno
from pathlib import Path

import pytest

from fairtrial.arena import FileState
from fairtrial.arena.delivery import file_swap as disk
from fairtrial.core import LabError


@pytest.fixture
def top(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_text("MINE a")
    (tmp_path / "b").write_text("MINE b")
    return tmp_path


def place(top, *paths):
    placements = [
        disk.Placement(path, FileState(b"WINNER"), None, disk.read_path(top, path))
        for path in paths
    ]
    disk.place_all(top, placements)


def contents(top):
    return sorted(path.read_text() for path in top.rglob("*") if path.is_file())


def failing(monkeypatch, *numbers):
    """Renames of these numbers meet a broken disk."""
    rename, count = Path.replace, 0

    def replace(path, target):
        nonlocal count
        count += 1
        if count in numbers:
            raise OSError(errno.EIO, "I/O error", str(target))
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)


def test_a_failed_replacement_is_rolled_back(top, monkeypatch):
    failing(monkeypatch, 2)
    with pytest.raises(OSError, match="I/O error"):
        place(top, "d/a", "b")
    assert contents(top) == ["MINE a", "MINE b"]


def test_files_that_can_not_be_restored_are_kept_and_named(top, monkeypatch):
    failing(monkeypatch, 2, 3, 4)
    with pytest.raises(LabError, match="half changed") as told:
        place(top, "d/a", "b")
    # One is in its place still, the other under the name that is told.
    assert contents(top) == ["MINE a", "MINE b", "WINNER"]
    (kept,) = [path for path in top.rglob(".fairtrial-*") if path.read_text() == "MINE a"]
    assert str(kept) in str(told.value)


def test_a_copy_that_breaks_off_is_no_copy(top, monkeypatch):
    def copy(source, target, **_):
        Path(target).write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    def link(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(disk.os, "link", link)
    monkeypatch.setattr(disk.shutil, "copy2", copy)
    with pytest.raises(OSError, match="No space left"):
        place(top, "d/a", "b")
    monkeypatch.undo()
    assert contents(top) == ["MINE a", "MINE b"]
