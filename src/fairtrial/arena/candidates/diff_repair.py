"""Compare hunks with a file's content: repair line ends, and explain hunks that don't fit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairtrial.arena.candidates.diffs import DiffLine, FileDiff, Hunk
from fairtrial.arena.candidates.paths import show_path
from fairtrial.arena.model.verdicts import Difference, Failure
from fairtrial.core import on_one_line

_MAX_LINE_CHARACTERS, _MAX_SHOWN, _MAX_DIFFERENCES = 200, 15, 5
_MAX_POSITIONS = 50
"""How many positions of a common line (a blank one) are considered."""


class FileLines:
    """A file's lines, and an index of their positions."""

    def __init__(self, text: bytes) -> None:
        lines = [
            line + b"\n" for line in text.split(b"\n")
        ]  # only a newline ends a line, as in git
        last = lines.pop()[:-1]
        self.lines = [*lines, last] if last else lines
        self.positions: defaultdict[bytes, list[int]] = defaultdict(list)
        for index, line in enumerate(self.lines):
            self.positions[line].append(index)

    def fits(self, hunk: Hunk) -> bool:
        """Return whether the file has the old lines of a hunk, at any position."""
        expected = hunk.before
        if not expected:
            return True
        # Start from the rarest line, which has the fewest positions to try.
        offset = min(range(len(expected)), key=lambda at: len(self.positions.get(expected[at], ())))
        starts = (index - offset for index in self.positions.get(expected[offset], ()))
        return any(
            start >= 0 and self.lines[start : start + len(expected)] == expected for start in starts
        )


def repair_line_ends(diff: FileDiff, text: bytes) -> FileDiff:
    """Return the diff with the file's line ends in hunks that fit only then."""
    content = FileLines(text)
    return diff.with_hunks(_repair_hunk(hunk, content) for hunk in diff.hunks)


def _repair_hunk(hunk: Hunk, content: FileLines) -> Hunk:
    if content.fits(hunk):
        return hunk
    return next(filter(content.fits, _variants(hunk, content.lines)), hunk)


def _variants(hunk: Hunk, content: Sequence[bytes]) -> Iterator[Hunk]:
    ends = {line.endswith(b"\r\n") for line in content if line.endswith(b"\n")}
    hunks = [hunk]
    if len(ends) == 1:
        is_crlf = ends.pop()
        lines = tuple(
            DiffLine(sign, _set_line_end(line, is_crlf=is_crlf)) for sign, line in hunk.lines
        )
        hunks.append(replace(hunk, lines=lines))
    yield from hunks[1:]
    for variant in hunks:
        yield from _with_last_line(variant, content)


def _set_line_end(line: bytes, *, is_crlf: bool) -> bytes:
    if not line.endswith(b"\n"):
        return line
    return line.removesuffix(b"\n").removesuffix(b"\r") + (b"\r\n" if is_crlf else b"\n")


def _with_last_line(hunk: Hunk, content: Sequence[bytes]) -> Iterator[Hunk]:
    """Yield the hunk with the base's last line, if its last old line differs only by its end."""
    old_lines = [index for index, line in enumerate(hunk.lines) if line.sign != "+"]
    if not old_lines or not content:
        return
    index, last = old_lines[-1], content[-1]
    sign, text = hunk.lines[index]
    if text.rstrip(b"\r\n") != last.rstrip(b"\r\n") or text == last:
        return
    lines = list(hunk.lines)
    if sign == "-" or index == len(lines) - 1:
        lines[index] = DiffLine(sign, last)
    else:  # lines are added after it, so it needs a line end
        kept = last if last.endswith(b"\n") else last + b"\n"
        lines[index : index + 1] = [DiffLine("-", last), DiffLine("+", kept)]
    yield replace(hunk, lines=tuple(lines))


def explain_misfits(diff: FileDiff, text: bytes, limit: int) -> tuple[list[Failure], int]:
    """Describe the first `limit` hunks that don't fit; return these, and the number of misfits."""
    content = FileLines(text)
    misfits = [
        (number, hunk) for number, hunk in enumerate(diff.hunks, 1) if not content.fits(hunk)
    ]
    explained = [_explain_hunk(diff.name, *misfit, content.lines) for misfit in misfits[:limit]]
    return explained, len(misfits)


def _explain_hunk(name: str, number: int, hunk: Hunk, content: Sequence[bytes]) -> Failure:
    expected = hunk.before
    at = _find_best_position(hunk, content)
    differences = []
    for offset, line in enumerate(expected):
        actual = content[at + offset] if at + offset < len(content) else None
        if actual != line:
            where = f"line {at + offset + 1}"
            differences.append(Difference(where, _show(actual), _show(line)))
    end = min(at + len(expected), len(content), at + _MAX_SHOWN)
    shown = [f"{index + 1:>5} {_show(content[index])}" for index in range(at, end)]
    if not content:
        excerpt = "the file is empty"
    elif shown:
        excerpt = f"the file now, lines {at + 1} to {end}:\n" + "\n".join(shown)
    else:
        excerpt = f"the file has only {len(content):,} lines"
    first = differences[0] if differences else None
    problem = "no such lines"
    if first:
        problem = f"{first.where} of the base is `{first.expected}`, the diff has `{first.actual}`"
    return Failure(
        check="diff",
        what=f"hunk {number} of {show_path(name)} (line {hunk.start})",
        message=f"{problem}; {excerpt}",
        differences=tuple(differences[:_MAX_DIFFERENCES]),
    )


def _show(line: bytes | None) -> str:
    if line is None:
        return "(the end of the file)"
    text = line.rstrip(b"\n").decode("utf-8", "replace")
    shown = on_one_line(text, _MAX_LINE_CHARACTERS) or "(empty)"
    return shown if line.endswith(b"\n") else f"{shown} (without a newline)"


def _find_best_position(hunk: Hunk, content: Sequence[bytes]) -> int:
    """Return the line index where most lines of a hunk match; of equals, the nearest one."""
    positions: defaultdict[bytes, list[int]] = defaultdict(list)
    for index, line in enumerate(content):
        stripped = line.strip()
        if len(positions[stripped]) < _MAX_POSITIONS:
            positions[stripped].append(index)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(hunk.before):
        for index in positions.get(line.strip(), ()):
            if index >= offset:
                votes[index - offset] += 1 + bool(line.strip())
    stated = min(max(hunk.start - 1, 0), max(len(content) - 1, 0))
    if not votes:
        return stated
    return min(votes, key=lambda at: (-votes[at], abs(at - stated)))
