"""Rebuild the files of a candidate from the base's files and the candidate's diff."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_FILE = "/dev/null"


def apply_diff(files: Mapping[str, str], diff: str) -> dict[str, str] | None:
    """Return the files with a git diff applied; None if it doesn't fit, exactly, or is binary."""
    changed = dict(files)
    for lines in _split_files(diff):
        old, new = _read_paths(lines)
        if old is not None and old not in files:
            return None
        text = _apply_hunks(files.get(old or "", ""), lines)
        if text is None:
            return None
        if old is not None and old != new and not any(line.startswith("copy ") for line in lines):
            changed.pop(old, None)
        if new is not None:
            changed[new] = text
    return changed


def _split_files(diff: str) -> Iterator[list[str]]:
    """Yield the lines of each file's part of a diff."""
    part: list[str] = []
    for line in diff.split("\n"):
        if line.startswith("diff --git ") and part:
            yield part
            part = []
        if part or line.startswith("diff --git "):
            part.append(line)
    if part:
        yield part


def _read_paths(lines: list[str]) -> tuple[str | None, str | None]:
    """Return the paths before and after; None where there is no file."""
    old = new = lines[0].removeprefix("diff --git a/").partition(" b/")[0]
    paths: list[str | None] = [old, new]
    for line in lines[1:]:
        if line.startswith("@@"):
            break
        for at, prefixes in enumerate((("--- ", "rename from "), ("+++ ", "rename to "))):
            for prefix in prefixes:
                if line.startswith(prefix):
                    path = line.removeprefix(prefix).partition("\t")[0]
                    inner = path[2:] if prefix in ("--- ", "+++ ") else path
                    paths[at] = None if path == _NO_FILE else inner
        if line.startswith("new file"):
            paths[0] = None
        if line.startswith("deleted file"):
            paths[1] = None
    return paths[0], paths[1]


def _apply_hunks(text: str, lines: list[str]) -> str | None:
    """Return a text with all hunks of a file applied; None if they don't fit."""
    if any(line.startswith(("Binary files ", "GIT binary patch")) for line in lines):
        return None
    old = text.split("\n")
    result: list[str] = []
    position = 0
    starts = [at for at, line in enumerate(lines) if _HUNK.match(line)]
    for at, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        hunk = _HUNK.match(lines[at])
        assert hunk is not None
        before, after, is_old_open, is_new_open = _read_hunk(lines[at + 1 : end], hunk)
        start = int(hunk[1]) - 1 if before else int(hunk[1])
        if start < position or old[start : start + len(before)] != before:
            return None
        result += [*old[position:start], *after]
        position = start + len(before)
        # The last element of a split text is empty unless its last line has no newline.
        if is_new_open and not is_old_open:
            position += 1
        elif is_old_open and not is_new_open:
            result.append("")
    return "\n".join([*result, *old[position:]])


def _read_hunk(
    lines: list[str], hunk: re.Match[str]
) -> tuple[list[str], list[str], bool, bool]:
    """Return the lines before and after, and whether either's last line has no newline."""
    before: list[str] = []
    after: list[str] = []
    old_count, new_count = (int(hunk[group] or 1) for group in (2, 4))
    is_open = [False, False]
    sign = " "
    for line in lines:
        if line.startswith("\\"):
            is_open[0] = is_open[0] or sign in " -"
            is_open[1] = is_open[1] or sign in " +"
        elif len(before) < old_count or len(after) < new_count:
            sign = line[:1] or " "
            if sign in " -":
                before.append(line[1:])
            if sign in " +":
                after.append(line[1:])
    return before, after, is_open[0], is_open[1]
