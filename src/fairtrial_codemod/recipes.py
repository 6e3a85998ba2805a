"""Recipes: which transformations are applied, in which order, to which functions.

The name of a recipe describes it completely, so that it can be parsed from a candidate's name:
``growing_set+join(3,7)`` applies `growing_set` everywhere, then `join` to functions 3 and 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache

from fairtrial_codemod.analysis.source_file import read_source
from fairtrial_codemod.catalog import BY_NAME, AppliedTransform, get_refusal, transform

Files = Mapping[str, str]
CodeSite = tuple[str, str]
"""A file and a function in it; "" for the module itself."""
_STEP = re.compile(r"(\w+)(?:\((\d+(?:,\d+)*)\))?")


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """One transformation of a recipe.

    name: its name
    only: the numbers of the functions that it is applied to; None for all
    """

    name: str
    only: frozenset[int] | None = None

    def __str__(self) -> str:
        if self.only is None:
            return self.name
        return f"{self.name}({','.join(map(str, sorted(self.only)))})"


Recipe = tuple[RecipeStep, ...]


@dataclass(frozen=True, slots=True)
class RecipeResult:
    """The result of a recipe.

    files: every file, changed or not
    notes: what was changed, a line each
    sites: for each step the numbers of the functions that it changed
    """

    files: Files
    notes: tuple[str, ...]
    sites: tuple[frozenset[int], ...]


class Interrupted(Exception):  # noqa: N818 - it is no error
    """The host is needed for timing; the work so far is cached."""


def never() -> bool:
    """Return False: work is never interrupted."""
    return False


def format_recipe(recipe: Recipe) -> str:
    """Return the name of a recipe."""
    return "+".join(map(str, recipe))


def parse_recipe(name: str) -> Recipe | None:
    """Return the recipe of a name; None if it isn't the name of a recipe."""
    steps = []
    for part in name.split("+"):
        match = _STEP.fullmatch(part)
        if match is None or match[1] not in BY_NAME:
            return None
        only = frozenset(map(int, match[2].split(","))) if match[2] else None
        steps.append(RecipeStep(match[1], only))
    return tuple(steps)


def select_files(files: Files) -> tuple[dict[str, str], list[str]]:
    """Return the files that can be transformed, and why other Python files can't."""
    selected: dict[str, str] = {}
    notes = []
    for path in sorted(files):
        if path.endswith(".py"):
            reason = _get_refusal(files[path])
            if reason is None:
                selected[path] = files[path]
            else:
                notes.append(f"{path} is left alone: {reason}")
    return selected, notes


def number_sites(files: Files) -> list[CodeSite]:
    """Return all functions of all files in a fixed order; recipes refer to them by index."""
    return [(path, scope) for path in sorted(files) for scope in _list_scopes(files[path])]


def apply_recipe(
    files: Files,
    recipe: Recipe,
    must_stop: Callable[[], bool] = never,
    within: Set[CodeSite] | None = None,
) -> RecipeResult:
    """Apply a recipe to files that can be transformed.

    Functions that aren't among `within` are left alone, whatever the recipe says.

    Raises `Interrupted` between two files if `must_stop` says so; it is quick to get there again.
    """
    sites = number_sites(files)
    numbers = {site: number for number, site in enumerate(sites)}
    current = dict(files)
    notes: list[str] = []
    touched = []
    for step in recipe:
        allowed = within
        if step.only is not None:
            chosen = {sites[number] for number in step.only if number < len(sites)}
            allowed = chosen if within is None else chosen & within
        changed: set[int] = set()
        for path in sorted(current):
            if must_stop():
                raise Interrupted
            applied = _apply(current[path], path, step.name, allowed)
            current[path] = applied.text
            notes += [f"{step.name}: {path}, {note}" for note in applied.notes]
            changed |= {
                numbers[path, scope] for scope in applied.scopes if (path, scope) in numbers
            }
        touched.append(frozenset(changed))
    return RecipeResult(current, tuple(notes), tuple(touched))


def _apply(text: str, path: str, name: str, allowed: Set[CodeSite] | None) -> AppliedTransform:
    if allowed is None:
        return transform(text, name)
    only = frozenset(scope for place, scope in allowed if place == path)
    return transform(text, name, only) if only else AppliedTransform(text)


def is_named(site: CodeSite, words: Set[str]) -> bool:
    """Return whether words, those of a failure for instance, name a function."""
    path, scope = site
    stem = path.rpartition("/")[2].removesuffix(".py")
    return (scope.rpartition(".")[2] or stem) in words


@lru_cache(maxsize=8192)
def _list_scopes(text: str) -> tuple[str, ...]:
    source = read_source(text.removeprefix("\ufeff"))
    names = [] if source is None else [name for name, _ in source.functions]
    return tuple(dict.fromkeys(["", *names]))


@lru_cache(maxsize=8192)
def _get_refusal(text: str) -> str | None:
    return get_refusal(text)
