"""Ignored paths that slots need nevertheless: built extensions, data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from fairtrial.arena.snapshot.listing import Part, list_parts
from fairtrial.arena.snapshot.repository import find_repository
from fairtrial.arena.snapshot.survey import survey
from fairtrial.core import Mistake, StudyError


@dataclass(frozen=True, slots=True)
class Included:
    """A file or folder of the user's tree that is no part of the snapshot.

    path: relative to the top of the tree
    size_bytes: how much it holds
    """

    path: str
    size_bytes: int


async def find_included(top: Path, patterns: Sequence[str]) -> tuple[Included, ...]:
    """The ignored paths that patterns (`data`, `build/**/*.so`) match, outermost ones only."""
    from anyio import to_thread

    if not patterns:
        return ()
    repository = await find_repository(top)
    with TemporaryDirectory(prefix="fairtrial-listing-") as scratch:
        parts = await list_parts(repository, Path(scratch))
    return await to_thread.run_sync(_match_all, repository.top, parts, patterns)


def _match_all(top: Path, parts: Sequence[Part], patterns: Sequence[str]) -> tuple[Included, ...]:
    taken = {os.fsdecode(file.path) for file in survey(os.fsencode(top), parts)}
    holders = {str(parent) for path in taken for parent in PurePosixPath(path).parents}
    chosen: set[str] = set()
    mistakes = []
    for number, pattern in enumerate(patterns):
        matches = sorted(_match(top, pattern))
        fit = [path for path in matches if path not in taken and path not in holders]
        problem = _leads_out(top, pattern, fit)
        if not problem and not matches:
            problem = "nothing in the tree matches it; build it, or leave it out"
        elif not problem and not fit:
            problem = _is_taken(matches[0], taken)
        if problem:
            mistakes.append(Mistake(("include", number), f"'{pattern}': {problem}"))
        chosen.update(fit)
    if mistakes:
        raise StudyError(mistakes, source=str(top))
    inner = {
        path for path in chosen if any(str(up) in chosen for up in PurePosixPath(path).parents)
    }
    return tuple(Included(path, _measure(top / path)) for path in sorted(chosen - inner))


def _match(top: Path, pattern: str) -> Iterator[str]:
    path = PurePosixPath(pattern)
    if not pattern or path.is_absolute() or ".." in path.parts or "\0" in pattern:
        return
    is_plain = not any(char in pattern for char in "*?[")
    for place in [top / path] if is_plain else top.glob(str(path)):
        if os.path.lexists(place):
            yield place.relative_to(top).as_posix()


def _leads_out(top: Path, pattern: str, matches: Sequence[str]) -> str:
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


def _is_taken(path: str, taken: set[str]) -> str:
    if path in taken:
        return "is not ignored: slots have it anyway; leave it out"
    if path == ".":
        return "is the whole tree; name the ignored paths in it"
    some = min(each for each in taken if each.startswith(f"{path}/"))
    return f"holds files that are not ignored ({some}); name the ignored paths in it"


def _measure(place: Path) -> int:
    """How many bytes a file, or all files in a folder, have."""
    if place.is_symlink() or not place.is_dir():
        return place.lstat().st_size
    total = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):  # built and removed meanwhile
                total += Path(folder, name).lstat().st_size
    return total
