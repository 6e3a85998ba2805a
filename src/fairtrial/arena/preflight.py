"""Checks of a problem without running anything: whether all that it names exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairtrial.arena.candidates.editable_match import require_editable_files
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.core import FieldPath, Mistake, StudyError, did_you_mean


def find_missing_parts(problem: CodeProblem) -> list[Mistake]:
    """Return a mistake for each missing folder, file or input maker, and each unmatched pattern.

    problem: with paths as in its file
    """
    repo = problem.folder / problem.repo
    project = repo / problem.cwd
    for name, folder in (("repo", repo), ("cwd", project)):
        if not folder.is_dir():
            return [Mistake((name,), f"there is no folder {folder}")]
    mistakes = [*_missing_roots(problem, project), *_missing_files(problem, project)]
    try:
        require_editable_files(problem)
    except StudyError as error:
        mistakes += error.mistakes
    return mistakes


def _missing_roots(problem: CodeProblem, project: Path) -> Iterator[Mistake]:
    for index, root in enumerate(problem.import_roots or ()):
        if not problem.build and not (project / root).is_dir():  # a build may make it
            yield Mistake(("import_roots", index), f"there is no folder {project / root}")


def _missing_files(problem: CodeProblem, project: Path) -> Iterator[Mistake]:
    folders = (project, problem.folder)
    for index, check in enumerate(problem.check):
        yield from _missing_maker(folders, check.inputs, ("check", index, "inputs"))
        yield from _missing_maker(folders, check.accept, ("check", index, "accept"))
        yield from _missing_maker((project,), check.prepare, ("check", index, "prepare"))
        if check.calls and _find_file(folders, check.calls) is None:
            yield Mistake(("check", index, "calls"), f"there is no file {project / check.calls}")
    for index, benchmark in enumerate(problem.bench):
        yield from _missing_maker(folders, benchmark.inputs, ("bench", index, "inputs"))
        yield from _missing_maker((project,), benchmark.prepare, ("bench", index, "prepare"))


def _find_file(folders: Sequence[Path], name: str) -> Path | None:
    """Return a named file: in the project's folder, else beside the problem's file."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _missing_maker(folders: Sequence[Path], maker: str, place: FieldPath) -> Iterator[Mistake]:
    """Check that the file of ``file.py:function`` exists, is Python, and defines the function."""
    if not maker:
        return
    name, _, function = maker.rpartition(":")
    path = _find_file(folders, name)
    if path is None:
        yield Mistake(place, f"there is no file {folders[0] / name}")
        return
    try:
        module = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError) as error:
        yield Mistake(place, f"{path} can't be read as Python: {error}")
        return
    names = _defined_names(module)
    if function not in names and "*" not in names:
        yield Mistake(place, f"{path} has no '{function}'", did_you_mean(function, names))


def _defined_names(module: ast.Module) -> list[str]:
    """Return all names that a module may define at its top level; `*` after a star import."""
    names: list[str] = []
    pending: list[ast.AST] = [module]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.alias):
            names.append((node.asname or node.name).partition(".")[0])
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.append(node.id)
            pending += ast.iter_child_nodes(node)
    return names
