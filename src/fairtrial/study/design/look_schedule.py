"""Planned looks at a study: which runs each of them sees.

The runs of a look form a batch of complete blocks: all compared conditions for the same problems
and replicates. A batch adds whole problems, since the problem is the unit of inference. With few
problems, or if the claims are about exactly these, it adds replicates of all problems.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fairtrial.core import canonical_json, dump_record
from fairtrial.study.design.runs import (
    PROBLEM_FACTORS,
    count_replicates,
    get_problems,
    plan_indexes,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import Stopping
from fairtrial.study.model.identity import hash_id
from fairtrial.study.model.study import Study

DEFAULT_MIN_PROBLEMS = 4
MIN_PAIRS = 4
"""The fewest pairs of problem and replicate at a look."""
LookUnit = Literal["problems", "replicates"]


@dataclass(frozen=True, slots=True)
class LookSchedule:
    """The planned looks of a study.

    stopping: the plan's rule for stopping
    unit: what each look adds: problems or replicates
    units: how many of them each look sees; the last look sees all
    problems: the number of problems
    problem_batches: for each problem the first look that sees it; empty if looks add replicates
    generalizes: whether the claims are about more than these problems
    """

    stopping: Stopping
    unit: LookUnit
    units: tuple[int, ...]
    problems: int
    problem_batches: Mapping[str | None, int]
    generalizes: bool

    @property
    def looks(self) -> int:
        """The number of looks, which is smaller than planned if there are few units."""
        return len(self.units)

    @property
    def fractions(self) -> tuple[float, ...]:
        """The information at each look, relative to that at the last one."""
        return tuple(units / self.units[-1] for units in self.units)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of observations of a test at each look."""
        by_pair = self.unit == "replicates" and not self.generalizes
        return tuple(units * (self.problems if by_pair else 1) for units in self.units)

    @property
    def clusters(self) -> int | None:
        """The number of problems, if looks add replicates of problems that stand for others."""
        is_clustered = self.unit == "replicates" and self.generalizes and self.problems > 1
        return self.problems if is_clustered else None

    def batch(self, problem: str | None, replicate: int) -> int:
        """Return the number of the first look that sees a run, from 1."""
        if self.unit == "problems":
            return self.problem_batches[problem]
        return next(number for number, units in enumerate(self.units, 1) if replicate <= units)

    def batches(self, study: Study, conditions: Sequence[Condition]) -> array[int]:
        """Return for each plan index the number of the first look that sees its run."""
        numbers = array("H")
        replicates = count_replicates(study)
        for condition, indexes in plan_indexes(study, conditions):
            problems = get_problems(study, condition)
            agents = len(indexes) // (replicates * len(problems))
            for replicate in range(1, replicates + 1):
                batches = [self.batch(problem, replicate) for problem in problems]
                numbers.extend(batches * agents)
        return numbers

    def signature(self, study: Study, conditions: Sequence[Condition]) -> str:
        """Return a hash of what the looks depend on: a look of another schedule doesn't count."""
        admissible = [condition for condition in conditions if condition.admissible]
        data = {
            "stopping": dump_record(self.stopping),
            "units": self.units,
            "unit": self.unit,
            "batches": sorted(self.problem_batches.items(), key=str),
            "replicates": count_replicates(study),
            "conditions": [
                [condition.condition_id, list(get_problems(study, condition))]
                for condition in admissible
            ],
            "plans": [
                [plan.analysis_plan_id, list(plan.hypothesis_ids), list(plan.tests[:1])]
                for plan in study.analysis_plans
            ],
        }
        return hash_id("looks", {"schedule": canonical_json(data)})


def find_stopping(study: Study) -> Stopping | None:
    """Return the rule for early stopping of a study, which all its plans share."""
    return next((plan.stopping for plan in study.analysis_plans if plan.stopping), None)


def schedule_looks(study: Study, conditions: Sequence[Condition]) -> LookSchedule | None:
    """Return the planned looks of a study; None if it has none."""
    stopping = find_stopping(study)
    if stopping is None:
        return None
    problems = list(
        dict.fromkeys(
            problem
            for condition in conditions
            if condition.admissible
            for problem in get_problems(study, condition)
        )
    )
    generalizes = all(
        plan.generalize == "problems" for plan in study.analysis_plans if plan.stopping
    )
    replicates = count_replicates(study)
    first_problems = max(stopping.min_problems or DEFAULT_MIN_PROBLEMS, 1)
    first_replicates = -(-MIN_PAIRS // max(len(problems), 1))
    by_problem = (
        generalizes
        and not _compares_problems(study)
        and _adds_problems(stopping, len(problems) - first_problems, replicates - first_replicates)
    )
    if not by_problem:
        units = _spread(replicates, stopping.looks, first_replicates)
        return LookSchedule(stopping, "replicates", units, len(problems), {}, generalizes)
    units = _spread(len(problems), stopping.looks, first_problems)
    # A random order, so that the problems of each look are like those of the others.
    random.Random(hash_id("looks", {"base_seed": study.seed_policy.base_seed})).shuffle(problems)
    batches = {
        problem: next(number for number, seen in enumerate(units, 1) if place < seen)
        for place, problem in enumerate(problems)
    }
    return LookSchedule(stopping, "problems", units, len(problems), batches, generalizes)


def _adds_problems(stopping: Stopping, more_problems: int, more_replicates: int) -> bool:
    """Return whether looks add problems; they do if there are enough for all looks.

    more_problems: the number of problems besides those of the first look
    more_replicates: the number of replicates besides those of the first look
    """
    if more_problems >= stopping.looks - 1:
        return True
    return more_problems > 0 and more_replicates < min(stopping.looks - 1, more_problems)


def _compares_problems(study: Study) -> bool:
    return any(
        name in PROBLEM_FACTORS
        for hypothesis in study.hypotheses
        for name in (*hypothesis.independent_vars, *(m.name for m in hypothesis.moderators))
    )


def _spread(total: int, looks: int, first: int) -> tuple[int, ...]:
    """Return how many units each look sees: as evenly as possible, the first at least `first`."""
    first = min(total, max(first, -(-total // looks)))
    looks = min(looks, total - first + 1)
    if looks == 1:
        return (total,)
    return tuple(first + round((total - first) * look / (looks - 1)) for look in range(looks))
