"""Find what a target names: the file, the function in it, its project and module."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fairtrial.arena.candidates.protection import get_protection
from fairtrial.arena.import_roots import find_import_roots
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.repository import MARKERS, find_repository
from fairtrial.arena.targets.functions import SourceFunction, list_functions, parse_source
from fairtrial.core import Mistake, StudyError

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_MOST_FILES = 20_000
_MOST_IMPORTS = 6
_EXAMPLE = "such as src/shop/cart.py::Cart.total or shop.cart:Cart.total"


@dataclass(frozen=True, slots=True)
class Target:
    """A function of a project.

    top: the top of the git repository, or of the project if there is none
    cwd: the project's folder, relative to the top
    path: the file, relative to the project's folder
    root: the folder that the import of its module starts from, relative to the project's folder
    module: the name of its module
    function: the function
    roots: all folders that imports start from, relative to the project's folder
    """

    top: Path
    cwd: str
    path: str
    root: str
    module: str
    function: SourceFunction
    roots: tuple[str, ...]

    @property
    def project(self) -> Path:
        """The project's folder."""
        return self.top / self.cwd

    @property
    def reference(self) -> str:
        """The function as problem files name it: `module:function`."""
        return f"{self.module}:{self.function.name}"

    @property
    def text(self) -> str:
        """The function as people name it: `file.py::function`."""
        return f"{self.path}::{self.function.name}"

    @property
    def problem_id(self) -> str:
        """A name for its problem."""
        return re.sub(r"[^\w.-]+", "-", f"{self.module}.{self.function.name}")


def is_target(text: str) -> bool:
    """Return whether a text names a function of a file or module, rather than a file."""
    file, colons, function = _split(text)
    if not colons or os.path.lexists(text):
        return False
    names_file = file.endswith(".py")
    is_name = _DOTTED.fullmatch(file) is not None and _DOTTED.fullmatch(function) is not None
    return names_file or is_name or "::" in text


def _split(text: str) -> tuple[str, str, str]:
    separator = "::" if "::" in text else ":"
    file, colons, function = text.partition(separator)
    return file, colons, function.replace("::", ".")


async def find_target(text: str, folder: Path) -> Target:
    """Find the function that a text names.

    text: `path.py::function`, `path.py::Class.method`, `module:function`, `module:Class.method`
    folder: the folder that the path is relative to, or that the project is in

    Raises `StudyError` if there is none, or its calls can't be recorded.
    """
    from anyio import to_thread

    file, _, name = _split(text)
    if not name and file.endswith(".py"):
        await to_thread.run_sync(_refuse_file, text, file, folder)
    if not file or not name:
        raise StudyError(Mistake((), "expected a file and a function", _EXAMPLE), source=text)
    if file.endswith(".py") or "/" in file:
        path = await to_thread.run_sync(_find_path, text, file, folder)
    else:
        path = await _find_module(text, file, folder)
    repository = await find_repository(path.parent, folder)
    top = repository.top.resolve()
    real = path.resolve()
    if not real.is_relative_to(top):
        message = f"{path} is a link that leads out of the repository {top}"
        raise StudyError(Mistake((), message, "name the file itself"), source=text)
    if await _is_ignored(repository.git_dir, top, real):
        message = f"git ignores {real.relative_to(top)}, so candidates can't change it"
        raise StudyError(Mistake((), message, "see .gitignore"), source=text)
    home, own_name = await to_thread.run_sync(_follow_imports, real, name, top)
    return await to_thread.run_sync(make_target, text, top, home, own_name)


def _follow_imports(file: Path, name: str, top: Path) -> tuple[Path, str]:
    """Return the file that defines a function which a file may only import, and its name there."""
    first, dot, rest = name.partition(".")
    for _ in range(_MOST_IMPORTS):
        definition = _find_import(file, first, top)
        if definition is None:
            break
        file, first = definition
    return file, f"{first}{dot}{rest}"


def _find_import(file: Path, name: str, top: Path) -> tuple[Path, str] | None:
    """Return where `from ... import name` takes a name from; None if the file defines it."""
    try:
        body = parse_source(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    defining = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    if any(isinstance(node, defining) and node.name == name for node in body):
        return None
    imports = [node for item in body for node in ast.walk(item) if isinstance(node, ast.ImportFrom)]
    for node in imports:
        for alias in node.names:
            if name not in (alias.asname, alias.name) and alias.name != "*":
                continue
            source = _find_source(file, node, top)
            own = name if alias.name == "*" else alias.name
            if source is not None and (alias.name != "*" or _defines(source, own)):
                return source, own
    return None


def _defines(file: Path, name: str) -> bool:
    try:
        return any(item.name == name for item in list_functions(file.read_bytes()))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False


def _find_source(file: Path, node: ast.ImportFrom, top: Path) -> Path | None:
    """Return the file of the module that an import takes names from, if it is in the project."""
    parts = (node.module or "").split(".") if node.module else []
    if node.level:
        starts = [file.parents[node.level - 1]] if node.level <= len(file.parents) else []
    else:
        starts = [folder for folder in file.parents if folder.is_relative_to(top)]
    for start in starts:
        base = start.joinpath(*parts)
        for path in (base.with_name(f"{base.name}.py") if parts else base, base / "__init__.py"):
            if path.is_file() and path != file:
                return path
    return None


def make_target(text: str, top: Path, file: Path, name: str) -> Target:
    """Return the target that a function of a file is; raise `StudyError` if it can't be one."""
    project = find_project(file, top)
    path = file.relative_to(project).as_posix()
    function = _find_function(text, file, path, name)
    why = get_protection(path)
    if why is not None:
        message = f"{path} is protected: {why}; candidates can't change it"
        raise StudyError(Mistake((), message, "name a function of the project itself"), source=text)
    cwd = project.relative_to(top).as_posix()
    import_roots = find_import_roots(top, cwd)
    roots = tuple(os.path.relpath(top / root, project) for root in import_roots)
    root, module = _find_module_name(text, file, project, roots)
    return Target(top, cwd, path, root, module, function, tuple(dict.fromkeys((root, *roots))))


def find_project(file: Path, top: Path) -> Path:
    """Return the project's folder: the nearest one above a file with packaging, else the top."""
    for folder in file.parents:
        if any((folder / name).is_file() for name in MARKERS):
            return folder
        if folder == top:
            break
    return top


def _find_path(text: str, file: str, folder: Path) -> Path:
    path = folder / Path(file).expanduser()
    if path.is_file():
        if path.suffix != ".py":
            raise StudyError(Mistake((), f"{file} is no Python file", _EXAMPLE), source=text)
        return path
    if path.is_dir():
        raise StudyError(Mistake((), f"{file} is a folder; name a file in it"), source=text)
    names = [os.path.relpath(item, folder) for item in list_python_files(folder)]
    same = [name for name in names if Path(name).name == Path(file).name]
    close = same[:3] or difflib.get_close_matches(file, names, 1)
    hint = f"did you mean {' or '.join(close)}?" if close else ""
    raise StudyError(Mistake((), f"there is no file {file}", hint), source=text)


def list_python_files(folder: Path) -> list[Path]:
    """Return the Python files below a folder, without environments and hidden folders."""
    files: list[Path] = []
    for place, folders, names in os.walk(folder):
        is_environment = "pyvenv.cfg" in names
        folders[:] = sorted(
            name
            for name in folders
            if not is_environment
            and not name.startswith(".")
            and name not in ("node_modules", "__pycache__", "site-packages", "artifacts")
        )
        files += [
            Path(place, name) for name in names if name.endswith(".py") and not is_environment
        ]
        if len(files) > _MOST_FILES:
            break
    return sorted(files)


async def _find_module(text: str, module: str, folder: Path) -> Path:
    """Return the file of a module of the project that a folder belongs to."""
    from anyio import to_thread

    top = (await find_repository(folder)).top.resolve()
    return await to_thread.run_sync(_search_module, text, module, folder, top)


def _search_module(text: str, module: str, folder: Path, top: Path) -> Path:
    tail = PurePosixPath(*module.split("."))
    here = folder.resolve()
    project = find_project(here / "x.py", top)
    roots = [top / root for root in find_import_roots(top, project.relative_to(top).as_posix())]
    for root in (*roots, here, project, top):
        for path in (root / f"{tail}.py", root / tail / "__init__.py"):
            if path.is_file():
                return path
    files = list_python_files(top)
    ends = (f"/{tail}.py", f"/{tail}/__init__.py")
    matches = [file for file in files if file.as_posix().endswith(ends)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(str(file.relative_to(top)) for file in matches[:4])
        hint = f"name the file: {matches[0].relative_to(top)}::..."
        raise StudyError(Mistake((), f"{module} may be {names}", hint), source=text)
    if _is_installed(module):
        message = f"{module} is not part of the repository {top}: candidates can't change it"
        raise StudyError(Mistake((), message, "name a function of the project"), source=text)
    stems = sorted({file.stem for file in files})
    close = difflib.get_close_matches(module.rpartition(".")[2], stems, 1)
    hint = f"did you mean {close[0]}?" if close else _EXAMPLE
    raise StudyError(Mistake((), f"there is no module {module} in {top}", hint), source=text)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


async def _is_ignored(git_dir: Path, top: Path, file: Path) -> bool:
    name = os.fsencode(file.relative_to(top).as_posix())
    arguments = ("check-ignore", "-q", "--stdin", "-z")
    try:
        await git(*arguments, repo=git_dir, worktree=top, as_user=True, stdin=name + b"\0")
    except GitError:
        return False  # status 1: it isn't ignored; tracked files never are
    return True


def _refuse_file(text: str, file: str, folder: Path) -> None:
    """Raise `StudyError` for a file without a function, with the functions that it has."""
    path = _find_path(text, file, folder)
    functions = [item for item in _read_functions(path) if item.can_be_recorded]
    functions.sort(key=lambda item: item.name.rpartition(".")[2].startswith("_"))
    names = [f"{file}::{item.name}" for item in functions]
    more = f" or {len(names) - 8} more" if len(names) > 8 else ""
    hint = f"name a function in it: {', '.join(names[:8])}{more}" if names else "it has no function"
    raise StudyError(Mistake((), "is a whole file", hint), source=text)


def _read_functions(file: Path) -> list[SourceFunction]:
    try:
        return list_functions(file.read_bytes())
    except OSError as error:
        raise StudyError(f"can't be read: {error.strerror}", source=str(file)) from None
    except (SyntaxError, ValueError, RecursionError) as error:
        raise StudyError(f"is no valid Python: {error}", source=str(file)) from None


def _find_function(text: str, file: Path, path: str, name: str) -> SourceFunction:
    functions = _read_functions(file)
    matches = [function for function in functions if function.name == name]
    if not matches:
        _refuse_unknown(text, path, name, functions)
    function = matches[-1]  # a later definition replaces an earlier one
    if function.kind == "class":
        methods = [item.name for item in functions if item.name.startswith(f"{name}.")]
        methods = [item for item in methods if item.count(".") == name.count(".") + 1]
        hint = f"name a method of it: {', '.join(methods[:6])}" if methods else "name a function"
        raise StudyError(Mistake((), f"{name} is a class", hint), source=text)
    if function.kind == "property":
        hint = "move its work to a method, or name a function that uses it"
        message = f"{name} is a property, which is read and not called"
        raise StudyError(Mistake((), message, hint), source=text)
    if function.makes_itself:
        message = f"{name} makes its own object, so its calls can't be made again"
        hint = "name a function that makes such objects"
        raise StudyError(Mistake((), message, hint), source=text)
    return function


def _refuse_unknown(text: str, path: str, name: str, functions: Sequence[SourceFunction]) -> None:
    inner = [item for item in functions if item.kind == "nested"]
    hidden = [item for item in inner if item.name.rpartition(".")[2] == name.rpartition(".")[2]]
    if hidden:
        outer = hidden[0].name.partition(".<locals>")[0]
        message = (
            f"{name} is defined inside {outer} (line {hidden[0].line}): it has no name outside"
        )
        raise StudyError(Mistake((), message, f"name {outer}, or move it out"), source=text)
    names = [item.name for item in functions if item.can_be_recorded]
    last = name.rpartition(".")[2]
    same = [item for item in names if item.rpartition(".")[2] == last]
    close = same[:2] or difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(names[:8])}"
    if not names:
        hint = "it has none"
    message = f"{path} has no function {name}"
    raise StudyError(Mistake((), message, hint), source=text)


def _find_module_name(
    text: str, file: Path, project: Path, roots: Sequence[str]
) -> tuple[str, str]:
    """Return the folder that the import of a file starts from, and its module's name."""
    relative = PurePosixPath(file.relative_to(project).as_posix())
    parts = relative.with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    inside = [root for root in roots if relative.is_relative_to(root)]
    # The most specific root; without packaging, a folder without __init__.py is one itself.
    root = max(inside, key=lambda item: len(PurePosixPath(item).parts), default="")
    depth = len(PurePosixPath(root).parts) if root else 0
    inner = [project.joinpath(*parts[:end]) for end in range(depth + 1, len(relative.parts))]
    is_regular = all((folder / "__init__.py").is_file() for folder in inner)
    if not is_regular and (not root or root == "."):
        depth = len(relative.parts) - 1
        while depth and project.joinpath(*relative.parts[:depth], "__init__.py").is_file():
            depth -= 1
        root = "/".join(relative.parts[:depth]) or "."
    names = parts[depth:]
    if not names or not all(name.isidentifier() for name in names):
        message = f"{relative} can't be imported: its path is no module's name"
        raise StudyError(Mistake((), message, "rename it, or move the function"), source=text)
    return root, ".".join(names)
