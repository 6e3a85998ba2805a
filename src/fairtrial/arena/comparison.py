"""Comparing two versions: two candidates, or a candidate and the base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtrial.arena.arena import Arena
from fairtrial.arena.candidate_sources import CandidateSource, read_pair
from fairtrial.arena.evaluation import (
    audit_quickly,
    judge_all,
    require_benchmarks,
)
from fairtrial.arena.model.adequacy import Adequacy
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.plain_data import measured_as_dict
from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.model.verdicts import Rejection, Verdict
from fairtrial.arena.opening import open_arena
from fairtrial.arena.problem_files import ProblemSource, as_problem
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.bench import Bench
from fairtrial.arena.timing.candidate_bench import open_candidate_bench
from fairtrial.arena.timing.decision import measure, untimed
from fairtrial.arena.timing.instruction_comparison import add_instruction_counts
from fairtrial.arena.timing.valgrind import Valgrind, find_valgrind
from fairtrial.arena.timing_phase import report_timing, report_totals, timing_rules, with_vetoes
from fairtrial.core import events


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two versions.

    problem_id: the id of the problem
    first, second: the judgements of both by the problem's checks
    measurement: how fast the second is compared with the first; None if one didn't pass its checks,
        or they are the same
    notes: remarks for people
    adequacy: what the checks reject; None if they were not audited
    is_of_commands: whether nothing but commands was compared, without a problem
    """

    problem_id: str
    first: Judgement
    second: Judgement
    measurement: Measurement | None
    notes: tuple[str, ...] = ()
    adequacy: Adequacy | None = None
    is_of_commands: bool = False

    @property
    def judged(self) -> Judgement:
        """The judgement of the second version, with its timing against the first."""
        if self.measurement is None:
            return self.second
        return self.second.with_timing(self.measurement)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fairtrial compare --json`` prints it."""
        measured = self.measurement
        estimate = measured.estimate if measured else None
        return {
            "problem_id": self.problem_id,
            "first": self.first.as_dict(),
            "second": self.second.as_dict(),
            "verdict": measured.verdict.value if measured else None,
            "ratio": estimate.ratio if estimate else None,
            "interval": [estimate.low, estimate.high] if estimate else None,
            "sessions": estimate.sessions if estimate else None,
            "bench_s": round(measured.seconds, 3) if measured else None,
            "adequacy": self.adequacy.as_dict() if self.adequacy else None,
            "notes": list(self.notes),
            **measured_as_dict(measured),
        }


async def compare_candidates(
    problem: ProblemSource,
    first: CandidateSource,
    second: CandidateSource | None = None,
    *,
    settings: ArenaSettings | None = None,
) -> Comparison:
    """Check two versions, then time the second against the first.

    problem: the code problem, or the path of its file
    first, second: candidates, paths of diffs or folders, or git revisions; `base` stands for the
        base, `.` for the tree as it is. A first one that is a revision becomes the base; one that
        is a range, like `main...HEAD`, stands for both
    settings: options of the arena; its `emit` gets phases, and `TimingProgress` of the second
    """
    settings = settings or ArenaSettings()
    problem = as_problem(problem)
    valgrind = find_valgrind() if settings.instructions else None
    problem, candidates = await read_pair(problem, first, second)
    async with open_arena(problem, settings=settings) as arena:
        require_benchmarks(arena)
        audit_notes = await audit_quickly(arena, settings)
        settings.emit(events.PhaseStarted(events.Phase.BASE_TIMING))
        async with arena.bench() as bench:
            settings.emit(events.PhaseStarted(events.Phase.PAIR_CHECKS))
            resolved = await arena.resolve_all(candidates)
            judgements = await judge_all(arena, candidates, resolved=resolved)
            have_passed = all(judgement.verdict == Verdict.PASSED for judgement in judgements)
            is_same = judgements[0].digest == judgements[1].digest
            result: Measurement | Rejection | None = None
            if have_passed and not is_same:
                rival, changes = resolved
                assert isinstance(rival, Changes)
                assert isinstance(changes, Changes)
                result = await _time_pair(
                    arena, bench, rival, changes, judgements[1].name, valgrind, settings
                )
                notes = bench.notes
            else:
                notes = ("after normalization both are the same",) if is_same else ()
    measured = result if isinstance(result, Measurement) else None
    first_judgement, second_judgement = judgements
    left_out = [f"{side.name}: {note}" for side in judgements for note in side.notes]
    if isinstance(result, Rejection):
        second_judgement = second_judgement.with_timing(result)
    return Comparison(
        problem.problem_id,
        first_judgement,
        second_judgement,
        measured,
        (*arena.notes, *left_out, *audit_notes, *notes),
        arena.adequacy,
    )


async def _time_pair(
    arena: Arena,
    bench: Bench,
    rival: Changes,
    changes: Changes,
    name: str,
    valgrind: Valgrind | None,
    settings: ArenaSettings,
) -> Measurement | Rejection:
    """Time a candidate against another one, and count the instructions of both if wanted.

    rival: the candidate that takes the base's place
    changes: the candidate that is timed
    name: its name
    """
    settings.emit(events.PhaseStarted(events.Phase.PAIR_TIMING))
    timer = await open_candidate_bench(bench, rival)
    rules = timing_rules(arena.problem, settings.max_regression, bench)
    watcher = report_timing(settings.emit)
    on_totals = report_totals(settings.emit)
    try:
        result = await measure(
            timer, name, changes, rules, label="duel", watcher=watcher, on_totals=on_totals
        )
    except NoRoomError as error:  # the checks' results are reported nevertheless
        result = untimed(error)
    if valgrind is not None and isinstance(result, Measurement):
        settings.emit(events.PhaseStarted(events.Phase.INSTRUCTION_COUNTS))
        counted = await add_instruction_counts(bench, valgrind, rival, {name: (changes, result)})
        result = counted[name]
    return with_vetoes(result, arena.vetoes)
