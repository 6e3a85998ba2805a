"""Timing the base against itself (an A/A test): false positives and detectable effects."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from fairtrial.arena.candidate_sources import BASE
from fairtrial.arena.evaluation import require_benchmarks
from fairtrial.arena.events import SelfComparisonDone
from fairtrial.arena.model.figures import percent_text, rough_seconds
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.opening import open_arena
from fairtrial.arena.problem_files import load_problem
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.timing.decision import measure
from fairtrial.arena.timing.stats.detectable_effect import (
    Rate,
    false_positive_rate,
    seconds_needed,
    spread,
    visible_within,
)
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim
from fairtrial.arena.timing.summary import Replicate, replicate_statistics
from fairtrial.arena.timing_phase import timing_rules
from fairtrial.core import LabError, events

WORKLOADS = Path(__file__).resolve().parent / "workloads"
"""A small project with benchmarks that is installed with fairtrial."""
EFFECTS = (0.01, 0.02, 0.03, 0.05, 0.10)
"""The effects whose detection is reported beside `min_effect`."""


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

    def describe_claims(self) -> str:
        """Return how often equal code was called different, and how often it may be."""
        rate = self.false_positives
        claims = [measurement.verdict.value for measurement in self.measurements]
        kinds = ", ".join(f"{claims.count(kind)} {kind}" for kind in sorted(set(claims)))
        within = f"{percent_text(rate.low)} to {percent_text(rate.high)}"
        share = percent_text(rate.count / rate.total)
        return (
            f"{rate.total} comparisons of equal code: {kinds}. That is {share} wrong "
            f"claims ({within} with 95 % confidence); {percent_text(self.alpha)} are allowed."
        )

    def describe_noise(self) -> str:
        """Return how much sessions vary, and the machine's load meanwhile if it is known."""
        text = (
            f"{len(self.statistics)} sessions of {self.session_s:.2f} s spread by "
            f"{percent_text(self.spread)}."
        )
        if self.load is None:
            return text
        before, after = self.load
        return f"{text} The machine's load was {before:.1f} before and {after:.1f} after."

    def describe_effects(self) -> list[tuple[str, str]]:
        """Return usual effects and `min_effect`, each with how long its detection takes."""
        texts = []
        for effect, needed in self.list_seconds_needed().items():
            text = "not within 46 sessions" if needed is None else f"within {rough_seconds(needed)}"
            if needed is not None and needed > self.budget_s:
                text += f", more than budget_s ({self.budget_s:g} s) holds"
            texts.append((percent_text(effect), text))
        return texts

    @property
    def can_be_trusted(self) -> bool:
        """Whether equal code is not called different more often than alpha allows."""
        return self.false_positives.low <= self.alpha

    @property
    def is_quiet_enough(self) -> bool:
        """Whether `min_effect` is detected within `budget_s`."""
        detectable = self.visible_effect()
        return detectable is not None and detectable <= self.min_effect

    @property
    def is_budget_too_short(self) -> bool:
        """Whether `min_effect` is detected in all sessions, but not within `budget_s`."""
        smallest = self.visible_effect(float("inf"))
        return not self.is_quiet_enough and smallest is not None and smallest <= self.min_effect

    def describe_machine(self) -> str:
        """Return whether this machine can detect `min_effect`, and what to do if it can't."""
        wanted, smallest = percent_text(self.min_effect), self.visible_effect(float("inf"))
        if self.is_quiet_enough:
            return f"Quiet enough to detect the min_effect of {wanted} within budget_s."
        if self.is_budget_too_short:
            needed = self.seconds_needed(self.min_effect)
            hint = "" if needed is None else f": set budget_s to {needed:.0f}"
            return f"The budget is too short for the min_effect of {wanted}{hint}."
        rest = ""
        if smallest is not None:
            rest = f"; the smallest detectable effect is {percent_text(smallest)}"
        return f"This machine is too noisy for the min_effect of {wanted}{rest}."

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


async def check_clock(
    problem: CodeProblem,
    *,
    comparisons: int,
    most_s: float = float("inf"),
    settings: ArenaSettings | None = None,
) -> SelfTest:
    """Time the base against itself, to measure the machine's noise and false positives.

    comparisons: how many times
    most_s: no further comparison is begun after this time
    settings: options of the arena; its `emit` gets phases, and `SelfComparisonDone`
    """
    settings = settings or ArenaSettings()
    before = _load()
    measurements: list[Measurement] = []
    async with open_arena(problem, settings=settings) as arena:
        require_benchmarks(arena)
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
                sessions = len(measured.sessions) // len(bench.benchmarks)
                done = SelfComparisonDone(number + 1, comparisons, sessions, measured.estimate)
                settings.emit(done)
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
