"""A folder for one agent and one request: the base's files, or a candidate's; never used again.

What an agent has done is read from the files alone. Whether it committed, stashed or did nothing of
the sort makes no difference; a repository in the folder is there for its convenience.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.arena.model.candidates import FileState
from fairtrial.arena.slots.base import is_below
from fairtrial.arena.slots.copying import Wanted
from fairtrial.arena.slots.placement import lay_over, refuse_misplaced
from fairtrial.arena.slots.removal import empty_folder, enter_folder
from fairtrial.arena.slots.staging import Staging
from fairtrial.arena.slots.tree import READ_ONLY, Listing, Signature, list_tree
from fairtrial.core import LabError

_NOT_OURS = (".git", "__pycache__", ".venv", "node_modules",
             ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")  # fmt: skip
"""Folders that tools keep for themselves: nothing in them is part of a candidate."""
_NOTES = ".aider."
"""How names of files begin in which agents keep notes of their own, in the project's folder."""
Files = Mapping[str, FileState | None]


class TooLargeError(Exception):
    """An agent has left more than a candidate may hold."""


@dataclass(slots=True)
class PrivateSlot:
    """One request's folders, until `remove`.

    place: where all of it is
    tree: the project, as the agent finds it and leaves it
    home: what the agent takes for its home folder
    """

    place: Path
    _base: Listing = field(default_factory=dict, repr=False)

    @property
    def tree(self) -> Path:
        return self.place / "tree"

    @property
    def home(self) -> Path:
        return self.place / "home"

    def fill(self, base: Wanted, files: Files, seed: Path | None) -> None:
        """Put the base in, a candidate's files over it, and what the home folder starts with."""
        staging = Staging(self.tree, self.place / "store", {})
        staging.become(base)
        self._base = _list(self.tree)
        if files:
            refuse_misplaced(files, staging.wanted)
            staging.become(lay_over(staging.wanted, files, staging.store_original))
        if seed is None:
            self.home.mkdir()
        else:
            _copy_home(seed, self.home)

    def list_changed(self, hidden: Collection[str]) -> dict[str, int | None]:
        """The mode of every path that may differ from the base; None for one that is gone.

        hidden: paths that other things lay over while the agent was at work
        """
        now = _find_files(_list(self.tree))
        before = _find_files(self._base)
        # One who hides a change behind an old signature only leaves it out of the candidate.
        changed = [path for path in sorted({*now, *before}) if now.get(path) != before.get(path)]
        return {
            path: now[path][0] if path in now else None
            for path in changed
            if not is_below(path, hidden)
        }

    def read(self, path: str, mode: int, most: int) -> FileState | None:
        """A file or link; None for what is neither, or can't be read.

        Nothing of the agent's is running any more, so it stays what it is. Raises `TooLargeError`
        for one of more than `most` bytes.
        """
        return read_entry(self.tree / path, mode, most)

    def remove(self) -> None:
        """Away with all of it; what can't be removed goes, or is told of, with the pool."""
        with suppress(OSError):  # without a sandbox an agent may have removed it, too
            handle = enter_folder(self.place)
            try:
                failures = empty_folder(handle)
            finally:
                os.close(handle)
            if not failures:
                self.place.rmdir()


def make_place(parent: Path) -> PrivateSlot:
    """A new folder that nobody else has."""
    place = parent / f"agent-{secrets.token_hex(8)}"
    place.mkdir(mode=0o700, parents=True)
    return PrivateSlot(place)


def _list(tree: Path) -> Listing:
    try:
        handle = enter_folder(tree)
    except OSError:  # without a sandbox an agent can remove even that
        return {}
    try:
        return list_tree(handle)
    finally:
        os.close(handle)


def _find_files(listing: Listing) -> dict[str, Signature]:
    """All that may be part of a candidate, by path."""
    return {
        folder + name: signature
        for folder, names in listing.items()
        if not any(map(_is_a_tools, folder.split("/")))
        for name, signature in names.items()
        if not stat.S_ISDIR(signature[0]) and not _is_a_tools(name)
    }


def _is_a_tools(name: str) -> bool:
    return name.casefold() in _NOT_OURS or name.startswith(_NOTES)


def read_entry(path: Path, mode: int, most: int) -> FileState | None:
    """A file or link; None for what is neither, or can't be read."""
    if stat.S_ISLNK(mode):
        return FileState(os.fsencode(os.readlink(path)), is_link=True)  # noqa: PTH115 - bytes
    if not stat.S_ISREG(mode):
        return None
    if path.lstat().st_size > most:
        raise TooLargeError
    try:
        handle = os.open(path, READ_ONLY)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return FileState(file.read(), bool(mode & stat.S_IXUSR))


def _copy_home(seed: Path, home: Path) -> None:
    def copy(source: str, target: str) -> None:
        if stat.S_ISREG(os.lstat(source).st_mode):  # sockets and pipes are of no use there
            shutil.copy2(source, target)

    try:
        shutil.copytree(seed, home, symlinks=True, copy_function=copy)
    except (OSError, shutil.Error) as error:
        first = error.args[0][0] if isinstance(error, shutil.Error) else (seed, "", error)
        raise LabError(f"the home folder {seed} can't be copied: {first[0]}: {first[2]}") from error
    home.chmod(0o700)
