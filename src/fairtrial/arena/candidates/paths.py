"""Which paths a candidate may touch: inside the tree, editable, and not what judges it."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from fairtrial.arena.candidates.pathspecs import Pathspecs
from fairtrial.arena.candidates.protection import (
    HOLDS_TESTS,
    MODULES,
    OUR_PREFIXES,
    protection_of,
)
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.core import on_one_line

LONGEST_PATH = 200
LONGEST_NAME_BYTES, LONGEST_PATH_BYTES = 255, 4000
_MOST_LINKS = 40
_USUAL_ROOTS = (".", "src", "lib", "python")


class Change(StrEnum):
    """What a candidate does to a path."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class PathRules:
    """What candidates may change, relative to the top of the repository.

    editable: patterns of files that they may change
    unprotect: patterns of protected files among these that they may change nevertheless
    cwd: the project's folder; diffs may be relative to it
    import_roots: folders that imports start from, where no new module may hide one that checks use
    modules: the names of such modules
    fixed: files that nothing may change: input makers, recorded calls
    tests: further files that hold tests, whatever they are called
    """

    editable: tuple[str, ...]
    unprotect: tuple[str, ...] = ()
    cwd: str = "."
    import_roots: tuple[str, ...] = _USUAL_ROOTS
    modules: frozenset[str] = MODULES
    fixed: frozenset[str] = frozenset()
    tests: frozenset[str] = frozenset()
    _editable: Pathspecs = field(init=False, repr=False, compare=False)
    _unprotect: Pathspecs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_editable", Pathspecs(self.editable))
        object.__setattr__(self, "_unprotect", Pathspecs(self.unprotect, "unprotect"))

    @classmethod
    def of(
        cls,
        problem: CodeProblem,
        import_roots: Iterable[str] | None = None,
        tests: frozenset[str] = frozenset(),
    ) -> PathRules:
        """The rules of a problem whose paths are relative to the top of the repository."""
        given = problem.import_roots if import_roots is None else import_roots
        usual = (_join(problem.cwd, root) for root in _USUAL_ROOTS)
        makers = (check.inputs.partition(":")[0] for check in problem.check)
        return cls(
            problem.editable,
            problem.unprotect,
            problem.cwd,
            # Commands start in the project's folder, and `python -m` imports from there.
            tuple(dict.fromkeys((*(usual if given is None else given), ".", problem.cwd))),
            tests=tests,
            fixed=frozenset((*makers, *(check.calls for check in problem.check))) - {""},
        )

    def mistake(self, path: str, change: Change, base: Container[str] = ()) -> str | None:
        """Why a candidate may not do this; None if it may.

        base: the files and folders that the base has
        """
        shown = spell(path)
        if path in self.fixed:
            return f"{shown} is what the checks take their inputs or results from"
        if not self._editable.fit(path):
            return f"{shown} is not among the editable files ({self._editable})"
        why = HOLDS_TESTS if path in self.tests else protection_of(path)
        if why is not None and not self._unprotect.fit(path):
            return f"{shown} is protected: {why}; a problem can allow it in `unprotect`"
        hidden = self._hidden_module(path, base) if change == Change.ADDED else None
        if hidden is not None and not self._unprotect.fit(path):
            return f"{shown} would hide the module {hidden} from the checks: give it another name"
        return None

    def _hidden_module(self, path: str, base: Container[str]) -> str | None:
        """The module that checks may use and that a new file would be imported instead of."""
        for root in self.import_roots:
            prefix = "" if root in (".", "") else root.strip("/") + "/"
            if not path.startswith(prefix):
                continue
            # A folder without __init__ gives way to any module that has one.
            name = path[len(prefix) :].replace("/__init__.", ".", 1)
            module = name.split(".", 1)[0]
            if "/" in name or f"{prefix}{module}.py" in base:
                continue
            is_reserved = module in self.modules or module.startswith(OUR_PREFIXES)
            if is_reserved and f"{prefix}{module}/__init__.py" not in base:
                return module
        return None


def _join(folder: str, path: str) -> str:
    return path if folder in (".", "") else folder if path == "." else f"{folder}/{path}"


def spell(path: str) -> str:
    """A path for people: one line, not too long, whatever is in it."""
    return on_one_line(path, LONGEST_PATH)


def unsafe_path(path: str) -> str | None:
    """What is wrong with a path whatever the tree holds; None if it stays inside."""
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
        return "holds what no file name can"
    longest = max(map(len, encoded.split(b"/")))
    if len(encoded) > LONGEST_PATH_BYTES or longest > LONGEST_NAME_BYTES:
        return "is longer than file systems allow"
    return None


def leads_out(path: str, target: str, link_at: Callable[[str], str | None]) -> str | None:
    """Why a symbolic link may not be there; None if it stays in the tree, whatever it meets.

    link_at: where the link at a path leads; None if there is no link
    """
    if not target or "\0" in target:
        return "leads nowhere"
    here = path.split("/")[:-1]
    left = target.split("/")[::-1]
    if target.startswith("/"):
        return f"leads to an absolute path ({spell(target)})"
    followed = 0
    while left:
        step = left.pop()
        if step in ("", "."):
            continue
        if step == "..":
            if not here:
                return f"leads out of the tree ({spell(target)})"
            here.pop()
            continue
        here.append(step)
        if step.rstrip(". ").casefold() == ".git":
            return f"leads into .git ({spell(target)})"
        further = link_at("/".join(here))
        if further is None:
            continue
        followed += 1
        if further.startswith("/") or followed > _MOST_LINKS:
            how = "in circles" if followed > _MOST_LINKS else "out of the tree"
            return f"leads {how} by way of {spell('/'.join(here))}"
        here.pop()
        left.extend(further.split("/")[::-1])
    return None
