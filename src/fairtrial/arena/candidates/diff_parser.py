"""Reading diffs as people and language models write them.

What stands around a diff (prose, code fences, the head of a mail) is skipped. Counts in hunk
headers are believed if the lines bear them out; otherwise a hunk goes on for as long as its lines
look like one. What could be read in two ways is refused: a candidate that is half applied would be
judged for something that nobody proposed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fairtrial.arena.candidates.diff_names import read_name, split_names
from fairtrial.arena.candidates.diffs import FileDiff, Hunk, Line, UnreadableDiff
from fairtrial.core import on_one_line

_HUNK = re.compile(rb"@@ -(\d{1,15})(?:,(\d{1,15}))? \+(\d{1,15})(?:,(\d{1,15}))? @@")
_UNNUMBERED = re.compile(rb"@@(?: (?!-\d).*)?\r?")
_MODES = (b"old mode ", b"new mode ", b"deleted file mode ", b"new file mode ")
_OTHERS = (b"similarity index ", b"dissimilarity index ")
_MOVES = (b"rename from ", b"rename to ", b"copy from ", b"copy to ")
_BINARY_LINE = re.compile(rb"(?:literal|delta) \d+|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+|")
_BULLET = re.compile(rb"[-+] \S")
_LARGEST_START = 10_000_000
MOST_HUNKS = 20_000


def read_diff(text: bytes) -> list[FileDiff]:
    """The files of a diff, in its order; raises `UnreadableDiff`."""
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    reader = _Reader(lines)
    if any(
        lines[at].endswith(b"\r") and lines[at + 1].endswith(b"\r")
        for at in range(len(lines))
        if reader.is_header(at)
    ):
        # Tools end header lines with a bare newline: these came with the file's journey.
        reader = _Reader([line.removesuffix(b"\r") for line in lines])
    return reader.read()


@dataclass(slots=True)
class _Headers:
    """What git says of a file: modes, ids, and both names if it moves."""

    modes: list[bytes] = field(default_factory=list)
    index: list[bytes] = field(default_factory=list)
    names: tuple[str | None, str | None] | None = None
    moved: str = ""


class _Reader:
    def __init__(self, lines: list[bytes]) -> None:
        self.lines, self.at = lines, 0
        self.hunks_left = MOST_HUNKS

    def line(self, at: int) -> bytes:
        return self.lines[at] if at < len(self.lines) else b""

    def is_header(self, at: int) -> bool:
        """Whether the two lines that name a file stand here."""
        return self.line(at).startswith(b"--- ") and self.line(at + 1).startswith(b"+++ ")

    def is_boundary(self, at: int) -> bool:
        """Whether no hunk can go on here."""
        line = self.line(at)
        if self.is_header(at) and self.line(at + 2).startswith(b"@@"):
            return True
        if line.rstrip() == b"--" and re.match(rb"\d+\.\d", self.line(at + 1)):  # a mail's end
            return True
        return line.startswith((b"diff --git ", b"@@", b"```", b"~~~", b"Index: ", b"From "))

    def read(self) -> list[FileDiff]:
        files = []
        while self.at < len(self.lines):
            line = self.line(self.at)
            if line.startswith(b"diff --git "):
                files.append(self._read_git())
            elif self.is_header(self.at):
                files.append(self._read_plain())
            elif _HUNK.match(line):
                raise self._refuse(self.at, "a hunk without the name of its file above it")
            else:
                self.at += 1
        return files

    def _refuse(self, at: int, what: str) -> UnreadableDiff:
        shown = on_one_line(self.line(at).decode("utf-8", "replace"), 100)
        return UnreadableDiff(f"line {at + 1} of the diff: {what}: {shown}")

    def _read_git(self) -> FileDiff:
        start = self.at
        old, new = split_names(self.line(start).rstrip(b"\r")[len(b"diff --git ") :])
        self.at += 1
        headers = self._read_headers()
        is_named = self.is_header(self.at)
        names = self._read_names() if is_named else (old, new)
        old, new = headers.names or names
        if old is None and new is None:
            raise self._refuse(start, "can't tell the names of the file")
        if any(mode.startswith(b"new file") for mode in headers.modes):
            old = None
        if any(mode.startswith(b"deleted file") for mode in headers.modes):
            new = None
        binary = self._read_binary()
        return FileDiff(
            old,
            new,
            has_bare_names=headers.names is not None,
            moved=headers.moved,
            headers=(*headers.modes, *(headers.index if binary else ())),
            hunks=() if binary else self._read_hunks(must=is_named),
            binary=binary,
        )

    def _read_headers(self) -> _Headers:
        """What git says of a file between its first line and its content."""
        found = _Headers()
        sides: dict[bytes, str | None] = {}
        while True:
            line = self.line(self.at).rstrip(b"\r")
            move = next((each for each in _MOVES if line.startswith(each)), None)
            if move:
                found.moved, side = move.decode().split()[0], move.split()[1]
                sides[side] = read_name(line[len(move) :]).path
            elif line.startswith(_MODES):
                found.modes.append(line)
            elif line.startswith(b"index "):
                found.index.append(line)
            elif not line.startswith(_OTHERS):
                break
            self.at += 1
        if len(sides) == 2:
            found.names = sides[b"from"], sides[b"to"]
        else:
            found.moved = ""
        return found

    def _read_plain(self) -> FileDiff:
        old, new = self._read_names()
        return FileDiff(old, new, hunks=self._read_hunks(must=True))

    def _read_names(self) -> tuple[str | None, str | None]:
        """The two names; a file that diff dates at the epoch isn't there."""
        start = self.at
        old = read_name(self.line(start)[4:].rstrip(b"\r"))
        new = read_name(self.line(start + 1)[4:].rstrip(b"\r"))
        self.at += 2
        if old.path is None and new.path is None:
            raise self._refuse(start, "a file that is on neither side")
        if old.is_epoch != new.is_epoch and old.path and new.path:
            hunk = _HUNK.match(self.line(self.at))
            if old.is_epoch and hunk and hunk[1] == b"0":
                return None, new.path
            if new.is_epoch and hunk and hunk[3] == b"0":
                return old.path, None
        return old.path, new.path

    def _read_binary(self) -> tuple[bytes, ...]:
        line = self.line(self.at).rstrip(b"\r")
        if line.startswith(b"Binary files ") and line.endswith(b" differ"):
            raise self._refuse(self.at, "a binary file without its content (git diff --binary)")
        if line != b"GIT binary patch":
            return ()
        found = [line]
        self.at += 1
        while self.at < len(self.lines):
            line = self.line(self.at).rstrip(b"\r")
            if not _BINARY_LINE.fullmatch(line):
                break
            found.append(line)
            self.at += 1
        return tuple(found)

    def _read_hunks(self, *, must: bool) -> tuple[Hunk, ...]:
        hunks: list[Hunk] = []
        while True:
            at = self.at
            while hunks and at < len(self.lines) and not self.line(at).strip():
                at += 1
            header = _HUNK.match(self.line(at))
            if header is None and not _UNNUMBERED.fullmatch(self.line(at)):
                break
            self.hunks_left -= 1
            if self.hunks_left < 0:
                raise self._refuse(at, f"more than {MOST_HUNKS:,} hunks")
            self.at = at + 1
            lines = self._take_counted(header) if header else None
            lines = self._take_loosely() if lines is None else lines
            start = min(int(header[1]), _LARGEST_START) if header else 1
            hunks.append(Hunk(start, tuple(lines)))
        if must and not hunks:
            raise self._refuse(self.at - 1, "no hunk follows the name of the file")
        return tuple(hunks)

    def _take_counted(self, header: re.Match[bytes]) -> list[Line] | None:
        """A hunk's lines by the counts of its header; None if they aren't right."""
        olds, news = int(header[2] or b"1"), int(header[4] or b"1")
        found: list[Line] = []
        at = self.at
        while olds > 0 or news > 0 or self.line(at).startswith(b"\\"):
            line = _read_line(self.line(at)) if at < len(self.lines) else None
            if line is None and not (found and self.line(at).startswith(b"\\")):
                return None
            at += 1
            if line is None:
                found[-1] = _without_end(found[-1])
                continue
            olds -= line.sign != "+"
            news -= line.sign != "-"
            found.append(line)
        if olds or news or self._goes_on(at):
            return None
        self.at = at
        return found

    def _goes_on(self, at: int) -> bool:
        """Whether lines that come or go follow: then there are more than the header counts."""
        seen_blank = False
        while at < len(self.lines) and not self.is_boundary(at):
            line = self.line(at)
            if line.startswith((b"+", b"-")):
                return not self.is_header(at) and not (seen_blank and _BULLET.match(line))
            if line.strip() and not line.startswith(b" "):
                return False
            seen_blank = seen_blank or not line.strip()
            at += 1
        return False

    def _take_loosely(self) -> list[Line]:
        """A hunk's lines, for as long as they look like one."""
        found: list[Line] = []
        blanks = 0
        while self.at < len(self.lines) and not self.is_boundary(self.at):
            raw = self.line(self.at)
            line = _read_line(raw)
            if raw.startswith(b"\\") and found:
                found[-1] = _without_end(found[-1])
            elif line is None:
                self._refuse_stray(blanks)
                break
            else:
                found.append(line)
                blanks = blanks + 1 if not raw.strip(b"\r") else 0
            self.at += 1
        return found[: len(found) - blanks]

    def _refuse_stray(self, blanks: int) -> None:
        """Prose may follow after a blank line; a line that lost its sign must not be skipped."""
        at = self.at
        is_prose = blanks > 0
        while is_prose and at < len(self.lines) and not self.is_boundary(at):
            line = self.line(at)
            is_prose = not line.startswith((b"+", b"-")) or bool(_BULLET.match(line))
            at += 1
        if not is_prose:
            raise self._refuse(self.at, "each line of a hunk starts with ' ', '+' or '-', not so")


def _read_line(raw: bytes) -> Line | None:
    """A line of a hunk; an empty one is context whose blank was lost."""
    if raw in (b"", b"\r"):
        return Line(" ", raw + b"\n")
    return Line(chr(raw[0]), raw[1:] + b"\n") if raw[:1] in (b" ", b"+", b"-") else None


def _without_end(line: Line) -> Line:
    return Line(line.sign, line.text.removesuffix(b"\n"))
