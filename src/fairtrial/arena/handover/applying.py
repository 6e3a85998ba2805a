"""The winner, where the user wants it: as a patch, or in the user's own files when asked to.

Files are changed only if they are as they were when the snapshot was taken, or if what was done to
them since can be merged; and then all of them or none. The index is never touched. (What is put on
a branch is in `branching`.)
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairtrial.arena.handover.edits import Edit, Edits, merge
from fairtrial.arena.handover.placing import Placement, place_all
from fairtrial.errors import LabError, Mistake, StudyError
from fairtrial.model.candidates import FileState

_MEANWHILE = "keep yours and apply the patch by hand (git apply --3way), or put yours aside first"


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done to the user's files.

    changed: the paths that were written or removed
    merged: those of them that had been edited since the snapshot; nobody has checked the result
    already: paths that were as wanted before
    """

    changed: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    already: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Present:
    """What is on disk at a path.

    state: the file or link; None if there is none
    mode: its mode
    is_folder: whether a folder is there
    why: why nothing can be done there; empty if it can
    """

    state: FileState | None = None
    mode: int = 0o644
    is_folder: bool = False
    why: str = ""


def write_patch(path: Path, patch: bytes) -> None:
    """Write a patch, complete or not at all; a link stays a link."""
    target = Path(os.path.realpath(path))
    state = FileState(patch, False)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        there = look(target.parent, target.name)
        mode = there.mode if there.state is not None else _new_mode(target.parent)
        place_all(target.parent, [Placement(target.name, state, mode)])
    except OSError as error:
        raise StudyError(f"can't be written: {error.strerror}", source=str(path)) from error


async def apply_to_tree(top: Path, edits: Edits) -> Applied:
    """Change the user's files, all or none; a `StudyError` says why not.

    Files that were edited since the snapshot are merged three-way; where that can't be done, nothing
    is changed at all.
    """
    placements: list[Placement] = []
    mistakes: list[Mistake] = []
    merged, already = [], []
    for path, edit in edits.files.items():
        there = look(top, path)
        if not there.why and not there.is_folder and _is_same(there.state, edit.after):
            already.append(path)
            continue
        wanted = await _settle(there, edit)
        if isinstance(wanted, str):
            mistakes.append(Mistake((path,), wanted, _MEANWHILE))
            continue
        if not _is_same(there.state, edit.before):
            merged.append(path)
        placements.append(Placement(path, wanted, _mode(top, there, edit), there.state))
    if mistakes:
        raise StudyError(mistakes, source=str(top))
    try:
        place_all(top, placements)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        why = f"{place}{error.strerror or error}"
        raise LabError(f"nothing was changed in {top}: {why}") from error
    return Applied(tuple(each.path for each in placements), tuple(merged), tuple(already))


async def _settle(there: Present, edit: Edit) -> FileState | None | str:
    """What shall be at a path; a text that says why it can't be told."""
    if there.why:
        return there.why
    if there.is_folder:  # all that was in it may be about to go; if not, it can't be taken away
        return edit.after if edit.before is None else "a folder is there now"
    if _is_same(there.state, edit.before):
        return edit.after
    if there.state is None:
        return "you have removed it since the snapshot, and the winner changes it"
    if edit.after is None:
        return "you have changed it since the snapshot, and the winner removes it"
    if edit.before is None:
        return "you have made it since the snapshot, and the winner makes another one"
    states = (there.state, edit.before, edit.after)
    if any(state.is_link for state in states):
        return "it is, or was, a symbolic link, and isn't what it was"
    ours, base, theirs = (state.content for state in states)
    found = await merge(ours, base, theirs)
    if found is None:
        return "what you have changed since the snapshot meets what the winner changes"
    return replace(edit.after, content=found)


def _is_same(one: FileState | None, other: FileState | None) -> bool:
    """Whether a file is what it was: its content and its kind; modes are kept anyhow."""
    if one is None or other is None:
        return one is other
    same_mode = one.is_link or bool(one.executable) == bool(other.executable)
    return one.content == other.content and one.is_link == other.is_link and same_mode


def _mode(top: Path, there: Present, edit: Edit) -> int:
    """A file keeps its mode but for what the winner changes of it."""
    if edit.after is None:
        return 0
    mode = there.mode if there.state and not there.state.is_link else _new_mode(top)
    was = bool(edit.before and edit.before.executable)
    if bool(edit.after.executable) == was and there.state is not None:
        return mode
    return mode | (mode & 0o444) >> 2 if edit.after.executable else mode & ~0o111


def _new_mode(folder: Path) -> int:
    """What a new file of the user's would have."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def look(top: Path, path: str) -> Present:
    """What is at a path of the user's tree, which must lead through real folders."""
    parts: Sequence[str] = path.split("/")
    place = top
    for part in parts[:-1]:
        place = place / part
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return Present()
        except NotADirectoryError:
            return Present()
        if stat.S_ISLNK(mode):
            return Present(why=f"{place} is a symbolic link by now: what lies behind it stays")
    place = place / parts[-1]
    try:
        status = place.lstat()
        if stat.S_ISDIR(status.st_mode):
            return Present(is_folder=True)
        if stat.S_ISLNK(status.st_mode):
            return Present(FileState(os.fsencode(place.readlink()), False, is_link=True))
        if not stat.S_ISREG(status.st_mode):
            return Present(why="it is neither a file nor a folder by now")
        is_program = bool(status.st_mode & stat.S_IXUSR)
        return Present(FileState(place.read_bytes(), is_program), stat.S_IMODE(status.st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return Present()
    except OSError as error:
        return Present(why=f"it can't be read: {error.strerror}")
