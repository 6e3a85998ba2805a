"""A candidate's files, from the base's and its diff."""

from __future__ import annotations

from fairtrial.arena import FileDiff, UnreadableDiff, read_diff
from fairtrial_codemod.transforms.recipes import Files


def overlay(files: Files, diff: str) -> dict[str, str] | None:
    """The files with a diff applied, exactly as it says; None if it doesn't fit."""
    try:
        parts = read_diff(diff.encode())
    except UnreadableDiff:
        return None
    changed = dict(files)
    for part in parts:
        old, new = (_path(name, part) for name in (part.old, part.new))
        if old is not None and old not in files:
            return None
        text = _patch(changed.get(old or "", ""), part)
        if text is None:
            return None
        if old is not None and old != new and part.moved != "copy":
            del changed[old]
        if new is not None:
            changed[new] = text
    return changed


def _path(name: str | None, part: FileDiff) -> str | None:
    """Without the ``a/`` and ``b/`` that git puts before paths."""
    return name if name is None or part.has_bare_names else name.partition("/")[2]


def _patch(text: str, part: FileDiff) -> str | None:
    if part.binary:
        return None
    lines = _lines(text)
    made: list[bytes] = []
    at = 0
    for hunk in part.hunks:
        before = hunk.before
        start = max(hunk.start - 1, 0) if before else hunk.start
        if lines[start : start + len(before)] != before or start < at:
            return None
        made += lines[at:start]
        made += [line.text for line in hunk.lines if line.sign != "-"]
        at = start + len(before)
    return b"".join([*made, *lines[at:]]).decode()


def _lines(text: str) -> list[bytes]:
    """As diffs count lines: by newlines alone."""
    lines = [line + b"\n" for line in text.encode().split(b"\n")]
    last = lines.pop().removesuffix(b"\n")
    return [*lines, last] if last else lines
