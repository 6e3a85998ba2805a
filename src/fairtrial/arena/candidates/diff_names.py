"""Paths as diffs spell them: quoted, dated, in pairs."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_UNQUOTED = re.compile(rb"[\w./+-]+")
_ESCAPES = {
    **{ord(letter): code for letter, code in zip("abtnvfr", b"\a\b\t\n\v\f\r", strict=True)},
    ord('"'): ord('"'),
    ord("\\"): ord("\\"),
}
_TIME = re.compile(rb"\s+(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d.*)$")
_EPOCH = re.compile(
    rb"\s(1969-12-31|1970-01-01) (\d\d):(\d\d):00(?:\.0*)?(?: ([+-]\d\d)(\d\d))?\s*$"
)
_NOWHERE = (b"/dev/null", b"a/dev/null", b"b/dev/null", b"dev/null")
_LONGEST_NAME = 10_000
"""More than any path has; what is longer isn't worth the time to look at."""


class Name(NamedTuple):
    """A name of a file, as it stands in a diff.

    path: the file; None for one that isn't there
    is_epoch: whether it is dated at the epoch, as diff dates files that aren't there
    """

    path: str | None
    is_epoch: bool


def quote(path: str) -> bytes:
    """A path as git writes it in a diff."""
    encoded = os.fsencode(path)
    if _UNQUOTED.fullmatch(encoded):
        return encoded
    plain = b"".join(
        b"%c" % byte if 32 <= byte < 127 and byte not in b'"\\' else b"\\%03o" % byte
        for byte in encoded
    )
    return b'"' + plain + b'"'


def unquote(text: bytes) -> tuple[str, bytes] | None:
    """The path that a quoted text begins with, and what follows it; None if it has no end."""
    found, at = bytearray(), 1
    while at < len(text):
        byte = text[at]
        if byte == ord('"'):
            return os.fsdecode(bytes(found)), text[at + 1 :]
        if byte != ord("\\"):
            found.append(byte)
            at += 1
            continue
        octal = re.compile(rb"[0-3][0-7]{2}").match(text, at + 1)
        if octal:
            found.append(int(octal[0], 8))
            at = octal.end()
        elif at + 1 < len(text) and text[at + 1] in _ESCAPES:
            found.append(_ESCAPES[text[at + 1]])
            at += 2
        else:
            return None
    return None


def read_name(text: bytes) -> Name:
    """A path as it stands after ``---``: maybe quoted, maybe with a time behind it."""
    text = text[:_LONGEST_NAME]
    is_epoch = _is_epoch(text)
    quoted = unquote(text) if text.startswith(b'"') else None
    if quoted:
        return Name(quoted[0], is_epoch)
    name = _TIME.sub(b"", text.partition(b"\t")[0])
    if not name.endswith(b" ") or b"\t" not in text:  # git marks names with blanks by a tab
        name = name.rstrip()
    return Name(None if name in _NOWHERE else os.fsdecode(name), is_epoch)


def _is_epoch(text: bytes) -> bool:
    found = _EPOCH.search(text)
    if not found:
        return False
    day = -1440 if found[1].startswith(b"1969") else 0
    zone = int(found[4] or 0) * 60
    zone += int(found[5] or 0) * (-1 if (found[4] or b"").startswith(b"-") else 1)
    return day + int(found[2]) * 60 + int(found[3]) == zone


def split_names(text: bytes) -> tuple[str | None, str | None]:
    """The two names behind ``diff --git``: with blanks in them only their likeness tells."""
    if text.startswith(b'"'):
        quoted = unquote(text)
        return (quoted[0], read_name(quoted[1].strip()).path) if quoted else (None, None)
    if text.endswith(b'"') and b' "' in text:
        left, _, right = text.partition(b' "')
        return os.fsdecode(left), read_name(b'"' + right).path
    words = text[:_LONGEST_NAME].split(b" ")
    for cut in range(1, len(words)):
        left, right = b" ".join(words[:cut]), b" ".join(words[cut:])
        if left == right or left.partition(b"/")[2] == right.partition(b"/")[2] != b"":
            return os.fsdecode(left), os.fsdecode(right)
    if len(words) == 2:
        return os.fsdecode(words[0]), os.fsdecode(words[1])
    return None, None
