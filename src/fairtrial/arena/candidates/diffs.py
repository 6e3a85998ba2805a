"""A unified diff, taken apart: files, hunks and lines, and how to write them down again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from fairtrial.arena.candidates.diff_names import quote


class UnreadableDiff(Exception):  # noqa: N818 - said of a candidate, which is data
    """A diff that can't be understood; its text says why."""


class Line(NamedTuple):
    """A line of a hunk.

    sign: " " for one that stays, "-" for one that goes, "+" for one that comes
    text: the line with its end; without one where the file ends without one
    """

    sign: str
    text: bytes


@dataclass(frozen=True, slots=True)
class Hunk:
    """A place in a file that changes.

    start: the line of the old file where it begins, counted from 1, as the diff has it
    lines: what stands there, goes and comes
    """

    start: int
    lines: tuple[Line, ...]

    @property
    def before(self) -> list[bytes]:
        """The lines as they must be in the base."""
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def changes_something(self) -> bool:
        """Whether a line goes or comes."""
        return any(sign != " " for sign, _ in self.lines)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What a diff does to one file.

    old: its path before; None for a file that comes
    new: its path afterwards; None for a file that goes
    has_bare_names: whether the paths have no ``a/`` and ``b/``, whatever the other files' have
    moved: ``rename`` or ``copy`` if it comes from another path
    headers: lines about modes, and of a binary patch what it is between
    hunks: what changes
    binary: a binary patch, line by line
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
        """The path that people know it by."""
        return self.new or self.old or ""

    def header(self, beginning: bytes) -> bytes | None:
        """The rest of the header line that begins like this."""
        for line in self.headers:
            if line.startswith(beginning):
                return line[len(beginning) :]
        return None

    def with_hunks(self, hunks: Iterable[Hunk]) -> FileDiff:
        """The same for other hunks."""
        return replace(self, hunks=tuple(hunks))

    def write(self) -> bytes:
        """As git writes it."""
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
        olds = sum(sign != "+" for sign, _ in hunk.lines)
        news = sum(sign != "-" for sign, _ in hunk.lines)
        # A side without lines names the line before it; but git begins to look at the new side's,
        # so that this one is exact.
        first = max(hunk.start, 1) if olds else hunk.start + 1
        start = first if olds else first - 1
        yield b"@@ -%d,%d +%d,%d @@\n" % (start, olds, max(first + shift, 0), news)
        for sign, text in hunk.lines:
            yield sign.encode() + text
            if not text.endswith(b"\n"):
                yield b"\n\\ No newline at end of file\n"
        shift += news - olds
