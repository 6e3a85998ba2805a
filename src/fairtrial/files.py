"""Files that are complete or not there: the one way in which fairtrial writes a text file."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fairtrial.errors import StudyError


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A text file that takes the place of `path` when the block ends well, and else is gone.

    A link stays a link, a file keeps its mode, and what is no file (/dev/null, a pipe) is written
    to as it is.
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


def keep_out_of_git(folder: Path) -> None:
    """Let git pass over a folder that is ours alone: one that holds nothing yet.

    An `OSError` says that this can't be done.
    """
    if not any(folder.iterdir()):
        (folder / ".gitignore").write_text("*\n", "utf-8")
