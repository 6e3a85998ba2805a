"""Reading the text of a YAML or JSON file, and telling study files from problem files."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from fairtrial.core.documents.nodes import SIZE_LIMIT_BYTES
from fairtrial.core.errors import Mistake, StudyError

GLANCE_BYTES = 1 << 16
"""How much of a file is looked at to tell what it may be."""
SUFFIXES = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}


class StudyWarning(UserWarning):
    """A study file can be read, but something in it is likely meant otherwise."""


def is_problem(data: object) -> bool:
    """Whether a file's data is meant as a code problem: it names one, and no study."""
    return isinstance(data, dict) and "problem_id" in data and "study_id" not in data


def is_study(data: object) -> bool:
    """Whether a file's data is meant as a study: it names one, and no problem."""
    return isinstance(data, dict) and "study_id" in data and "problem_id" not in data


def format_of(path: Path) -> str:
    """What a file's ending says of its format; raises `StudyError` where it says nothing."""
    format = SUFFIXES.get(path.suffix.lower())
    if format is None:
        ending = f"the ending '{path.suffix}'" if path.suffix else "a name without an ending"
        message = f"can't tell the format from {ending}"
        raise StudyError(Mistake((), message, f"end the name in {', '.join(SUFFIXES)}"))
    return format


def read_text(path: Path, key: str = "study_id") -> str:
    """What a file holds; raises `StudyError` if it can't be read, or isn't text.

    key: what a file names that may be meant where a folder is given
    """
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT_BYTES + 1)
    except FileNotFoundError:
        raise StudyError(_missing_file(path)) from None
    except IsADirectoryError:
        raise StudyError(_folder_instead(path, key)) from None
    except OSError as error:
        raise StudyError(f"can't be read: {error.strerror or error}") from None
    except ValueError as error:
        raise StudyError(f"is no file name: {error}") from None
    if len(content) > SIZE_LIMIT_BYTES:
        raise StudyError(f"is larger than {SIZE_LIMIT_BYTES // 1024**2} MB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(_not_utf8(content, error)) from None
    return text.removeprefix("\ufeff")


def _missing_file(path: Path) -> Mistake:
    if not path.parent.is_dir():
        return Mistake((), f"no such file: there is no folder '{path.parent}'")
    # By stem: with the ending, any two short names would be alike.
    names = _study_files(path.parent)
    stems = difflib.get_close_matches(path.stem, {Path(name).stem for name in names}, n=1)
    alike = [name for name in names if Path(name).stem in stems]
    close = difflib.get_close_matches(path.name, alike, n=1, cutoff=0.0)
    hint = f"did you mean '{path.with_name(close[0])}'?" if close else ""
    return Mistake((), "no such file", hint)


def _folder_instead(path: Path, key: str) -> Mistake:
    names = [name for name in _study_files(path) if _names(path / name, key)]
    hint = f"did you mean '{path / names[0]}'?" if len(names) == 1 else "name a file in it"
    return Mistake((), "is a directory", hint)


def _names(path: Path, key: str) -> bool:
    """Whether a file is likely one of this kind: problems are no studies, nor the other way."""
    try:
        with path.open("rb") as file:
            begin = file.read(GLANCE_BYTES)
    except OSError:
        return False
    found = [each for each in (b"study_id", b"problem_id") if re.search(rb"\b%s\b" % each, begin)]
    return found[:1] == [key.encode()]


def _study_files(folder: Path) -> list[str]:
    try:
        return sorted(item.name for item in folder.iterdir() if item.suffix.lower() in SUFFIXES)
    except OSError:
        return []


def _not_utf8(content: bytes, error: UnicodeDecodeError) -> Mistake:
    line = content.count(b"\n", 0, error.start) + 1
    message = f"not UTF-8 text: byte 0x{content[error.start]:02x} at offset {error.start:,}"
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    hint = "save it as UTF-8" + (", it looks like UTF-16" if is_utf16 else "")
    return Mistake((), message, hint, line)
