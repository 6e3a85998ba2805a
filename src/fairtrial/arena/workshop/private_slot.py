"""A private slot: a folder for one agent and one request, with the base's or a candidate's files.

An agent's changes are read from the files alone. It may commit or not; the repository in the folder
is only for its convenience.
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

from fairtrial.arena.candidates.folders import MAX_CANDIDATE_MB
from fairtrial.arena.model.candidates import FileState
from fairtrial.arena.slots.base import is_below
from fairtrial.arena.slots.copying import TargetTree
from fairtrial.arena.slots.placement import overlay, refuse_misplaced
from fairtrial.arena.slots.removal import empty_folder, enter_folder
from fairtrial.arena.slots.staging import Staging
from fairtrial.arena.slots.tree import READ_ONLY, Listing, Signature, list_tree
from fairtrial.core import LabError

_TOOL_FOLDERS = (".git", "__pycache__", ".venv", "node_modules",
             ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")  # fmt: skip
"""Folders of tools: nothing in them is part of a candidate."""
_AGENT_NOTES = ".aider."
"""The prefix of files in which agents keep their own notes, in the project's folder."""
Files = Mapping[str, FileState | None]


class TooLargeError(Exception):
    """An agent's changes are larger than a candidate may be; the message says how large."""


@dataclass(slots=True)
class PrivateSlot:
    """The folders of one request, until `remove`.

    place: the folder that contains them
    tree: the project's files
    home: the agent's home folder
    """

    place: Path
    _base: Listing = field(default_factory=dict, repr=False)

    @property
    def tree(self) -> Path:
        return self.place / "tree"

    @property
    def home(self) -> Path:
        return self.place / "home"

    def fill(self, base: TargetTree, files: Files, seed: Path | None) -> None:
        """Write the base, a candidate's files over it, and the home folder.

        base: the base's files
        files: the candidate's changes
        seed: a folder whose contents the home folder starts with
        """
        staging = Staging(self.tree, self.place / "store", {})
        staging.stage(base)
        self._base = _list(self.tree)
        if files:
            refuse_misplaced(files, staging.target)
            staging.stage(overlay(staging.target, files, staging.store_original))
        if seed is None:
            self.home.mkdir()
        else:
            _copy_home(seed, self.home)

    def list_changed(self, hidden: Collection[str]) -> dict[str, int | None]:
        """Return the mode of every path that may differ from the base; None for a removed one.

        hidden: paths that were covered by mounts while the agent was at work
        """
        now = _find_files(_list(self.tree))
        before = _find_files(self._base)
        # An agent that forges the signature of a changed file only excludes it from its candidate.
        changed = [path for path in sorted({*now, *before}) if now.get(path) != before.get(path)]
        return {
            path: now[path][0] if path in now else None
            for path in changed
            if not is_below(path, hidden)
        }

    def read(self, path: str, mode: int, most: int) -> FileState | None:
        """Read a file or link; None for anything else, or if it can't be read.

        The agent's processes have ended, so it can't change meanwhile. Raises `TooLargeError` for a
        file of more than `most` bytes.
        """
        return read_entry(self.tree / path, mode, most)

    def remove(self) -> None:
        """Remove all folders; the pool removes or reports what remains."""
        with suppress(OSError):  # without a sandbox an agent may have removed it itself
            handle = enter_folder(self.place)
            try:
                failures = empty_folder(handle)
            finally:
                os.close(handle)
            if not failures:
                self.place.rmdir()


def make_private_slot(parent: Path) -> PrivateSlot:
    """Make a new private slot with an unguessable name."""
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
    """Return all files that may be part of a candidate, by path."""
    return {
        folder + name: signature
        for folder, names in listing.items()
        if not any(map(_belongs_to_tool, folder.split("/")))
        for name, signature in names.items()
        if not stat.S_ISDIR(signature[0]) and not _belongs_to_tool(name)
    }


def _belongs_to_tool(name: str) -> bool:
    return name.casefold() in _TOOL_FOLDERS or name.startswith(_AGENT_NOTES)


def read_entry(path: Path, mode: int, most: int) -> FileState | None:
    """Read a file or link; None for anything else, or if it can't be read.

    Raises `TooLargeError` for a file of more than `most` bytes.
    """
    if stat.S_ISLNK(mode):
        return FileState(os.fsencode(os.readlink(path)), is_link=True)  # noqa: PTH115 - bytes
    if not stat.S_ISREG(mode):
        return None
    if path.lstat().st_size > most:
        raise TooLargeError(f"more than {MAX_CANDIDATE_MB} MB")
    try:
        handle = os.open(path, READ_ONLY)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return FileState(file.read(), bool(mode & stat.S_IXUSR))


def _copy_home(seed: Path, home: Path) -> None:
    def copy(source: str, target: str) -> None:
        if stat.S_ISREG(os.lstat(source).st_mode):  # sockets and pipes can't be copied
            shutil.copy2(source, target)

    try:
        shutil.copytree(seed, home, symlinks=True, copy_function=copy)
    except (OSError, shutil.Error) as error:
        first = error.args[0][0] if isinstance(error, shutil.Error) else (seed, "", error)
        raise LabError(f"the home folder {seed} can't be copied: {first[0]}: {first[2]}") from error
    home.chmod(0o700)
