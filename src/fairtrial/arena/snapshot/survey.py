"""What of a list of paths is on disk, as git would record it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from fairtrial.arena.snapshot.listing import Listed, Part, spell_paths
from fairtrial.core import StudyError

_PLAIN, _PROGRAM, _LINK = 0o100644, 0o100755, 0o120000


@dataclass(frozen=True, slots=True)
class Found:
    """A file or link on disk.

    path: relative to the top of the tree
    mode: git's mode
    size_bytes: how large it is
    is_tracked: whether its repository knows it
    """

    path: bytes
    mode: int
    size_bytes: int
    is_tracked: bool


def survey(top: bytes, parts: Iterable[Part]) -> list[Found]:
    """The files and links among the listed paths; what is gone, or something else, is left out."""
    found, refused, odd = [], [], []
    real = {b"": True}
    for part in parts:
        keeps_modes = part.repository.is_set("core.filemode", default=True)
        keeps_links = part.repository.is_set("core.symlinks", default=True)
        for listed in part.files:
            if not _is_real_folder(top, listed.path.rpartition(b"/")[0], real):
                continue
            try:
                status = os.lstat(top + b"/" + listed.path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                refused.append(listed.path)
                continue
            if _is_like_git(listed.path):
                odd.append(listed.path)
            mode = _mode(status.st_mode, listed, keeps_modes, keeps_links)
            if mode:
                tracked = listed.mode is not None
                found.append(Found(listed.path, mode, status.st_size, tracked))
    if odd:
        problem = f"git can't hold files in a folder that is named like its own: {spell_paths(odd)}"
        raise StudyError(f"{problem}; rename it, or ignore it", source=os.fsdecode(top))
    if refused:
        raise unreadable(top, refused)
    return found


def unreadable(top: bytes, paths: Iterable[bytes]) -> StudyError:
    """An error about files that this user may not read."""
    return StudyError(
        f"files can't be read: {spell_paths(paths)}; make them readable, or ignore them",
        source=os.fsdecode(top),
    )


def _is_real_folder(top: bytes, folder: bytes, known: dict[bytes, bool]) -> bool:
    """Whether a path leads through folders alone: what lies behind a link is not in the tree."""
    answer = known.get(folder)
    if answer is None:
        answer = _is_real_folder(top, folder.rpartition(b"/")[0], known)
        if answer:
            try:
                answer = stat.S_ISDIR(os.lstat(top + b"/" + folder).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                answer = False
            except OSError:
                pass  # not for us to see; the file in it will say so
        known[folder] = answer
    return answer


def _is_like_git(path: bytes) -> bool:
    lower = path.lower()
    return b".git" in lower and b".git" in lower.split(b"/")


def _mode(on_disk: int, listed: Listed, keeps_modes: bool, keeps_links: bool) -> int:
    """git's mode for what is on disk; 0 for what it doesn't hold."""
    if stat.S_ISLNK(on_disk):
        return _LINK
    if not stat.S_ISREG(on_disk):
        return 0
    if not keeps_links and listed.mode == _LINK:
        return _LINK
    if not keeps_modes:
        return _PROGRAM if listed.mode == _PROGRAM else _PLAIN
    return _PROGRAM if on_disk & stat.S_IXUSR else _PLAIN
