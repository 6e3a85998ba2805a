"""Read candidates from disk: a diff in a file, or a folder whose files overlay the base."""

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
MAX_CANDIDATE_MB = 20
"""Limit of the total size of a candidate's diff or files."""
DIFF_SUFFIXES = (".diff", ".patch")
_IGNORED = {".git", "__pycache__"}
_FORMAT_HINT = (
    "a candidate is a diff (*.diff, *.patch), or a folder with new and changed files at their "
    "paths in the repository"
)


def read_candidate(path: Path) -> Candidate:
    """Read a candidate from a diff (``*.diff``, ``*.patch``) or a folder.

    A folder's files overlay the base at the same paths; `.git`, `__pycache__` and `*.pyc` in it are
    ignored. A folder can't delete files or make them non-executable: that needs a diff. Raises
    `StudyError` if the path is no candidate, is too large or can't be read.
    """
    name = path.name or path.resolve().name
    try:
        if path.is_dir():
            files = MappingProxyType(dict(_read_folder(path)))
            return Candidate(name, files=files, origin=str(path))
        if not path.exists():
            raise StudyError(
                Mistake((), "there is no such file or folder", _FORMAT_HINT), source=str(path)
            )
        if path.suffix.lower() not in DIFF_SUFFIXES or not path.is_file():
            raise StudyError(Mistake((), "this is not a candidate", _FORMAT_HINT), source=str(path))
        if path.stat().st_size > MAX_CANDIDATE_MB * MB:
            raise _too_large_error(path)
        return Candidate(name, diff=path.read_bytes(), origin=str(path))
    except OSError as error:
        failed = error.filename or path
        reason = error.strerror or str(error)
        raise StudyError(f"can't be read: {reason}", source=os.fsdecode(failed)) from error


def disambiguate_names(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with unique names.

    Candidates that were read from different paths but have the same name are named by as many
    trailing parts of their paths as necessary.
    """
    paths = [_get_path_parts(candidate) for candidate in candidates]
    depths = [1] * len(candidates)
    while True:
        names = [
            "/".join(parts[-depth:]) if depth > 1 else candidate.name
            for candidate, parts, depth in zip(candidates, paths, depths, strict=True)
        ]
        ambiguous = [
            index
            for index, name in enumerate(names)
            if depths[index] < len(paths[index])
            and any(
                name == other_name and paths[index] != paths[other]
                for other, other_name in enumerate(names)
            )
        ]
        if not ambiguous:
            return [
                candidate if candidate.name == name else replace(candidate, name=name)
                for candidate, name in zip(candidates, names, strict=True)
            ]
        for index in ambiguous:
            depths[index] += 1


def _get_path_parts(candidate: Candidate) -> tuple[str, ...]:
    """Return the parts of the path that a candidate was read from; none if it wasn't read."""
    path = Path(os.path.abspath(candidate.origin)) if candidate.origin else Path()  # noqa: PTH100
    return path.parts[1:] if path.name == candidate.name else ()


def _too_large_error(path: Path) -> StudyError:
    message = f"a candidate may hold {MAX_CANDIDATE_MB} MB in all"
    return StudyError(Mistake((), message, "leave only what it changes"), source=str(path))


def _read_folder(top: Path) -> Iterator[tuple[str, FileState]]:
    remaining = MAX_CANDIDATE_MB * MB
    for path in _walk(top):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            state = FileState(os.fsencode(os.readlink(path)), is_link=True)  # noqa: PTH115 - bytes
        elif stat.S_ISREG(status.st_mode):
            if status.st_size > remaining:
                raise _too_large_error(top)
            # Copying often loses this bit; where it is not set, the base's mode is kept.
            executable = True if status.st_mode & stat.S_IXUSR else None
            state = FileState(path.read_bytes(), executable)
        else:
            message = "this is neither a file nor a folder nor a symbolic link"
            raise StudyError(Mistake((), message, "take it out of the folder"), source=str(path))
        remaining -= len(state.content)
        if remaining < 0:
            raise _too_large_error(top)
        yield path.relative_to(top).as_posix(), state


def _walk(top: Path) -> Iterator[Path]:
    """Yield all paths below a folder that are not folders; links are not followed."""
    folders = [top]
    while folders:
        for entry in sorted(os.scandir(folders.pop()), key=lambda entry: entry.name):
            if entry.name in _IGNORED or entry.name.endswith(".pyc"):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            else:
                yield Path(entry.path)
