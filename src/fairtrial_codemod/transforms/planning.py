"""Which recipe answers which request: the same for the same files and the same request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

from fairtrial.arena import ASSUMES
from fairtrial.optimize import Request, RequestKind, Tried
from fairtrial_codemod.transforms.catalogue import BY_NAME
from fairtrial_codemod.transforms.overlaying import overlay
from fairtrial_codemod.transforms.reaching import find_reached
from fairtrial_codemod.transforms.recipes import (
    Files,
    Made,
    Recipe,
    Site,
    Step,
    is_named,
    make,
    never,
    number_sites,
    parse,
    spell,
)

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be proposed.

    names: the transformations, the most promising first
    combined: whether they may be combined
    most: how many first proposals there are
    timed: what is timed, a line each: what it doesn't reach is left alone
    checked: what is checked, a line each; it stands for what is timed if nothing is
    """

    names: tuple[str, ...]
    combined: bool = True
    most: int = 32
    timed: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A proposal.

    name: its recipe's
    files: every file that can be transformed, changed or not
    notes: what was done where, and what that takes for granted
    steps: those of its recipe's steps that changed anything
    """

    name: str
    files: Files
    notes: tuple[str, ...]
    steps: Recipe = ()


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
        firsts = list(islice(self._firsts(), min(number + 1, self.rules.most)))
        if number < len(firsts):
            return firsts[number]
        if not firsts:
            where = "these files" if self._reached is None else "what is timed"
            return f"no transformation applies to {where}"
        some = (
            "is only one first proposal"
            if len(firsts) == 1
            else f"are only {len(firsts)} first proposals"
        )
        return f"there {some} for these files"

    def count_firsts(self) -> int:
        """How many first proposals there are.

        Pairs that change different functions are not made for that: each is another one.
        """
        count = 0
        plans: list[Plan] = []
        sites = {step: self._make(self.files, (step,)).sites[0] for step in self._singles}
        for recipe in self._recipes():
            touched = [sites[step] for step in recipe]
            if len(recipe) == 2 and all(touched) and touched[0].isdisjoint(touched[1]):
                count += all(recipe != each.steps for each in plans)
            elif self._is_new(plan := self._plan(recipe), plans):
                plans.append(plan)
                count += 1
            if count == self.rules.most:
                break
        return count

    def _firsts(self) -> Iterator[Plan]:
        """All together, without the small ones, each alone, pairs; none that comes to the same."""
        plans: list[Plan] = []
        for recipe in self._recipes():
            plan = self._plan(recipe)
            if self._is_new(plan, plans):
                plans.append(plan)
                yield plan

    def _is_new(self, plan: Plan, plans: Sequence[Plan]) -> bool:
        return plan.files != self.files and all(plan.files != each.files for each in plans)

    def _recipes(self) -> Iterator[Recipe]:
        """All of them in the order of the catalogue, however promising; none twice."""
        singles = self._singles
        several: list[Sequence[Step]] = []
        if self.rules.combined:
            several = [singles, [step for step in singles if not BY_NAME[step.name].is_small]]
        found = [*several, *([step] for step in singles)]
        if self.rules.combined:
            found += combinations(singles, 2)
        ranks = {name: rank for rank, name in enumerate(self.rules.names)}
        ordered = [tuple(sorted(some, key=lambda step: ranks[step.name])) for some in found]
        return iter(dict.fromkeys(recipe for recipe in ordered if recipe))

    @cached_property
    def _reached(self) -> Set[Site] | None:
        return find_reached(self.files, self.rules.timed, self.rules.checked)

    @cached_property
    def _singles(self) -> list[Step]:
        """Those that change anything: first those in functions that are named, small ones last."""
        for path in sorted(self.files):
            # All that is to be said of one file at once: a tree is kept only for a while.
            for name in self.rules.names:
                self._make({path: self.files[path]}, (Step(name),))
        sites = number_sites(self.files)
        words = read_words(self.rules.timed)
        found = []
        known = [self.files]
        for rank, name in enumerate(self.rules.names):
            made = self._make(self.files, (Step(name),))
            if made.files not in known:
                known.append(made.files)
                is_timed = self._reached is not None or any(
                    is_named(sites[at], words) for at in made.sites[0]
                )
                found.append((not is_timed, BY_NAME[name].is_small, rank))
        return [Step(self.rules.names[rank]) for _, _, rank in sorted(found)]

    def follow(self, request: Request, tried: Tried) -> Plan | str:
        """What to try after a candidate; or why there is nothing."""
        known = [self._overlay(each) for each in (tried, *request.history)]
        mine = known[0]
        if mine is None:
            return f"the diff of {tried.name} doesn't fit the base"
        seen = [each for each in known if each is not None] + [dict(self.files)]

        def choose(options: list[Plan], shift: int) -> Plan | None:
            fresh = [plan for plan in options if all(plan.files != each for each in seen)]
            return fresh[shift % len(fresh)] if fresh else None

        if request.kind is RequestKind.REPAIR:
            # The best first: what the line has tried so far is left out.
            nothing = "nothing is left of it if what failed is taken out"
            return choose(self._repairs(tried, mine), 0) or nothing
        # Neighbouring lines try different things.
        return (
            choose(self._additions(tried, mine), request.lineage)
            or choose(self._omissions(tried, mine), request.lineage)
            or "no further transformation applies"
        )

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
                plans.append(Plan(told, made.files, _add_assumed((*before, *made.notes))))
        return plans

    def _omissions(self, tried: Tried, mine: Files) -> list[Plan]:
        """Without one of its steps, the least promising first: it may do more harm than good."""
        recipe = self._recipe_of(tried, mine) or ()
        ranks = {name: rank for rank, name in enumerate(self.rules.names)}
        worst = sorted(recipe, key=lambda step: ranks.get(step.name, 0), reverse=True)
        shorter = [tuple(each for each in recipe if each is not step) for step in worst]
        return [self._plan(each) for each in shorter if each]

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
        for plan in islice(self._firsts(), self.rules.most):
            if plan.files == mine:
                return parse(plan.name)
        return None

    def _overlay(self, tried: Tried) -> dict[str, str] | None:
        """A candidate's files, those that can be transformed."""
        changed = overlay(self.files, tried.diff)
        return changed if changed and changed.keys() == self.files.keys() else None

    def _plan(self, recipe: Recipe) -> Plan:
        made = self._make(self.files, recipe)
        steps = tuple(step for step, sites in zip(recipe, made.sites, strict=True) if sites)
        return Plan(spell(recipe), made.files, _add_assumed(made.notes), steps)

    def _make(self, files: Files, recipe: Recipe) -> Made:
        return make(files, recipe, self.must_stop, self._reached)


def _add_assumed(notes: Sequence[str]) -> tuple[str, ...]:
    """What was done where; then what those who did it take for granted, once each."""
    names = [note.partition(":")[0] for note in notes]
    assumed = dict.fromkeys(BY_NAME[name].assumes for name in names)
    return (*notes, *(f"{ASSUMES}{each}" for each in assumed if each))


def read_words(texts: Sequence[str] | Iterator[str]) -> set[str]:
    """The words of some texts; of ``test_sort`` also ``sort``."""
    words = {word for text in texts for word in _WORD.findall(text)}
    return words | {word.removeprefix("test_") for word in words}


def _without_steps(recipe: Recipe, made: Made, named: Set[int]) -> Iterator[Recipe]:
    """Not in what failed; without the steps that touch it; halves; without one of them."""
    guilty = [bool(sites & named) for sites in made.sites]
    if any(guilty):
        yield tuple(
            Step(step.name, sites - named) if sites & named else step
            for step, sites in zip(recipe, made.sites, strict=True)
            if not sites or sites - named
        )
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
