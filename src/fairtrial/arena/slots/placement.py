"""Where a candidate's files go in a slot, and which paths are refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from fairtrial.arena.model.candidates import FileState
from fairtrial.arena.slots.copying import Origin, Wanted, read_link
from fairtrial.core import Mistake, StudyError

LONGEST_NAME, LONGEST_PATH = 255, 3000
FOLDER_MODE = stat.S_IFDIR | 0o755
Store = Callable[[bytes, int], Origin]
"""Puts content with a mode where slots can copy it from."""


def refuse_misplaced(files: Mapping[str, FileState | None], wanted: Wanted) -> None:
    """Raise `StudyError` with every path that may not be written, before anything is."""
    mistakes = [
        Mistake((path,), message)
        for path, state in files.items()
        if (message := _object_to_path(path) or _object_to_place(path, state, files, wanted))
    ]
    if mistakes:
        raise StudyError(mistakes)


def _object_to_path(path: str) -> str | None:
    """What is wrong with the path itself."""
    parts = path.split("/")
    try:
        longest, length = max(len(os.fsencode(part)) for part in parts), len(os.fsencode(path))
    except UnicodeEncodeError:
        return "is no file name: it holds half of a surrogate pair"
    if not path or "\0" in path:
        return "is no path of a file"
    if path.startswith("/"):
        return "must be relative to the top of the repository"
    if ".." in parts or "." in parts or "" in parts:
        return "must be a plain path, without `.`, `..` and empty parts"
    if any(part.casefold() == ".git" for part in parts):
        return "lies in a git repository's own folder"
    if longest > LONGEST_NAME or length > LONGEST_PATH:
        return f"is too long: names have up to {LONGEST_NAME} bytes"
    return None


def _object_to_place(
    path: str, state: FileState | None, files: Mapping[str, FileState | None], wanted: Wanted
) -> str | None:
    """What is wrong with the path in this tree."""
    for parent in _parents(path):
        own = files.get(parent)
        if state is not None and own is not None:
            return f"{parent} would be a file and a folder at once"
        entry = find(wanted, parent)
        if entry is not None and stat.S_ISLNK(entry.mode) and parent not in files:
            return f"leads through {parent}, a symbolic link"
    if state is not None and state.is_link:
        return _object_to_link(path, state.content, files, wanted)
    return None


def _object_to_link(
    path: str, content: bytes, files: Mapping[str, FileState | None], wanted: Wanted
) -> str | None:
    """Follow a link as the kernel would in the tree to come; it has to stay in there."""
    if not content or b"\0" in content or len(content) > LONGEST_PATH:
        return "is a symbolic link to no path"
    if content.startswith(b"/"):
        return "is a symbolic link to an absolute path; slots come and go: use a relative one"
    place = path.split("/")[:-1]
    left = os.fsdecode(content).split("/")[::-1]
    for _ in range(LONGEST_PATH):
        if not left:
            return None
        part = left.pop()
        if part == ".." and not place:
            return "is a symbolic link that leads out of the tree"
        if part in ("", "."):
            continue
        if part == "..":
            place.pop()
            continue
        place.append(part)
        leads_to = _read_link("/".join(place), files, wanted)
        if leads_to is None:
            continue
        if leads_to.startswith("/"):
            return "is a symbolic link that leads out of the tree, through another one"
        place.pop()
        left.extend(leads_to.split("/")[::-1])
    return "is a symbolic link that leads round in circles"


def _read_link(path: str, files: Mapping[str, FileState | None], wanted: Wanted) -> str | None:
    if path in files:
        state = files[path]
        return os.fsdecode(state.content) if state is not None and state.is_link else None
    entry = find(wanted, path)
    if entry is None or not stat.S_ISLNK(entry.mode):
        return None
    return read_link(entry)


def find(wanted: Wanted, path: str) -> Origin | None:
    """What is wanted at a path."""
    folder, slash, name = path.rpartition("/")
    return wanted.get(folder + slash, {}).get(name)


def _parents(path: str) -> Iterator[str]:
    """``a/b/c`` gives ``a`` and ``a/b``."""
    for place, char in enumerate(path):
        if char == "/":
            yield path[:place]


def lay_over(wanted: Wanted, files: Mapping[str, FileState | None], store: Store) -> Wanted:
    """The table for a slot that holds a candidate: files that go first, then those that come."""
    table = _Table(wanted)
    for path, state in files.items():
        if state is None:
            table.remove(path)
    for path, state in files.items():
        if state is not None:
            table.add(path, store(state.content, _mode_of(state, find(wanted, path))))
    return table.folders


def _mode_of(state: FileState, before: Origin | None) -> int:
    if state.is_link:
        return stat.S_IFLNK
    is_executable = state.executable
    if is_executable is None and before is not None and stat.S_ISREG(before.mode):
        return before.mode
    return stat.S_IFREG | (0o755 if is_executable else 0o644)


class _Table:
    """A table that is changed; folders are copied when they are changed first."""

    def __init__(self, wanted: Wanted) -> None:
        self.folders = dict(wanted)
        self._own: set[str] = set()

    def _names(self, folder: str) -> dict[str, Origin]:
        if folder not in self._own or folder not in self.folders:
            self.folders[folder] = dict(self.folders.get(folder, {}))
            self._own.add(folder)
        return self.folders[folder]

    def remove(self, path: str) -> None:
        """Take a file out, with its bytecode and the folders that hold nothing else."""
        entry = find(self.folders, path)
        if entry is None or stat.S_ISDIR(entry.mode):
            return
        folder, slash, name = path.rpartition("/")
        del self._names(folder + slash)[name]
        self._remove_bytecode(folder + slash, name)
        while folder and not self.folders.get(folder + "/"):
            self.folders.pop(folder + "/", None)
            folder, slash, name = folder.rpartition("/")
            self._names(folder + slash).pop(name, None)

    def _remove_bytecode(self, folder: str, name: str) -> None:
        cache = f"{folder}__pycache__/"
        stem = PurePosixPath(name).stem
        if not name.endswith(".py") or cache not in self.folders:
            return
        for each in [each for each in self.folders[cache] if each.rsplit(".", 2)[0] == stem]:
            del self._names(cache)[each]
        if not self.folders[cache]:
            del self.folders[cache]
            self._names(folder).pop("__pycache__")

    def add(self, path: str, origin: Origin) -> None:
        """Put a file in, in place of whatever is there, with the folders that it needs."""
        folder = ""
        *parents, name = path.split("/")
        for each in parents:
            names = self._names(folder)
            folder = f"{folder}{each}/"
            if each not in names or not stat.S_ISDIR(names[each].mode):
                names[each] = Origin("", (FOLDER_MODE, 0, 0, 0, 0))
            self._names(folder)
        self._names(folder)[name] = origin
        # A process that writes bytecode would write it anew: that is not tampering with the base's.
        self._remove_bytecode(folder, name)
        for inner in [each for each in self.folders if each.startswith(f"{path}/")]:
            del self.folders[inner]
