"""Whether `editable` names any file at all: asked of the user's folder, before anything is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from fairtrial.arena.candidates.pathspecs import Pathspecs
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.core import Mistake, StudyError, split_pattern


def refuse_matching_nothing(problem: CodeProblem, source: str = "") -> None:
    """Refuse a problem whose patterns fit no file of the project: no candidate could do anything.

    A folder that isn't there, or that is a bare repository, is another mistake, and told where the
    repository is looked for.

    problem: with its paths as its file has them
    source: the file's name, for the report
    """
    project = problem.folder / problem.repo / problem.cwd
    if not project.is_dir() or _is_bare(project):
        return
    editable = Pathspecs(problem.editable)
    taken = [pattern for mark, pattern in map(split_pattern, problem.editable) if not mark]
    for pattern in taken or [""]:
        if any(map(editable.fit, _list_below(project, pattern))):
            return
    raise no_match(problem.editable, f"of {project}", source)


def no_match(patterns: tuple[str, ...], where: str, source: str = "") -> StudyError:
    """What to say of patterns that fit nothing."""
    shown = ", ".join(patterns)
    fit = "fits" if len(patterns) == 1 else "fit"
    message = f"{shown} {fit} no file {where}: no candidate could change anything"
    hint = "patterns begin at the project's folder: `src/**/*.py` is all below src"
    return StudyError(Mistake(("editable",), message, hint), source=source)


def _is_bare(folder: Path) -> bool:
    return all((folder / name).exists() for name in ("HEAD", "objects", "refs"))


def _list_below(project: Path, pattern: str) -> Iterator[str]:
    """Files, relative to the project, in the folder that all fits of a pattern lie in."""
    steps = pattern.split("/")
    wild = next((place for place, step in enumerate(steps) if re.search(r"[*?\[\\]", step)), None)
    start = project.joinpath(*(steps if wild is None else steps[:wild]))
    if start.is_file() or start.is_symlink():
        yield start.relative_to(project).as_posix()
    for folder, folders, files in os.walk(start):
        folders[:] = [name for name in folders if name != ".git"]
        prefix = Path(folder).relative_to(project)
        yield from ((prefix / name).as_posix() for name in files)
