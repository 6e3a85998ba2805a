"""Remove files and folders that untrusted code created, whatever their modes and depth.

Entries are removed relative to open folders, by name, so that a folder that is replaced by a
symbolic link meanwhile can't redirect the removal. Nested folders are moved to the top and emptied
one by one, so that no path gets too long and no recursion too deep.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Collection
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_ATTEMPTS = 5


def enter_folder(name: str | Path, parent: int | None = None) -> int:
    """Open a folder without following a link, and return its handle; unlock it if necessary."""
    try:
        return os.open(name, FOLDER, dir_fd=parent)
    except PermissionError:
        unlock(name, parent)
        return os.open(name, FOLDER, dir_fd=parent)


def unlock(name: str | Path, parent: int | None = None) -> None:
    """Give the owner of a folder permission to read, write and enter it."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return
    # Linux can't change a mode by name without following links, but it can by an open handle.
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(0o700)
    finally:
        os.close(handle)


def remove_entry(name: str, parent: int, trash: int) -> None:
    """Remove a file, a link, or a folder with its contents; folders are moved to `trash` first."""
    try:
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    if not is_folder:
        os.unlink(name, dir_fd=parent)
        return
    _move_up(name, parent, trash)
    for error in empty_folder(trash):
        raise error


def empty_folder(top: int, spared: Collection[str] = ()) -> list[OSError]:
    """Remove everything in an open folder except `spared` names, and return the failures."""
    failures: list[OSError] = []
    attempts: dict[str, int] = {}
    pending = [name for name in os.listdir(top) if name not in spared]
    while pending:
        name = pending.pop()
        try:
            _remove_shallow(name, top, pending)
        except FileNotFoundError:
            continue  # removed by another process
        except OSError as error:
            # A process that is being killed may still be writing there.
            attempts[name] = attempts.get(name, 0) + 1
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and attempts[name] < MAX_ATTEMPTS:
                pending.append(name)
            else:
                failures.append(error)
    return failures


def _remove_shallow(name: str, top: int, pending: list[str]) -> None:
    """Remove one entry; folders in it are moved to the top and appended to `pending`."""
    status = os.stat(name, dir_fd=top, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=top)
        return
    if status.st_mode & 0o700 != 0o700:
        unlock(name, top)
    folder = enter_folder(name, top)
    try:
        with os.scandir(folder) as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(_move_up(entry.name, folder, top))
                else:
                    os.unlink(entry.name, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _move_up(name: str, parent: int, top: int) -> str:
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
        unlock(name, parent)  # a read-only folder can't be moved
    new_name = f"~{secrets.token_hex(8)}"
    os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=top)
    return new_name
