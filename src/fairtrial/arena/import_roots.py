"""Find the folders that a project's imports start from: from its packaging, else its folders."""

from __future__ import annotations

import ast
import configparser
import itertools
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

USUAL = ("src", "lib", "python")
"""Folders that aren't packages themselves but often contain them."""
# Folders beside the code of most projects that it doesn't import.
_NOT_CODE = {
    *("bench", "benchmarks", "build", "ci", "dist", "doc", "docs", "env", "example", "examples"),
    *("node_modules", "scripts", "site", "test", "testing", "tests", "tools", "venv"),
}
_DEEPEST, _MOST_FILES = 4, 2_000
"""Depth and number of files up to which a folder is searched for a module."""


def find_import_roots(top: Path, cwd: str = ".") -> tuple[str, ...]:
    """Return the folders that imports start from, relative to `top`, the most specific first.

    These are the existing folders that the project's packaging names, and `src` if there are
    modules in it; without any of these `lib` or `python` if there are modules in them. The
    project's own folder is added if there is no other, or if there are packages in it, too. Files
    that can't be read are ignored.

    top: a tree of the whole repository
    cwd: the project's folder in it
    """
    project = top / cwd
    roots = [root for root in _configured_roots(project) if _is_folder(project, root)]
    if _holds_modules(project / "src"):
        roots.append("src")
    if not roots:
        roots = [name for name in USUAL if _holds_modules(project / name)]
    if not roots or _has_packages(project):
        roots.append(".")
    return tuple(dict.fromkeys(str(PurePosixPath(cwd, root)) for root in roots))


def _configured_roots(project: Path) -> Iterator[str]:
    """Yield the folders that pyproject.toml, setup.cfg and setup.py name inside the project."""
    pyproject = _read_toml(project / "pyproject.toml")
    named = itertools.chain(
        _from_setuptools(_get(pyproject, "tool", "setuptools")),
        _from_hatch(_get(pyproject, "tool", "hatch", "build")),
        _from_other_tools(_get(pyproject, "tool")),
        _from_setup_cfg(project / "setup.cfg"),
        _from_setup_py(project / "setup.py"),
    )
    for root in named:
        path = PurePosixPath(root)
        if not path.is_absolute() and ".." not in path.parts:
            yield str(path)


def _from_setuptools(table: Any) -> Iterator[str]:
    yield from _texts(_get(table, "packages", "find", "where"))
    yield from _package_dirs(_get(table, "package-dir"))


def _from_hatch(build: Any) -> Iterator[str]:
    for table in (_get(build, "targets", "wheel"), build):
        yield from (_parent(path) for path in _texts(_get(table, "packages")))
        sources = _get(table, "sources")
        yield from _texts(sources)
        yield from _package_dirs({name: path for path, name in _pairs(sources)})
    yield from _texts(_get(build, "dev-mode-dirs"))


def _from_other_tools(tool: Any) -> Iterator[str]:
    for package in _list(_get(tool, "poetry", "packages")):
        if _texts(_get(package, "include")):
            yield from _texts(_get(package, "from")) or ["."]
    yield from _texts(_get(tool, "pdm", "build", "package-dir"))
    yield from _texts(_get(tool, "maturin", "python-source"))
    yield from _texts(_get(tool, "uv", "build-backend", "module-root"))
    yield from map(_parent, _texts(_get(tool, "scikit-build", "wheel", "packages")))
    yield from _texts(_get(tool, "pytest", "ini_options", "pythonpath"))


def _from_setup_cfg(path: Path) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(_read(path))
    except configparser.Error:
        return
    yield from parser.get("options.packages.find", "where", fallback="").split()
    lines = parser.get("options", "package_dir", fallback="").replace(",", "\n").splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line)
    yield from _package_dirs({name.strip(): folder.strip() for name, _, folder in pairs})


def _from_setup_py(path: Path) -> Iterator[str]:
    """Yield the folders in ``package_dir={...}`` and ``find_packages("...")``, if literals."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are about the project's code
            tree = ast.parse(_read(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if name == "setup":
            yield from _package_dirs(_literal(keywords.get("package_dir")))
        elif name in ("find_packages", "find_namespace_packages"):
            yield from _texts(_literal(node.args[0] if node.args else keywords.get("where")))


def _literal(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _package_dirs(table: Any) -> Iterator[str]:
    """Yield the roots of a table such as ``{"": "src"}`` or ``{"package": "lib/package"}``."""
    for name, folder in _pairs(table):
        path = PurePosixPath(folder)
        parts = tuple(part for part in name.split(".") if part)
        if path.parts[len(path.parts) - len(parts) :] == parts:
            yield str(PurePosixPath(*path.parts[: len(path.parts) - len(parts)]))


def _parent(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _get(table: Any, *keys: str) -> Any:
    """Return the value at a path of keys in nested tables; None if a key is missing."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    """Return a string or a list of strings as a list, without anything else."""
    items = value if isinstance(value, (list, tuple)) else [value]
    return [text for text in items if isinstance(text, str) and text]


def _pairs(table: Any) -> Iterator[tuple[str, str]]:
    for key, value in table.items() if isinstance(table, dict) else ():
        if isinstance(key, str) and isinstance(value, str):
            yield key, value


def _read_toml(path: Path) -> Any:
    try:
        return tomllib.loads(_read(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _read(path: Path) -> str:
    try:
        # Reading a pipe or a device could block.
        is_text = path.is_file()
        return path.read_text("utf-8", "replace").removeprefix("\ufeff") if is_text else ""
    except OSError:
        return ""


def _is_folder(project: Path, root: str) -> bool:
    try:
        return (project / root).is_dir()
    except OSError:  # a name that is too long
        return False


def _has_packages(project: Path) -> bool:
    """Return whether a folder contains packages that are meant to be imported."""
    for item in _entries(project):
        if item.name.lower() in _NOT_CODE or item.name in USUAL or not item.name.isidentifier():
            continue
        if (item / "__init__.py").is_file():
            return True
    return False


def _holds_modules(folder: Path) -> bool:
    """Return whether a folder isn't a package itself and contains modules, up to `_DEEPEST`."""
    if (folder / "__init__.py").is_file():
        return False
    budget = itertools.count()
    return any(
        file.suffix in (".py", ".pyx", ".pyi", ".so") for file in _files(folder, _DEEPEST, budget)
    )


def _files(folder: Path, deepest: int, budget: Iterator[int]) -> Iterator[Path]:
    for item in _entries(folder):
        if next(budget) > _MOST_FILES:
            return
        if item.is_dir() and not item.is_symlink():
            if deepest and item.name.isidentifier():
                yield from _files(item, deepest - 1, budget)
        else:
            yield item


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return ()
