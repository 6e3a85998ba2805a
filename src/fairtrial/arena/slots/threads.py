"""Do file operations in a thread, and turn their errors into errors about the disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairtrial.core import LabError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
MIN_FREE_BYTES = 1 << 20
"""A disk with less free space counts as full: failures on it are not the candidate's fault."""
ADVICE = "make room there, or set FAIRTRIAL_HOME to a folder on another disk"
_ADVICE = {
    errno.ENOSPC: ADVICE,
    errno.EDQUOT: ADVICE,
    errno.EROFS: "set FAIRTRIAL_HOME to a folder that can be written to",
    errno.EACCES: "set FAIRTRIAL_HOME to a folder that can be written to",
    errno.ENAMETOOLONG: "set FAIRTRIAL_HOME to a folder with a shorter path",
}


async def in_thread(
    work: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Run `work` in a thread to its end, even if the caller is cancelled, and return its result.

    Raises what `work` raises; an `OSError` becomes a `LabError`.
    """
    import anyio

    results: list[Result] = []
    errors: list[Exception] = []

    async def run() -> None:
        try:
            results.append(await anyio.to_thread.run_sync(lambda: work(*args, **kwargs)))
        except Exception as error:
            errors.append(error)

    # In a separate task: a shield wouldn't protect the main task from being cancelled by Ctrl-C.
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
    for error in errors:
        raise as_lab_error(error) if isinstance(error, OSError) else error
    return results[0]


class NoRoomError(LabError):
    """A disk is full; the candidate is not to blame, and other candidates would fail as well."""


def has_room(folder: Path) -> bool:
    """Return whether the disk that holds `folder` has free space; True if that isn't known."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return True
    # Some file systems don't limit the number of files, and report 0.
    has_inodes = status.f_favail > 0 or status.f_files == 0
    return has_inodes and status.f_bavail * status.f_frsize >= MIN_FREE_BYTES


def require_room(folder: Path, what: str) -> None:
    """Raise `NoRoomError` if the disk that holds `folder` is full.

    what: what is to be written there, for the message
    """
    if not has_room(folder):
        raise NoRoomError(f"no room is left to keep {what} in {folder}; make room")


def as_lab_error(error: OSError) -> LabError:
    """Return a `LabError` that says what to do; a `NoRoomError` if the disk is full."""
    advice = _ADVICE.get(error.errno or 0, "")
    prefix = f"{error.filename}: " if error.filename else ""
    kind = NoRoomError if error.errno in (errno.ENOSPC, errno.EDQUOT) else LabError
    return kind(
        f"a working copy can't be written: {prefix}{error.strerror or error}"
        + (f"; {advice}" if advice else "")
    )
