"""Candidates on disk: a diff in a file, or a folder whose files lie over the base."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from fairtrial.arena.model.candidates import Candidate, FileState
from fairtrial.core import Mistake, StudyError

MB = 1_000_000
LARGEST_MB = 20
"""How much a candidate may hold in all."""
SUFFIXES = (".diff", ".patch")
_IGNORED = {".git", "__pycache__"}
_WHAT = (
    "a candidate is a diff (*.diff, *.patch), or a folder with new and changed files at their "
    "paths in the repository"
)


def read_candidate(path: Path) -> Candidate:
    """A candidate from a diff (``*.diff``, ``*.patch``) or a folder.

    A folder's files overlay the base at the same paths; `.git`, `__pycache__` and `*.pyc` in it are
    ignored. It can't take files away, nor the right to execute one: that needs a diff.
    """
    name = path.name or path.resolve().name
    try:
        if path.is_dir():
            files = MappingProxyType(dict(_read_folder(path)))
            return Candidate(name, files=files, origin=str(path))
        if not path.exists():
            raise StudyError(
                Mistake((), "there is no such file or folder", _WHAT), source=str(path)
            )
        if path.suffix.lower() not in SUFFIXES or not path.is_file():
            raise StudyError(Mistake((), "this is not a candidate", _WHAT), source=str(path))
        if path.stat().st_size > LARGEST_MB * MB:
            raise _too_large(path)
        return Candidate(name, diff=path.read_bytes(), origin=str(path))
    except OSError as error:
        place = error.filename or path
        reason = error.strerror or str(error)
        raise StudyError(f"can't be read: {reason}", source=os.fsdecode(place)) from error


def tell_apart(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates; those of different places that have one name get as much of their paths as it
    takes to tell them apart.
    """
    places = [_place_of(each) for each in candidates]
    depths = [1] * len(candidates)
    while True:
        names = [
            "/".join(parts[-depth:]) if depth > 1 else each.name
            for each, parts, depth in zip(candidates, places, depths, strict=True)
        ]
        longer = [
            index
            for index, name in enumerate(names)
            if depths[index] < len(places[index])
            and any(name == other and places[index] != places[at] for at, other in enumerate(names))
        ]
        if not longer:
            return [
                each if each.name == name else replace(each, name=name)
                for each, name in zip(candidates, names, strict=True)
            ]
        for index in longer:
            depths[index] += 1


def _place_of(candidate: Candidate) -> tuple[str, ...]:
    """The parts of the path that a candidate was read from; nothing for one that was made."""
    place = Path(os.path.abspath(candidate.origin)) if candidate.origin else Path()  # noqa: PTH100
    return place.parts[1:] if place.name == candidate.name else ()


def _too_large(path: Path) -> StudyError:
    message = f"a candidate may hold {LARGEST_MB} MB in all"
    return StudyError(Mistake((), message, "leave only what it changes"), source=str(path))


def _read_folder(top: Path) -> Iterator[tuple[str, FileState]]:
    left = LARGEST_MB * MB
    for path in _walk(top):
        about = path.lstat()
        if stat.S_ISLNK(about.st_mode):
            state = FileState(os.fsencode(os.readlink(path)), is_link=True)  # noqa: PTH115 - bytes
        elif stat.S_ISREG(about.st_mode):
            if about.st_size > left:
                raise _too_large(top)
            # A copy often loses this bit on its way; where it is missing, the base's is kept.
            executable = True if about.st_mode & stat.S_IXUSR else None
            state = FileState(path.read_bytes(), executable)
        else:
            message = "this is neither a file nor a folder nor a symbolic link"
            raise StudyError(Mistake((), message, "take it out of the folder"), source=str(path))
        left -= len(state.content)
        if left < 0:
            raise _too_large(top)
        yield path.relative_to(top).as_posix(), state


def _walk(top: Path) -> Iterator[Path]:
    """Everything in a folder that is not a folder itself; links are not followed."""
    folders = [top]
    while folders:
        for entry in sorted(os.scandir(folders.pop()), key=lambda entry: entry.name):
            if entry.name in _IGNORED or entry.name.endswith(".pyc"):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            else:
                yield Path(entry.path)
