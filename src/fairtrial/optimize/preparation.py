"""Preparation of an optimization: the proposer, its brief, the number of lineages, the cost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fairtrial.arena import (
    Arena,
    ArenaSettings,
    Check,
    CodeProblem,
    audit_quickly,
)
from fairtrial.core import Mistake, PluginError, StudyError, build_record, plugins
from fairtrial.llm import describe_price_date
from fairtrial.optimize.proposals import Brief, RequestKind, Usage
from fairtrial.optimize.proposer import PreflightContext, Proposer
from fairtrial.study import spell_cost

CANDIDATES_PER_LINEAGE = 4
"""How many candidates a lineage gets if the number of first proposals isn't known."""


def build_proposer(
    name: str, options: Mapping[str, Any], mistakes: list[Mistake]
) -> Proposer | None:
    """Build the proposer of that name from its options.

    Append what is wrong to `mistakes`, with paths that start at `proposer` or `proposer_options`;
    return None if there is no such proposer.
    """
    try:
        kind = plugins.load("proposers", name)
    except PluginError as error:
        mistakes.extend(replace(mistake, path=("proposer",)) for mistake in error.mistakes)
        return None
    if not issubclass(kind, Proposer):
        message = f"the proposer '{name}' ({kind.__qualname__}) can't be used"
        hint = "its class must derive from fairtrial.optimize.Proposer"
        mistakes.append(Mistake(("proposer",), message, hint))
        return None
    return build_record(kind, dict(options), ("proposer_options",), mistakes)


def check_proposer(
    proposer: Proposer,
    problem: CodeProblem | None,
    max_cost_usd: float | None,
    *,
    may_import: bool = True,
) -> None:
    """Raise a `StudyError` if the proposer can't start; paths start at `proposer_options`.

    problem: the problem that candidates are wanted for; None if it isn't known yet
    may_import: whether modules of the user may be imported to check that they exist
    """
    context = PreflightContext(max_cost_usd=max_cost_usd, may_import=may_import)
    if problem is not None:
        project = (problem.project / problem.cwd).resolve()
        context = replace(context, folder=problem.folder, project=project)
    try:
        proposer.preflight(context)
    except StudyError as error:
        raise _under_options(error) from None


async def audit_checks(arena: Arena, settings: ArenaSettings) -> tuple[str, ...]:
    """Audit the checks before any proposal is asked for; return notes for people.

    Raise a `StudyError` if they accept a function that does no work: no candidate that passes them
    could be adopted.
    """
    notes = await audit_quickly(arena, settings)
    for veto in arena.vetoes:
        hint = "`fairtrial audit` shows more; --no-audit continues nevertheless"
        raise StudyError(Mistake(("check",), veto, hint))
    summary = arena.adequacy.summary if arena.adequacy else ""
    return (f"checks audited: {summary}", *notes) if summary else notes


@asynccontextmanager
async def opened_proposer(proposer: Proposer, arena: Arena) -> AsyncIterator[Proposer]:
    """Open a proposer in an arena, and close it; raise a `StudyError` if it can't be opened."""
    import anyio

    try:
        opened = await proposer.open(arena.make_workshop())
    except StudyError as error:
        raise _under_options(error) from None
    try:
        yield opened
    finally:
        with anyio.CancelScope(shield=True):
            await opened.close()


def _under_options(error: StudyError) -> StudyError:
    """Return the same mistakes with paths that start at the option of the optimizer.

    Mistakes in a file that an option names mention that file in their message.
    """
    mistakes = []
    for mistake in error.mistakes:
        line = "" if mistake.line is None else f":{mistake.line}"
        file = f"{error.source}{line}: " if error.source else ""
        path = ("proposer_options", *mistake.path)
        mistakes.append(Mistake(path, f"{file}{mistake.message}", mistake.hint))
    return StudyError(mistakes)


async def make_brief(arena: Arena) -> Brief:
    """Return the brief of the arena's problem."""
    problem = arena.problem
    return Brief(
        problem_id=problem.problem_id,
        task=problem.brief or "Make it faster; what it does must stay the same.",
        files=await arena.sources(),
        checks=tuple(map(_describe_check, problem.check)),
        benchmarks=tuple(
            f"{benchmark.name}: {benchmark.call or benchmark.command_text}"
            for benchmark in problem.bench
        ),
        min_effect=problem.min_effect,
    )


def _describe_check(check: Check) -> str:
    if check.accept:
        return f"{check.function} must give a right result; it may be another one than now"
    if check.function:
        return f"{check.function} must give what it gives now"
    required = f", with these tests, which fail now: {', '.join(check.must_pass)}"
    return f"{check.command_text} must pass{required if check.must_pass else ''}"


async def choose_lineages(proposer: Proposer, brief: Brief, max_candidates: int) -> int:
    """Return how many lineages suit a proposer.

    If the number of first proposals is known, there is a lineage for each, and half of the
    candidates are left for what follows, if the proposer can repair or refine. Otherwise each
    lineage gets `CANDIDATES_PER_LINEAGE` candidates.
    """
    first_proposals = await proposer.count_first_proposals(brief)
    if first_proposals is None:
        return max(max_candidates // CANDIDATES_PER_LINEAGE, 1)
    can_follow = any(proposer.can(kind) for kind in RequestKind if kind != RequestKind.INITIAL)
    most = max_candidates // 2 if can_follow else max_candidates
    return max(min(first_proposals, most), 1)


def check_ceilings(reply: Usage, max_tokens: int | None, max_cost_usd: float | None) -> None:
    """Raise a `StudyError` for a ceiling that is too low for a single reply.

    reply: what one reply takes, roughly
    """
    mistakes = []
    if max_tokens is not None and reply.tokens > max_tokens:
        amounts = f"{reply.tokens:,} tokens, more than the {max_tokens:,} that there may be in all"
        message = f"one answer of {reply.model} takes some {amounts}"
        mistakes.append(Mistake(("max_tokens",), message))
    if max_cost_usd is not None and (reply.cost_usd or 0.0) > max_cost_usd:
        amounts = f"{spell_cost(reply.cost_usd or 0.0)}, more than the ceiling of"
        message = f"one answer of {reply.model} costs about {amounts} {spell_cost(max_cost_usd)}"
        mistakes.append(Mistake(("max_cost_usd",), message))
    if mistakes:
        raise StudyError(mistakes)


def describe_estimate(reply: Usage, candidates: int, max_cost_usd: float | None) -> str:
    """Return a sentence on what so many replies take, roughly; empty if that isn't known."""
    if not reply.tokens and not reply.cost_usd:
        return ""
    text = f"about {candidates} answers of {reply.model}"
    if reply.tokens:
        text += f", some {reply.tokens:,} tokens each and more later"
    if reply.cost_usd is None:
        return f"{text}; what they cost isn't known (`prices`)."
    date = describe_price_date(reply.model)
    text += f": about {spell_cost(candidates * reply.cost_usd)} in all{date}"
    if max_cost_usd is None:
        return f"{text}."
    return f"{text}; asking stops at {spell_cost(max_cost_usd)}."
