"""What can be said of a problem without running anything: whether what it names is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from fairtrial.arena.candidates.editable_match import refuse_matching_nothing
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.core import Mistake, Place, StudyError, did_you_mean


def missing_parts(problem: CodeProblem) -> list[Mistake]:
    """Folders, files and makers of inputs that aren't there, and patterns that fit no file.

    problem: with its paths as its file has them
    """
    repo = problem.folder / problem.repo
    project = repo / problem.cwd
    for name, folder in (("repo", repo), ("cwd", project)):
        if not folder.is_dir():
            return [Mistake((name,), f"there is no folder {folder}")]
    found = [*_missing_roots(problem, project), *_missing_files(problem, project)]
    try:
        refuse_matching_nothing(problem)
    except StudyError as error:
        found += error.mistakes
    return found


def _missing_roots(problem: CodeProblem, project: Path) -> Iterator[Mistake]:
    for index, root in enumerate(problem.import_roots or ()):
        if not problem.build and not (project / root).is_dir():  # a build may make it
            yield Mistake(("import_roots", index), f"there is no folder {project / root}")


def _missing_files(problem: CodeProblem, project: Path) -> Iterator[Mistake]:
    for index, check in enumerate(problem.check):
        yield from _missing_maker(project, check.inputs, ("check", index, "inputs"))
        if check.calls and not (project / check.calls).is_file():
            yield Mistake(("check", index, "calls"), f"there is no file {project / check.calls}")
    for index, benchmark in enumerate(problem.bench):
        yield from _missing_maker(project, benchmark.inputs, ("bench", index, "inputs"))


def _missing_maker(project: Path, maker: str, place: Place) -> Iterator[Mistake]:
    """`file.py:function`: whether the file is there, is Python, and says that name."""
    if not maker:
        return
    name, _, function = maker.rpartition(":")
    path = project / name
    if not path.is_file():
        yield Mistake(place, f"there is no file {path}")
        return
    try:
        module = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError) as error:
        yield Mistake(place, f"{path} can't be read as Python: {error}")
        return
    known = _names(module)
    if function not in known and "*" not in known:
        yield Mistake(place, f"{path} has no '{function}'", did_you_mean(function, known))


def _names(module: ast.Module) -> list[str]:
    """Whatever a module may give a name to, anywhere but in functions and classes; `*` for all."""
    names: list[str] = []
    left: list[ast.AST] = [module]
    while left:
        node = left.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.alias):
            names.append((node.asname or node.name).partition(".")[0])
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.append(node.id)
            left += ast.iter_child_nodes(node)
    return names
