"""What is at a path of the user's tree, and several files put in their places: all or none.

All is written under other names first, so that a full disk is met before anything is changed; then
names change hands, and whatever goes wrong until the last of them is taken back.
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
class Present:
    """What is on disk at a path.

    state: the file or link; None if there is none
    mode: a file's mode; None for anything else
    is_folder: whether a folder is there
    why: why nothing can be done there; empty if it can
    """

    state: FileState | None = None
    mode: int | None = None
    is_folder: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """What shall be at a path.

    path: relative to the top
    state: the file or link; None if nothing shall be there
    mode: a file's mode; None for what new files have
    before: what is there now; if it isn't any more, nothing is done
    """

    path: str
    state: FileState | None
    mode: int | None
    before: Present


def look(top: Path, path: str) -> Present:
    """What is at a path, which must lead through real folders."""
    *folders, name = path.split("/")
    place = top
    try:
        for folder in folders:
            place = place / folder
            if stat.S_ISLNK(place.lstat().st_mode):
                return Present(why=f"{place} is a symbolic link: what lies behind it stays")
        place = place / name
        status = place.lstat()
        if stat.S_ISDIR(status.st_mode):
            return Present(is_folder=True)
        if stat.S_ISLNK(status.st_mode):
            return Present(FileState(os.fsencode(place.readlink()), False, is_link=True))
        if not stat.S_ISREG(status.st_mode):
            return Present(why="it is neither a file nor a folder")
        is_program = bool(status.st_mode & stat.S_IXUSR)
        return Present(FileState(place.read_bytes(), is_program), stat.S_IMODE(status.st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return Present()
    except OSError as error:
        return Present(why=f"it can't be read: {error.strerror}")


@dataclass(slots=True)
class _Work:
    """What has been done, and how it is undone: the last first."""

    top: Path
    mark: str = field(default_factory=lambda: f".fairtrial-{secrets.token_hex(6)}")
    count: int = 0
    undo: list[Callable[[], object]] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)

    def spare(self, place: Path) -> Path:
        """A name that nobody has, where a rename can lead to: at the top, if that is one disk."""
        folder = place.parent
        while not folder.is_dir():
            folder = folder.parent
        can_be_top = os.access(self.top, os.W_OK) and self.top.stat().st_dev == folder.stat().st_dev
        self.count += 1
        return (self.top if can_be_top else folder) / f"{self.mark}-{self.count}"

    def take_back(self) -> None:
        """As it was; a `LabError` if that can't be."""
        left: list[str] = []
        for step in reversed(self.undo):
            try:
                step()
            except OSError as error:
                left.append(f"{error.filename}: {error.strerror}")
        if left:
            kept = [str(old) for old in self.kept if os.path.lexists(old)]
            where = f" What was there is in {', '.join(kept)};" if kept else ""
            raise LabError(
                f"{self.top} is half changed, and that can't be taken back: {'; '.join(left)}."
                f"{where} git has what was committed"
            )


def place_all(top: Path, placements: Sequence[Placement]) -> None:
    """Put all of them in their places; raises an `OSError` if one can't be, and then none is."""
    work = _Work(top)
    try:
        written = [(each, _write(work, top / each.path, each)) for each in placements]
        for each in placements:
            if look(top, each.path) != each.before:
                raise OSError(errno.EAGAIN, "it was changed just now; try again", each.path)
        # What goes first makes room: a folder may come where a file was.
        for each, new in sorted(written, key=lambda pair: pair[1] is not None):
            _put(work, top / each.path, new)
    except BaseException:
        work.take_back()
        raise
    for old in work.kept:
        old.unlink(missing_ok=True)
    for each in placements:
        if each.state is None:
            _remove_empty(top, (top / each.path).parent)


def _write(work: _Work, place: Path, each: Placement) -> Path | None:
    """The new file under another name; None if there shall be none."""
    if each.state is None:
        return None
    spare = work.spare(place)
    work.undo.append(lambda: spare.unlink(missing_ok=True))
    if each.state.is_link:
        spare.symlink_to(os.fsdecode(each.state.content))
        return spare
    with spare.open("xb") as file:
        file.write(each.state.content)
        file.flush()
        os.fsync(file.fileno())
    mode = each.mode
    if mode is None:
        mode = stat.S_IMODE(spare.stat().st_mode)
        mode |= (mode & 0o444) >> 2 if each.state.executable else 0
    spare.chmod(mode)
    return spare


def _put(work: _Work, place: Path, new: Path | None) -> None:
    """Give a name to its new owner; the old one is kept until all is done."""
    if place.is_dir() and not place.is_symlink():
        _remove_folder(work, place)
    if os.path.lexists(place):
        old = work.spare(place)
        if new is None:
            place.rename(old)
        else:
            _keep(place, old)
        # Only now: half a copy must never take its place.
        work.undo.append(lambda: _put_back(place, old))
        work.kept.append(old)
    elif new is not None:
        _make_folders(work, place.parent)
        work.undo.append(lambda: place.unlink(missing_ok=True))
    if new is not None:
        new.replace(place)


def _keep(place: Path, old: Path) -> None:
    """The same file under a second name, so that its own is never without one."""
    try:
        os.link(place, old, follow_symlinks=False)
    except OSError:  # a file system without second names
        try:
            shutil.copy2(place, old, follow_symlinks=False)
        except BaseException:
            old.unlink(missing_ok=True)
            raise


def _put_back(place: Path, old: Path) -> None:
    """What was there takes its place again; what can't be put back is never thrown away."""
    try:
        old.replace(place)
    except OSError:
        if not (os.path.lexists(place) and _is_same(place, old)):
            raise
    # Two names of one file are left alone by a rename.
    if os.path.lexists(place) and os.path.lexists(old) and _is_same(place, old):
        old.unlink(missing_ok=True)


def _is_same(place: Path, old: Path) -> bool:
    """Whether two names are of one file, or of equal ones."""
    if place.is_symlink() or old.is_symlink():
        both = place.is_symlink() and old.is_symlink()
        return both and place.readlink() == old.readlink()
    return place.samefile(old) or filecmp.cmp(place, old, shallow=False)


def _remove_folder(work: _Work, place: Path) -> None:
    """An empty folder goes, with empty ones in it; another can't, and the error says so."""
    for inner in sorted(place.iterdir()):
        if inner.is_dir() and not inner.is_symlink():
            _remove_folder(work, inner)
    mode = stat.S_IMODE(place.stat().st_mode)
    place.rmdir()
    work.undo += [lambda: place.chmod(mode), place.mkdir]


def _make_folders(work: _Work, folder: Path) -> None:
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir()
        work.undo.append(each.rmdir)


def _remove_empty(top: Path, folder: Path) -> None:
    """git keeps no empty folders, so a file's removal takes them along."""
    while folder != top and folder.is_relative_to(top):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
