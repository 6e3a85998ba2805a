"""A candidate's changes with the files before them, which can be delivered without the arena.

The arena's own repository is removed with it, but a merge afterwards still needs the base's version
of each changed file.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from fairtrial.arena.arena import Arena
from fairtrial.arena.candidates.base_files import list_base, scratch_index
from fairtrial.arena.candidates.patches import render_patch
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.core import StudyError


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file before and after a change; None where it doesn't exist.

    before: the file in the snapshot
    after: the file in the candidate; `executable` is always set
    """

    before: FileState | None
    after: FileState | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, from which `from_dict` makes the same edit."""
        return {"before": _pack_state(self.before), "after": _pack_state(self.after)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FileEdit:
        """Return the edit that `as_dict` made the data from."""
        return cls(_unpack_state(data["before"]), _unpack_state(data["after"]))


@dataclass(frozen=True, slots=True)
class FileEdits:
    """All changes of a candidate.

    files: by path, relative to the top
    patch: the same changes as a git diff
    """

    files: Mapping[str, FileEdit]
    patch: bytes

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with the files before, so that they can be merged later."""
        files = {path: edit.as_dict() for path, edit in self.files.items()}
        return {"files": files, "patch": base64.b64encode(self.patch).decode("ascii")}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FileEdits:
        """Return the edits that `as_dict` made the data from."""
        files = {path: FileEdit.from_dict(edit) for path, edit in data["files"].items()}
        return cls(files, base64.b64decode(data["patch"]))

    def count_lines(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of lines added and removed in each file; zeros for binary files."""
        counts = {}
        for path, edit in self.files.items():
            sides = [side.content if side else b"" for side in (edit.before, edit.after)]
            if any(b"\0" in side for side in sides):
                sides = [b"", b""]
            ranges = find_differing(*(side.splitlines() for side in sides))
            counts[path] = (sum(len(new) for _, new in ranges), sum(len(old) for old, _ in ranges))
        return counts


def _pack_state(state: FileState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    content = base64.b64encode(state.content).decode("ascii")
    return {"content": content, "executable": state.executable, "is_link": state.is_link}


def _unpack_state(data: Mapping[str, Any] | None) -> FileState | None:
    if data is None:
        return None
    content = base64.b64decode(data["content"])
    return FileState(content, data["executable"], bool(data["is_link"]))


def find_differing(before: Sequence[bytes], after: Sequence[bytes]) -> list[tuple[range, range]]:
    """Return ranges of different lines, counted from 0: those before, and their replacements."""
    start, shorter = 0, min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    return [
        (range(start + first, start + last), range(start + begin, start + stop))
        for tag, first, last, begin, stop in SequenceMatcher(None, old, new).get_opcodes()
        if tag != "equal"
    ]


async def find_edits(arena: Arena, changes: Changes) -> FileEdits:
    """Return a candidate's changes with the files before them, while the arena is open."""
    return await read_edits(changes, arena.resources.pool.snapshot)


async def read_edits(changes: Changes, snapshot: Snapshot) -> FileEdits:
    """Return changes to a snapshot with the files before them."""
    base = await list_base(snapshot)
    entries = {path: base.entries[path] for path in changes.files if path in base.entries}
    with scratch_index(snapshot, base) as area:
        contents = await area.contents(entry.blob for entry in entries.values())
    files = {}
    for path, state in sorted(changes.files.items()):
        _refuse_path(path)
        entry = entries.get(path)
        before = entry.state(contents[entry.blob]) if entry else None
        files[path] = FileEdit(before, _with_mode(state, before))
    return FileEdits(files, await render_patch(changes, snapshot))


def _with_mode(state: FileState | None, before: FileState | None) -> FileState | None:
    """Return the file with its former mode, if the candidate doesn't set one."""
    if state is None or state.is_link or state.executable is not None:
        return state
    keeps = before is not None and not before.is_link and bool(before.executable)
    return FileState(state.content, keeps)


def _refuse_path(path: str) -> None:
    """Raise `StudyError` for an unsafe path; a second check before anything is written."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or ".git" in map(str.lower, parts):
        raise StudyError(f"{path!r} is no path in a tree of files")


async def merge(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """Merge both sides' changes to one text; None on a conflict, or for binary content."""
    with TemporaryDirectory(prefix="fairtrial-merge-") as name:
        folder = Path(name)
        for side, content in (("ours", ours), ("base", base), ("theirs", theirs)):
            (folder / side).write_bytes(content)
        try:
            return await git(
                *("merge-file", "-p", "-q", "ours", "base", "theirs"),
                repo=folder / "none",
                cwd=folder,
            )
        except GitError:  # there are conflicts, or the content is binary
            return None
