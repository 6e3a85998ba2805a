"""Comparing two versions: two candidates, a candidate and the base, or the base with itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from fairtrial.arena.arena import BASE
from fairtrial.arena.candidates.folders import disambiguate_names, read_candidate
from fairtrial.arena.evaluation import CandidateSource, audit_quickly, judge_all
from fairtrial.arena.model.adequacy import Adequacy
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.timings import Estimate, Measurement
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.opening import open_arena
from fairtrial.arena.plain_data import judgement_as_dict, measured_as_dict
from fairtrial.arena.problem_files import load_problem
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.candidate_bench import open_candidate_bench
from fairtrial.arena.timing.decision import measure, untimed
from fairtrial.arena.timing.instruction_comparison import add_instruction_counts
from fairtrial.arena.timing.stats.detectable_effect import (
    Rate,
    false_positive_rate,
    seconds_needed,
    spread,
    visible_within,
)
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim
from fairtrial.arena.timing.summary import Replicate, replicate_statistics
from fairtrial.arena.timing.valgrind import find_valgrind
from fairtrial.arena.timing_phase import timing_rules, with_timing, with_vetoes
from fairtrial.core import LabError, Mistake, StudyError, events

WORKLOADS = Path(__file__).resolve().parent / "workloads"
"""A small project with benchmarks that is installed with fairtrial."""
EFFECTS = (0.01, 0.02, 0.03, 0.05, 0.10)
"""The effects whose detection is reported beside `min_effect`."""
Progress = Callable[[int, int, Estimate | None], None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two versions.

    problem_id: the id of the problem
    first, second: the judgements of both by the problem's checks
    measurement: how fast the second is compared with the first; None if one didn't pass its checks,
        or they are the same
    notes: remarks for people
    adequacy: what the checks reject; None if they were not audited
    """

    problem_id: str
    first: Judgement
    second: Judgement
    measurement: Measurement | None
    notes: tuple[str, ...] = ()
    adequacy: Adequacy | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fairtrial compare --json`` prints it."""
        measured = self.measurement
        estimate = measured.estimate if measured else None
        return {
            "problem_id": self.problem_id,
            "first": judgement_as_dict(self.first),
            "second": judgement_as_dict(self.second),
            "verdict": measured.verdict.value if measured else None,
            "ratio": estimate.ratio if estimate else None,
            "interval": [estimate.low, estimate.high] if estimate else None,
            "sessions": estimate.sessions if estimate else None,
            "bench_s": round(measured.seconds, 3) if measured else None,
            "adequacy": self.adequacy.as_dict() if self.adequacy else None,
            "notes": list(self.notes),
            **measured_as_dict(measured),
        }


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The result of timing the base against itself several times (an A/A test).

    problem_id: the id of the problem
    measurements: one for each comparison
    statistics: one for each session: log(one copy's time/the other's)
    session_s: how long a session of all benchmarks takes, on average
    load: the machine's load average before and after, if it is known
    alpha, min_effect, budget_s: the problem's decision rules
    notes: remarks for people
    """

    problem_id: str
    measurements: tuple[Measurement, ...]
    statistics: tuple[float, ...]
    session_s: float
    load: tuple[float, float] | None
    alpha: float
    min_effect: float
    budget_s: float
    notes: tuple[str, ...] = ()

    @property
    def false_positives(self) -> Rate:
        """How often a difference was claimed, though there is none."""
        return false_positive_rate(
            [Claim(measurement.verdict.value) for measurement in self.measurements]
        )

    @property
    def spread(self) -> float:
        """The standard deviation between sessions."""
        return spread(self.statistics)

    @property
    def has_enough_sessions(self) -> bool:
        """Whether there are as many sessions as the first interim look needs."""
        return len(self.statistics) >= LOOKS[0]

    def visible_effect(self, seconds: float | None = None) -> float | None:
        """Return the smallest effect that is detected with a power of 80 % in this time.

        seconds: how long a candidate is timed; by default `budget_s`, infinite for the last look

        None if the time is too short for the first interim look.
        """
        within_s = self.budget_s if seconds is None else seconds
        return visible_within(self.spread, self.session_s, within_s, self.alpha)

    def seconds_needed(self, effect: float) -> float | None:
        """Return how long detecting an effect with a power of 80 % takes; None if impossible."""
        return seconds_needed(effect, self.spread, self.session_s, self.alpha)

    def list_seconds_needed(self) -> dict[float, float | None]:
        """Return the time needed for usual effects and `min_effect`, in ascending order."""
        return {
            effect: self.seconds_needed(effect) for effect in sorted({*EFFECTS, self.min_effect})
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fairtrial aa --json`` prints it."""
        rate = self.false_positives
        return {
            "problem_id": self.problem_id,
            "comparisons": rate.total,
            "claims": [measurement.verdict.value for measurement in self.measurements],
            "false_positives": rate.count,
            "false_positive_interval": [rate.low, rate.high],
            "alpha": self.alpha,
            "sessions": len(self.statistics),
            "spread": self.spread,
            "session_s": self.session_s,
            "load": None if self.load is None else list(self.load),
            "visible_effect": self.visible_effect(),
            "seconds_needed": {
                f"{effect:g}": needed for effect, needed in self.list_seconds_needed().items()
            },
            "notes": list(self.notes),
        }


async def compare_candidates(
    problem: CodeProblem,
    first: CandidateSource,
    second: CandidateSource,
    *,
    settings: ArenaSettings | None = None,
    timed: Callable[[int, Estimate | None], None] | None = None,
) -> Comparison:
    """Check two versions, then time the second against the first.

    first, second: candidates, or paths of diffs or folders; ``base`` stands for the base
    timed: called with the number of sessions and the current estimate, while they are timed
    """
    settings = settings or ArenaSettings()
    valgrind = find_valgrind() if settings.instructions else None
    candidates = disambiguate_names([_read(first), _read(second)])
    async with open_arena(problem, settings=settings) as arena:
        _refuse_untimed(arena.can_time)
        audit_notes = await audit_quickly(arena, settings)
        settings.emit(events.PhaseStarted(events.Phase.BASE_TIMING))
        async with arena.bench() as bench:
            settings.emit(events.PhaseStarted(events.Phase.PAIR_CHECKS))
            resolved = await arena.resolve_all(candidates)
            first_judgement, second_judgement = await judge_all(
                arena, candidates, resolved=resolved
            )
            have_passed = first_judgement.verdict == second_judgement.verdict == Verdict.PASSED
            is_same = first_judgement.digest == second_judgement.digest
            if not have_passed or is_same:
                note = ("after normalization both are the same",) if is_same else ()
                return Comparison(
                    problem.problem_id,
                    first_judgement,
                    second_judgement,
                    None,
                    (*arena.notes, *audit_notes, *note),
                    arena.adequacy,
                )
            settings.emit(events.PhaseStarted(events.Phase.PAIR_TIMING))
            rival, changes = resolved
            assert isinstance(rival, Changes)
            assert isinstance(changes, Changes)
            timer = await open_candidate_bench(bench, rival)
            try:
                result = await measure(
                    timer,
                    second_judgement.name,
                    changes,
                    timing_rules(arena.problem),
                    label="duel",
                    watcher=None if timed is None else lambda _, *state: timed(*state),
                )
            except NoRoomError as error:  # the checks' results are reported nevertheless
                result = untimed(error)
            if valgrind is not None and isinstance(result, Measurement):
                settings.emit(events.PhaseStarted(events.Phase.INSTRUCTION_COUNTS))
                timings = {second_judgement.name: (changes, result)}
                counted = await add_instruction_counts(bench, valgrind, rival, timings)
                result = counted[second_judgement.name]
            notes = (*arena.notes, *audit_notes, *bench.notes)
            result = with_vetoes(result, arena.vetoes)
    measured = result if isinstance(result, Measurement) else None
    if measured is None:
        second_judgement = with_timing(second_judgement, result)
    return Comparison(
        problem.problem_id, first_judgement, second_judgement, measured, notes, arena.adequacy
    )


def _read(given: CandidateSource) -> Candidate:
    if isinstance(given, Candidate):
        return given
    if os.fspath(given) == BASE:
        return Candidate(BASE, files={})
    return read_candidate(Path(given))


def _refuse_untimed(can_time: bool) -> None:
    if not can_time:
        hint = "name a call with inputs, or a command, under bench:"
        raise StudyError(Mistake(("bench",), "is empty: there is nothing to time", hint))


async def check_clock(
    problem: CodeProblem,
    *,
    comparisons: int,
    most_s: float = float("inf"),
    settings: ArenaSettings | None = None,
    progress: Progress | None = None,
) -> SelfTest:
    """Time the base against itself, to measure the machine's noise and false positives.

    comparisons: how many times
    most_s: no further comparison is begun after this time
    progress: called after each comparison with its number, its sessions and its estimate
    """
    settings = settings or ArenaSettings()
    before = _load()
    measurements: list[Measurement] = []
    async with open_arena(problem, settings=settings) as arena:
        _refuse_untimed(arena.can_time)
        rules = timing_rules(arena.problem)
        settings.emit(events.PhaseStarted(events.Phase.BASE_TIMING))
        async with arena.bench() as bench:
            settings.emit(events.PhaseStarted(events.Phase.SELF_TIMING))
            began = time.monotonic()
            while len(measurements) < comparisons and time.monotonic() - began < most_s:
                number = len(measurements)
                left_s = most_s - (time.monotonic() - began)
                own = replace(rules, budget_s=min(rules.budget_s, left_s / bench.stretch))
                measured = await measure(bench, BASE, None, own, label=f"aa/{number}")
                if not isinstance(measured, Measurement):
                    raise LabError(f"the base can't be timed: {measured.message}")
                measurements.append(measured)
                if progress is not None:
                    sessions = len(measured.sessions) // len(bench.benchmarks)
                    progress(number, sessions, measured.estimate)
            notes = (*arena.notes, *bench.notes)
            benchmarks = len(bench.benchmarks)
    after = _load()
    comparisons_made = [_group(measurement, benchmarks) for measurement in measurements]
    replicates = [replicate for group in comparisons_made for replicate in group]
    return SelfTest(
        problem_id=problem.problem_id,
        measurements=tuple(measurements),
        statistics=tuple(
            value for group in comparisons_made for value in replicate_statistics(group)
        ),
        session_s=fmean(sum(session.seconds for session in replicate) for replicate in replicates),
        load=None if before is None or after is None else (before, after),
        alpha=rules.alpha,
        min_effect=rules.min_effect,
        budget_s=rules.budget_s,
        notes=notes,
    )


def _group(measurement: Measurement, benchmarks: int) -> list[Replicate]:
    """Split sessions into replicates: one session of each benchmark."""
    sessions = measurement.sessions
    return [sessions[start : start + benchmarks] for start in range(0, len(sessions), benchmarks)]


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


@contextmanager
def builtin_problem(*names: str) -> Iterator[CodeProblem]:
    """Copy the built-in project into a temporary repository, and load its problem.

    names: the benchmarks to keep; all if there are none
    """
    with tempfile.TemporaryDirectory(prefix="fairtrial-builtin-") as folder:
        top = Path(folder) / "builtin"
        shutil.copytree(WORKLOADS, top, ignore=shutil.ignore_patterns("__pycache__"))
        completed = subprocess.run(
            ["git", "init", "--quiet", str(top)], capture_output=True, text=True, check=False
        )
        if completed.returncode != 0:
            raise LabError(f"git can't make a repository: {completed.stderr.strip()}")
        problem = load_problem(top / "problem.yaml")
        if names:
            bench = tuple(benchmark for benchmark in problem.bench if benchmark.name in names)
            calls = {benchmark.call for benchmark in bench}
            checks = tuple(check for check in problem.check if check.function in calls)
            problem = replace(problem, bench=bench, check=checks)
        yield problem
