"""Find the files of the base that a diff refers to.

Paths may have prefixes (``a/``, ``b/``) or not, and may be relative to the top of the repository or
to the project's folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fairtrial.arena.candidates.base_files import REGULAR, BaseFiles
from fairtrial.arena.candidates.diffs import FileDiff, UnreadableDiff
from fairtrial.arena.candidates.paths import find_path_problem, show_path


class _PathStyle(NamedTuple):
    """A way to convert the paths of a diff to paths of the base.

    strip: the number of leading parts to remove
    prefix: the text to prepend
    """

    strip: int
    prefix: str

    def path(self, name: str | None, *, is_bare: bool = False) -> str | None:
        """Return the path in the base of a name in the diff; None if nothing is left of it."""
        if name is None:
            return None
        parts = name.removeprefix("./").split("/")
        kept = parts if is_bare else parts[self.strip :]
        return self.prefix + "/".join(kept) if kept else None


def resolve_diff_paths(diffs: Sequence[FileDiff], base: BaseFiles, cwd: str) -> list[FileDiff]:
    """Return the diffs with paths of the base, without those that change nothing.

    Raises `UnreadableDiff` about paths that are unsafe or ambiguous.
    """
    for diff in diffs:
        for name in (diff.old, diff.new):
            # Checked before parts are stripped, so that "/etc/x" and "../x" are still recognized.
            problem = find_path_problem(name.removeprefix("./")) if name is not None else None
            if problem:
                raise UnreadableDiff(f"the path {show_path(name or '')} {problem}")
    style = max(_list_styles(diffs, cwd), key=lambda style: _score_style(diffs, style, base))
    resolved = (_resolve_paths(diff, style, base) for diff in diffs)
    return [diff for diff in resolved if diff is not None]


def _list_styles(diffs: Iterable[FileDiff], cwd: str) -> list[_PathStyle]:
    """Return the possible styles, the most likely first."""
    strips = (1, 0) if any(_has_prefixes(diff) for diff in diffs) else (0, 1)
    prefixes = [""] if cwd in (".", "") else ["", cwd.strip("/") + "/"]
    return [_PathStyle(strip, prefix) for prefix in prefixes for strip in strips]


def _has_prefixes(diff: FileDiff) -> bool:
    if diff.has_bare_names:
        return False
    if diff.old is None or diff.new is None:
        return diff.name.startswith("b/" if diff.old is None else "a/")
    old, new = diff.old.partition("/"), diff.new.partition("/")
    return old[0] != new[0] and old[2] == new[2] != ""


def _score_style(diffs: Iterable[FileDiff], style: _PathStyle, base: BaseFiles) -> tuple[int, int]:
    """Return how many files of a diff are in the base, and how many others have a folder there."""
    existing = with_folder = 0
    for diff in diffs:
        paths = [
            path
            for name in (diff.old, diff.new)
            if (path := style.path(name, is_bare=diff.has_bare_names))
        ]
        if any(path in base.entries for path in paths):
            existing += 1
        elif any("/" not in path or path.rpartition("/")[0] in base.paths for path in paths):
            with_folder += 1
    return existing, with_folder


def _resolve_paths(diff: FileDiff, style: _PathStyle, base: BaseFiles) -> FileDiff | None:
    """Return the diff of one file with its paths and the headers that git needs.

    Returns None if it changes nothing.
    """
    old = style.path(diff.old, is_bare=diff.has_bare_names)
    new = style.path(diff.new, is_bare=diff.has_bare_names)
    if (old is None and diff.old is not None) or (new is None and diff.new is not None):
        raise UnreadableDiff(f"can't tell which file {show_path(diff.name)} is")
    if old and new and not diff.moved and old != new:
        # Of "x.py.orig" and "x.py", the one that is in the base is meant.
        old = new = old if old in base.entries and new not in base.entries else new
    if old and old not in base.entries and _only_adds(diff):
        old = None
    diff = replace(diff, old=old, new=new)
    if not diff.binary and diff.hunks:
        diff = diff.with_hunks(hunk for hunk in diff.hunks if hunk.changes_something)
    headers = diff.headers
    if old is None and diff.header(b"new file mode ") is None:
        headers = (f"new file mode {REGULAR}".encode(), *headers)
    elif new is None and old is not None and diff.header(b"deleted file mode ") is None:
        entry = base.entries.get(old)
        headers = (f"deleted file mode {entry.mode if entry else REGULAR}".encode(), *headers)
    diff = replace(diff, headers=headers)
    return diff if headers or diff.hunks or diff.binary or diff.moved else None


def _only_adds(diff: FileDiff) -> bool:
    """Return whether a diff of an existing file could be that of a new file."""
    if diff.moved or diff.binary or len(diff.hunks) != 1 or diff.hunks[0].start > 1:
        return False
    return not diff.hunks[0].before
