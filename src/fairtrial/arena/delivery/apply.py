"""The winner, where the user wants it: as a patch, or in the user's own files when asked to.

Files are changed only if they are as they were when the snapshot was taken, or if what was done to
them since can be merged; and then all of them or none. The index is never touched. (What is put on
a branch is in `branching`.)
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from fairtrial.arena.delivery.edits import Edit, Edits, merge
from fairtrial.arena.delivery.file_swap import Placement, Present, look, place_all
from fairtrial.arena.model.candidates import FileState
from fairtrial.core import LabError, Mistake, StudyError


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done to the user's files.

    changed: the paths that were written or removed
    merged: those of them that had been edited since the snapshot; nobody has checked the result
    already: paths that were as wanted before, with or without other edits
    """

    changed: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    already: tuple[str, ...] = ()

    def tell(self) -> list[str]:
        """The same for people, each file once."""
        told = {
            "changed": [path for path in self.changed if path not in self.merged],
            "merged with your edits, which was not measured": self.merged,
            "was in already": self.already,
        }
        return [f"{what}: {', '.join(paths)}" for what, paths in told.items() if paths]


def write_patch(path: Path, patch: bytes) -> None:
    """Write a patch, complete or not at all; a link stays a link, a file keeps its mode.

    What is no file (/dev/null, a pipe) is written to as it is.
    """
    target = Path(os.path.realpath(path))
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(patch)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        there = look(target.parent, target.name)
        place_all(
            target.parent, [Placement(target.name, FileState(patch, False), there.mode, there)]
        )
    except OSError as error:
        raise StudyError(f"can't be written: {error.strerror}", source=str(path)) from error


async def apply_to_tree(top: Path, edits: Edits, patch: Path | None = None) -> Applied:
    """Change the user's files, all or none; a `StudyError` says what is in the way.

    Files that were edited since the snapshot are merged three-way; where that can't be done,
    nothing is changed at all. The error then says what to do with `patch`, where the same edits
    are written down.
    """
    placements: list[Placement] = []
    mistakes: list[Mistake] = []
    merged, already = [], []
    for path, edit in edits.files.items():
        there = look(top, path)
        if _is_done(there, edit):
            already.append(path)
            continue
        wanted = await _settle(there, edit)
        if isinstance(wanted, str):
            mistakes.append(Mistake((path,), wanted))
            continue
        if _is_done(there, Edit(edit.before, wanted)):
            already.append(path)
            continue
        if not _is_same(there.state, edit.before):
            merged.append(path)
        placements.append(Placement(path, wanted, _mode(there, edit), there))
    if mistakes:
        mistakes[-1] = replace(mistakes[-1], hint=_advise(top, patch))
        raise StudyError(mistakes, source=str(top))
    try:
        place_all(top, placements)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise LabError(f"nothing was changed in {top}: {place}{error.strerror or error}") from error
    return Applied(tuple(each.path for each in placements), tuple(merged), tuple(already))


def _advise(top: Path, patch: Path | None) -> str:
    """A way out, once for all files: not a three-way merge by git.

    The patch begins at the snapshot, and the user's repository needn't have what was there.
    """
    aside = "nothing was changed: undo what you did there and give the command again"
    if patch is None:
        return aside
    command = shlex.join(["git", "-C", str(top), "apply", "--reject", str(patch.resolve())])
    return f"{aside}, or have what fits put in and the rest written to .rej files: {command}"


async def _settle(there: Present, edit: Edit) -> FileState | str | None:
    """What shall be at a path; a text that says why it can't be told."""
    if there.why:
        return there.why
    if there.is_folder:  # all that is in it may be about to go; if not, it can't be taken away
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
    found = await merge(*(state.content for state in states))
    if found is None:
        return "what you have changed since the snapshot meets what the winner changes"
    return replace(edit.after, content=found)


def _is_done(there: Present, edit: Edit) -> bool:
    """Whether it is as wanted already."""
    if there.why or there.is_folder or not _is_same(there.state, edit.after):
        return False
    return not _turns_mode(edit) or _is_program(there.state) == _is_program(edit.after)


def _is_same(one: FileState | None, other: FileState | None) -> bool:
    """Whether two are the same; modes aside, which not every disk keeps."""
    if one is None or other is None:
        return one is other
    return one.content == other.content and one.is_link == other.is_link


def _is_program(state: FileState | None) -> bool:
    return state is not None and not state.is_link and bool(state.executable)


def _turns_mode(edit: Edit) -> bool:
    return edit.after is not None and _is_program(edit.before) != _is_program(edit.after)


def _mode(there: Present, edit: Edit) -> int | None:
    """A file keeps its mode but for what the winner changes of it."""
    mode = there.mode
    if mode is None or edit.after is None or not _turns_mode(edit):
        return mode
    return mode | (mode & 0o444) >> 2 if edit.after.executable else mode & ~0o111
