"""Judging and timing candidates from code that isn't async; see `core.run_blocking`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairtrial.arena.candidate_sources import CandidateSource
from fairtrial.arena.comparison import Comparison, compare_candidates
from fairtrial.arena.evaluation import (
    Evaluation,
    evaluate_candidates,
    measure_candidate,
)
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.problem_files import ProblemSource
from fairtrial.arena.settings import ArenaSettings
from fairtrial.core import events, run_blocking


def evaluate_candidates_sync(
    problem: ProblemSource,
    candidates: Sequence[CandidateSource],
    *,
    slots: int | None = None,
    settings: ArenaSettings | None = None,
) -> Evaluation:
    """Do what `evaluate_candidates` does, from code that isn't async."""
    options = settings or ArenaSettings()

    async def work(emit: events.Emit) -> Evaluation:
        observed = replace(options, emit=emit)
        return await evaluate_candidates(problem, candidates, slots=slots, settings=observed)

    return run_blocking(work, options.emit)


def compare_candidates_sync(
    problem: ProblemSource,
    first: CandidateSource,
    second: CandidateSource | None = None,
    *,
    settings: ArenaSettings | None = None,
) -> Comparison:
    """Do what `compare_candidates` does, from code that isn't async."""
    options = settings or ArenaSettings()

    async def work(emit: events.Emit) -> Comparison:
        return await compare_candidates(
            problem, first, second, settings=replace(options, emit=emit)
        )

    return run_blocking(work, options.emit)


def measure_candidate_sync(
    problem: ProblemSource, candidate: CandidateSource, *, settings: ArenaSettings | None = None
) -> Judgement:
    """Do what `measure_candidate` does, from code that isn't async."""
    options = settings or ArenaSettings()

    async def work(emit: events.Emit) -> Judgement:
        return await measure_candidate(problem, candidate, settings=replace(options, emit=emit))

    return run_blocking(work, options.emit)
