"""Look up listed paths on disk, with the modes that git would record for them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from fairtrial.arena.snapshot.listing import ListedPath, RepositoryListing, join_paths
from fairtrial.core import StudyError

_REGULAR, _EXECUTABLE, _LINK = 0o100644, 0o100755, 0o120000


@dataclass(frozen=True, slots=True)
class DiskFile:
    """A file or symbolic link on disk.

    path: relative to the top of the tree
    mode: its mode as git records it
    size_bytes: its size
    is_tracked: whether it is in its repository's index
    """

    path: bytes
    mode: int
    size_bytes: int
    is_tracked: bool


def find_disk_files(top: bytes, listings: Iterable[RepositoryListing]) -> list[DiskFile]:
    """Return the files and links among the listed paths.

    Paths that don't exist, or are of another kind, are left out. Raises `StudyError` about files
    that can't be read, or that git can't hold.
    """
    files, refused, odd = [], [], []
    real = {b"": True}
    for listing in listings:
        keeps_modes = listing.repository.is_set("core.filemode", default=True)
        keeps_links = listing.repository.is_set("core.symlinks", default=True)
        for listed in listing.files:
            if not _is_real_folder(top, listed.path.rpartition(b"/")[0], real):
                continue
            try:
                status = os.lstat(top + b"/" + listed.path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                refused.append(listed.path)
                continue
            if _is_in_git_folder(listed.path):
                odd.append(listed.path)
            mode = _git_mode(status.st_mode, listed, keeps_modes, keeps_links)
            if mode:
                is_tracked = listed.mode is not None
                files.append(DiskFile(listed.path, mode, status.st_size, is_tracked))
    if odd:
        problem = f"git can't hold files in a folder that is named like its own: {join_paths(odd)}"
        raise StudyError(f"{problem}; rename it, or ignore it", source=os.fsdecode(top))
    if refused:
        raise unreadable_error(top, refused)
    return files


def unreadable_error(top: bytes, paths: Iterable[bytes]) -> StudyError:
    """Return an error about files that the current user may not read."""
    return StudyError(
        f"files can't be read: {join_paths(paths)}; make them readable, or ignore them",
        source=os.fsdecode(top),
    )


def _is_real_folder(top: bytes, folder: bytes, cache: dict[bytes, bool]) -> bool:
    """Return whether no part of a path is a link: what lies behind a link is not in the tree."""
    is_real = cache.get(folder)
    if is_real is None:
        is_real = _is_real_folder(top, folder.rpartition(b"/")[0], cache)
        if is_real:
            try:
                is_real = stat.S_ISDIR(os.lstat(top + b"/" + folder).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                is_real = False
            except OSError:
                pass  # not readable; reading the files in it will fail with an error of its own
        cache[folder] = is_real
    return is_real


def _is_in_git_folder(path: bytes) -> bool:
    lower = path.lower()
    return b".git" in lower and b".git" in lower.split(b"/")


def _git_mode(on_disk: int, listed: ListedPath, keeps_modes: bool, keeps_links: bool) -> int:
    """Return the mode that git would record for a path on disk; 0 if git can't hold it."""
    if stat.S_ISLNK(on_disk):
        return _LINK
    if not stat.S_ISREG(on_disk):
        return 0
    if not keeps_links and listed.mode == _LINK:
        return _LINK
    if not keeps_modes:
        return _EXECUTABLE if listed.mode == _EXECUTABLE else _REGULAR
    return _EXECUTABLE if on_disk & stat.S_IXUSR else _REGULAR
