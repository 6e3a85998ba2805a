"""The parts of a unified diff (files, hunks, lines), and how they are written as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from fairtrial.arena.candidates.diff_names import quote


class UnreadableDiff(Exception):  # noqa: N818 - a fault of a candidate, not of the program
    """A diff can't be parsed; the message says why."""


class DiffLine(NamedTuple):
    """A line of a hunk.

    sign: " " for context, "-" for a removed line, "+" for an added line
    text: the line with its line end; without one if the file ends without one
    """

    sign: str
    text: bytes


@dataclass(frozen=True, slots=True)
class Hunk:
    """A hunk of a diff: adjacent changes to a file, with context.

    start: the first line in the old file, counted from 1, according to the diff
    lines: context, removed and added lines
    """

    start: int
    lines: tuple[DiffLine, ...]

    @property
    def before(self) -> list[bytes]:
        """The lines that the base must have: context and removed lines."""
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def changes_something(self) -> bool:
        """Whether a line is removed or added."""
        return any(sign != " " for sign, _ in self.lines)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The changes of a diff to one file.

    old: the path before; None for a new file
    new: the path afterwards; None for a deleted file
    has_bare_names: whether the paths have no ``a/`` and ``b/``, even if other files' paths do
    moved: ``rename`` or ``copy`` if the content comes from another path
    headers: lines about modes, and the index line of a binary patch
    hunks: the changes of a text file
    binary: the lines of a binary patch
    """

    old: str | None
    new: str | None
    has_bare_names: bool = False
    moved: str = ""
    headers: tuple[bytes, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    binary: tuple[bytes, ...] = ()

    @property
    def name(self) -> str:
        """The path to show in messages: the new one, or the old one of a deleted file."""
        return self.new or self.old or ""

    def header(self, beginning: bytes) -> bytes | None:
        """Return the rest of the header line that starts with `beginning`, or None."""
        for line in self.headers:
            if line.startswith(beginning):
                return line[len(beginning) :]
        return None

    def with_hunks(self, hunks: Iterable[Hunk]) -> FileDiff:
        """Return a copy with other hunks."""
        return replace(self, hunks=tuple(hunks))

    def write(self) -> bytes:
        """Return the diff as text, in git's format."""
        parts = [
            b"diff --git %s %s"
            % (quote(f"a/{self.old or self.new}"), quote(f"b/{self.new or self.old}")),
            *self.headers,
        ]
        if self.moved:
            parts.append(f"{self.moved} from ".encode() + quote(self.old or ""))
            parts.append(f"{self.moved} to ".encode() + quote(self.new or ""))
        if self.binary:
            parts.extend(self.binary)
        elif self.hunks:
            parts.append(b"--- " + (quote(f"a/{self.old}") if self.old else b"/dev/null"))
            parts.append(b"+++ " + (quote(f"b/{self.new}") if self.new else b"/dev/null"))
        text = b"\n".join(parts) + b"\n"
        return text + b"".join(_write_hunks(self.hunks)) + (b"\n" if self.binary else b"")


def _write_hunks(hunks: Iterable[Hunk]) -> Iterable[bytes]:
    shift = 0
    for hunk in hunks:
        old_count = sum(sign != "+" for sign, _ in hunk.lines)
        new_count = sum(sign != "-" for sign, _ in hunk.lines)
        # A side without lines is numbered by the line before it. git starts its search at the new
        # side's number, so that one has to be exact.
        first = max(hunk.start, 1) if old_count else hunk.start + 1
        start = first if old_count else first - 1
        yield b"@@ -%d,%d +%d,%d @@\n" % (start, old_count, max(first + shift, 0), new_count)
        for sign, text in hunk.lines:
            yield sign.encode() + text
            if not text.endswith(b"\n"):
                yield b"\n\\ No newline at end of file\n"
        shift += new_count - old_count
