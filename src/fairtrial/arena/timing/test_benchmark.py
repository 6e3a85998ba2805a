"""What is timed where a problem names no benchmark: the slowest tests of one of its checks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending
from fairtrial.arena.checks.pytest_check import (
    SuiteTrial,
    name_some,
    pytest_command,
    read_in_thread,
)
from fairtrial.arena.checks.pytest_judging import Standard, judge_run, set_standard
from fairtrial.arena.checks.pytest_reports import Outcome, SuiteRun
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Difference, Rejection
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.command_benchmark import (
    FEWEST_PAIRS,
    HEADROOM,
    PairMeter,
    Taken,
    average_s,
    draw_variables,
    take,
)
from fairtrial.arena.timing.prepared_benchmark import Duel
from fairtrial.core import MisfitError, Mistake, StudyError
from fairtrial.sandbox import Command, Ending

NAME = "slowest tests"
MOST_TESTS = 30
MOST_OF_IT = 0.9
"""The share of the suite's time that is enough."""
WISHED_PAIRS = 16
"""How many pairs the budget should hold, if fewer tests allow it."""
START_S = 0.5
"""How long pytest takes to start, as long as we don't know."""
REHEARSALS = 2
TRIES = 4
"""How many sets of tests are tried before the suite is given up."""


def choose_slowest(
    durations: Mapping[str, float],
    *,
    longest_s: float = math.inf,
    enough_s: float = math.inf,
    most: int = MOST_TESTS,
    share: float = MOST_OF_IT,
) -> tuple[str, ...]:
    """The slowest tests that hold most of the time of all, in the order of `durations`.

    durations: how long each takes; only such as may be chosen
    longest_s: what they may take together; tests that don't fit in are left out
    enough_s: after this long no more tests are added
    most: how many there may be
    share: how much of the time of all is enough
    """
    chosen: set[str] = set()
    total_s, taken_s = math.fsum(durations.values()), 0.0
    for name in sorted(durations, key=lambda each: -durations[each]):
        if len(chosen) == most or (chosen and taken_s >= min(share * total_s, enough_s)):
            break
        # One that takes long alone may be all that matters; a second one has to be worth it.
        room_s = longest_s if not chosen else min(longest_s, enough_s)
        if taken_s + durations[name] <= room_s:
            chosen.add(name)
            taken_s += durations[name]
    return tuple(name for name in durations if name in chosen)


@dataclass(frozen=True, slots=True)
class SuiteSubject:
    """Some tests of a check, run by the check's own command.

    name: the benchmark's
    label: the check's place in the problem
    check: the check
    tests: which of its tests
    standard: what must come of them
    """

    name: str
    label: str
    check: Check
    tests: tuple[str, ...]
    standard: Standard

    def command(self, stage: Stage, *, env: Mapping[str, str], cores: tuple[int, ...]) -> Command:
        """What to run on a slot."""
        return pytest_command(stage, self.check, only=self.tests, env=env, cores=cores)

    async def find_fault(self, taken: Taken) -> Rejection | None:
        """Every one of the tests must be reported, and pass."""
        run = await read_in_thread(taken.done)
        return judge_run(self.label, self.standard, run, taken.command)

    def find_difference(self, base: Taken, other: Taken) -> Difference | None:
        """Tests have said all there is to say; what pytest prints has times in it."""
        return None


async def prepare_slowest(
    trial: SuiteTrial, duel: Duel, *, budget_s: float, name: str = NAME
) -> PairMeter:
    """Find tests of the base that pass by themselves, in a read-only slot, and fit the budget.

    trial: the check, as it went with the base
    budget_s: what a comparison may take; refused if not one test fits in
    """
    search = _Search(trial, dict(trial.durations))
    for attempt in range(TRIES):
        tests = search.choose(budget_s)
        if not tests:
            break
        subject = SuiteSubject(name, trial.label, trial.check, tests, trial.standard)
        rng = Random(f"{duel.seed}/{name}/before/{attempt}")
        rehearsals = await _rehearse(subject, duel, rng)
        if search.leave_out(tests, rehearsals) or not search.learn(tests, rehearsals, budget_s):
            continue
        standard = _narrow(set_standard([run for _, run in rehearsals]), tests)
        return PairMeter(
            name, replace(subject, standard=standard), 2 * search.run_s, tuple(search.tell(tests))
        )
    raise search.refuse(budget_s)


_Rehearsal = tuple[Taken, SuiteRun]


async def _rehearse(subject: SuiteSubject, duel: Duel, rng: Random) -> list[_Rehearsal]:
    """Run the tests on the base: once for what is on disk to come into memory, then to be timed.

    Each with another hash seed, since sessions have theirs.
    """
    rehearsals = []
    for _ in range(1 + REHEARSALS):
        taken = await take(subject, duel.base, duel, draw_variables(duel.base, rng))
        rehearsals.append((taken, await read_in_thread(taken.done)))
        if _find_unfit(subject.tests, *rehearsals[-1]):
            break
    return rehearsals


def _find_unfit(tests: Sequence[str], taken: Taken, run: SuiteRun) -> list[str]:
    """The tests that don't pass; those that ran, or all, if pytest didn't come to its end."""
    if taken.done.ending != Ending.EXITED or run.exit_status is None:
        return [name for name in tests if name in run.running] or list(tests)
    told = {name: run.tests.get(name) for name in tests}
    return [name for name, one in told.items() if one is None or one.outcome != Outcome.PASSED]


def _narrow(standard: Standard, tests: Sequence[str]) -> Standard:
    """Held to these tests, and to nothing else that happens to run with them."""
    counted = {name: times for name, times in standard.counted.items() if name in tests}
    return Standard(counted, (), (), standard.exit_codes)


@dataclass(slots=True)
class _Search:
    """On the way to tests that can be timed.

    trial: whose they are
    left: how long each test takes that may still be chosen
    unfit: tests that don't pass when they are run like this
    why: what became of the first of them
    run_s: how long a run of the tests that were tried last takes
    around_s: how much of that is not the tests' own
    share: how much of a sample is the tests' own
    """

    trial: SuiteTrial
    left: dict[str, float]
    unfit: list[str] = field(default_factory=list)
    why: str = ""
    run_s: float = 0.0
    around_s: float = 0.0
    share: float = 0.0

    def choose(self, budget_s: float) -> tuple[str, ...]:
        """The tests to try next."""
        return choose_slowest(
            self.left,
            longest_s=budget_s / (2 * FEWEST_PAIRS) - self.around_s,
            enough_s=budget_s / (2 * WISHED_PAIRS) - self.around_s,
        )

    def leave_out(self, tests: Sequence[str], rehearsals: Sequence[_Rehearsal]) -> bool:
        """Whether some of the tests are of no use; they are not chosen again."""
        taken, run = rehearsals[-1]
        unfit = _find_unfit(tests, taken, run)
        if not unfit:
            return False
        for name in unfit:
            del self.left[name]
        told = run.tests.get(unfit[0])
        ending = f"pytest {tell_ending(taken.done, taken.command)}\n{tail_of(taken.done)}"
        self.why = self.why or in_one_line(told.message if told and told.message else ending, 400)
        self.unfit.extend(unfit)
        return True

    def learn(
        self, tests: Sequence[str], rehearsals: Sequence[_Rehearsal], budget_s: float
    ) -> bool:
        """Take down how long they took; whether the budget holds enough of that."""
        timed = rehearsals[1:]
        for name in tests:
            self.left[name] = sum(run.tests[name].seconds for _, run in timed) / len(timed)
        tests_s = sum(self.left[name] for name in tests)
        self.run_s = average_s([taken for taken, _ in timed])
        self.around_s = max(self.run_s - tests_s, 0.0)
        self.share = tests_s * len(timed) / sum(taken.done.wall_s for taken, _ in timed)
        return 2 * FEWEST_PAIRS * self.run_s <= budget_s

    def tell(self, tests: Sequence[str]) -> list[str]:
        """What people should know before they believe a verdict."""
        durations = self.trial.durations
        total_s = sum(durations.values())
        covered = sum(durations[name] for name in tests) / total_s if total_s else 0.0
        notes = [
            f"the problem has no bench: each sample is a pytest process with {len(tests):,} of the "
            f"base's slowest tests, {covered:.0%} of the time of all in {self.trial.label}: "
            f"{name_some(tests)}",
            "inputs were fixed: the tests bring the same in every run, and candidates can see them",
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

    def refuse(self, budget_s: float) -> StudyError:
        """Why there is nothing to time."""
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
        message = f"there is none, and the tests of {self.trial.label} can't stand in for it: {why}"
        return kind(Mistake(("bench",), message, hint))
