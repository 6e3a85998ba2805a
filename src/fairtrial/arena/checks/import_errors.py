"""Explain why a function can't be imported: the import roots, and where its module lies."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fairtrial.arena.stage import Stage
from fairtrial.core import did_you_mean

_MAX_DEPTH, _MAX_ENTRIES = 4, 20_000
"""Limits of the search for a module in a slot."""


def tell_roots(function: str, stage: Stage) -> str:
    """Return a hint about a `module:function` that can't be imported in a slot."""
    misspelt = _tell_misspelt(function, stage)
    if misspelt:
        return misspelt
    package = function.partition(":")[0].partition(".")[0]
    roots = [_from_project(root, stage) for root in stage.import_roots]
    tried = ", ".join(roots) or "none"
    requirement = (
        f"it must be importable as `module:function` from the import roots (here: {tried})"
    )
    parents = [path.parent for path in _find_module(stage.slot, package)]
    folders = [_from_project(_below(parent, stage.slot), stage) for parent in parents]
    if any(root in folders for root in roots):
        return requirement
    inside = [folder for folder in folders if not folder.startswith("..")]
    if inside:
        suggested = ", ".join([*roots, inside[0]])
        return f"{requirement}; {package} lies in {inside[0]}: import_roots: [{suggested}] finds it"
    hidden = _find_hidden(package, stage)
    if hidden is not None:
        return (
            f"{requirement}; {hidden} generates inputs, and candidates may not see it: put the "
            "function into a module of its own"
        )
    return f"{requirement}; the project has no module {package}"


def _tell_misspelt(function: str, stage: Stage) -> str:
    """Return a hint if the module is there and doesn't mention the function; empty otherwise."""
    module, _, name = function.partition(":")
    path = module.replace(".", "/")
    for root in stage.import_roots:
        for file in (f"{path}.py", f"{path}/__init__.py"):
            try:
                tree = ast.parse((stage.slot / root / file).read_bytes())
            except (OSError, SyntaxError, ValueError):
                continue
            known = list(_list_names(tree.body))
            is_plain = "*" not in known and "__getattr__" not in known
            choices = _list_callables(tree)
            if is_plain and choices and name not in known:
                return f"{module} has no {name}; {did_you_mean(name, choices)}"
            return ""
    return ""


def _list_names(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield what statements bind, methods as `Class.method`; also inside of `if` and `try`."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}"
        elif isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}"
            yield from _list_names(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield prefix + (alias.asname or alias.name.partition(".")[0])
        else:
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield f"{prefix}{part.id}"
                elif isinstance(part, ast.stmt) and part is not node:
                    yield from _list_names([part], prefix)


def _list_callables(tree: ast.Module) -> list[str]:
    """Return the functions, classes and methods of a module that a problem may name."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = [node for node in tree.body if isinstance(node, kinds)]
    return [name for name in _list_names(list(defined)) if not name.startswith("_")]


def _from_project(root: str, stage: Stage) -> str:
    """Return a folder of the repository relative to the project's folder, as in a problem file."""
    return PurePosixPath(os.path.relpath(root, stage.problem.cwd)).as_posix()


def _below(path: Path, slot: Path) -> str:
    return path.relative_to(slot).as_posix()


def _find_hidden(package: str, stage: Stage) -> str | None:
    """Return the file of input generators that is this module; candidates' slots don't hold it."""
    problem = stage.problem
    references = [name for check in problem.check for name in (check.inputs, check.accept)]
    references += [benchmark.inputs for benchmark in problem.bench]
    files = [PurePosixPath(inputs.rpartition(":")[0]) for inputs in references if inputs]
    match = next((file for file in files if file.stem == package), None)
    return None if match is None else _from_project(str(match), stage)


def _find_module(slot: Path, package: str) -> list[Path]:
    """Return the files and folders that are modules of this name, the outermost first."""
    names = (f"{package}.py", package)
    modules = [path for path in _walk(slot) if path.name in names and _is_module(path)]
    return sorted(modules, key=lambda path: (len(path.parts), path))


def _is_module(path: Path) -> bool:
    return path.suffix == ".py" or any(path.glob("*.py"))


def _walk(top: Path) -> Iterator[Path]:
    """Yield the paths in a slot down to some depth, without hidden ones."""
    folders, seen = [(top, 0)], 0
    while folders and seen < _MAX_ENTRIES:
        folder, depth = folders.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if entry.name.startswith("."):
                continue
            yield Path(entry.path)
            if depth < _MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                folders.append((Path(entry.path), depth + 1))
