"""Work with files in another thread: the event loop goes on, and the work is always finished."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairtrial.core import LabError

Given = ParamSpec("Given")
Result = TypeVar("Result")
LEAST_BYTES = 1 << 20
"""A disk with less than that is full: nothing that fails on it says anything of a candidate."""
ADVICE = "make room there, or set FAIRTRIAL_HOME to a folder on another disk"
_ADVICE = {
    errno.ENOSPC: ADVICE,
    errno.EDQUOT: ADVICE,
    errno.EROFS: "set FAIRTRIAL_HOME to a folder that can be written to",
    errno.EACCES: "set FAIRTRIAL_HOME to a folder that can be written to",
    errno.ENAMETOOLONG: "set FAIRTRIAL_HOME to a folder with a shorter path",
}


async def in_thread(
    work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Do something with files in another thread, to its end, even if we are cancelled meanwhile."""
    import anyio

    results: list[Result] = []
    errors: list[Exception] = []

    async def run() -> None:
        try:
            results.append(await anyio.to_thread.run_sync(lambda: work(*args, **kwargs)))
        except Exception as error:
            errors.append(error)

    # A task of its own: Ctrl-C cancels the main task by means that no shield holds off.
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
    for error in errors:
        raise explain(error) if isinstance(error, OSError) else error
    return results[0]


class NoRoomError(LabError):
    """A disk is full: what was being judged is not to blame, and nothing else would do better."""


def has_room(folder: Path) -> bool:
    """Whether anything can still be written there; yes where nobody can tell."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return True
    has_names = found.f_favail > 0 or found.f_files == 0  # some file systems count none
    return has_names and found.f_bavail * found.f_frsize >= LEAST_BYTES


def explain(error: OSError) -> LabError:
    """What to say to people when files can't be written."""
    advice = _ADVICE.get(error.errno or 0, "")
    place = f"{error.filename}: " if error.filename else ""
    kind = NoRoomError if error.errno in (errno.ENOSPC, errno.EDQUOT) else LabError
    return kind(
        f"a working copy can't be written: {place}{error.strerror or error}"
        + (f"; {advice}" if advice else "")
    )
