"""Find the file of a repository that defines a function, by reading the source.

Nothing is imported: the base's code may only run in a sandbox.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MOST_STEPS = 10
"""How many imports are followed from module to module."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a function is defined.

    path: the file, relative to the top of the repository
    name: its name there, dotted for a method
    """

    path: str
    name: str


def find_definition(top: Path, roots: Sequence[str], function: str) -> Definition | None:
    """Return where ``module:function`` is defined; None if no file of the tree defines it.

    top: the top of the repository
    roots: the folders that imports start from, relative to it
    """
    module, _, name = function.partition(":")
    return _follow(top, roots, module, name, MOST_STEPS)


def _follow(
    top: Path, roots: Sequence[str], module: str, name: str, steps: int
) -> Definition | None:
    path = _find_module(top, roots, module)
    if path is None or steps == 0:
        return None
    try:
        tree = ast.parse((top / path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    first, dot, rest = name.partition(".")
    stars: list[str] = []
    for node in _top_level(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == first:
                return Definition(path, name)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node, module, is_package=path.endswith("/__init__.py"))
            for alias in node.names:
                if alias.name == "*":
                    stars.append(source)
                elif (alias.asname or alias.name) == first:
                    target = f"{alias.name}{dot}{rest}"
                    return _follow(top, roots, source, target, steps - 1) or _submodule(
                        top, roots, f"{source}.{alias.name}", rest, steps
                    )
        elif _assigns(node, first):
            return Definition(path, name)
    definitions = (_follow(top, roots, source, name, steps - 1) for source in reversed(stars))
    return next((definition for definition in definitions if definition is not None), None)


def _submodule(
    top: Path, roots: Sequence[str], module: str, name: str, steps: int
) -> Definition | None:
    """Return the definition in a module that was imported by `from package import module`."""
    return _follow(top, roots, module, name, steps - 1) if name else None


def _find_module(top: Path, roots: Sequence[str], module: str) -> str | None:
    """Return the file of a module, as the first root has it."""
    inner = module.replace(".", "/")
    for root in roots:
        for ending in ("/__init__.py", ".py"):
            path = str(PurePosixPath(root, inner + ending))
            if (top / path).is_file():
                return path
    return None


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, last first, those in `if`, `try` and `with` included."""
    for node in reversed(body):
        for part in ("finalbody", "orelse", "handlers", "body"):
            if not isinstance(node, (ast.If, ast.Try, ast.With)):
                break
            for inner in reversed(getattr(node, part, [])):
                yield from _top_level(inner.body if part == "handlers" else [inner])
        yield node


def _absolute(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    """Return the full name of the module that an import names."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)
