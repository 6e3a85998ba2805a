"""Files that are complete or not there: the one way in which fairtrial writes a text file."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fairtrial.core.errors import Mistake, StudyError

EVERYTHING = b"*\n"


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


def keep_out_of_git(folder: Path) -> bool:
    """Let git pass over a folder, if it holds nothing yet; whether it does pass over it now.

    An `OSError` says that this can't be done.
    """
    ignoring = folder / ".gitignore"
    if ignoring.is_file():
        return ignoring.read_bytes() == EVERYTHING
    if any(folder.iterdir()):
        return False
    ignoring.write_bytes(EVERYTHING)
    return True


def expand(path: Path, folder: Path, *place: str) -> Path:
    """A path that somebody gave as an option, from a folder on; a `StudyError` if it is none.

    place: what the option is called
    """
    try:
        found = folder / path.expanduser()
        found.stat(follow_symlinks=False)
    except OSError:
        return found  # it isn't there, and whoever needs it says so
    except (RuntimeError, ValueError) as error:  # ~nobody, or a name that can't be one
        message = f"{str(path)!a} is no path: {error}"
        raise StudyError(Mistake(place, message)) from None
    return found
