"""The benchmark of a problem that names none: the slowest tests of one of its checks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending
from fairtrial.arena.checks.pytest_check import (
    PreparedPytestCheck,
    name_some,
    pytest_command,
    read_in_thread,
)
from fairtrial.arena.checks.pytest_judging import PytestBaseline, build_baseline, judge_run
from fairtrial.arena.checks.pytest_reports import PytestOutcome, SuiteRun
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Difference, Rejection
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.command_benchmark import (
    FEWEST_PAIRS,
    HEADROOM,
    ProcessBenchmark,
    TimedProcess,
    average_s,
    draw_variables,
    take_sample,
)
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.core import MisfitError, Mistake, StudyError
from fairtrial.sandbox import Command, Ending

NAME = "slowest tests"
MOST_TESTS = 30
MOST_OF_IT = 0.9
"""The share of the suite's time that the chosen tests should cover."""
WISHED_PAIRS = 16
"""How many pairs the budget should hold, if fewer tests make that possible."""
START_S = 0.5
"""How long pytest is assumed to take to start, until that is measured."""
REHEARSALS = 2
TRIES = 4
"""How many sets of tests are tried before the suite is refused."""


def choose_slowest(
    durations: Mapping[str, float],
    *,
    longest_s: float = math.inf,
    enough_s: float = math.inf,
    most: int = MOST_TESTS,
    share: float = MOST_OF_IT,
) -> tuple[str, ...]:
    """Return the slowest tests, which take most of the total time, in the order of `durations`.

    durations: how long each test takes that may be chosen
    longest_s: how long they may take together; tests that don't fit are left out
    enough_s: from this total on no more tests are added
    most: the largest number of tests
    share: the share of the total time that is enough
    """
    chosen: set[str] = set()
    total_s, chosen_s = math.fsum(durations.values()), 0.0
    for name in sorted(durations, key=lambda test: -durations[test]):
        if len(chosen) == most or (chosen and chosen_s >= min(share * total_s, enough_s)):
            break
        # A single slow test may be all that matters; a second one must fit into `enough_s`, too.
        limit_s = longest_s if not chosen else min(longest_s, enough_s)
        if chosen_s + durations[name] <= limit_s:
            chosen.add(name)
            chosen_s += durations[name]
    return tuple(name for name in durations if name in chosen)


@dataclass(frozen=True, slots=True)
class SuiteSubject:
    """Some tests of a check, run by the check's own command.

    name: the benchmark's name
    label: the check's path in the problem
    check: the check
    tests: which of its tests
    baseline: the results that they must have
    """

    name: str
    label: str
    check: Check
    tests: tuple[str, ...]
    baseline: PytestBaseline

    def command(self, stage: Stage, *, env: Mapping[str, str], cores: tuple[int, ...]) -> Command:
        """Return the command to run on a slot."""
        return pytest_command(stage, self.check, only=self.tests, env=env, cores=cores)

    async def find_fault(self, process: TimedProcess) -> Rejection | None:
        """Return a rejection unless each of the tests is reported, and passes."""
        run = await read_in_thread(process.done)
        return judge_run(self.label, self.baseline, run, process.command)

    def find_difference(self, base: TimedProcess, other: TimedProcess) -> Difference | None:
        """Return None: the tests compare results, and pytest's own output contains times."""
        return None


async def prepare_slowest(
    suite: PreparedPytestCheck, setup: TimingSetup, *, budget_s: float, name: str = NAME
) -> ProcessBenchmark:
    """Find slow tests that pass alone on the base, in a read-only slot, within the budget.

    suite: a prepared pytest check
    budget_s: how long a comparison may take

    Raises `MisfitError` if not one test fits into the budget, `StudyError` if none passes.
    """
    search = _TestSearch(suite, dict(suite.durations))
    for attempt in range(TRIES):
        tests = search.choose(budget_s)
        if not tests:
            break
        subject = SuiteSubject(name, suite.label, suite.check, tests, suite.baseline)
        rng = Random(f"{setup.seed}/{name}/before/{attempt}")
        rehearsals = await _rehearse(subject, setup, rng)
        if search.leave_out(tests, rehearsals) or not search.learn(tests, rehearsals, budget_s):
            continue
        baseline = _narrow(build_baseline([run for _, run in rehearsals]), tests)
        notes = tuple(search.describe(tests))
        return ProcessBenchmark(name, replace(subject, baseline=baseline), 2 * search.run_s, notes)
    raise search.make_error(budget_s)


_Rehearsal = tuple[TimedProcess, SuiteRun]


async def _rehearse(subject: SuiteSubject, setup: TimingSetup, rng: Random) -> list[_Rehearsal]:
    """Run the tests on the base: once to fill the file cache, then to be timed.

    Each run has another hash seed, as in sessions.
    """
    rehearsals = []
    for _ in range(1 + REHEARSALS):
        process = await take_sample(subject, setup.base, setup, draw_variables(setup.base, rng))
        rehearsals.append((process, await read_in_thread(process.done)))
        if _find_unfit(subject.tests, *rehearsals[-1]):
            break
    return rehearsals


def _find_unfit(tests: Sequence[str], process: TimedProcess, run: SuiteRun) -> list[str]:
    """Return the tests that don't pass; if pytest was stopped, those that were running, or all."""
    if process.done.ending != Ending.EXITED or run.exit_status is None:
        return [name for name in tests if name in run.running] or list(tests)
    reports = {name: run.tests.get(name) for name in tests}
    return [
        name
        for name, report in reports.items()
        if report is None or report.outcome != PytestOutcome.PASSED
    ]


def _narrow(baseline: PytestBaseline, tests: Sequence[str]) -> PytestBaseline:
    """Return the baseline for these tests alone, without others that run with them."""
    counted = {name: times for name, times in baseline.counted.items() if name in tests}
    return PytestBaseline(counted, (), (), baseline.exit_codes)


@dataclass(slots=True)
class _TestSearch:
    """The search for tests that can be timed.

    suite: the prepared check with the tests
    left: how long each test takes that may still be chosen
    unfit: tests that don't pass alone in a read-only slot
    why: the failure of the first of them
    run_s: how long a run of the last set of tests takes
    around_s: the part of that outside of the tests
    share: the share of a sample that is spent in the tests
    """

    suite: PreparedPytestCheck
    left: dict[str, float]
    unfit: list[str] = field(default_factory=list)
    why: str = ""
    run_s: float = 0.0
    around_s: float = 0.0
    share: float = 0.0

    def choose(self, budget_s: float) -> tuple[str, ...]:
        """Return the tests to try next."""
        return choose_slowest(
            self.left,
            longest_s=budget_s / (2 * FEWEST_PAIRS) - self.around_s,
            enough_s=budget_s / (2 * WISHED_PAIRS) - self.around_s,
        )

    def leave_out(self, tests: Sequence[str], rehearsals: Sequence[_Rehearsal]) -> bool:
        """Exclude tests that don't pass; return whether there were any."""
        process, run = rehearsals[-1]
        unfit = _find_unfit(tests, process, run)
        if not unfit:
            return False
        for name in unfit:
            del self.left[name]
        report = run.tests.get(unfit[0])
        ending = f"pytest {tell_ending(process.done, process.command)}\n{tail_of(process.done)}"
        message = report.message if report and report.message else ending
        self.why = self.why or in_one_line(message, 400)
        self.unfit.extend(unfit)
        return True

    def learn(
        self, tests: Sequence[str], rehearsals: Sequence[_Rehearsal], budget_s: float
    ) -> bool:
        """Record how long the tests took; return whether the budget holds enough runs."""
        timed = rehearsals[1:]
        for name in tests:
            self.left[name] = sum(run.tests[name].seconds for _, run in timed) / len(timed)
        tests_s = sum(self.left[name] for name in tests)
        self.run_s = average_s([process for process, _ in timed])
        self.around_s = max(self.run_s - tests_s, 0.0)
        self.share = tests_s * len(timed) / sum(process.done.wall_s for process, _ in timed)
        return 2 * FEWEST_PAIRS * self.run_s <= budget_s

    def describe(self, tests: Sequence[str]) -> list[str]:
        """Return notes on the limits of timing these tests."""
        durations = self.suite.durations
        total_s = sum(durations.values())
        covered = sum(durations[name] for name in tests) / total_s if total_s else 0.0
        notes = [
            f"the problem has no bench: each sample is a pytest process with {len(tests):,} of the "
            f"base's slowest tests, {covered:.0%} of the time of all in {self.suite.label}: "
            f"{name_some(tests)}",
            "inputs were fixed: the tests use the same in every run, and candidates can see them",
            f"starting pytest is part of a sample: the tests themselves are {self.share:.0%} of "
            "the base's, and a change in them looks smaller by as much",
            "results were judged by tests in the candidate's own process: they guard against "
            "mistakes, not against cheats",
        ]
        if self.unfit:
            notes.append(
                "not timed, since they don't pass by themselves in a read-only copy: "
                f"{name_some(self.unfit)} (the first: {self.why})"
            )
        return notes

    def make_error(self, budget_s: float) -> StudyError:
        """Return an error that explains why no tests can be timed."""
        hint = "name what is to be timed in bench:"
        slowest = max(self.left, key=lambda name: self.left[name], default="")
        kind = StudyError
        if self.unfit and (not slowest or self.choose(budget_s)):
            why = (
                "those that were tried don't pass by themselves in a read-only copy of your tree: "
                f"{name_some(self.unfit)} (the first: {self.why})"
            )
        else:
            test_s, around_s = self.left[slowest], self.around_s or START_S
            enough_s = math.ceil(HEADROOM * 2 * FEWEST_PAIRS * (around_s + test_s))
            start = f"starting pytest takes {around_s:.2g} s, and " if self.around_s else ""
            why = (
                f"{FEWEST_PAIRS} pairs of runs, the fewest that can decide anything, don't fit "
                f"into budget_s ({budget_s:g}): {start}the slowest test, {slowest}, takes "
                f"{test_s:.2g} s"
            )
            hint += f", or raise budget_s to {enough_s}"
            kind = MisfitError
        message = f"there is none, and the tests of {self.suite.label} can't stand in for it: {why}"
        return kind(Mistake(("bench",), message, hint))
