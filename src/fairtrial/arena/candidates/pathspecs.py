"""Match paths with git's glob pathspecs, without git: new files are in no index.

A pattern without wildcards matches a file, or a folder with everything in it. `*`, `?` and `[...]`
don't match a `/`; `**/`, `/**/` and `/**` match any folders. `:!` before a pattern excludes files.
A test compares the results with those of `git ls-files`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.arena.model.problem_syntax import split_pattern
from fairtrial.core import Mistake, StudyError

_STARS = re.compile(r"(?:\\.|\[\]?[^\]]*\]|[^*])+|\*+", re.DOTALL)
_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb"\ \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb"\ \t\n\r\f\v",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}


@dataclass(frozen=True, slots=True)
class _Pattern:
    literal: bytes
    wildcards: re.Pattern[bytes] | None

    def matches(self, path: bytes) -> bool:
        """Return whether a path is this file, is in this folder, or matches the wildcards."""
        literal = self.literal
        if not literal or path == literal or path.startswith(literal.rstrip(b"/") + b"/"):
            return True
        return self.wildcards is not None and self.wildcards.fullmatch(path) is not None


class Pathspecs:
    """A list of patterns, relative to the top of the repository."""

    __slots__ = ("_excluded", "_included", "_patterns")

    def __init__(self, patterns: Sequence[str], field: str = "editable") -> None:
        self._patterns = tuple(patterns)
        split = [split_pattern(pattern) for pattern in patterns]
        for index, (_, pattern) in enumerate(split):
            _refuse_odd_stars(pattern, field, index)
        self._included = [_parse_pattern(pattern) for mark, pattern in split if not mark]
        self._excluded = [_parse_pattern(pattern) for mark, pattern in split if mark]

    def match(self, path: str) -> bool:
        """Return whether the patterns include this file."""
        encoded = os.fsencode(path)
        if self._included:
            is_included = any(pattern.matches(encoded) for pattern in self._included)
        else:  # as in git, exclusions alone include everything else
            is_included = bool(self._excluded)
        return is_included and not any(pattern.matches(encoded) for pattern in self._excluded)

    def __str__(self) -> str:
        return ", ".join(self._patterns) or "nothing"


def _refuse_odd_stars(pattern: str, field: str, index: int) -> None:
    """Raise `StudyError` for double stars that git calls invalid and treats inconsistently."""
    pieces = _STARS.findall(pattern)
    for index_in_pattern, piece in enumerate(pieces):
        if piece[0] != "*" or len(piece) == 1:
            continue
        before = "".join(pieces[:index_in_pattern])
        after = "".join(pieces[index_in_pattern + 1 :])
        if len(piece) > 2 or before[-1:] not in ("", "/") or after[:1] not in ("", "/"):
            hint = "`**` stands for whole folders: src/**/*.py; within a name write one `*`"
            raise StudyError(Mistake((field, index), f"expected a pattern, got '{pattern}'", hint))


def _parse_pattern(pattern: str) -> _Pattern:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    plain = "/".join(parts) + ("/" if parts and pattern.endswith(("/", "/.")) else "")
    encoded = os.fsencode(plain)
    if not any(sign in encoded for sign in (b"*", b"?", b"[", b"\\")):
        return _Pattern(encoded, None)
    translated = _translate(encoded)
    return _Pattern(encoded, re.compile(translated, re.DOTALL) if translated is not None else None)


def _translate(pattern: bytes) -> bytes | None:
    """Return a pattern as a regular expression on bytes; None if it can't match anything."""
    parts: list[bytes] = []
    at = 0
    while at < len(pattern):
        sign = pattern[at : at + 1]
        if pattern.startswith(b"**/", at):
            parts.append(b"(?:.*/)?")
            at += 3
        elif pattern.startswith(b"**", at):
            parts.append(b".*")
            at += 2
        elif sign == b"*":
            parts.append(b"[^/]*")
            at += 1
        elif sign == b"?":
            parts.append(b"[^/]")
            at += 1
        elif sign == b"[":
            translated = _translate_set(pattern, at + 1)
            if translated is None:
                return None
            part, at = translated
            parts.append(part)
        else:
            at += sign == b"\\"
            if at == len(pattern):
                return None
            parts.append(re.escape(pattern[at : at + 1]))
            at += 1
    return b"".join(parts)


def _translate_set(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """Translate a set in brackets; return it and the index after it, None if it isn't closed."""
    is_negated = pattern[at : at + 1] in (b"!", b"^")
    at += is_negated
    members: list[bytes] = []
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        named = re.compile(rb"\[:([a-z]*):\]").match(pattern, at)
        if named:
            if named[1] not in _CLASSES:
                return None
            members.append(_CLASSES[named[1]])
            at = named.end()
            continue
        low = _read_member(pattern, at)
        if low is None:
            return None
        char, at = low
        if pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] not in (b"]", b""):
            high = _read_member(pattern, at + 1)
            if high is None:
                return None
            end, at = high
            # git tries the first character for itself, too, even where the range is empty.
            members.append(_escape_byte(char))
            if char <= end:
                members.append(_escape_byte(char) + b"-" + _escape_byte(end))
            continue
        members.append(_escape_byte(char))
    inside = b"".join(members)
    body = b"(?![" + inside + b"])[^/]" if is_negated else b"(?!/)[" + inside + b"]"
    return body, at + 1


def _read_member(pattern: bytes, at: int) -> tuple[int, int] | None:
    at += pattern[at : at + 1] == b"\\"
    return (pattern[at], at + 1) if at < len(pattern) else None


def _escape_byte(char: int) -> bytes:
    return b"\\x%02x" % char
