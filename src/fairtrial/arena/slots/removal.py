"""Removing what strangers have made: whatever its modes and depth, and never anything else.

Everything goes by open folders and plain names, so that a folder that is swapped for a symbolic
link while we work leads nowhere. Folders in folders are moved up and emptied one by one: no path
gets too long, and no tree too deep.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Collection
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
TRIES = 5


def enter_folder(name: str | Path, parent: int | None = None) -> int:
    """Open a folder of ours, never through a link; one that we may not read is unlocked first."""
    try:
        return os.open(name, FOLDER, dir_fd=parent)
    except PermissionError:
        unlock(name, parent)
        return os.open(name, FOLDER, dir_fd=parent)


def unlock(name: str | Path, parent: int | None = None) -> None:
    """Let us read, change and enter a folder of ours."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return
    # Linux can't change a mode by name without following links; but by an open handle it can.
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(0o700)
    finally:
        os.close(handle)


def remove_entry(name: str, parent: int, rubbish: int) -> None:
    """Remove a file, link or whole folder; folders go through the folder `rubbish`."""
    try:
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    if not is_folder:
        os.unlink(name, dir_fd=parent)
        return
    _move_up(name, parent, rubbish)
    for error in empty_folder(rubbish):
        raise error


def empty_folder(top: int, spared: Collection[str] = ()) -> list[OSError]:
    """Remove all that is in an open folder; what couldn't be removed is told, the rest is gone."""
    failures: list[OSError] = []
    tries: dict[str, int] = {}
    waiting = [name for name in os.listdir(top) if name not in spared]
    while waiting:
        name = waiting.pop()
        try:
            _remove_shallow(name, top, waiting)
        except FileNotFoundError:
            continue  # somebody else was quicker
        except OSError as error:
            # A process that is about to die may still be writing there.
            tries[name] = tries.get(name, 0) + 1
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and tries[name] < TRIES:
                waiting.append(name)
            else:
                failures.append(error)
    return failures


def _remove_shallow(name: str, top: int, waiting: list[str]) -> None:
    """Remove one entry; folders in it are moved to the top first, and wait there."""
    entry = os.stat(name, dir_fd=top, follow_symlinks=False)
    if not stat.S_ISDIR(entry.st_mode):
        os.unlink(name, dir_fd=top)
        return
    if entry.st_mode & 0o700 != 0o700:
        unlock(name, top)
    folder = enter_folder(name, top)
    try:
        with os.scandir(folder) as entries:
            for each in list(entries):
                if each.is_dir(follow_symlinks=False):
                    waiting.append(_move_up(each.name, folder, top))
                else:
                    os.unlink(each.name, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _move_up(name: str, parent: int, top: int) -> str:
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
        unlock(name, parent)  # a folder that can't be written to can't be moved either
    new_name = f"~{secrets.token_hex(8)}"
    os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=top)
    return new_name
