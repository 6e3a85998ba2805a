"""Parse file names in diffs: quoted, followed by a time, or in pairs after ``diff --git``."""

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
_NO_FILE = (b"/dev/null", b"a/dev/null", b"b/dev/null", b"dev/null")
_MAX_NAME_BYTES = 10_000
"""Longer than any path; the rest of a longer name is ignored to save time."""


class DiffName(NamedTuple):
    """The name of a file in a diff.

    path: the file's path; None for ``/dev/null``
    is_epoch: whether its time is the epoch, which diff writes for files that don't exist
    """

    path: str | None
    is_epoch: bool


def quote(path: str) -> bytes:
    """Return a path as git writes it in a diff, quoted if necessary."""
    encoded = os.fsencode(path)
    if _UNQUOTED.fullmatch(encoded):
        return encoded
    plain = b"".join(
        b"%c" % byte if 32 <= byte < 127 and byte not in b'"\\' else b"\\%03o" % byte
        for byte in encoded
    )
    return b'"' + plain + b'"'


def unquote(text: bytes) -> tuple[str, bytes] | None:
    """Return the quoted path at the start of a text, and the rest; None if it isn't closed."""
    name, at = bytearray(), 1
    while at < len(text):
        byte = text[at]
        if byte == ord('"'):
            return os.fsdecode(bytes(name)), text[at + 1 :]
        if byte != ord("\\"):
            name.append(byte)
            at += 1
            continue
        octal = re.compile(rb"[0-3][0-7]{2}").match(text, at + 1)
        if octal:
            name.append(int(octal[0], 8))
            at = octal.end()
        elif at + 1 < len(text) and text[at + 1] in _ESCAPES:
            name.append(_ESCAPES[text[at + 1]])
            at += 2
        else:
            return None
    return None


def read_name(text: bytes) -> DiffName:
    """Parse the name after ``---`` or ``+++``, which may be quoted and followed by a time."""
    text = text[:_MAX_NAME_BYTES]
    is_epoch = _is_epoch(text)
    quoted = unquote(text) if text.startswith(b'"') else None
    if quoted:
        return DiffName(quoted[0], is_epoch)
    name = _TIME.sub(b"", text.partition(b"\t")[0])
    if not name.endswith(b" ") or b"\t" not in text:  # git adds a tab to names with blanks
        name = name.rstrip()
    return DiffName(None if name in _NO_FILE else os.fsdecode(name), is_epoch)


def _is_epoch(text: bytes) -> bool:
    match = _EPOCH.search(text)
    if not match:
        return False
    day = -1440 if match[1].startswith(b"1969") else 0
    zone = int(match[4] or 0) * 60
    zone += int(match[5] or 0) * (-1 if (match[4] or b"").startswith(b"-") else 1)
    return day + int(match[2]) * 60 + int(match[3]) == zone


def split_names(text: bytes) -> tuple[str | None, str | None]:
    """Return the two names after ``diff --git``, or None for names that can't be told apart.

    Names with blanks are split where both are equal up to their first part (``a/``, ``b/``).
    """
    if text.startswith(b'"'):
        quoted = unquote(text)
        return (quoted[0], read_name(quoted[1].strip()).path) if quoted else (None, None)
    if text.endswith(b'"') and b' "' in text:
        left, _, right = text.partition(b' "')
        return os.fsdecode(left), read_name(b'"' + right).path
    words = text[:_MAX_NAME_BYTES].split(b" ")
    for cut in range(1, len(words)):
        left, right = b" ".join(words[:cut]), b" ".join(words[cut:])
        if left == right or left.partition(b"/")[2] == right.partition(b"/")[2] != b"":
            return os.fsdecode(left), os.fsdecode(right)
    if len(words) == 2:
        return os.fsdecode(words[0]), os.fsdecode(words[1])
    return None, None
