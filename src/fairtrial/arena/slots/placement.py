"""Overlay a candidate's files on a slot's target tree, and refuse paths that leave the tree."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from fairtrial.arena.model.candidates import FileState
from fairtrial.arena.slots.copying import Origin, TargetTree, read_link
from fairtrial.core import Mistake, StudyError

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 3000
FOLDER_MODE = stat.S_IFDIR | 0o755
Store = Callable[[bytes, int], Origin]
"""Stores content with a mode, and returns the origin that slots can copy it from."""


def refuse_misplaced(files: Mapping[str, FileState | None], target: TargetTree) -> None:
    """Raise `StudyError` about all paths of a candidate that may not be written."""
    mistakes = [
        Mistake((path,), message)
        for path, state in files.items()
        if (message := _check_path(path) or _check_in_tree(path, state, files, target))
    ]
    if mistakes:
        raise StudyError(mistakes)


def _check_path(path: str) -> str | None:
    """Return what is wrong with a path, regardless of the tree; None if it is valid."""
    parts = path.split("/")
    try:
        longest, length = max(len(os.fsencode(part)) for part in parts), len(os.fsencode(path))
    except UnicodeEncodeError:
        return "is not a file name: it holds half of a surrogate pair"
    if not path or "\0" in path:
        return "is not the path of a file"
    if path.startswith("/"):
        return "must be relative to the top of the repository"
    if ".." in parts or "." in parts or "" in parts:
        return "must be a plain path, without `.`, `..` and empty parts"
    if any(part.casefold() == ".git" for part in parts):
        return "lies in a git repository's own folder"
    if longest > MAX_NAME_BYTES or length > MAX_PATH_BYTES:
        return f"is too long: names have up to {MAX_NAME_BYTES} bytes"
    return None


def _check_in_tree(
    path: str, state: FileState | None, files: Mapping[str, FileState | None], target: TargetTree
) -> str | None:
    """Return what is wrong with a path in this tree; None if it is valid."""
    for parent in _iterate_parents(path):
        if state is not None and files.get(parent) is not None:
            return f"{parent} would be a file and a folder at once"
        entry = find_origin(target, parent)
        if entry is not None and stat.S_ISLNK(entry.mode) and parent not in files:
            return f"leads through {parent}, a symbolic link"
    if state is not None and state.is_link:
        return _check_link(path, state.content, files, target)
    return None


def _check_link(
    path: str, content: bytes, files: Mapping[str, FileState | None], target: TargetTree
) -> str | None:
    """Return what is wrong with a link; it is followed through the tree as the kernel would."""
    if not content or b"\0" in content or len(content) > MAX_PATH_BYTES:
        return "is a symbolic link to no path"
    if content.startswith(b"/"):
        return "is a symbolic link to an absolute path; slots come and go: use a relative one"
    current = path.split("/")[:-1]
    pending = os.fsdecode(content).split("/")[::-1]
    for _ in range(MAX_PATH_BYTES):
        if not pending:
            return None
        part = pending.pop()
        if part == ".." and not current:
            return "is a symbolic link that leads out of the tree"
        if part in ("", "."):
            continue
        if part == "..":
            current.pop()
            continue
        current.append(part)
        link = _read_link("/".join(current), files, target)
        if link is None:
            continue
        if link.startswith("/"):
            return "is a symbolic link that leads out of the tree, through another one"
        current.pop()
        pending.extend(link.split("/")[::-1])
    return "is a symbolic link in a circle of links"


def _read_link(path: str, files: Mapping[str, FileState | None], target: TargetTree) -> str | None:
    if path in files:
        state = files[path]
        return os.fsdecode(state.content) if state is not None and state.is_link else None
    entry = find_origin(target, path)
    if entry is None or not stat.S_ISLNK(entry.mode):
        return None
    return read_link(entry)


def find_origin(target: TargetTree, path: str) -> Origin | None:
    """Return the origin of a path in the target tree, or None."""
    folder, slash, name = path.rpartition("/")
    return target.get(folder + slash, {}).get(name)


def _iterate_parents(path: str) -> Iterator[str]:
    """Yield the parents of a path, outermost first: ``a/b/c`` gives ``a`` and ``a/b``."""
    for index, char in enumerate(path):
        if char == "/":
            yield path[:index]


def overlay(target: TargetTree, files: Mapping[str, FileState | None], store: Store) -> TargetTree:
    """Return the target tree with a candidate's files: deleted ones removed, the others added."""
    tree = _EditableTree(target)
    for path, state in files.items():
        if state is None:
            tree.remove(path)
    for path, state in files.items():
        if state is not None:
            tree.add(path, store(state.content, _choose_mode(state, find_origin(target, path))))
    return tree.folders


def _choose_mode(state: FileState, before: Origin | None) -> int:
    if state.is_link:
        return stat.S_IFLNK
    is_executable = state.executable
    if is_executable is None and before is not None and stat.S_ISREG(before.mode):
        return before.mode
    return stat.S_IFREG | (0o755 if is_executable else 0o644)


class _EditableTree:
    """A target tree that can be edited; a folder is copied before its first change."""

    def __init__(self, target: TargetTree) -> None:
        self.folders = dict(target)
        self._copied: set[str] = set()

    def _names(self, folder: str) -> dict[str, Origin]:
        if folder not in self._copied or folder not in self.folders:
            self.folders[folder] = dict(self.folders.get(folder, {}))
            self._copied.add(folder)
        return self.folders[folder]

    def remove(self, path: str) -> None:
        """Remove a file, its bytecode, and folders that become empty."""
        entry = find_origin(self.folders, path)
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
        for file in [file for file in self.folders[cache] if file.rsplit(".", 2)[0] == stem]:
            del self._names(cache)[file]
        if not self.folders[cache]:
            del self.folders[cache]
            self._names(folder).pop("__pycache__")

    def add(self, path: str, origin: Origin) -> None:
        """Add a file and its parent folders; what was at its path is replaced."""
        folder = ""
        *parents, name = path.split("/")
        for parent in parents:
            names = self._names(folder)
            folder = f"{folder}{parent}/"
            if parent not in names or not stat.S_ISDIR(names[parent].mode):
                names[parent] = Origin("", (FOLDER_MODE, 0, 0, 0, 0))
            self._names(folder)
        self._names(folder)[name] = origin
        # Python writes new bytecode at import, which must not count as tampering with the base's.
        self._remove_bytecode(folder, name)
        for inner in [folder for folder in self.folders if folder.startswith(f"{path}/")]:
            del self.folders[inner]
