"""Which file of the brief an answer means, where models name files in many ways."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairtrial.core import did_you_mean, on_one_line

LONGEST_PATH = 200
_LABEL = re.compile(r"^[\s#*>`\-]*(?:FILE(?:NAME)?|PATH)\s*:[\s*]*(?P<path>.+)$", re.IGNORECASE)
_MARKUP = " \t`'\"*#>:"


def find_path(written: str, files: Mapping[str, str]) -> str | None:
    """The file of the brief that somebody names; None if it is none of them."""
    path = written.strip(_MARKUP).removeprefix("./")
    return path if path in files else None


def path_in(line: str, files: Mapping[str, str]) -> tuple[str | None, str]:
    """The path that a line is, if it is one of the brief's; and what it names at all."""
    label = _LABEL.match(line)
    written = (label["path"] if label else line).strip(_MARKUP)
    # A sentence isn't taken for a path; what has no spaces and an ending is.
    is_named = label or re.fullmatch(r"[^\s]+\.\w{1,8}", written)
    return find_path(written, files), written if is_named else ""


def path_mentioned(line: str, files: Mapping[str, str]) -> str | None:
    """The one path of the brief that a sentence mentions."""
    words = re.split(r"[\s`'\"*():,]+", line)
    found = {path for word in words if (path := find_path(word, files))}
    return found.pop() if len(found) == 1 else None


def explain_unknown(written: str, files: Mapping[str, str]) -> str:
    """What is to be said of a path that is none of the brief's."""
    shown = on_one_line(written, LONGEST_PATH)
    return f"{shown} is not one of the files that may be changed; {did_you_mean(shown, files)}"


def path_of_info(info: str, files: Mapping[str, str]) -> tuple[str | None, str]:
    """A path behind the fence: ``python src/a.py``, ``python:src/a.py``, ``title="src/a.py"``."""
    words = [word for word in re.split(r"[\s:=]+", info) if word]
    for word in words:
        if path := find_path(word, files):
            return path, word
    named = [
        word.strip("`'\"") for word in words if "/" in word or re.search(r"\.\w+['\"]?$", word)
    ]
    return None, named[-1] if named else ""
