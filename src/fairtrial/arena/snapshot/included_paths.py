"""Find the ignored paths that a problem's `include` names: built extensions, data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from fairtrial.arena.snapshot.disk_files import find_disk_files
from fairtrial.arena.snapshot.listing import RepositoryListing, list_repositories
from fairtrial.arena.snapshot.repository import find_repository
from fairtrial.core import Mistake, StudyError


@dataclass(frozen=True, slots=True)
class IncludedPath:
    """An ignored file or folder of the user's tree that candidates need.

    path: relative to the top of the tree
    size_bytes: its total size
    """

    path: str
    size_bytes: int


async def find_included(top: Path, patterns: Sequence[str]) -> tuple[IncludedPath, ...]:
    """Return the ignored paths that match the patterns (`data`, `build/**/*.so`).

    Paths inside a matching folder are left out. Raises `StudyError` about patterns that match
    nothing, files of the snapshot, or paths outside of the tree.
    """
    from anyio import to_thread

    if not patterns:
        return ()
    repository = await find_repository(top)
    with TemporaryDirectory(prefix="fairtrial-listing-") as scratch:
        listings = await list_repositories(repository, Path(scratch))
    return await to_thread.run_sync(_match_all, repository.top, listings, patterns)


def _match_all(
    top: Path, listings: Sequence[RepositoryListing], patterns: Sequence[str]
) -> tuple[IncludedPath, ...]:
    files = find_disk_files(os.fsencode(top), listings)
    in_snapshot = {os.fsdecode(file.path) for file in files}
    parents = {str(parent) for path in in_snapshot for parent in PurePosixPath(path).parents}
    chosen: set[str] = set()
    mistakes = []
    for number, pattern in enumerate(patterns):
        matches = sorted(_match(top, pattern))
        ignored = [path for path in matches if path not in in_snapshot and path not in parents]
        problem = _describe_outside(top, pattern, ignored)
        if not problem and not matches:
            problem = "nothing in the tree matches it; build it, or leave it out"
        elif not problem and not ignored:
            problem = _describe_not_ignored(matches[0], in_snapshot)
        if problem:
            mistakes.append(Mistake(("include", number), f"'{pattern}': {problem}"))
        chosen.update(ignored)
    if mistakes:
        raise StudyError(mistakes, source=str(top))
    nested = {
        path
        for path in chosen
        if any(str(parent) in chosen for parent in PurePosixPath(path).parents)
    }
    return tuple(IncludedPath(path, _measure_bytes(top / path)) for path in sorted(chosen - nested))


def _match(top: Path, pattern: str) -> Iterator[str]:
    path = PurePosixPath(pattern)
    if not pattern or path.is_absolute() or ".." in path.parts or "\0" in pattern:
        return
    is_plain = not any(char in pattern for char in "*?[")
    for target in [top / path] if is_plain else top.glob(str(path)):
        if os.path.lexists(target):
            yield target.relative_to(top).as_posix()


def _describe_outside(top: Path, pattern: str, matches: Sequence[str]) -> str:
    """Return why a pattern leads out of the tree or into a repository; empty if it doesn't."""
    path = PurePosixPath(pattern)
    if not pattern or path.is_absolute() or ".." in path.parts:
        return "must be a path in the tree, relative to its top"
    for match in matches:
        if ".git" in PurePosixPath(match).parts:
            return "a repository's own files are never shown to candidates"
        target = (top / match).resolve()
        if target == top or not target.is_relative_to(top):
            return f"{match} leads out of the tree, to {target}; copy what is needed into it"
    return ""


def _describe_not_ignored(path: str, in_snapshot: set[str]) -> str:
    """Return why a path that is in the snapshot, or contains its files, can't be included."""
    if path in in_snapshot:
        return "is not ignored: slots have it anyway; leave it out"
    if path == ".":
        return "is the whole tree; name the ignored paths in it"
    example = min(file for file in in_snapshot if file.startswith(f"{path}/"))
    return f"holds files that are not ignored ({example}); name the ignored paths in it"


def _measure_bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):  # removed meanwhile
                total += Path(folder, name).lstat().st_size
    return total
