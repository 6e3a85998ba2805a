"""Choose the recipe that answers a request: always the same for the same files and request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

from fairtrial import Request
from fairtrial.arena import delivery
from fairtrial.optimize import RequestKind, Tried
from fairtrial_codemod.catalog import BY_NAME
from fairtrial_codemod.reachability import find_reachable
from fairtrial_codemod.recipes import (
    CodeSite,
    Files,
    Recipe,
    RecipeResult,
    RecipeStep,
    apply_recipe,
    format_recipe,
    is_named,
    never,
    number_sites,
    parse_recipe,
)

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What may be proposed.

    names: the transformations, the most promising first
    combined: whether they may be combined
    most: the number of first proposals
    timed: the benchmarks, a line each; functions that they don't reach are left alone
    checked: the checks, a line each; they count if there are no benchmarks
    """

    names: tuple[str, ...]
    combined: bool = True
    most: int = 32
    timed: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposalPlan:
    """A proposal.

    name: the name of its recipe
    files: every file that can be transformed, changed or not
    notes: what was changed, and what that assumes
    steps: the steps of its recipe that changed anything
    """

    name: str
    files: Files
    notes: tuple[str, ...]
    steps: Recipe = ()


@dataclass(frozen=True)
class Planner:
    """Makes plans for one base.

    files: the files of the base that can be transformed
    rules: what may be proposed
    must_stop: called between files; `recipes.Interrupted` is raised if it returns True
    """

    files: Files
    rules: PlanRules
    must_stop: Callable[[], bool] = never

    def plan_first(self, number: int) -> ProposalPlan | str:
        """Return the first proposal of that number, or the reason why there is none."""
        plans = list(islice(self._list_first_plans(), min(number + 1, self.rules.most)))
        if number < len(plans):
            return plans[number]
        if not plans:
            where = "these files" if self._reachable is None else "what is timed"
            return f"no transformation applies to {where}"
        count = (
            "is only one first proposal"
            if len(plans) == 1
            else f"are only {len(plans)} first proposals"
        )
        return f"there {count} for these files"

    def count_firsts(self) -> int:
        """Return the number of first proposals.

        Pairs that change different functions are counted without being made: each is new.
        """
        count = 0
        plans: list[ProposalPlan] = []
        sites = {step: self._apply(self.files, (step,)).sites[0] for step in self._single_steps}
        for recipe in self._list_recipes():
            touched = [sites[step] for step in recipe]
            if len(recipe) == 2 and all(touched) and touched[0].isdisjoint(touched[1]):
                count += all(recipe != plan.steps for plan in plans)
            elif self._is_new(plan := self._plan(recipe), plans):
                plans.append(plan)
                count += 1
            if count == self.rules.most:
                break
        return count

    def _list_first_plans(self) -> Iterator[ProposalPlan]:
        """Yield all together, all but the small ones, each alone, pairs; no result twice."""
        plans: list[ProposalPlan] = []
        for recipe in self._list_recipes():
            plan = self._plan(recipe)
            if self._is_new(plan, plans):
                plans.append(plan)
                yield plan

    def _is_new(self, plan: ProposalPlan, plans: Sequence[ProposalPlan]) -> bool:
        return plan.files != self.files and all(plan.files != other.files for other in plans)

    def _list_recipes(self) -> Iterator[Recipe]:
        """Return the recipes of first proposals, each with its steps in the catalog's order."""
        singles = self._single_steps
        groups: list[Sequence[RecipeStep]] = []
        if self.rules.combined:
            groups = [singles, [step for step in singles if not BY_NAME[step.name].is_small]]
        groups += [[step] for step in singles]
        if self.rules.combined:
            groups += combinations(singles, 2)
        ranks = {name: rank for rank, name in enumerate(self.rules.names)}
        ordered = [tuple(sorted(group, key=lambda step: ranks[step.name])) for group in groups]
        return iter(dict.fromkeys(recipe for recipe in ordered if recipe))

    @cached_property
    def _reachable(self) -> Set[CodeSite] | None:
        return find_reachable(self.files, self.rules.timed, self.rules.checked)

    @cached_property
    def _single_steps(self) -> list[RecipeStep]:
        """The transformations that change anything: those in named functions first, small last."""
        for path in sorted(self.files):
            # One file after the other: only a few syntax trees are cached.
            for name in self.rules.names:
                self._apply({path: self.files[path]}, (RecipeStep(name),))
        sites = number_sites(self.files)
        words = read_words(self.rules.timed)
        ranked = []
        results = [self.files]
        for rank, name in enumerate(self.rules.names):
            result = self._apply(self.files, (RecipeStep(name),))
            if result.files not in results:
                results.append(result.files)
                is_timed = self._reachable is not None or any(
                    is_named(sites[number], words) for number in result.sites[0]
                )
                ranked.append((not is_timed, BY_NAME[name].is_small, rank))
        return [RecipeStep(self.rules.names[rank]) for _, _, rank in sorted(ranked)]

    def follow(self, request: Request, tried: Tried) -> ProposalPlan | str:
        """Return the plan after a candidate that was tried, or the reason why there is none."""
        recipe = parse_recipe(tried.name)
        if recipe is None:
            return f"{tried.name} isn't the name of a recipe"
        earlier = [parse_recipe(other.name) for other in (tried, *request.history)]
        seen = [self._apply(self.files, other).files for other in earlier if other is not None]
        seen.append(self.files)

        def choose(plans: list[ProposalPlan], shift: int) -> ProposalPlan | None:
            fresh = [plan for plan in plans if all(plan.files != files for files in seen)]
            return fresh[shift % len(fresh)] if fresh else None

        if request.kind is RequestKind.REPAIR:
            # The best first: what the lineage has tried is left out.
            nothing = "nothing is left of it if what failed is taken out"
            return choose(self._list_repairs(recipe, tried), 0) or nothing
        # Neighboring lineages try different things.
        return (
            choose(self._list_additions(recipe), request.lineage)
            or choose(self._list_omissions(recipe), request.lineage)
            or "no further transformation applies"
        )

    def _list_additions(self, recipe: Recipe) -> list[ProposalPlan]:
        """Return the plans with one step more, at the end."""
        done = {step.name for step in recipe}
        before = self._apply(self.files, recipe)
        plans = []
        for name in self.rules.names:
            result = self._apply(before.files, (RecipeStep(name),))
            if name not in done and result.files != before.files:
                label = format_recipe((*recipe, RecipeStep(name)))
                notes = _add_assumptions((*before.notes, *result.notes))
                plans.append(ProposalPlan(label, result.files, notes))
        return plans

    def _list_omissions(self, recipe: Recipe) -> list[ProposalPlan]:
        """Return the plans without one of the steps, the least promising step first."""
        ranks = {name: rank for rank, name in enumerate(self.rules.names)}
        worst = sorted(recipe, key=lambda step: ranks.get(step.name, 0), reverse=True)
        shorter = [tuple(other for other in recipe if other is not step) for step in worst]
        return [self._plan(other) for other in shorter if other]

    def _list_repairs(self, recipe: Recipe, tried: Tried) -> list[ProposalPlan]:
        """Return plans that leave out what a failure may come from, the best first."""
        result = self._apply(self.files, recipe)
        sites = number_sites(self.files)
        words = read_words(
            text
            for failure in tried.failures
            for text in (
                failure.what,
                failure.message,
                *(difference.where for difference in failure.differences),
            )
        )
        named = {
            number for step in result.sites for number in step if is_named(sites[number], words)
        }
        if len(recipe) > 1:
            shorter = _without_steps(recipe, result, named)
        else:
            shorter = _without_sites(recipe[0], result.sites[0], named)
        return [self._plan(other) for other in dict.fromkeys(shorter) if other]

    def _plan(self, recipe: Recipe) -> ProposalPlan:
        result = self._apply(self.files, recipe)
        steps = tuple(step for step, sites in zip(recipe, result.sites, strict=True) if sites)
        notes = _add_assumptions(result.notes)
        return ProposalPlan(format_recipe(recipe), result.files, notes, steps)

    def _apply(self, files: Files, recipe: Recipe) -> RecipeResult:
        return apply_recipe(files, recipe, self.must_stop, self._reachable)


def _add_assumptions(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes of transformations, followed by their assumptions, once each."""
    names = [note.partition(":")[0] for note in notes]
    assumptions = dict.fromkeys(BY_NAME[name].assumes for name in names)
    return (*notes, *(f"{delivery.ASSUMES}{text}" for text in assumptions if text))


def read_words(texts: Iterable[str]) -> set[str]:
    """Return the words of some texts; of ``test_sort`` also ``sort``."""
    words = {word for text in texts for word in _WORD.findall(text)}
    return words | {word.removeprefix("test_") for word in words}


def _without_steps(recipe: Recipe, result: RecipeResult, named: Set[int]) -> Iterator[Recipe]:
    """Yield a recipe without the named functions, without the steps that touch them, its halves,
    and without each of its steps.
    """
    guilty = [bool(sites & named) for sites in result.sites]
    if any(guilty):
        yield tuple(
            RecipeStep(step.name, sites - named) if sites & named else step
            for step, sites in zip(recipe, result.sites, strict=True)
            if not sites or sites - named
        )
    if any(guilty) and not all(guilty):
        yield tuple(step for step, is_guilty in zip(recipe, guilty, strict=True) if not is_guilty)
    half = (len(recipe) + 1) // 2
    yield recipe[:half]
    yield recipe[half:]
    for at in range(len(recipe)):
        yield recipe[:at] + recipe[at + 1 :]


def _without_sites(step: RecipeStep, sites: Set[int], named: Set[int]) -> Iterator[Recipe]:
    """Yield a step without the named functions, and in each half of its functions."""
    ordered = sorted(sites)
    half = (len(ordered) + 1) // 2
    innocent = [number for number in ordered if number not in named]
    for chosen in (innocent, ordered[:half], ordered[half:]):
        if chosen and len(chosen) < len(ordered):
            yield (RecipeStep(step.name, frozenset(chosen)),)
