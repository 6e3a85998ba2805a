"""Delivering the winner as a patch, or in the user's own files if requested.

Files are changed only if they are unchanged since the snapshot, or if later changes can be merged;
and then all of them or none. The index is never touched. (`branch` puts the winner on a branch.)
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from fairtrial.arena.delivery.edits import FileEdit, FileEdits, merge
from fairtrial.arena.delivery.file_swap import PathState, Placement, place_all, read_path
from fairtrial.arena.model.candidates import FileState
from fairtrial.core import LabError, Mistake, StudyError


@dataclass(frozen=True, slots=True)
class AppliedEdits:
    """What was done to the user's files.

    changed: the paths that were written or removed
    merged: those of them that had been edited since the snapshot; the result was not checked
    already: paths that had the wanted content before, with or without other edits
    """

    changed: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    already: tuple[str, ...] = ()

    def describe(self) -> list[str]:
        """Return lines for people that name each file once."""
        groups = {
            "changed": [path for path in self.changed if path not in self.merged],
            "merged with your edits, which was not measured": self.merged,
            "was in already": self.already,
        }
        return [f"{what}: {', '.join(paths)}" for what, paths in groups.items() if paths]


def write_patch(path: Path, patch: bytes) -> None:
    """Write a patch atomically; a link stays a link, a file keeps its mode.

    Devices and pipes (e.g. /dev/null) are written to directly.
    """
    target = Path(os.path.realpath(path))
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(patch)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        current = read_path(target.parent, target.name)
        placement = Placement(target.name, FileState(patch, False), current.mode, current)
        place_all(target.parent, [placement])
    except OSError as error:
        raise StudyError(f"can't be written: {error.strerror}", source=str(path)) from error


async def apply_to_tree(top: Path, edits: FileEdits, patch: Path | None = None) -> AppliedEdits:
    """Change the user's files, all or none.

    Files that were edited since the snapshot are merged three-way; where that can't be done,
    nothing is changed at all.

    patch: a file with the same edits, which the error's hint mentions

    Raises `StudyError` if an edit can't be applied, `LabError` if the files can't be written.
    """
    placements: list[Placement] = []
    mistakes: list[Mistake] = []
    merged, already = [], []
    for path, edit in edits.files.items():
        current = read_path(top, path)
        if _is_done(current, edit):
            already.append(path)
            continue
        wanted = await _resolve_content(current, edit)
        if isinstance(wanted, str):
            mistakes.append(Mistake((path,), wanted))
            continue
        if _is_done(current, FileEdit(edit.before, wanted)):
            already.append(path)
            continue
        if not _is_same(current.state, edit.before):
            merged.append(path)
        placements.append(Placement(path, wanted, _mode(current, edit), current))
    if mistakes:
        mistakes[-1] = replace(mistakes[-1], hint=_make_hint(top, patch))
        raise StudyError(mistakes, source=str(top))
    try:
        place_all(top, placements)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise LabError(f"nothing was changed in {top}: {place}{error.strerror or error}") from error
    changed = tuple(placement.path for placement in placements)
    return AppliedEdits(changed, tuple(merged), tuple(already))


def _make_hint(top: Path, patch: Path | None) -> str:
    """Return a hint for all files; git's three-way merge isn't an option.

    The patch starts from the snapshot, whose files the user's repository may not have.
    """
    undo = "nothing was changed: undo what you did there and give the command again"
    if patch is None:
        return undo
    command = shlex.join(["git", "-C", str(top), "apply", "--reject", str(patch.resolve())])
    return f"{undo}, or apply what fits and have the rest written to .rej files: {command}"


async def _resolve_content(current: PathState, edit: FileEdit) -> FileState | str | None:
    """Return the wanted state of a path; a text if that can't be decided, which says why."""
    if current.why:
        return current.why
    if current.is_folder:  # its files may be removed by other edits; if not, removing it will fail
        return edit.after if edit.before is None else "a folder is there now"
    if _is_same(current.state, edit.before):
        return edit.after
    if current.state is None:
        return "you have removed it since the snapshot, and the winner changes it"
    if edit.after is None:
        return "you have changed it since the snapshot, and the winner removes it"
    if edit.before is None:
        return "you have made it since the snapshot, and the winner makes another one"
    states = (current.state, edit.before, edit.after)
    if any(state.is_link for state in states):
        return "it is, or was, a symbolic link, and isn't what it was"
    merged = await merge(*(state.content for state in states))
    if merged is None:
        return "your changes since the snapshot conflict with the winner's"
    return replace(edit.after, content=merged)


def _is_done(current: PathState, edit: FileEdit) -> bool:
    """Return whether a path has the wanted content already."""
    if current.why or current.is_folder or not _is_same(current.state, edit.after):
        return False
    return not _changes_mode(edit) or _is_executable(current.state) == _is_executable(edit.after)


def _is_same(one: FileState | None, other: FileState | None) -> bool:
    """Return whether two files are equal, except for modes, which not every file system keeps."""
    if one is None or other is None:
        return one is other
    return one.content == other.content and one.is_link == other.is_link


def _is_executable(state: FileState | None) -> bool:
    return state is not None and not state.is_link and bool(state.executable)


def _changes_mode(edit: FileEdit) -> bool:
    return edit.after is not None and _is_executable(edit.before) != _is_executable(edit.after)


def _mode(current: PathState, edit: FileEdit) -> int | None:
    """Return a file's mode: its present one, with the winner's change of the executable bits."""
    mode = current.mode
    if mode is None or edit.after is None or not _changes_mode(edit):
        return mode
    return mode | (mode & 0o444) >> 2 if edit.after.executable else mode & ~0o111
