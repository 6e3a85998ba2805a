"""Recognition of file paths in answers: models write them in many ways."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairtrial.core import did_you_mean, on_one_line

LONGEST_PATH = 200
_LABEL = re.compile(r"^[\s#*>`\-]*(?:FILE(?:NAME)?|PATH)\s*:[\s*]*(?P<path>.+)$", re.IGNORECASE)
_MARKUP = " \t`'\"*#>:"


def find_path(written: str, files: Mapping[str, str]) -> str | None:
    """Return the file of the brief that a written path means; None if it is none of them."""
    path = written.strip(_MARKUP).removeprefix("./")
    return path if path in files else None


def path_in(line: str, files: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the file of the brief that a line names, and the path as it is written there."""
    label = _LABEL.match(line)
    written = (label["path"] if label else line).strip(_MARKUP)
    # A sentence is no path; a word with a file extension is.
    is_named = label or re.fullmatch(r"[^\s]+\.\w{1,8}", written)
    return find_path(written, files), written if is_named else ""


def path_mentioned(line: str, files: Mapping[str, str]) -> str | None:
    """Return the only file of the brief that a sentence mentions; None if there are others."""
    words = re.split(r"[\s`'\"*():,]+", line)
    paths = {path for word in words if (path := find_path(word, files))}
    return paths.pop() if len(paths) == 1 else None


def explain_unknown(written: str, files: Mapping[str, str]) -> str:
    """Return a message for a path that is no file of the brief."""
    shown = on_one_line(written, LONGEST_PATH)
    return f"{shown} is not one of the files that may be changed; {did_you_mean(shown, files)}"


def path_of_info(info: str, files: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the path after a fence: ``python src/a.py``, ``python:src/a.py``, ``title="a.py"``."""
    words = [word for word in re.split(r"[\s:=]+", info) if word]
    for word in words:
        if path := find_path(word, files):
            return path, word
    named = [
        word.strip("`'\"") for word in words if "/" in word or re.search(r"\.\w+['\"]?$", word)
    ]
    return None, named[-1] if named else ""
