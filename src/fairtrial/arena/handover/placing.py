"""Several files put in their places, all of them or none.

All is written beside its place first, so that a full disk is met before anything is changed; then
names change hands, and whatever goes wrong until the last of them is taken back.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.model.candidates import FileState


@dataclass(frozen=True, slots=True)
class Placement:
    """What shall be at a path.

    path: relative to the top
    state: the file or link; None if nothing shall be there
    mode: a file's mode
    expected: what is there now, as far as whoever asks knows; it isn't looked at if `is_known` isn't
    """

    path: str
    state: FileState | None
    mode: int
    expected: FileState | None = None


@dataclass(slots=True)
class _Work:
    """What has been done, and how it is undone: the last first."""

    top: Path
    mark: str = field(default_factory=lambda: f".fairtrial-{secrets.token_hex(6)}")
    count: int = 0
    undo: list[Callable[[], object]] = field(default_factory=list)
    finish: list[Callable[[], object]] = field(default_factory=list)

    def spare(self, place: Path) -> Path:
        """A name that nobody has, in the nearest folder that is there: a rename leads away."""
        folder = place.parent
        while not (folder.is_dir() and not folder.is_symlink()) and folder != self.top:
            folder = folder.parent
        self.count += 1
        return folder / f"{self.mark}-{self.count}"


def place_all(top: Path, placements: Sequence[Placement]) -> None:
    """Put all of them in their places; raises an `OSError` if one can't be, and then none is."""
    work = _Work(top)
    try:
        written = [(each, _write(work, top / each.path, each)) for each in placements]
        # What goes first makes room: a folder may come where a file was.
        for each, new in sorted(written, key=lambda pair: pair[1] is not None):
            _put(work, top / each.path, new)
    except BaseException:
        for step in reversed(work.undo):
            with suppress(OSError):
                step()
        raise
    for step in work.finish:
        with suppress(OSError):
            step()
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
        os.symlink(os.fsdecode(each.state.content), spare)
        return spare
    with spare.open("xb") as file:
        file.write(each.state.content)
        file.flush()
        os.fsync(file.fileno())
    spare.chmod(each.mode)
    return spare


def _put(work: _Work, place: Path, new: Path | None) -> None:
    """Give a name to its new owner; the old one is kept until all is done."""
    if place.is_dir() and not place.is_symlink():
        mode = stat.S_IMODE(place.stat().st_mode)
        _rmdir_all(work, place, mode)
    if os.path.lexists(place):
        old = work.spare(place)
        if new is None:
            place.rename(old)
        else:
            _keep(place, old)
        work.undo.append(lambda: old.replace(place))
        work.finish.append(lambda: old.unlink())
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
        shutil.copy2(place, old, follow_symlinks=False)


def _rmdir_all(work: _Work, place: Path, mode: int) -> None:
    """An empty folder goes, with empty ones in it; another can't, and the error says so."""
    for inner in place.iterdir():
        if inner.is_dir() and not inner.is_symlink():
            _rmdir_all(work, inner, stat.S_IMODE(inner.stat().st_mode))
    place.rmdir()
    work.undo.append(lambda: (place.mkdir(), place.chmod(mode)))


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
