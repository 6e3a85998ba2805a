"""Judging a handful of candidates: the front door of the arena."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fairtrial.arena.arena import Arena
from fairtrial.arena.opening import open_arena
from fairtrial.arena.proposals.folders import read_candidate
from fairtrial.arena.settings import ArenaSettings
from fairtrial.model.candidates import Candidate
from fairtrial.model.code import CodeProblem
from fairtrial.model.judgements import Judgement
from fairtrial.model.verdicts import Reason

Given = Candidate | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of judging candidates.

    problem_id: the problem's
    base: the commit that stands for the user's tree as it was, in the arena's own repository
    sandbox: where the candidates' code ran
    judgements: one for each candidate, in the order in which they were given
    notes: what people should know of the base, the machine and the checks
    kept: where the slots were left, if that was asked for
    """

    problem_id: str
    base: str
    sandbox: str
    judgements: tuple[Judgement, ...]
    notes: tuple[str, ...] = ()
    kept: Path | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every candidate was judged: none was left because something of ours failed."""
        broken = (each.rejection for each in self.judgements if each.rejection)
        return all(rejection.reason != Reason.EVALUATOR for rejection in broken)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``fairtrial evaluate --json`` prints it."""
        return {
            "problem_id": self.problem_id,
            "base": self.base,
            "sandbox": self.sandbox,
            "candidates": [_plain(judgement) for judgement in self.judgements],
            "notes": list(self.notes),
        }


def _plain(judgement: Judgement) -> dict[str, Any]:
    rejection = judgement.rejection
    failures = rejection.failures if rejection else ()
    return {
        "name": judgement.name,
        "digest": judgement.digest,
        "verdict": judgement.verdict.value,
        "basis": judgement.basis.value,
        "reason": f"{rejection.reason.value}: {rejection.message}" if rejection else None,
        "failures": [
            {
                "check": failure.check,
                "what": failure.what,
                "message": failure.message,
                "differences": [
                    {"where": each.where, "expected": each.expected, "actual": each.actual}
                    for each in failure.differences
                ],
            }
            for failure in failures
        ],
        "duplicate_of": judgement.duplicate_of,
        "ratio": None,
        "interval": None,
        "sessions": None,
        "check_s": round(judgement.check_s, 3),
        "bench_s": None,
        "peak_rss_mb": round(judgement.peak_rss_mb, 1),
        "not_exercised": list(judgement.not_exercised),
        "notes": list(judgement.notes),
    }


async def evaluate_candidates(
    problem: CodeProblem,
    candidates: Sequence[Given],
    *,
    slots: int | None = None,
    settings: ArenaSettings | None = None,
    begun: Callable[[int], None] | None = None,
    judged: Callable[[int, Judgement], None] | None = None,
) -> Evaluation:
    """Judge candidates side by side; results in the order in which they were given.

    candidates: `Candidate`s, or paths of diffs and folders
    slots: how many candidates are under way at once; as many as there are cores if not given
    settings: how the arena is to work
    begun: called with a candidate's place when its checks begin
    judged: called with a candidate's place and its judgement as soon as there is one
    """
    read = [
        each if isinstance(each, Candidate) else read_candidate(Path(each)) for each in candidates
    ]
    async with open_arena(problem, slots=slots, settings=settings or ArenaSettings()) as arena:
        judgements = await judge_all(arena, read, begun, judged)
        return Evaluation(
            problem.problem_id, arena.base, arena.sandbox_name, judgements, arena.notes, arena.kept
        )


async def judge_all(
    arena: Arena,
    candidates: Sequence[Candidate],
    begun: Callable[[int], None] | None = None,
    judged: Callable[[int, Judgement], None] | None = None,
) -> tuple[Judgement, ...]:
    """One judgement for each candidate, in their order; equal ones are judged once."""
    import anyio

    results: list[Judgement | None] = [None] * len(candidates)
    resolved = await arena.resolve_all(candidates)

    async def judge(place: int) -> None:
        tell = None if begun is None else partial(begun, place)
        judgement = await arena.judge(candidates[place], resolved[place], tell)
        results[place] = judgement
        if judged is not None:
            judged(place, judgement)

    async with anyio.create_task_group() as tasks:
        for place in range(len(candidates)):  # tasks begin in this order: the first of equals leads
            tasks.start_soon(judge, place)
    return tuple(result for result in results if result is not None)


def judge_candidates(
    problem: CodeProblem,
    candidates: Sequence[Given],
    *,
    slots: int | None = None,
    settings: ArenaSettings | None = None,
    judged: Callable[[int, Judgement], None] | None = None,
) -> Evaluation:
    """`evaluate_candidates` for code that isn't async."""
    import anyio

    async def run() -> Evaluation:
        return await evaluate_candidates(
            problem, candidates, slots=slots, settings=settings, judged=judged
        )

    return anyio.run(run)
