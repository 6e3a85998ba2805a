"""Reading paths of the user's tree, and replacing several files: all or none.

All files are first written under temporary names, so that a full disk is noticed before anything is
changed. Then they are renamed, and any error until the last rename is rolled back.
"""

from __future__ import annotations

import errno
import filecmp
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.arena.model.candidates import FileState
from fairtrial.core import LabError


@dataclass(frozen=True, slots=True)
class PathState:
    """What is on disk at a path.

    state: the file or link; None if there is none
    mode: a file's mode; None for anything else
    is_folder: whether it is a folder
    why: why it can't be changed; empty if it can
    """

    state: FileState | None = None
    mode: int | None = None
    is_folder: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """The wanted content of a path.

    path: relative to the top
    state: the file or link; None to remove it
    mode: a file's mode; None for the default of new files
    before: what is expected there now; otherwise nothing is changed
    """

    path: str
    state: FileState | None
    mode: int | None
    before: PathState


def read_path(top: Path, path: str) -> PathState:
    """Return what is at a path; its parents must be real folders, not links."""
    *folders, name = path.split("/")
    place = top
    try:
        for folder in folders:
            place = place / folder
            if stat.S_ISLNK(place.lstat().st_mode):
                return PathState(why=f"{place} is a symbolic link: its target is not changed")
        place = place / name
        status = place.lstat()
        if stat.S_ISDIR(status.st_mode):
            return PathState(is_folder=True)
        if stat.S_ISLNK(status.st_mode):
            return PathState(FileState(os.fsencode(place.readlink()), False, is_link=True))
        if not stat.S_ISREG(status.st_mode):
            return PathState(why="it is neither a file nor a folder")
        is_program = bool(status.st_mode & stat.S_IXUSR)
        return PathState(FileState(place.read_bytes(), is_program), stat.S_IMODE(status.st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return PathState()
    except OSError as error:
        return PathState(why=f"it can't be read: {error.strerror}")


@dataclass(slots=True)
class _Swap:
    """A replacement of files in progress, which can be rolled back.

    top: the top of the tree
    mark: the prefix of temporary names
    count: how many temporary names were used
    undo: the steps that undo it; the last one comes first
    kept: the former files under temporary names
    """

    top: Path
    mark: str = field(default_factory=lambda: f".fairtrial-{secrets.token_hex(6)}")
    count: int = 0
    undo: list[Callable[[], object]] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)

    def temporary_path(self, path: Path) -> Path:
        """Return an unused path on the same file system: at the top if possible."""
        folder = path.parent
        while not folder.is_dir():
            folder = folder.parent
        can_be_top = os.access(self.top, os.W_OK) and self.top.stat().st_dev == folder.stat().st_dev
        self.count += 1
        return (self.top if can_be_top else folder) / f"{self.mark}-{self.count}"

    def roll_back(self) -> None:
        """Restore the former state; raise `LabError` if that fails."""
        failures: list[str] = []
        for step in reversed(self.undo):
            try:
                step()
            except OSError as error:
                failures.append(f"{error.filename}: {error.strerror}")
        if failures:
            kept = [str(old) for old in self.kept if os.path.lexists(old)]
            where = f" What was there is in {', '.join(kept)};" if kept else ""
            raise LabError(
                f"{self.top} is half changed, and that can't be undone: {'; '.join(failures)}."
                f"{where} git has what was committed"
            )


def place_all(top: Path, placements: Sequence[Placement]) -> None:
    """Write or remove all of these files, or none; raise `OSError` if one fails."""
    swap = _Swap(top)
    try:
        written = [
            (placement, _write(swap, top / placement.path, placement)) for placement in placements
        ]
        for placement in placements:
            if read_path(top, placement.path) != placement.before:
                raise OSError(errno.EAGAIN, "it was changed just now; try again", placement.path)
        # Files are removed first: a folder may replace a file.
        for placement, new in sorted(written, key=lambda pair: pair[1] is not None):
            _replace(swap, top / placement.path, new)
    except BaseException:
        swap.roll_back()
        raise
    for old in swap.kept:
        old.unlink(missing_ok=True)
    for placement in placements:
        if placement.state is None:
            _remove_empty(top, (top / placement.path).parent)


def _write(swap: _Swap, path: Path, placement: Placement) -> Path | None:
    """Write the new file under a temporary name; None if the path is to be removed."""
    if placement.state is None:
        return None
    temporary = swap.temporary_path(path)
    swap.undo.append(lambda: temporary.unlink(missing_ok=True))
    if placement.state.is_link:
        temporary.symlink_to(os.fsdecode(placement.state.content))
        return temporary
    with temporary.open("xb") as file:
        file.write(placement.state.content)
        file.flush()
        os.fsync(file.fileno())
    mode = placement.mode
    if mode is None:
        mode = stat.S_IMODE(temporary.stat().st_mode)
        mode |= (mode & 0o444) >> 2 if placement.state.executable else 0
    temporary.chmod(mode)
    return temporary


def _replace(swap: _Swap, path: Path, new: Path | None) -> None:
    """Rename a new file to its final name, or remove a file; the former one is kept for now."""
    if path.is_dir() and not path.is_symlink():
        _remove_folder(swap, path)
    if os.path.lexists(path):
        old = swap.temporary_path(path)
        if new is None:
            path.rename(old)
        else:
            _keep(path, old)
        # Not earlier: an incomplete copy must never be restored.
        swap.undo.append(lambda: _restore(path, old))
        swap.kept.append(old)
    elif new is not None:
        _make_folders(swap, path.parent)
        swap.undo.append(lambda: path.unlink(missing_ok=True))
    if new is not None:
        new.replace(path)


def _keep(path: Path, old: Path) -> None:
    """Link a file to a second name, so that its own name always exists."""
    try:
        os.link(path, old, follow_symlinks=False)
    except OSError:  # a file system without hard links
        try:
            shutil.copy2(path, old, follow_symlinks=False)
        except BaseException:
            old.unlink(missing_ok=True)
            raise


def _restore(path: Path, old: Path) -> None:
    """Restore a former file; one that can't be restored is never deleted."""
    try:
        old.replace(path)
    except OSError:
        if not (os.path.lexists(path) and _is_same(path, old)):
            raise
    # A rename between two names of one file leaves both.
    if os.path.lexists(path) and os.path.lexists(old) and _is_same(path, old):
        old.unlink(missing_ok=True)


def _is_same(path: Path, old: Path) -> bool:
    """Return whether two paths are one file, or equal files."""
    if path.is_symlink() or old.is_symlink():
        are_links = path.is_symlink() and old.is_symlink()
        return are_links and path.readlink() == old.readlink()
    return path.samefile(old) or filecmp.cmp(path, old, shallow=False)


def _remove_folder(swap: _Swap, path: Path) -> None:
    """Remove a folder with empty folders in it; raise `OSError` if it contains anything else."""
    for inner in sorted(path.iterdir()):
        if inner.is_dir() and not inner.is_symlink():
            _remove_folder(swap, inner)
    mode = stat.S_IMODE(path.stat().st_mode)
    path.rmdir()
    swap.undo += [lambda: path.chmod(mode), path.mkdir]


def _make_folders(swap: _Swap, folder: Path) -> None:
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for parent in reversed(missing):
        parent.mkdir()
        swap.undo.append(parent.rmdir)


def _remove_empty(top: Path, folder: Path) -> None:
    """Remove folders that became empty, as git does, up to the top."""
    while folder != top and folder.is_relative_to(top):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
