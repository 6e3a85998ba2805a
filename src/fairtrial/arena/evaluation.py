"""Evaluating candidates from start to end: open an arena, check, time and count instructions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairtrial.arena.arena import Arena
from fairtrial.arena.audit.audit import audit_arena
from fairtrial.arena.candidate_sources import CandidateSource, read_candidates
from fairtrial.arena.evaluator_failures import unjudged
from fairtrial.arena.events import CandidateJudged, CheckStarted
from fairtrial.arena.model.adequacy import Adequacy
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.opening import open_arena
from fairtrial.arena.problem_files import ProblemSource, as_problem
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.bench import Bench
from fairtrial.arena.timing.instruction_comparison import add_instruction_counts
from fairtrial.arena.timing.valgrind import Valgrind, find_valgrind
from fairtrial.arena.timing_phase import TimingPhase
from fairtrial.core import Mistake, StudyError, events

NOT_AUDITED = "checks not audited: whether they reject wrong candidates is not known"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of evaluating candidates.

    problem_id: the id of the problem
    base: the commit in the arena's own repository that held the user's tree
    sandbox: the kind of sandbox that the candidates' code ran in
    judgements: one for each candidate, in the order in which they were given
    notes: remarks for people on the base, the machine and the checks
    kept: the folder with the slots, if they were to be kept
    adequacy: what the checks reject; None if they were not audited
    """

    problem_id: str
    base: str
    sandbox: str
    judgements: tuple[Judgement, ...]
    notes: tuple[str, ...] = ()
    kept: Path | None = None
    adequacy: Adequacy | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every candidate was judged: none was left out because the arena failed."""
        return not any(judgement.is_unjudged for judgement in self.judgements)

    @property
    def measurements(self) -> dict[str, Measurement]:
        """The measurement of each candidate that was timed itself, by name."""
        return {
            judgement.name: judgement.measurement
            for judgement in self.judgements
            if judgement.measurement is not None and judgement.duplicate_of is None
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fairtrial evaluate --json`` prints it."""
        return {
            "problem_id": self.problem_id,
            "base": self.base,
            "sandbox": self.sandbox,
            "candidates": [judgement.as_dict() for judgement in self.judgements],
            "adequacy": self.adequacy.as_dict() if self.adequacy else None,
            "notes": list(self.notes),
        }


async def evaluate_candidates(
    problem: ProblemSource,
    candidates: Sequence[CandidateSource],
    *,
    slots: int | None = None,
    settings: ArenaSettings | None = None,
) -> Evaluation:
    """Check candidates concurrently, then time those that pass one at a time.

    problem: the code problem, or the path of its file
    candidates: `Candidate`s, paths of diffs and folders, or git revisions, like `main..HEAD`
    slots: how many candidates are checked at once; by default the number of cores
    settings: options of the arena; its `emit` takes the events of each candidate

    Returns judgements in the order of the candidates.
    """
    settings = settings or ArenaSettings()
    problem = as_problem(problem)
    valgrind = find_valgrind() if settings.instructions else None
    problem, read = await read_candidates(problem, candidates)
    async with (
        open_arena(problem, slots=slots, settings=settings) as arena,
        AsyncExitStack() as opened,
    ):
        resolved = await arena.resolve_all(read)
        bench: Bench | None = None
        notes: tuple[str, ...] = ()
        if not read or any(isinstance(changes, Changes) for changes in resolved):
            bench = await opened.enter_async_context(_opening_bench(arena, settings))
            notes = await audit_quickly(arena, settings)
        judgements = await judge_all(arena, read, emit=settings.emit, resolved=resolved)
        if bench is not None:
            phase = TimingPhase(
                arena.problem, bench, settings.timing, arena.vetoes, settings.max_regression
            )
            judgements = await phase.run(judgements, resolved, settings.emit)
            if valgrind is not None:
                settings.emit(events.PhaseStarted(events.Phase.INSTRUCTION_COUNTS))
                judgements = await _count_instructions(bench, valgrind, judgements, resolved)
            notes += bench.notes
        return Evaluation(
            problem.problem_id,
            arena.base,
            arena.sandbox_name,
            judgements,
            (*arena.notes, *notes),
            arena.kept,
            arena.adequacy,
        )


async def measure_candidate(
    problem: ProblemSource, candidate: CandidateSource, *, settings: ArenaSettings | None = None
) -> Judgement:
    """Check one candidate, then time it against the base until that is decided.

    problem: the code problem, or the path of its file
    candidate: a `Candidate`, or the path of a diff or folder
    settings: options of the arena; its `timing` doesn't count

    Returns its judgement; `measurement` is None if it was rejected, or nothing can be timed.
    """
    settings = replace(settings or ArenaSettings(), timing="each")
    evaluation = await evaluate_candidates(problem, [candidate], slots=1, settings=settings)
    return evaluation.judgements[0]


async def audit_quickly(arena: Arena, settings: ArenaSettings) -> tuple[str, ...]:
    """Audit the checks with null candidates and a few mutants, if that is wanted.

    Returns notes for people: what was not audited, and why.
    """
    if not settings.audit:
        return (NOT_AUDITED,)
    settings.emit(events.PhaseStarted(events.Phase.AUDIT))
    return (await audit_arena(arena)).notes


def require_benchmarks(arena: Arena) -> None:
    """Raise `StudyError` if there is nothing to time."""
    if not arena.can_time:
        hint = "name a call with inputs, or a command, under bench:"
        raise StudyError(Mistake(("bench",), "is empty: there is nothing to time", hint))


@asynccontextmanager
async def _opening_bench(arena: Arena, settings: ArenaSettings) -> AsyncIterator[Bench | None]:
    """Open the bench if candidates are to be timed, and there is anything to time."""
    if settings.timing == "none" or not arena.can_time:
        yield None
        return
    settings.emit(events.PhaseStarted(events.Phase.BASE_TIMING))
    async with arena.bench() as bench:
        yield bench


async def _count_instructions(
    bench: Bench,
    valgrind: Valgrind,
    judgements: Sequence[Judgement],
    resolved: Sequence[Changes | Rejection],
) -> tuple[Judgement, ...]:
    """Add instruction counts to the measurements of these judgements."""
    timed = {
        judgement.digest: (changes, judgement.measurement)
        for judgement, changes in zip(judgements, resolved, strict=True)
        if judgement.measurement is not None and isinstance(changes, Changes)
    }
    counted = await add_instruction_counts(bench, valgrind, None, timed)
    return tuple(
        replace(judgement, measurement=counted.get(judgement.digest, judgement.measurement))
        for judgement in judgements
    )


async def judge_all(
    arena: Arena,
    candidates: Sequence[Candidate],
    *,
    emit: events.Emit = events.ignore_event,
    resolved: Sequence[Changes | Rejection] | None = None,
) -> tuple[Judgement, ...]:
    """Judge candidates concurrently, equal ones once; results in their order.

    emit: gets `CheckStarted` and `CandidateJudged`, with the candidate's name
    resolved: what `Arena.resolve_all` returned for them, if it was called before
    """
    import anyio

    results: list[Judgement | None] = [None] * len(candidates)
    changes = await arena.resolve_all(candidates) if resolved is None else resolved

    async def judge(index: int, candidate: Candidate) -> None:
        on_start = partial(emit, CheckStarted(candidate.name))
        try:
            judgement = await arena.judge(candidate, changes[index], on_start)
        except NoRoomError as error:  # earlier judgements are returned nevertheless
            judgement = unjudged(candidate, error, changes[index])
        results[index] = judgement
        emit(CandidateJudged(candidate.name, judgement))

    async with anyio.create_task_group() as tasks:
        for index, candidate in enumerate(candidates):  # in order: the first of equals is judged
            tasks.start_soon(judge, index, candidate)
    return tuple(result for result in results if result is not None)
