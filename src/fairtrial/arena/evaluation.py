"""Judging a handful of candidates: the front door of the arena."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairtrial.arena.arena import Arena
from fairtrial.arena.blame import unjudged
from fairtrial.arena.candidates.folders import read_candidate, tell_apart
from fairtrial.arena.events import CandidateJudged, CheckStarted, TimingProgress
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.timings import Estimate, Measurement
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.opening import open_arena
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.bench import Bench
from fairtrial.arena.timing.second_opinion import with_instructions
from fairtrial.arena.timing.valgrind import Valgrind, find_valgrind
from fairtrial.arena.timing_phase import Contest
from fairtrial.core import Phase, PhaseStarted

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
        return not any(each.is_unjudged for each in self.judgements)

    @property
    def measurements(self) -> dict[str, Measurement]:
        """What the clock said of each candidate that was timed itself, by name."""
        return {
            each.name: each.measurement
            for each in self.judgements
            if each.measurement is not None and each.duplicate_of is None
        }

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``fairtrial evaluate --json`` prints it."""
        return {
            "problem_id": self.problem_id,
            "base": self.base,
            "sandbox": self.sandbox,
            "candidates": [judgement_as_dict(judgement) for judgement in self.judgements],
            "notes": list(self.notes),
        }


def judgement_as_dict(judgement: Judgement) -> dict[str, Any]:
    """Plain data: one candidate."""
    rejection, measured = judgement.rejection, judgement.measurement
    failures = rejection.failures if rejection else ()
    estimate = measured.estimate if measured else None
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
        "ratio": estimate.ratio if estimate else None,
        "interval": [estimate.low, estimate.high] if estimate else None,
        "sessions": estimate.sessions if estimate else None,
        "check_s": round(judgement.check_s, 3),
        "bench_s": round(measured.seconds, 3) if measured else None,
        "peak_rss_mb": round(judgement.peak_rss_mb, 1),
        "not_exercised": list(judgement.not_exercised),
        "notes": [*judgement.notes, *(measured.notes if measured else ())],
        **measured_as_dict(measured),
    }


def measured_as_dict(measured: Measurement | None) -> dict[str, Any]:
    """Plain data: what else the clock said; nothing where it wasn't asked."""
    if measured is None:
        nothing: dict[str, Any] = dict.fromkeys(("confidence", "adopt"))
        return {
            **nothing,
            "vetoes": [],
            "is_confirmed": False,
            "waited_s": None,
            "timings": [],
            "instructions": {},
        }
    return {
        "confidence": measured.estimate.confidence if measured.estimate else None,
        "adopt": measured.adopt,
        "vetoes": list(measured.vetoes),
        "is_confirmed": measured.is_confirmed,
        "waited_s": round(measured.waited_s, 3),
        "timings": [
            {
                "benchmark": timing.benchmark,
                "verdict": timing.verdict.value,
                **_plain_estimate(timing.estimate),
                "cpu_ratio": timing.cpu_ratio,
                "base_s": timing.base_s,
                "calls": timing.calls,
                "startup": timing.startup,
                "outside": timing.outside,
                "peak_rss_mb": timing.peak_rss_mb and asdict(timing.peak_rss_mb),
                "notes": list(timing.notes),
            }
            for timing in measured.timings
        ],
        "instructions": {
            timing.benchmark: {**asdict(pair), "ratio": pair.base / pair.candidate}
            for timing in measured.timings
            if (pair := timing.instructions) is not None
        },
    }


def _plain_estimate(estimate: Estimate | None) -> dict[str, Any]:
    return {
        "ratio": estimate.ratio if estimate else None,
        "interval": [estimate.low, estimate.high] if estimate else None,
        "confidence": estimate.confidence if estimate else None,
    }


async def evaluate_candidates(
    problem: CodeProblem,
    candidates: Sequence[Given],
    *,
    slots: int | None = None,
    settings: ArenaSettings | None = None,
) -> Evaluation:
    """Judge candidates side by side, time those that pass; results in the order they were given.

    candidates: `Candidate`s, or paths of diffs and folders
    slots: how many candidates are under way at once; as many as there are cores if not given
    settings: how the arena is to work; its `emit` takes the events of each candidate
    """
    settings = settings or ArenaSettings()
    valgrind = find_valgrind() if settings.instructions else None
    read = tell_apart(
        [each if isinstance(each, Candidate) else read_candidate(Path(each)) for each in candidates]
    )
    async with (
        open_arena(problem, slots=slots, settings=settings) as arena,
        _opening_bench(arena, settings) as bench,
    ):
        resolved = await arena.resolve_all(read)

        def begun(place: int) -> None:
            settings.emit(CheckStarted(read[place].name))

        def judged(place: int, judgement: Judgement) -> None:
            settings.emit(CandidateJudged(read[place].name, judgement))

        def timed(place: int, sessions: int, estimate: Estimate | None) -> None:
            settings.emit(TimingProgress(read[place].name, sessions, estimate))

        judgements = await judge_all(arena, read, begun, judged, resolved)
        notes = arena.notes
        if bench is not None:
            contest = Contest(arena.problem, bench, settings.timing)
            judgements = await contest.settle(judgements, resolved, judged, timed)
            if valgrind is not None:
                settings.emit(PhaseStarted(Phase.INSTRUCTION_COUNTS))
                judgements = await _count(bench, valgrind, judgements, resolved)
            notes += bench.notes
        return Evaluation(
            problem.problem_id, arena.base, arena.sandbox_name, judgements, notes, arena.kept
        )


@asynccontextmanager
async def _opening_bench(arena: Arena, settings: ArenaSettings) -> AsyncIterator[Bench | None]:
    """The bench, if candidates are to be timed, and there is anything to time."""
    if settings.timing == "none" or not arena.can_time:
        yield None
        return
    settings.emit(PhaseStarted(Phase.BASE_TIMING))
    async with arena.bench() as bench:
        yield bench


async def _count(
    bench: Bench,
    valgrind: Valgrind,
    judgements: Sequence[Judgement],
    resolved: Sequence[Changes | Rejection],
) -> tuple[Judgement, ...]:
    """The same judgements, with instruction counts beside what the clock said."""
    timed = {
        judgement.digest: (changes, judgement.measurement)
        for judgement, changes in zip(judgements, resolved, strict=True)
        if judgement.measurement is not None and isinstance(changes, Changes)
    }
    counted = await with_instructions(bench, valgrind, None, timed)
    return tuple(
        replace(each, measurement=counted.get(each.digest, each.measurement)) for each in judgements
    )


async def judge_all(
    arena: Arena,
    candidates: Sequence[Candidate],
    begun: Callable[[int], None] | None = None,
    judged: Callable[[int, Judgement], None] | None = None,
    resolved: Sequence[Changes | Rejection] | None = None,
) -> tuple[Judgement, ...]:
    """One judgement for each candidate, in their order; equal ones are judged once."""
    import anyio

    results: list[Judgement | None] = [None] * len(candidates)
    changes = await arena.resolve_all(candidates) if resolved is None else resolved

    async def judge(place: int) -> None:
        tell = None if begun is None else partial(begun, place)
        try:
            judgement = await arena.judge(candidates[place], changes[place], tell)
        except NoRoomError as error:  # what was judged before it came to that is told
            judgement = unjudged(candidates[place], error, changes[place])
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
) -> Evaluation:
    """`evaluate_candidates` for code that isn't async."""
    import anyio

    async def run() -> Evaluation:
        return await evaluate_candidates(problem, candidates, slots=slots, settings=settings)

    return anyio.run(run)
