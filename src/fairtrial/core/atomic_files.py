"""Atomic writing of text files."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fairtrial.core.errors import StudyError


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """Open a temporary text file that replaces `path` when the block ends without an exception.

    Symbolic links are followed, and an existing file's mode is kept. What is not a regular file
    (/dev/null, a pipe) is written directly. Raises `StudyError` if the file can't be written.
    """
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:
        raise StudyError(f"is no file name: {error}", source=str(path)) from None
    temporary = target.parent / f".{target.name[:20]}.{secrets.token_hex(8)}.part"
    try:
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8", newline="") as file:
                yield file
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, FileExistsError):
            reason = f"'{error.filename}' is not a folder"
        raise StudyError(f"can't be written: {reason}", source=str(path)) from error
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.start + 1]
        message = f"can't be written: {wrong!r} is half of a surrogate pair, which is no character"
        raise StudyError(message, source=str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
