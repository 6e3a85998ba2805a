"""Other projects that are installed in place: which of their files a sandbox shows.

An editable install puts a whole working copy on Python's path, with its repository, its settings
and whatever lies beside its code. Candidates see what Python imports from there: modules and
packages with their data, but nothing whose name begins with a dot.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fairtrial.arena.import_roots import find_import_roots

MODULE_SUFFIXES = (".py", ".pyc", ".so", ".pyd")
MAX_PATHS = 1_000
"""How many files and folders of one project are shown at most."""
_DEEPEST = 6
"""How deep a folder without `__init__.py` may nest packages."""


def find_importable(project: Path) -> list[Path]:
    """Return the modules and packages that can be imported from a folder on Python's path.

    A folder is returned as a whole if nothing in it has a name that begins with a dot; otherwise
    its other contents are, one by one. Folders that can't be read are left out.

    project: a project that is installed in place, or a folder or archive on the path
    """
    if project.is_file():
        return [project]
    paths: list[Path] = []
    for root in find_import_roots(project):
        for path in _list_folder(project / root):
            if _is_importable(path):
                paths += _without_hidden(path)
    return list(dict.fromkeys(paths))[:MAX_PATHS]


def _is_importable(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    if path.is_file():
        return path.suffix in MODULE_SUFFIXES
    return path.name.isidentifier() and _contains_modules(path, _DEEPEST)


def _contains_modules(folder: Path, depth: int) -> bool:
    """Return whether a folder, or a folder below it up to a depth, contains a module."""
    items = _list_folder(folder)
    if any(item.suffix in MODULE_SUFFIXES for item in items):
        return True
    return depth > 1 and any(
        _contains_modules(item, depth - 1)
        for item in items
        if item.name.isidentifier() and item.is_dir() and not item.is_symlink()
    )


def _without_hidden(path: Path) -> Iterator[Path]:
    """Yield a path; if it is a folder with hidden contents, the other contents instead."""
    if path.is_symlink() or not path.is_dir() or not _has_hidden(path):
        yield path
        return
    for item in _list_folder(path):
        if not item.name.startswith("."):
            yield from _without_hidden(item)


def _has_hidden(folder: Path) -> bool:
    return any(
        item.name.startswith(".") or (item.is_dir() and not item.is_symlink() and _has_hidden(item))
        for item in _list_folder(folder)
    )


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
