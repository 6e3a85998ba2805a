"""Reading of YAML and JSON files: their text and their format."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from fairtrial.core.documents.nodes import SIZE_LIMIT_BYTES
from fairtrial.core.errors import Mistake, StudyError

PREVIEW_BYTES = 1 << 16
"""How much of a file is read to guess its kind."""
SUFFIXES = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}


class StudyWarning(UserWarning):
    """A study file is valid, but a value in it is probably not read as it was meant."""


def detect_format(path: Path) -> str:
    """Return the format of a file, `yaml` or `json`, by its suffix; else raises `StudyError`."""
    format = SUFFIXES.get(path.suffix.lower())
    if format is None:
        ending = f"the ending '{path.suffix}'" if path.suffix else "a name without an ending"
        message = f"can't tell the format from {ending}"
        raise StudyError(Mistake((), message, f"end the name in {', '.join(SUFFIXES)}"))
    return format


def read_text(path: Path, key: str = "study_id") -> str:
    """Read a file as UTF-8; raises `StudyError` if it can't be read, is too large or is not text.

    key: the key by which the right file is found for the hint if `path` is a folder
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
    # Compared by stem: with the suffix, any two short names would be similar.
    names = _list_document_names(path.parent)
    stems = difflib.get_close_matches(path.stem, {Path(name).stem for name in names}, n=1)
    similar = [name for name in names if Path(name).stem in stems]
    close = difflib.get_close_matches(path.name, similar, n=1, cutoff=0.0)
    hint = f"did you mean '{path.with_name(close[0])}'?" if close else ""
    return Mistake((), "no such file", hint)


def _folder_instead(path: Path, key: str) -> Mistake:
    names = [name for name in _list_document_names(path) if _holds_key(path / name, key)]
    hint = f"did you mean '{path / names[0]}'?" if len(names) == 1 else "name a file in it"
    return Mistake((), "is a directory", hint)


def _holds_key(path: Path, key: str) -> bool:
    """Return whether a file probably has this id key, and is thus of the key's kind."""
    try:
        with path.open("rb") as file:
            preview = file.read(PREVIEW_BYTES)
    except OSError:
        return False
    id_keys = [
        name for name in (b"study_id", b"problem_id") if re.search(rb"\b%s\b" % name, preview)
    ]
    return id_keys[:1] == [key.encode()]


def _list_document_names(folder: Path) -> list[str]:
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
