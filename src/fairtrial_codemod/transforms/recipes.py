"""Recipes: which transformations are applied, in which order, in which functions.

A recipe's name says all of it, so that it can be read back from a candidate's:
``heap+join(3,7)`` is `heap` wherever it applies, then `join` in the functions number 3 and 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache

from fairtrial_codemod.transforms.analysis.source import read_source
from fairtrial_codemod.transforms.catalogue import BY_NAME, Applied, refuse, transform

Files = Mapping[str, str]
Site = tuple[str, str]
"""A file and a function in it; "" for the module itself."""
_STEP = re.compile(r"(\w+)(?:\((\d+(?:,\d+)*)\))?")


@dataclass(frozen=True, slots=True)
class Step:
    """One transformation of a recipe.

    name: the transformation's
    only: the numbers of the functions that it is applied in; None for all
    """

    name: str
    only: frozenset[int] | None = None

    def __str__(self) -> str:
        if self.only is None:
            return self.name
        return f"{self.name}({','.join(map(str, sorted(self.only)))})"


Recipe = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """What comes of a recipe.

    files: every file, changed or not
    notes: what was done where, a line each
    sites: for each step the numbers of the functions that it changed
    """

    files: Files
    notes: tuple[str, ...]
    sites: tuple[frozenset[int], ...]


class Interrupted(Exception):  # noqa: N818 - nothing is wrong
    """Somebody else needs the host; what was done so far is remembered."""


def never() -> bool:
    """Nobody else needs the host."""
    return False


def spell(recipe: Recipe) -> str:
    """A recipe's name."""
    return "+".join(map(str, recipe))


def parse(name: str) -> Recipe | None:
    """The recipe of that name; None if it isn't one's."""
    steps = []
    for part in name.split("+"):
        read = _STEP.fullmatch(part)
        if read is None or read[1] not in BY_NAME:
            return None
        only = frozenset(map(int, read[2].split(","))) if read[2] else None
        steps.append(Step(read[1], only))
    return tuple(steps)


def transformable(files: Files) -> tuple[dict[str, str], list[str]]:
    """The files that can be transformed, and why the other Python files can't."""
    kept: dict[str, str] = {}
    notes = []
    for path in sorted(files):
        if path.endswith(".py"):
            why = _refuse(files[path])
            if why is None:
                kept[path] = files[path]
            else:
                notes.append(f"{path} is left alone: {why}")
    return kept, notes


def number_sites(files: Files) -> list[Site]:
    """All functions of all files in a fixed order; what recipes number them by."""
    return [(path, scope) for path in sorted(files) for scope in _scopes(files[path])]


def make(
    files: Files,
    recipe: Recipe,
    must_stop: Callable[[], bool] = never,
    within: Set[Site] | None = None,
) -> Made:
    """Apply a recipe to files that can be transformed; functions are numbered as they are there.

    Functions that aren't among `within` are left alone, whatever the recipe says.

    Raises `Interrupted` between two files if it must stop; it is quick to get there again.
    """
    sites = number_sites(files)
    numbers = {site: number for number, site in enumerate(sites)}
    now = dict(files)
    notes: list[str] = []
    touched = []
    for step in recipe:
        chosen = within
        if step.only is not None:
            some = {sites[at] for at in step.only if at < len(sites)}
            chosen = some if within is None else some & within
        changed: set[int] = set()
        for path in sorted(now):
            if must_stop():
                raise Interrupted
            applied = _apply(now[path], path, step.name, chosen)
            now[path] = applied.text
            notes += [f"{step.name}: {path}, {note}" for note in applied.notes]
            changed |= {numbers[path, each] for each in applied.scopes if (path, each) in numbers}
        touched.append(frozenset(changed))
    return Made(now, tuple(notes), tuple(touched))


def _apply(text: str, path: str, name: str, chosen: Set[Site] | None) -> Applied:
    if chosen is None:
        return transform(text, name)
    only = frozenset(scope for place, scope in chosen if place == path)
    return transform(text, name, only) if only else Applied(text)


def is_named(site: Site, words: Set[str]) -> bool:
    """Whether words, those of a failure for instance, speak of a function."""
    path, scope = site
    stem = path.rpartition("/")[2].removesuffix(".py")
    return (scope.rpartition(".")[2] or stem) in words


@lru_cache(maxsize=8192)
def _scopes(text: str) -> tuple[str, ...]:
    source = read_source(text.removeprefix("\ufeff"))
    found = [] if source is None else [name for name, _ in source.functions]
    return tuple(dict.fromkeys(["", *found]))


@lru_cache(maxsize=8192)
def _refuse(text: str) -> str | None:
    return refuse(text)
