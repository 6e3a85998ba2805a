"""Parse unified diffs as people and language models write them.

Text around a diff (prose, code fences, mail headers) is skipped. Counts in hunk headers are used if
they match the lines; otherwise a hunk extends as far as its lines look like parts of a hunk.
Ambiguous diffs are refused: a candidate that is applied in part would be judged for a change that
was never proposed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fairtrial.arena.candidates.diff_names import read_name, split_names
from fairtrial.arena.candidates.diffs import DiffLine, FileDiff, Hunk, UnreadableDiff
from fairtrial.core import on_one_line

_HUNK = re.compile(rb"@@ -(\d{1,15})(?:,(\d{1,15}))? \+(\d{1,15})(?:,(\d{1,15}))? @@")
_UNNUMBERED = re.compile(rb"@@(?: (?!-\d).*)?\r?")
_MODES = (b"old mode ", b"new mode ", b"deleted file mode ", b"new file mode ")
_IGNORED_HEADERS = (b"similarity index ", b"dissimilarity index ")
_MOVES = (b"rename from ", b"rename to ", b"copy from ", b"copy to ")
_BINARY_LINE = re.compile(rb"(?:literal|delta) \d+|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+|")
_BULLET = re.compile(rb"[-+] \S")
_MAX_START = 10_000_000
MAX_HUNKS = 20_000


def read_diff(text: bytes) -> list[FileDiff]:
    """Return the files of a diff, in order; raise `UnreadableDiff` if it can't be parsed."""
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    reader = _DiffReader(lines)
    if any(
        lines[at].endswith(b"\r") and lines[at + 1].endswith(b"\r")
        for at in range(len(lines))
        if reader.is_header(at)
    ):
        # Tools end header lines with a bare newline, so the whole diff was converted to CRLF.
        reader = _DiffReader([line.removesuffix(b"\r") for line in lines])
    return reader.read()


@dataclass(slots=True)
class _Headers:
    """git's extended headers of a file.

    modes: lines about modes
    index: the line with blob ids
    names: both names of a renamed or copied file
    moved: ``rename``, ``copy`` or empty
    """

    modes: list[bytes] = field(default_factory=list)
    index: list[bytes] = field(default_factory=list)
    names: tuple[str | None, str | None] | None = None
    moved: str = ""


class _DiffReader:
    """Reads a diff line by line; `at` is the index of the current line."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines, self.at = lines, 0
        self.hunks_left = MAX_HUNKS

    def line(self, at: int) -> bytes:
        return self.lines[at] if at < len(self.lines) else b""

    def is_header(self, at: int) -> bool:
        """Return whether the ``---`` and ``+++`` lines of a file start here."""
        return self.line(at).startswith(b"--- ") and self.line(at + 1).startswith(b"+++ ")

    def is_boundary(self, at: int) -> bool:
        """Return whether a line certainly isn't part of a hunk."""
        line = self.line(at)
        if self.is_header(at) and self.line(at + 2).startswith(b"@@"):
            return True
        if line.rstrip() == b"--" and re.match(
            rb"\d+\.\d", self.line(at + 1)
        ):  # the signature of a mail
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
            hunks=() if binary else self._read_hunks(required=is_named),
            binary=binary,
        )

    def _read_headers(self) -> _Headers:
        """Read git's extended headers between ``diff --git`` and the content."""
        headers = _Headers()
        sides: dict[bytes, str | None] = {}
        while True:
            line = self.line(self.at).rstrip(b"\r")
            move = next((start for start in _MOVES if line.startswith(start)), None)
            if move:
                headers.moved, side = move.decode().split()[0], move.split()[1]
                sides[side] = read_name(line[len(move) :]).path
            elif line.startswith(_MODES):
                headers.modes.append(line)
            elif line.startswith(b"index "):
                headers.index.append(line)
            elif not line.startswith(_IGNORED_HEADERS):
                break
            self.at += 1
        if len(sides) == 2:
            headers.names = sides[b"from"], sides[b"to"]
        else:
            headers.moved = ""
        return headers

    def _read_plain(self) -> FileDiff:
        old, new = self._read_names()
        return FileDiff(old, new, hunks=self._read_hunks(required=True))

    def _read_names(self) -> tuple[str | None, str | None]:
        """Read both names; a file whose time is the epoch doesn't exist on that side."""
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
        lines = [line]
        self.at += 1
        while self.at < len(self.lines):
            line = self.line(self.at).rstrip(b"\r")
            if not _BINARY_LINE.fullmatch(line):
                break
            lines.append(line)
            self.at += 1
        return tuple(lines)

    def _read_hunks(self, *, required: bool) -> tuple[Hunk, ...]:
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
                raise self._refuse(at, f"more than {MAX_HUNKS:,} hunks")
            self.at = at + 1
            lines = self._read_counted(header) if header else None
            lines = self._read_uncounted() if lines is None else lines
            start = min(int(header[1]), _MAX_START) if header else 1
            hunks.append(Hunk(start, tuple(lines)))
        if required and not hunks:
            raise self._refuse(self.at - 1, "no hunk follows the name of the file")
        return tuple(hunks)

    def _read_counted(self, header: re.Match[bytes]) -> list[DiffLine] | None:
        """Read a hunk's lines by the counts of its header; return None if these are wrong."""
        old_left, new_left = int(header[2] or b"1"), int(header[4] or b"1")
        lines: list[DiffLine] = []
        at = self.at
        while old_left > 0 or new_left > 0 or self.line(at).startswith(b"\\"):
            line = _read_line(self.line(at)) if at < len(self.lines) else None
            if line is None and not (lines and self.line(at).startswith(b"\\")):
                return None
            at += 1
            if line is None:
                lines[-1] = _remove_line_end(lines[-1])
                continue
            old_left -= line.sign != "+"
            new_left -= line.sign != "-"
            lines.append(line)
        if old_left or new_left or self._continues(at):
            return None
        self.at = at
        return lines

    def _continues(self, at: int) -> bool:
        """Return whether added or removed lines follow, which the header didn't count."""
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

    def _read_uncounted(self) -> list[DiffLine]:
        """Read lines for as long as they look like parts of a hunk."""
        lines: list[DiffLine] = []
        blanks = 0
        while self.at < len(self.lines) and not self.is_boundary(self.at):
            raw = self.line(self.at)
            line = _read_line(raw)
            if raw.startswith(b"\\") and lines:
                lines[-1] = _remove_line_end(lines[-1])
            elif line is None:
                self._refuse_stray(blanks)
                break
            else:
                lines.append(line)
                blanks = blanks + 1 if not raw.strip(b"\r") else 0
            self.at += 1
        return lines[: len(lines) - blanks]

    def _refuse_stray(self, blanks: int) -> None:
        """Raise if the current line lost its sign; prose after a blank line is allowed."""
        at = self.at
        is_prose = blanks > 0
        while is_prose and at < len(self.lines) and not self.is_boundary(at):
            line = self.line(at)
            is_prose = not line.startswith((b"+", b"-")) or bool(_BULLET.match(line))
            at += 1
        if not is_prose:
            raise self._refuse(
                self.at, "each line of a hunk starts with ' ', '+' or '-', unlike this one"
            )


def _read_line(raw: bytes) -> DiffLine | None:
    """Parse a line of a hunk; an empty one is context whose leading blank was lost."""
    if raw in (b"", b"\r"):
        return DiffLine(" ", raw + b"\n")
    return DiffLine(chr(raw[0]), raw[1:] + b"\n") if raw[:1] in (b" ", b"+", b"-") else None


def _remove_line_end(line: DiffLine) -> DiffLine:
    return DiffLine(line.sign, line.text.removesuffix(b"\n"))
