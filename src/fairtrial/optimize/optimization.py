"""Optimizing code from Python: a problem and a proposer in, the result out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial.arena import CodeProblem, problem_files
from fairtrial.core import (
    Mistake,
    StudyError,
    build_record,
    describe_value,
    events,
    run_blocking,
)
from fairtrial.optimize.confirmation import refuse_unfounded
from fairtrial.optimize.optimizer import Optimizer
from fairtrial.optimize.proposer import Proposer
from fairtrial.optimize.proposers.function import ObjectProposer, ProposalFunction
from fairtrial.optimize.result import OptimizationResult
from fairtrial.study import agents

ProposerSource = Proposer | ProposalFunction | str


@dataclass(frozen=True, slots=True)
class _MemoryContext:
    """The surroundings of an optimization that leaves nothing on disk."""

    seed: int
    journal: agents.Journal = field(default_factory=agents.Journal)
    workspace: Path | None = None


async def optimize_code(
    problem: CodeProblem | str | os.PathLike[str],
    proposer: ProposerSource = "codemod",
    *,
    seed: int = 0,
    emit: events.Emit = events.ignore_event,
    **options: Any,
) -> OptimizationResult:
    """Search for faster code; return the best candidate, confirmed, with its patch.

    It may be cancelled at any time, and any number may run at once in a process: each has an arena
    of its own, and timing takes turns. Nothing is printed, stored or changed in the project.

    problem: the code problem, or the path of its file
    proposer: a `Proposer`; a function of a brief and a request, sync or async; or the name of a
        proposer, whose options are `proposer_options`
    seed: the seed of random choices
    emit: called with each progress event, in the event loop's thread; it must not block
    options: those of `Optimizer`: max_candidates, lineages, max_seconds, unsandboxed, ...

    Raises `StudyError` for a problem, a proposer or options that can't be used, and `LabError` if
    the machine or the network fails.
    """
    optimizer, code = _make_optimizer(proposer, options), problem_files.as_problem(problem)
    scheduler, result = await optimizer.optimize(code, _MemoryContext(seed), emit)
    refuse_unfounded(result, scheduler.judgements.values())
    return result


def optimize_code_sync(
    problem: CodeProblem | str | os.PathLike[str],
    proposer: ProposerSource = "codemod",
    *,
    seed: int = 0,
    emit: events.Emit = events.ignore_event,
    **options: Any,
) -> OptimizationResult:
    """Do what `optimize_code` does, from code that isn't async.

    The work runs in a thread with an event loop of its own. `emit` is called in the calling thread;
    what it raises, and a KeyboardInterrupt, cancels the work and is raised again.
    """

    async def work(receive: events.Emit) -> OptimizationResult:
        return await optimize_code(problem, proposer, seed=seed, emit=receive, **options)

    return run_blocking(work, emit)


def _make_optimizer(proposer: ProposerSource, options: dict[str, Any]) -> Optimizer:
    """Return the optimizer of these options; raise a `StudyError` with all that is wrong."""
    mistakes: list[Mistake] = []
    is_named = isinstance(proposer, str)
    if not is_named and not isinstance(proposer, Proposer) and not callable(proposer):
        message = f"expected a Proposer, a function or a name, got {describe_value(proposer)}"
        mistakes.append(Mistake(("proposer",), message))
    if not is_named and "proposer_options" in options:
        message = "a proposer that is an object has its options already"
        mistakes.append(Mistake(("proposer_options",), message, "leave it out"))
        options = {name: value for name, value in options.items() if name != "proposer_options"}
    named = {"proposer": proposer} if is_named else {}
    optimizer = build_record(Optimizer, {**named, **options}, (), mistakes)
    if mistakes or optimizer is None:
        raise StudyError(mistakes, source="optimize_code")
    if isinstance(proposer, str):
        return optimizer
    given = proposer if isinstance(proposer, Proposer) else ObjectProposer(proposer)
    return optimizer.with_proposer(given)
