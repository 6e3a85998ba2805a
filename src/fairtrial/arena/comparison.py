"""Two versions against each other: candidate and candidate, candidate and base, base and base."""

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

from fairtrial.arena.arena import BASE
from fairtrial.arena.candidates.folders import read_candidate, tell_apart
from fairtrial.arena.evaluation import Given, judge_all
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.timings import Estimate, Measurement
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.opening import open_arena
from fairtrial.arena.problem_files import load_problem
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.decision import measure, untimed
from fairtrial.arena.timing.second_opinion import with_instructions
from fairtrial.arena.timing.stats.detectable_effect import Rate, false_positive_rate, spread
from fairtrial.arena.timing.stats.sequential import Claim
from fairtrial.arena.timing.summary import Replicate, statistics_of
from fairtrial.arena.timing.valgrind import find_valgrind
from fairtrial.arena.timing_phase import rules_of, with_timing
from fairtrial.core import LabError, Mistake, Phase, PhaseStarted, StudyError

WORKLOADS = Path(__file__).resolve().parent / "workloads"
"""A small project that comes with us."""
Told = Callable[[int, int, Estimate | None], None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One version against another.

    problem_id: the problem's
    first, second: both, with what their checks say
    measurement: how fast the second is compared with the first; None if one didn't pass its checks,
        or they are the same
    notes: what people should know
    """

    problem_id: str
    first: Judgement
    second: Judgement
    measurement: Measurement | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The base against itself, again and again.

    problem_id: the problem's
    measurements: what was said each time
    statistics: of all sessions, log(one base/the other)
    session_s: how long a session of all benchmarks takes
    load: the machine's load average before and after, if it is known
    alpha, min_effect, budget_s: what decided
    notes: what people should know
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
        """How often a difference was claimed."""
        return false_positive_rate([Claim(each.verdict.value) for each in self.measurements])

    @property
    def spread(self) -> float:
        """The standard deviation between sessions."""
        return spread(self.statistics)


async def compare_candidates(
    problem: CodeProblem,
    first: Given,
    second: Given,
    *,
    settings: ArenaSettings | None = None,
    timed: Callable[[int, Estimate | None], None] | None = None,
) -> Comparison:
    """Check both, then time the second against the first; ``base`` stands for the base."""
    settings = settings or ArenaSettings()
    valgrind = find_valgrind() if settings.instructions else None
    given = tell_apart([_read(first), _read(second)])
    async with open_arena(problem, settings=settings) as arena:
        _refuse_untimed(arena.can_time)
        settings.emit(PhaseStarted(Phase.BASE_TIMING))
        async with arena.bench() as bench:
            settings.emit(PhaseStarted(Phase.PAIR_CHECKS))
            resolved = await arena.resolve_all(given)
            one, other = await judge_all(arena, given, resolved=resolved)
            have_passed = one.verdict == other.verdict == Verdict.PASSED
            is_same = one.digest == other.digest
            if not have_passed or is_same:
                note = ("after normalisation both are the same",) if is_same else ()
                return Comparison(problem.problem_id, one, other, None, (*arena.notes, *note))
            settings.emit(PhaseStarted(Phase.PAIR_TIMING))
            rival, changes = resolved
            assert isinstance(rival, Changes)
            assert isinstance(changes, Changes)
            timer = await bench.against(rival)
            try:
                found = await measure(
                    timer,
                    other.name,
                    changes,
                    rules_of(arena.problem),
                    label="duel",
                    watcher=None if timed is None else lambda _, *told: timed(*told),
                )
            except NoRoomError as error:  # what the checks said is told
                found = untimed(error)
            if valgrind is not None and isinstance(found, Measurement):
                settings.emit(PhaseStarted(Phase.INSTRUCTION_COUNTS))
                timings = {other.name: (changes, found)}
                counted = await with_instructions(bench, valgrind, rival, timings)
                found = counted[other.name]
            notes = (*arena.notes, *bench.notes)
    if isinstance(found, Measurement):
        return Comparison(problem.problem_id, one, other, found, notes)
    return Comparison(problem.problem_id, one, with_timing(other, found), None, notes)


def _read(given: Given) -> Candidate:
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
    told: Told | None = None,
) -> SelfTest:
    """Time the base against itself, so many times, or until `most_s` seconds are over."""
    settings = settings or ArenaSettings()
    before = _load()
    found: list[Measurement] = []
    async with open_arena(problem, settings=settings) as arena:
        _refuse_untimed(arena.can_time)
        rules = rules_of(arena.problem)
        settings.emit(PhaseStarted(Phase.BASE_TIMING))
        async with arena.bench() as bench:
            settings.emit(PhaseStarted(Phase.SELF_TIMING))
            began = time.monotonic()
            while len(found) < comparisons and time.monotonic() - began < most_s:
                number = len(found)
                left_s = most_s - (time.monotonic() - began)
                own = replace(rules, budget_s=min(rules.budget_s, left_s / bench.stretch))
                measured = await measure(bench, BASE, None, own, label=f"aa/{number}")
                if not isinstance(measured, Measurement):
                    raise LabError(f"the base can't be timed: {measured.message}")
                found.append(measured)
                if told is not None:
                    told(number, len(measured.sessions) // len(bench.meters), measured.estimate)
            notes = (*arena.notes, *bench.notes)
            benchmarks = len(bench.meters)
    after = _load()
    replicates = [_group(each, benchmarks) for each in found]
    return SelfTest(
        problem_id=problem.problem_id,
        measurements=tuple(found),
        statistics=tuple(value for each in replicates for value in statistics_of(each)),
        session_s=fmean(sum(s.seconds for s in one) for each in replicates for one in each),
        load=None if before is None or after is None else (before, after),
        alpha=rules.alpha,
        min_effect=rules.min_effect,
        budget_s=rules.budget_s,
        notes=notes,
    )


def _group(measurement: Measurement, benchmarks: int) -> list[Replicate]:
    """Sessions that belong together: one of each benchmark."""
    sessions = measurement.sessions
    return [sessions[place : place + benchmarks] for place in range(0, len(sessions), benchmarks)]


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


@contextmanager
def builtin_problem(*names: str) -> Iterator[CodeProblem]:
    """The project that comes with us, somewhere it can be copied from; only these benchmarks."""
    with tempfile.TemporaryDirectory(prefix="fairtrial-builtin-") as folder:
        top = Path(folder) / "builtin"
        shutil.copytree(WORKLOADS, top, ignore=shutil.ignore_patterns("__pycache__"))
        made = subprocess.run(
            ["git", "init", "--quiet", str(top)], capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise LabError(f"git can't make a repository: {made.stderr.strip()}")
        problem = load_problem(top / "problem.yaml")
        if names:
            bench = tuple(each for each in problem.bench if each.name in names)
            calls = {each.call for each in bench}
            check = tuple(each for each in problem.check if each.function in calls)
            problem = replace(problem, bench=bench, check=check)
        yield problem
