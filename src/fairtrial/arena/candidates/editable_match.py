"""Check that `editable` matches a file of the user's project, before anything is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from fairtrial.arena.candidates.pathspecs import Pathspecs
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.problem_syntax import split_pattern
from fairtrial.core import Mistake, StudyError


def require_editable_files(problem: CodeProblem, source: str = "") -> None:
    """Raise `StudyError` if a problem's `editable` patterns match no file of its project.

    A missing folder, a bare repository and a base that is a revision are accepted here: they are
    looked at when the repository is opened.

    problem: a problem whose paths are not yet resolved
    source: the name of the problem's file, for the message
    """
    project = problem.folder / problem.repo / problem.cwd
    if problem.base or not project.is_dir() or _is_bare(project):
        return
    editable = Pathspecs(problem.editable)
    included = [pattern for mark, pattern in map(split_pattern, problem.editable) if not mark]
    for pattern in included or [""]:
        if any(map(editable.match, _list_below(project, pattern))):
            return
    raise no_match_error(problem.editable, f"of {project}", source)


def no_match_error(patterns: tuple[str, ...], where: str, source: str = "") -> StudyError:
    """Return the error about patterns that match no file."""
    shown = ", ".join(patterns)
    verb = "matches" if len(patterns) == 1 else "match"
    message = f"{shown} {verb} no file {where}: no candidate could change anything"
    hint = "patterns begin at the project's folder: `src/**/*.py` is everything below src"
    return StudyError(Mistake(("editable",), message, hint), source=source)


def _is_bare(folder: Path) -> bool:
    return all((folder / name).exists() for name in ("HEAD", "objects", "refs"))


def _list_below(project: Path, pattern: str) -> Iterator[str]:
    """Yield the files in the folder that holds all matches of a pattern, by relative paths."""
    parts = pattern.split("/")
    wild = next((index for index, part in enumerate(parts) if re.search(r"[*?\[\\]", part)), None)
    start = project.joinpath(*(parts if wild is None else parts[:wild]))
    if start.is_file() or start.is_symlink():
        yield start.relative_to(project).as_posix()
    for folder, folders, files in os.walk(start):
        folders[:] = [name for name in folders if name != ".git"]
        prefix = Path(folder).relative_to(project)
        yield from ((prefix / name).as_posix() for name in files)
