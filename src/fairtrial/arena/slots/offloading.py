"""Work with files in another thread: the event loop goes on, and the work is always finished."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from fairtrial.errors import LabError

Given = ParamSpec("Given")
Result = TypeVar("Result")
_ADVICE = {
    errno.ENOSPC: "make room there, or set FAIRTRIAL_HOME to a folder on another disk",
    errno.EDQUOT: "make room there, or set FAIRTRIAL_HOME to a folder on another disk",
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


def explain(error: OSError) -> LabError:
    """What to say to people when files can't be written."""
    advice = _ADVICE.get(error.errno or 0, "")
    place = f"{error.filename}: " if error.filename else ""
    return LabError(
        f"a working copy can't be written: {place}{error.strerror or error}"
        + (f"; {advice}" if advice else "")
    )
