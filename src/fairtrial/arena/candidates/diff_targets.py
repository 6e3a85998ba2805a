"""Which files of the base a diff is about: with or without ``a/`` and ``b/``, from the top of the
repository or from the project's folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fairtrial.arena.candidates.base_files import PLAIN, BaseFiles
from fairtrial.arena.candidates.diffs import FileDiff, UnreadableDiff
from fairtrial.arena.candidates.paths import spell, unsafe_path


class _Reading(NamedTuple):
    """One way to understand the paths of a diff.

    strip: how many steps at their beginning are not part of them
    prefix: what has to stand before them
    """

    strip: int
    prefix: str

    def path(self, name: str | None, *, is_bare: bool = False) -> str | None:
        """A name of the diff as a path of the base; None if there is none."""
        if name is None:
            return None
        steps = name.removeprefix("./").split("/")
        kept = steps if is_bare else steps[self.strip :]
        return self.prefix + "/".join(kept) if kept else None


def place_diffs(diffs: Sequence[FileDiff], base: BaseFiles, cwd: str) -> list[FileDiff]:
    """The same with the paths of the base; raises `UnreadableDiff` for paths that can't be."""
    for diff in diffs:
        for name in (diff.old, diff.new):
            # Before anything is stripped: "/etc/x" and "../x" must not become harmless.
            wrong = unsafe_path(name.removeprefix("./")) if name is not None else None
            if wrong:
                raise UnreadableDiff(f"the path {spell(name or '')} {wrong}")
    reading = max(_readings(diffs, cwd), key=lambda reading: _likeness(diffs, reading, base))
    placed = (_place(diff, reading, base) for diff in diffs)
    return [diff for diff in placed if diff is not None]


def _readings(diffs: Iterable[FileDiff], cwd: str) -> list[_Reading]:
    """All ways, the likeliest first."""
    strips = (1, 0) if any(_has_prefixes(diff) for diff in diffs) else (0, 1)
    prefixes = [""] if cwd in (".", "") else ["", cwd.strip("/") + "/"]
    return [_Reading(strip, prefix) for prefix in prefixes for strip in strips]


def _has_prefixes(diff: FileDiff) -> bool:
    if diff.has_bare_names:
        return False
    if diff.old is None or diff.new is None:
        return diff.name.startswith("b/" if diff.old is None else "a/")
    old, new = diff.old.partition("/"), diff.new.partition("/")
    return old[0] != new[0] and old[2] == new[2] != ""


def _likeness(diffs: Iterable[FileDiff], reading: _Reading, base: BaseFiles) -> tuple[int, int]:
    """How many files that must be there are, and how many new ones have a folder to go to."""
    found = homes = 0
    for diff in diffs:
        paths = [
            path
            for name in (diff.old, diff.new)
            if (path := reading.path(name, is_bare=diff.has_bare_names))
        ]
        if any(path in base.entries for path in paths):
            found += 1
        elif any("/" not in path or path.rpartition("/")[0] in base.places for path in paths):
            homes += 1
    return found, homes


def _place(diff: FileDiff, reading: _Reading, base: BaseFiles) -> FileDiff | None:
    """The diff of one file as git wants it; None if it changes nothing."""
    old = reading.path(diff.old, is_bare=diff.has_bare_names)
    new = reading.path(diff.new, is_bare=diff.has_bare_names)
    if (old is None and diff.old is not None) or (new is None and diff.new is not None):
        raise UnreadableDiff(f"can't tell which file {spell(diff.name)} is")
    if old and new and not diff.moved and old != new:
        # "x.py.orig" and "x.py": the base knows which of the two is meant.
        old = new = old if old in base.entries and new not in base.entries else new
    if old and old not in base.entries and _only_adds(diff):
        old = None
    diff = replace(diff, old=old, new=new)
    if not diff.binary and diff.hunks:
        diff = diff.with_hunks(hunk for hunk in diff.hunks if hunk.changes_something)
    headers = diff.headers
    if old is None and diff.header(b"new file mode ") is None:
        headers = (f"new file mode {PLAIN}".encode(), *headers)
    elif new is None and old is not None and diff.header(b"deleted file mode ") is None:
        entry = base.entries.get(old)
        headers = (f"deleted file mode {entry.mode if entry else PLAIN}".encode(), *headers)
    diff = replace(diff, headers=headers)
    return diff if headers or diff.hunks or diff.binary or diff.moved else None


def _only_adds(diff: FileDiff) -> bool:
    """Whether it is a new file that was written down like a changed one."""
    if diff.moved or diff.binary or len(diff.hunks) != 1 or diff.hunks[0].start > 1:
        return False
    return not diff.hunks[0].before
