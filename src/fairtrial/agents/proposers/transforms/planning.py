"""Which recipe answers which request: the same for the same files and the same request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from fairtrial.agents.proposers.transforms.overlaying import overlay
from fairtrial.agents.proposers.transforms.recipes import (
    Files,
    Made,
    Recipe,
    Step,
    is_named,
    make,
    never,
    number_sites,
    parse,
    spell,
)
from fairtrial.model.proposals import Kind, Request, Tried

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be proposed.

    names: the transformations, the most promising first
    combined: whether they may be combined
    most: how many first proposals there are
    timed: what is timed, in words: functions that are named there go first
    """

    names: tuple[str, ...]
    combined: bool = True
    most: int = 32
    timed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A proposal.

    name: its recipe's
    files: every file that can be transformed, changed or not
    notes: what was done where
    """

    name: str
    files: Files
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Planner:
    """Plans for one base.

    files: those of its files that can be transformed
    rules: what may be proposed
    must_stop: asked between files; `recipes.Interrupted` is raised if so
    """

    files: Files
    rules: Rules
    must_stop: Callable[[], bool] = never

    def first(self, number: int) -> Plan | str:
        """The first proposal of that number; or why there is none."""
        if number < len(self.firsts):
            return self.firsts[number]
        if not self.firsts:
            return "no transformation applies to these files"
        some = (
            "is only one first proposal"
            if len(self.firsts) == 1
            else (f"are only {len(self.firsts)} first proposals")
        )
        return f"there {some} for these files"

    @cached_property
    def firsts(self) -> list[Plan]:
        """Each transformation alone, all together, then pairs; none that comes to the same."""
        plans: list[Plan] = []
        for recipe in self._recipes():
            plan = self._plan(recipe)
            if plan.files != self.files and all(plan.files != each.files for each in plans):
                plans.append(plan)
            if len(plans) == self.rules.most:
                break
        return plans

    def _recipes(self) -> Iterator[Recipe]:
        singles = self._singles
        for step in singles:
            yield (step,)
        if self.rules.combined and len(singles) > 1:
            yield tuple(singles)
            yield from combinations(singles, 2)

    @cached_property
    def _singles(self) -> list[Step]:
        """Those that change anything; first those that change what is timed."""
        for path in sorted(self.files):
            # All that is to be said of one file at once: a tree is kept only for a while.
            for name in self.rules.names:
                self._make({path: self.files[path]}, (Step(name),))
        sites = number_sites(self.files)
        words = read_words(self.rules.timed)
        found = []
        for rank, name in enumerate(self.rules.names):
            made = self._make(self.files, (Step(name),))
            if made.files != self.files:
                is_timed = any(is_named(sites[at], words) for at in made.sites[0])
                found.append((not is_timed, rank, Step(name)))
        return [step for _, _, step in sorted(found, key=lambda each: each[:2])]

    def follow(self, request: Request, tried: Tried) -> Plan | str:
        """What to try after a candidate; or why there is nothing."""
        known = [self._overlay(each) for each in (tried, *request.history)]
        mine = known[0]
        if mine is None:
            return f"the diff of {tried.name} doesn't fit the base"
        seen = [each for each in known if each is not None] + [dict(self.files)]
        if request.kind is Kind.REPAIR:
            options = self._repairs(tried, mine)
            shift = request.replicate
            nothing = "nothing is left of it if what failed is taken out"
        else:
            options = self._additions(tried, mine)
            # Neighbouring lines try different things.
            shift = request.line + request.replicate
            nothing = "no further transformation applies"
        fresh = [plan for plan in options if all(plan.files != each for each in seen)]
        return fresh[shift % len(fresh)] if fresh else nothing

    def _additions(self, tried: Tried, mine: Files) -> list[Plan]:
        recipe = self._recipe_of(tried, mine)
        done = {step.name for step in recipe or ()}
        plans = []
        for name in self.rules.names:
            if name in done:
                continue
            made = self._make(mine, (Step(name),))
            if made.files != mine:
                told = spell((*recipe, Step(name))) if recipe else f"{tried.name}+{name}"
                before = self._make(self.files, recipe).notes if recipe else ()
                plans.append(Plan(told, made.files, (*before, *made.notes)))
        return plans

    def _repairs(self, tried: Tried, mine: Files) -> list[Plan]:
        recipe = self._recipe_of(tried, mine)
        if recipe is None:
            return []
        made = self._make(self.files, recipe)
        sites = number_sites(self.files)
        words = read_words(
            text
            for each in tried.failures
            for text in (each.what, each.message, *(one.where for one in each.differences))
        )
        named = {at for step in made.sites for at in step if is_named(sites[at], words)}
        if len(recipe) > 1:
            shorter = _without_steps(recipe, made, named)
        else:
            shorter = _without_sites(recipe[0], made.sites[0], named)
        return [self._plan(each) for each in dict.fromkeys(shorter) if each]

    def _recipe_of(self, tried: Tried, mine: Files) -> Recipe | None:
        """The recipe that a candidate was made by: its name says so, or it is one of the first."""
        recipe = parse(tried.name)
        if recipe is not None and self._make(self.files, recipe).files == mine:
            return recipe
        for plan in self.firsts:
            if plan.files == mine:
                return parse(plan.name)
        return None

    def _overlay(self, tried: Tried) -> dict[str, str] | None:
        """A candidate's files, those that can be transformed."""
        changed = overlay(self.files, tried.diff)
        return changed if changed and changed.keys() == self.files.keys() else None

    def _plan(self, recipe: Recipe) -> Plan:
        made = self._make(self.files, recipe)
        return Plan(spell(recipe), made.files, made.notes)

    def _make(self, files: Files, recipe: Recipe) -> Made:
        return make(files, recipe, self.must_stop)


def read_words(texts: Sequence[str] | Iterator[str]) -> set[str]:
    """The words of some texts; of ``test_sort`` also ``sort``."""
    words = {word for text in texts for word in _WORD.findall(text)}
    return words | {word.removeprefix("test_") for word in words}


def _without_steps(recipe: Recipe, made: Made, named: Set[int]) -> Iterator[Recipe]:
    """Without the steps that touch what failed; then halves; then without one of them."""
    guilty = [bool(sites & named) for sites in made.sites]
    if any(guilty) and not all(guilty):
        yield tuple(step for step, is_guilty in zip(recipe, guilty, strict=True) if not is_guilty)
    half = (len(recipe) + 1) // 2
    yield recipe[:half]
    yield recipe[half:]
    for at in range(len(recipe)):
        yield recipe[:at] + recipe[at + 1 :]


def _without_sites(step: Step, sites: Set[int], named: Set[int]) -> Iterator[Recipe]:
    """The same for the functions that a single step changes."""
    ordered = sorted(sites)
    half = (len(ordered) + 1) // 2
    innocent = [at for at in ordered if at not in named]
    for some in (innocent, ordered[:half], ordered[half:]):
        if some and len(some) < len(ordered):
            yield (Step(step.name, frozenset(some)),)
