"""Who proposes: made and checked before anything starts; what they are told; what it may cost.

A proposer may have more than a `Proposer` must have:

- ``check_here()`` raises a `StudyError` if something is missing on this machine: a key, a package
- ``check_ready(folder)`` does so for files; relative paths start at the folder of the problem
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

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairtrial import plugins
from fairtrial.agents.proposers.prices import PRICES, PRICES_DATE
from fairtrial.arena.arena import Arena
from fairtrial.arena.handover.quoting import spell_command
from fairtrial.errors import Mistake, PluginError, StudyError
from fairtrial.ledger.summary import spell_cost
from fairtrial.model.code import Check
from fairtrial.model.proposals import Brief, RequestKind, Usage
from fairtrial.model.record import build
from fairtrial.protocols import Proposer

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
    name: str, options: Mapping[str, Any], max_cost_usd: float | None, folder: Path | None
) -> Proposer:
    """The proposer of that name, with its options checked.

    folder: the problem's, where proposers that name files or functions look for them; None if it
        isn't known yet
    """
    mistakes: list[Mistake] = []
    made = build_proposer(name, options, mistakes)
    if mistakes:
        raise StudyError(mistakes)
    try:
        _check_start(made, max_cost_usd, folder)
    except StudyError as error:
        raise StudyError([_seen_from_here(each, error.source) for each in error.mistakes]) from None
    proposer: Proposer = made
    return proposer


def _seen_from_here(mistake: Mistake, source: str) -> Mistake:
    """A mistake in what an option names, for somebody who has only given the option."""
    file = f"{source}:{mistake.line}: " if mistake.line is not None else f"{source}: "
    told = f"{file if source else ''}{mistake.message}"
    return Mistake(("proposer_options", *mistake.path), told, mistake.hint)


def _check_start(made: Any, max_cost_usd: float | None, folder: Path | None) -> None:
    """Whether it could start; not all of them have anything to look for."""
    if hasattr(made, "check_ceiling"):
        made.check_ceiling(max_cost_usd)
    if hasattr(made, "check_here"):
        made.check_here()
    if hasattr(made, "check_ready") and folder is not None:
        made.check_ready(folder)


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
