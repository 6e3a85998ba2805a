"""A function that can't be imported: where it was looked for, and where it lies instead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fairtrial.arena.stage import Stage

_DEEPEST, _MOST_ENTRIES = 4, 20_000
"""How far a slot is searched for a module."""


def tell_roots(function: str, stage: Stage) -> str:
    """A hint on a `module:function` of a problem, for the slot where it can't be imported."""
    package = function.partition(":")[0].partition(".")[0]
    roots = [_from_project(root, stage) for root in stage.import_roots]
    tried = ", ".join(roots) or "none"
    usual = f"it must be importable as `module:function` from the import roots (here: {tried})"
    places = [path.parent for path in _find_module(stage.slot, package)]
    found = [_from_project(_below(place, stage.slot), stage) for place in places]
    if any(root in found for root in roots):
        return usual
    inside = [place for place in found if not place.startswith("..")]
    if inside:
        wanted = ", ".join([*roots, inside[0]])
        return f"{usual}; {package} lies in {inside[0]}: import_roots: [{wanted}] finds it"
    hidden = _find_hidden(package, stage)
    if hidden is not None:
        return (
            f"{usual}; {hidden} makes inputs, and candidates may not see it: put the function into "
            "a module of its own"
        )
    return f"{usual}; the project has no module {package}"


def _from_project(root: str, stage: Stage) -> str:
    """A folder of the repository as a problem's file names it: from the project's folder."""
    return PurePosixPath(os.path.relpath(root, stage.problem.cwd)).as_posix()


def _below(place: Path, slot: Path) -> str:
    return place.relative_to(slot).as_posix()


def _find_hidden(package: str, stage: Stage) -> str | None:
    """The file of input makers that is this module; slots for candidates don't hold it."""
    problem = stage.problem
    given = [each.inputs for each in problem.check] + [each.inputs for each in problem.bench]
    makers = [PurePosixPath(each.rpartition(":")[0]) for each in given if each]
    found = next((maker for maker in makers if maker.stem == package), None)
    return None if found is None else _from_project(str(found), stage)


def _find_module(slot: Path, package: str) -> list[Path]:
    """Files and folders that are a module of this name, those that lie higher first."""
    names = (f"{package}.py", package)
    found = [path for path in _walk(slot) if path.name in names and _is_module(path)]
    return sorted(found, key=lambda path: (len(path.parts), path))


def _is_module(path: Path) -> bool:
    return path.suffix == ".py" or any(path.glob("*.py"))


def _walk(top: Path) -> Iterator[Path]:
    """Everything in a slot down to some depth; what begins with a dot is nobody's module."""
    folders, seen = [(top, 0)], 0
    while folders and seen < _MOST_ENTRIES:
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
            if depth < _DEEPEST and entry.is_dir(follow_symlinks=False):
                folders.append((Path(entry.path), depth + 1))
