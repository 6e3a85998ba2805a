"""Rules for the paths that a candidate may change: inside the tree, editable, not protected."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from fairtrial.arena.candidates.pathspecs import Pathspecs
from fairtrial.arena.candidates.protection import (
    HOLDS_TESTS,
    MODULES,
    OWN_PREFIXES,
    get_protection,
)
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.core import on_one_line

MAX_SHOWN_CHARACTERS = 200
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4000
_MAX_LINKS = 40
_USUAL_ROOTS = (".", "src", "lib", "python")


class PathChange(StrEnum):
    """How a candidate changes a path."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class PathRules:
    """Rules for the paths that candidates may change, relative to the top of the repository.

    editable: patterns of files that may be changed
    unprotect: patterns of protected files among these that may be changed as well
    cwd: the project's folder; diffs may be relative to it
    import_roots: folders that imports start from, where no new module may shadow one of `modules`
    modules: names of modules that checks may import
    fixed: files and folders that may never be changed: input generators, recorded calls, suites of
        benchmarks
    tests: further files that hold tests, whatever their names
    is_strict: whether revisions must follow the rules, too, instead of being cut down to them
    """

    editable: tuple[str, ...]
    unprotect: tuple[str, ...] = ()
    cwd: str = "."
    import_roots: tuple[str, ...] = _USUAL_ROOTS
    modules: frozenset[str] = MODULES
    fixed: frozenset[str] = frozenset()
    tests: frozenset[str] = frozenset()
    is_strict: bool = False
    _editable: Pathspecs = field(init=False, repr=False, compare=False)
    _unprotect: Pathspecs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_editable", Pathspecs(self.editable))
        object.__setattr__(self, "_unprotect", Pathspecs(self.unprotect, "unprotect"))

    @classmethod
    def from_problem(
        cls,
        problem: CodeProblem,
        import_roots: Iterable[str] | None = None,
        tests: frozenset[str] = frozenset(),
        *,
        is_strict: bool = False,
    ) -> PathRules:
        """Return the rules of a problem whose paths are relative to the top of the repository.

        import_roots: overrides the problem's own
        """
        roots = problem.import_roots if import_roots is None else import_roots
        usual = (_join(problem.cwd, root) for root in _USUAL_ROOTS)
        return cls(
            problem.editable,
            problem.unprotect,
            problem.cwd,
            # Commands start in the project's folder, and `python -m` imports from there.
            tuple(dict.fromkeys((*(usual if roots is None else roots), ".", problem.cwd))),
            tests=tests,
            fixed=frozenset((*problem.checks_files, *problem.suite_paths)) - {"."},
            is_strict=is_strict,
        )

    def find_violation(
        self, path: str, change: PathChange, base: Container[str] = ()
    ) -> str | None:
        """Return why a candidate may not change a path in this way; None if it may.

        base: paths of the base's files and folders
        """
        shown, parents = show_path(path), PurePosixPath(path).parents
        if path in self.fixed or any(str(folder) in self.fixed for folder in parents):
            return f"{shown} is what checks or benchmarks take their inputs or results from"
        if not self._editable.match(path):
            return f"{shown} is not among the editable files ({self._editable})"
        why = HOLDS_TESTS if path in self.tests else get_protection(path)
        if why is not None and not self._unprotect.match(path):
            return f"{shown} is protected: {why}; a problem can allow it in `unprotect`"
        shadowed = self._find_shadowed_module(path, base) if change == PathChange.ADDED else None
        if shadowed is not None and not self._unprotect.match(path):
            return f"{shown} would hide the module {shadowed} from the checks: give it another name"
        return None

    def _find_shadowed_module(self, path: str, base: Container[str]) -> str | None:
        """Return the module of the checks that a new file would be imported instead of."""
        for root in self.import_roots:
            prefix = "" if root in (".", "") else root.strip("/") + "/"
            if not path.startswith(prefix):
                continue
            # A folder without __init__ can't shadow a module.
            name = path[len(prefix) :].replace("/__init__.", ".", 1)
            module = name.split(".", 1)[0]
            if "/" in name or f"{prefix}{module}.py" in base:
                continue
            is_reserved = module in self.modules or module.startswith(OWN_PREFIXES)
            if is_reserved and f"{prefix}{module}/__init__.py" not in base:
                return module
        return None


def _join(folder: str, path: str) -> str:
    return path if folder in (".", "") else folder if path == "." else f"{folder}/{path}"


def show_path(path: str) -> str:
    """Return a path for messages: on one line, shortened if it is long."""
    return on_one_line(path, MAX_SHOWN_CHARACTERS)


def find_path_problem(path: str) -> str | None:
    """Return what is wrong with a path in any tree; None if it is valid and stays inside."""
    if not path or "\0" in path or "\n" in path:
        return "has no name" if not path else "holds a null character or a line end"
    if path.startswith("/"):
        return "is absolute; paths are relative to the top of the repository"
    steps = path.split("/")
    if ".." in steps:
        return "leads out by '..'"
    if any(step in ("", ".") for step in steps):
        return "has an empty step ('//' or '/./')"
    # Other systems' file systems take some of these for .git as well.
    if any(step.rstrip(". ").casefold() in (".git", "git~1") for step in steps):
        return "lies in .git"
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        return "holds characters that no file name can"
    longest = max(map(len, encoded.split(b"/")))
    if len(encoded) > MAX_PATH_BYTES or longest > MAX_NAME_BYTES:
        return "is longer than file systems allow"
    return None


def find_link_problem(path: str, target: str, read_link: Callable[[str], str | None]) -> str | None:
    """Return why a symbolic link is not allowed; None if it stays in the tree.

    Links on the way are followed.

    read_link: returns the target of the link at a path, None if there is no link
    """
    if not target or "\0" in target:
        return "leads nowhere"
    current = path.split("/")[:-1]
    pending = target.split("/")[::-1]
    if target.startswith("/"):
        return f"leads to an absolute path ({show_path(target)})"
    followed = 0
    while pending:
        step = pending.pop()
        if step in ("", "."):
            continue
        if step == "..":
            if not current:
                return f"leads out of the tree ({show_path(target)})"
            current.pop()
            continue
        current.append(step)
        if step.rstrip(". ").casefold() == ".git":
            return f"leads into .git ({show_path(target)})"
        link = read_link("/".join(current))
        if link is None:
            continue
        followed += 1
        if link.startswith("/") or followed > _MAX_LINKS:
            how = "in a circle" if followed > _MAX_LINKS else "out of the tree"
            return f"leads {how} by way of {show_path('/'.join(current))}"
        current.pop()
        pending.extend(link.split("/")[::-1])
    return None
