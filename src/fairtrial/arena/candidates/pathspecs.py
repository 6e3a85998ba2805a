"""git's glob pathspecs, matched without git: a candidate's new files are in no index yet.

A pattern without wildcards is a file, or a folder with all that is in it. `*`, `?` and `[...]`
don't cross a `/`; `**/`, `/**/` and `/**` stand for any folders. `:!` before a pattern takes files
out again. A test holds this equal to `git ls-files`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.core import Mistake, StudyError, split_pattern

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

    def fits(self, path: bytes) -> bool:
        """Whether it is this file, lies in this folder, or fits these wildcards."""
        literal = self.literal
        if not literal or path == literal or path.startswith(literal.rstrip(b"/") + b"/"):
            return True
        return self.wildcards is not None and self.wildcards.fullmatch(path) is not None


class Pathspecs:
    """A list of patterns, relative to the top of the repository."""

    __slots__ = ("_given", "_out", "_taken")

    def __init__(self, patterns: Sequence[str], field: str = "editable") -> None:
        self._given = tuple(patterns)
        split = [split_pattern(pattern) for pattern in patterns]
        for index, (_, pattern) in enumerate(split):
            _refuse_odd_stars(pattern, field, index)
        self._taken = [_read(pattern) for mark, pattern in split if not mark]
        self._out = [_read(pattern) for mark, pattern in split if mark]

    def fit(self, path: str) -> bool:
        """Whether the patterns name this file."""
        encoded = os.fsencode(path)
        # Exceptions alone mean everything else, as in git.
        taken = any(each.fits(encoded) for each in self._taken) if self._taken else bool(self._out)
        return taken and not any(each.fits(encoded) for each in self._out)

    def __str__(self) -> str:
        return ", ".join(self._given) or "nothing"


def _refuse_odd_stars(pattern: str, field: str, index: int) -> None:
    """git calls other double stars invalid, and has matched them differently over time."""
    pieces = _STARS.findall(pattern)
    for place, piece in enumerate(pieces):
        if piece[0] != "*" or len(piece) == 1:
            continue
        before = "".join(pieces[:place])
        after = "".join(pieces[place + 1 :])
        if len(piece) > 2 or before[-1:] not in ("", "/") or after[:1] not in ("", "/"):
            hint = "`**` stands for whole folders: src/**/*.py; within a name write one `*`"
            raise StudyError(Mistake((field, index), f"expected a pattern, got '{pattern}'", hint))


def _read(pattern: str) -> _Pattern:
    steps = [step for step in pattern.split("/") if step not in ("", ".")]
    plain = "/".join(steps) + ("/" if steps and pattern.endswith(("/", "/.")) else "")
    encoded = os.fsencode(plain)
    if not any(sign in encoded for sign in (b"*", b"?", b"[", b"\\")):
        return _Pattern(encoded, None)
    translated = _translate(encoded)
    return _Pattern(encoded, re.compile(translated, re.DOTALL) if translated is not None else None)


def _translate(pattern: bytes) -> bytes | None:
    """The same as a regular expression on bytes; None for a pattern that can't fit anything."""
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
            found = _translate_set(pattern, at + 1)
            if found is None:
                return None
            part, at = found
            parts.append(part)
        else:
            at += sign == b"\\"
            if at == len(pattern):
                return None
            parts.append(re.escape(pattern[at : at + 1]))
            at += 1
    return b"".join(parts)


def _translate_set(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """What stands between brackets, and where it ends; None without an end."""
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
        low = _member(pattern, at)
        if low is None:
            return None
        char, at = low
        if pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] not in (b"]", b""):
            high = _member(pattern, at + 1)
            if high is None:
                return None
            end, at = high
            # git tries the first character for itself, too, even where the range is empty.
            members.append(_one(char))
            if char <= end:
                members.append(_one(char) + b"-" + _one(end))
            continue
        members.append(_one(char))
    inside = b"".join(members)
    body = b"(?![" + inside + b"])[^/]" if is_negated else b"(?!/)[" + inside + b"]"
    return body, at + 1


def _member(pattern: bytes, at: int) -> tuple[int, int] | None:
    at += pattern[at : at + 1] == b"\\"
    return (pattern[at], at + 1) if at < len(pattern) else None


def _one(char: int) -> bytes:
    return b"\\x%02x" % char
