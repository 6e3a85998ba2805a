"""Who proposes: made and checked before anything starts; what they are told; what it may cost.

A proposer may have more than a `Proposer` must have:

- ``check_here()`` raises a `StudyError` if something is missing on this machine: a key, a package
- ``check_ready(folder)`` does so for files; relative paths start at the folder of the problem
- ``check_project(project)`` does so for what comes with the project that is to be faster
- ``check_code(folder)`` does so for functions of the user's own, which it imports
- ``check_ceiling(max_cost)`` does so for a ceiling that it couldn't keep
- ``async prepared(workshop)`` is the proposer that works in a given arena (`command_workshop.py`)
- ``async count_firsts(brief)`` is how many first proposals it has, if that is a known number
- ``estimate(brief)`` is what one answer takes, roughly, as a `Usage`
- ``async propose_in_steps(brief, request, earlier, keep)`` is `propose` for one that may pay more
  than once for a reply: it calls ``keep(reply)`` with what has come so far before it pays again,
  and goes on from `earlier`, which is what an earlier attempt has kept, or None
- ``INCIDENTAL`` names options that change no answer: with others, earlier answers still count
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from fairtrial.arena import Arena, ArenaWorkshop, Check, CodeProblem, spell_command
from fairtrial.core import Mistake, PluginError, StudyError, build, plugins
from fairtrial.llm import PRICES, PRICES_DATE
from fairtrial.optimize.proposals import Brief, RequestKind, Usage
from fairtrial.optimize.proposer import Proposer
from fairtrial.study import spell_cost

STEPS = 4
"""How many candidates a line has, where nobody knows how many first proposals there are."""


def build_proposer(name: str, options: Mapping[str, Any], mistakes: list[Mistake]) -> Any:
    """The proposer of that name with its options, and what is wrong with either."""
    try:
        kind = plugins.load("proposers", name)
    except PluginError as error:
        mistakes.extend(replace(each, path=("proposer",)) for each in error.mistakes)
        return None
    return build(kind, dict(options), ("proposer_options",), mistakes)


def make_proposer(
    name: str,
    options: Mapping[str, Any],
    max_cost_usd: float | None,
    problem: CodeProblem | None,
    *,
    imports: bool = True,
) -> Proposer:
    """The proposer of that name, with its options checked.

    problem: whose folder relative paths start at; None if it isn't known yet
    imports: whether functions of the user's own may be imported to see if they are there
    """
    mistakes: list[Mistake] = []
    made = build_proposer(name, options, mistakes)
    if mistakes:
        raise StudyError(mistakes)
    for check in _checks(made, max_cost_usd, problem, imports=imports):
        try:
            check()
        except StudyError as error:
            mistakes.extend(_seen_from_here(error).mistakes)
    if mistakes:
        raise StudyError(list(dict.fromkeys(mistakes)))
    proposer: Proposer = made
    return proposer


async def prepare_proposer(proposer: Proposer, arena: Arena) -> Proposer:
    """The proposer that works in an arena; mistakes name the option that they are about."""
    try:
        return await _make_ready(proposer, arena)
    except StudyError as error:
        raise _seen_from_here(error) from None


async def _make_ready(proposer: Proposer, arena: Arena) -> Proposer:
    """The proposer to use: the same, or what it makes of itself when it is shown the workshop.

    One that needs a workshop has a method ``async def prepared(self, workshop) -> Proposer``. What
    comes back is good for as long as the arena is open.
    """
    prepared = getattr(proposer, "prepared", None)
    if prepared is None:
        return proposer
    ready: Proposer = await prepared(ArenaWorkshop(arena))
    return ready


def _seen_from_here(error: StudyError) -> StudyError:
    """Mistakes in what an option names, for somebody who has only given the option."""
    found = []
    for mistake in error.mistakes:
        line = "" if mistake.line is None else f":{mistake.line}"
        file = f"{error.source}{line}: " if error.source else ""
        path = ("proposer_options", *mistake.path)
        found.append(Mistake(path, f"{file}{mistake.message}", mistake.hint))
    return StudyError(found)


def _checks(
    made: Any, max_cost_usd: float | None, problem: CodeProblem | None, *, imports: bool
) -> Iterator[Callable[[], None]]:
    """What there is to look for before it starts; not all of them have anything."""
    if hasattr(made, "check_ceiling"):
        yield partial(made.check_ceiling, max_cost_usd)
    if hasattr(made, "check_here"):
        yield made.check_here
    if problem is None:
        return
    if hasattr(made, "check_ready"):
        yield partial(made.check_ready, problem.folder)
    if hasattr(made, "check_project"):
        yield partial(made.check_project, (problem.folder / problem.repo / problem.cwd).resolve())
    if hasattr(made, "check_code") and imports:
        yield partial(made.check_code, problem.folder)


async def make_brief(arena: Arena) -> Brief:
    """What proposers are told of a problem."""
    problem = arena.problem
    return Brief(
        problem_id=problem.problem_id,
        task=problem.brief or "Make it faster; what it does must stay the same.",
        files=await arena.sources(),
        checks=tuple(map(_tell_check, problem.check)),
        benchmarks=tuple(
            f"{each.name}: {each.call or spell_command(each.command)}" for each in problem.bench
        ),
        min_effect=problem.min_effect,
    )


def _tell_check(check: Check) -> str:
    if check.function:
        return f"{check.function} must give what it gives now"
    return f"{spell_command(check.command)} must pass"


async def choose_lines(proposer: Proposer, brief: Brief, max_candidates: int) -> int:
    """How many lines suit a proposer.

    One that knows how many first proposals it has gets a line for each, with room for something to
    come of them if it can make anything of them; of others each line has a few candidates.
    """
    count_firsts = getattr(proposer, "count_firsts", None)
    if count_firsts is None:
        return max(max_candidates // STEPS, 1)
    goes_on = any(proposer.can(kind) for kind in RequestKind if kind != RequestKind.INITIAL)
    most = max_candidates // 2 if goes_on else max_candidates
    known: int = await count_firsts(brief)
    return max(min(known, most), 1)


def estimate_reply(proposer: Proposer, brief: Brief) -> Usage:
    """What one answer takes, roughly; nothing of a proposer that doesn't know."""
    estimate = getattr(proposer, "estimate", None)
    each: Usage = Usage() if estimate is None else estimate(brief)
    return each


def check_ceilings(each: Usage, max_tokens: int | None, max_cost_usd: float | None) -> None:
    """Refuse a ceiling that doesn't hold a single answer: raises `StudyError`."""
    mistakes = []
    if max_tokens is not None and each.tokens > max_tokens:
        told = f"{each.tokens:,} tokens, more than the {max_tokens:,} that there may be in all"
        mistakes.append(Mistake(("max_tokens",), f"one answer of {each.model} takes some {told}"))
    if max_cost_usd is not None and (each.cost_usd or 0.0) > max_cost_usd:
        told = f"{spell_cost(each.cost_usd or 0.0)}, more than the ceiling of"
        message = f"one answer of {each.model} costs about {told} {spell_cost(max_cost_usd)}"
        mistakes.append(Mistake(("max_cost_usd",), message))
    if mistakes:
        raise StudyError(mistakes)


def tell_estimate(each: Usage, candidates: int, most_usd: float | None) -> str:
    """What so many answers take, roughly; nothing if nobody knows what one does."""
    if not each.tokens and not each.cost_usd:
        return ""
    told = f"about {candidates} answers of {each.model}"
    if each.tokens:
        told += f", some {each.tokens:,} tokens each and more later"
    if each.cost_usd is None:
        return f"{told}; what they cost isn't known (`prices`)."
    known = f" (prices of {PRICES_DATE})" if each.model in PRICES else ""
    told += f": about {spell_cost(candidates * each.cost_usd)} in all{known}"
    return f"{told}." if most_usd is None else f"{told}; asking stops at {spell_cost(most_usd)}."
