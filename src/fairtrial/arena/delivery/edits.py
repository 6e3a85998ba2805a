"""A candidate's changes with what was there before: enough to take them over without the arena.

The private repository goes with the arena; whoever merges afterwards still needs the base's own
version of each file that is touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from fairtrial.arena.arena import Arena
from fairtrial.arena.candidates.base_files import list_base, scratch
from fairtrial.arena.candidates.patches import render_patch
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.core import StudyError


@dataclass(frozen=True, slots=True)
class Edit:
    """One file, before and after; None where it isn't there.

    before: as the snapshot has it
    after: as the candidate wants it; whether it is executable is always said
    """

    before: FileState | None
    after: FileState | None


@dataclass(frozen=True, slots=True)
class Edits:
    """All that a candidate changes.

    files: by path, relative to the top
    patch: the same as a git diff, byte for byte
    """

    files: Mapping[str, Edit]
    patch: bytes

    def count_lines(self) -> dict[str, tuple[int, int]]:
        """Lines added and removed in each file; what is no text has none."""
        counts = {}
        for path, edit in self.files.items():
            sides = [side.content if side else b"" for side in (edit.before, edit.after)]
            if any(b"\0" in side for side in sides):
                sides = [b"", b""]
            found = find_differing(*(side.splitlines() for side in sides))
            counts[path] = (sum(len(new) for _, new in found), sum(len(old) for old, _ in found))
        return counts


def find_differing(before: Sequence[bytes], after: Sequence[bytes]) -> list[tuple[range, range]]:
    """The lines that are not the same, counted from 0: those before, and those after instead."""
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


async def find_edits(arena: Arena, changes: Changes) -> Edits:
    """A candidate's changes as they can be taken over; to be asked while the arena is open."""
    ground, _, _ = arena.parts()
    return await read_edits(changes, ground.pool.snapshot)


async def read_edits(changes: Changes, snapshot: Snapshot) -> Edits:
    """The same against a snapshot."""
    base = await list_base(snapshot)
    entries = {path: base.entries[path] for path in changes.files if path in base.entries}
    with scratch(snapshot, base) as area:
        contents = await area.contents(entry.blob for entry in entries.values())
    files = {}
    for path, state in sorted(changes.files.items()):
        _refuse_path(path)
        entry = entries.get(path)
        before = entry.state(contents[entry.blob]) if entry else None
        files[path] = Edit(before, _settled(state, before))
    return Edits(files, await render_patch(changes, snapshot))


def _settled(state: FileState | None, before: FileState | None) -> FileState | None:
    """A file whose mode nobody mentioned keeps it."""
    if state is None or state.is_link or state.executable is not None:
        return state
    keeps = before is not None and not before.is_link and bool(before.executable)
    return FileState(state.content, keeps)


def _refuse_path(path: str) -> None:
    """Candidates' paths were judged before; what is about to be written is looked at again."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or ".git" in map(str.lower, parts):
        raise StudyError(f"{path!r} is no path in a tree of files")


async def merge(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """Both sides' changes to one text; None where they meet, or where it is no text."""
    with TemporaryDirectory(prefix="fairtrial-merge-") as name:
        folder = Path(name)
        for place, content in (("ours", ours), ("base", base), ("theirs", theirs)):
            (folder / place).write_bytes(content)
        try:
            return await git(
                *("merge-file", "-p", "-q", "ours", "base", "theirs"),
                repo=folder / "none",
                cwd=folder,
            )
        except GitError:  # the number of conflicts, or that git won't merge what is no text
            return None
