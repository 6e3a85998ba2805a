"""The plan of a study as a sequence: any run can be computed from its index alone."""

from __future__ import annotations

import functools
import itertools
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from fairtrial.core import dump_record
from fairtrial.study.design.execution_order import execution_order
from fairtrial.study.design.look_schedule import LookSchedule, schedule_looks
from fairtrial.study.design.runs import (
    AgentProblemPair,
    build_run_spec,
    count_pairs,
    count_replicates,
    get_agents,
    get_problems,
    make_pairs,
    make_run_spec,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunSpec
from fairtrial.study.model.study import Study

CACHED_CONDITIONS = 4_096
RunCell = tuple[str, str | None]
"""A condition's id and an agent: the runs that a test takes together."""


class PlanCell(NamedTuple):
    """The replicates of one agent on one problem under one condition.

    condition: index of the condition among all conditions
    agent, problem: their names; None for a condition runner
    replicates: the number of runs, which are the replicates from 1 to this number
    """

    condition: int
    agent: str | None
    problem: str | None
    replicates: int


class RunPlan:
    """The runs of a study in plan order: conditions × replicates × agents × problems.

    It keeps the conditions and a few numbers for each of them; the specs of runs are computed when
    they are asked for. A run's position in the plan is its `plan_index`.
    """

    def __init__(self, study: Study, conditions: Sequence[Condition]) -> None:
        self.study = study
        self.conditions = conditions
        self._seed_policy = dump_record(study.seed_policy)
        self._admissible = [condition for condition in conditions if condition.admissible]
        self._sizes = [self._count_runs(condition) for condition in self._admissible]
        self._first_indexes = array("Q")
        end = 0
        for size in self._sizes:
            self._first_indexes.append(end)
            end += size
        self._length = end
        self._quotas = self._compute_quotas()
        self._unneeded: bytearray | None = None
        self._get_pairs = functools.lru_cache(CACHED_CONDITIONS)(self._make_pairs)

    def __len__(self) -> int:
        return self._length

    def spec(self, plan_index: int) -> RunSpec:
        """Return the spec of the run at an index of the plan."""
        return self.run_at(plan_index)[0]

    def run_at(self, plan_index: int) -> tuple[RunSpec, Condition]:
        """Return the spec of the run at an index of the plan, and its condition."""
        condition, pair, replicate = self._locate(plan_index)
        return make_run_spec(self.study.study_id, condition, pair, replicate), condition

    def known_spec(self, plan_index: int, run_id: str, seed: int) -> RunSpec:
        """Return the spec of the run at an index, whose id and seed are known: they are hashes."""
        condition, pair, replicate = self._locate(plan_index)
        return build_run_spec(self.study.study_id, condition, pair, replicate, run_id, seed)

    def _locate(self, plan_index: int) -> tuple[Condition, AgentProblemPair, int]:
        """Return the condition, the pair and the replicate of the run at an index of the plan."""
        position = bisect_right(self._first_indexes, plan_index) - 1
        pairs = self._get_pairs(position)
        offset = plan_index - self._first_indexes[position]
        replicate, pair_index = divmod(offset, len(pairs))
        return self._admissible[position], pairs[pair_index], replicate + 1

    def condition_at(self, plan_index: int) -> Condition:
        """Return the condition of the run at an index of the plan."""
        return self._admissible[self._find_condition(plan_index)]

    def first_indexes(self) -> Sequence[int]:
        """Return the plan index of the first run of each admissible condition."""
        return self._first_indexes

    def specs(self) -> Iterator[RunSpec]:
        """Yield the specs of all runs, in plan order."""
        return map(self.spec, range(self._length))

    def cells(self) -> Iterator[PlanCell]:
        """Yield each agent and problem under each condition, with its number of runs.

        Runs that a balanced `max_runs` leaves out don't count.
        """
        quotas = self._sizes if self._quotas is None else self._quotas
        numbers = [index for index, c in enumerate(self.conditions) if c.admissible]
        for number, condition, quota in zip(numbers, self._admissible, quotas, strict=True):
            agents = get_agents(self.study, condition)
            problems = get_problems(self.study, condition)
            size = len(agents) * len(problems)
            pairs = itertools.product(agents, problems)
            for position, (agent, problem) in enumerate(pairs):
                yield PlanCell(number, agent, problem, -((position - quota) // size))

    def order(self) -> array[int]:
        """Return the plan indexes in the order of execution."""
        return execution_order(self.study, self.conditions)

    @functools.cached_property
    def schedule(self) -> LookSchedule | None:
        """The planned looks; None if there are none."""
        return schedule_looks(self.study, self.conditions)

    @functools.cached_property
    def batches(self) -> array[int]:
        """For each plan index the number of the first planned look that sees the run."""
        return self.schedule.batches(self.study, self.conditions) if self.schedule else array("H")

    def leave_out(self, look: int, needed: Set[RunCell] | None) -> None:
        """Skip the runs after a planned look that no undecided claim needs.

        needed: the conditions and agents that are still needed; None for all
        """
        if needed is None:
            self._unneeded = None
            return
        batches = self.batches
        self._unneeded = bytearray(self._length)
        for position, condition in enumerate(self._admissible):
            pairs = self._get_pairs(position)
            cells = [(condition.condition_id, pair.agent) in needed for pair in pairs]
            first = self._first_indexes[position]
            for offset in range(self._sizes[position]):
                if batches[first + offset] > look and not cells[offset % len(pairs)]:
                    self._unneeded[first + offset] = 1

    def is_skipped(self, plan_index: int) -> bool:
        """Return whether `max_runs` or a planned look leaves out the run at an index."""
        if self._unneeded is not None and self._unneeded[plan_index]:
            return True
        if self._quotas is None:
            return False
        position = self._find_condition(plan_index)
        return plan_index - self._first_indexes[position] >= self._quotas[position]

    @property
    def runnable(self) -> int:
        """The number of runs without those that `max_runs` or planned looks leave out."""
        kept = self._length if self._quotas is None else sum(self._quotas)
        return kept - (0 if self._unneeded is None else sum(self._unneeded))

    def _find_condition(self, plan_index: int) -> int:
        """Return the position, among the admissible conditions, of a run's condition."""
        return bisect_right(self._first_indexes, plan_index) - 1

    def _count_runs(self, condition: Condition) -> int:
        pairs = count_pairs(self.study, condition.factor_assignments)
        return pairs * count_replicates(self.study)

    def _make_pairs(self, position: int) -> Sequence[AgentProblemPair]:
        return make_pairs(self.study, self._admissible[position], self._seed_policy)

    def _compute_quotas(self) -> list[int] | None:
        """Return how many runs of each condition are kept, if `max_runs` reduces the plan evenly.

        Every condition keeps the same number of runs, lower replicates first; the remainder goes
        to the first conditions of the plan.
        """
        budget = self.study.run_budget
        if budget.max_runs is None or not budget.is_balanced or self._length <= budget.max_runs:
            return None
        quotas = [0] * len(self._sizes)
        remaining = budget.max_runs
        unfilled = list(range(len(self._sizes)))
        while remaining and unfilled:
            share, extra = divmod(remaining, len(unfilled))
            for rank, position in enumerate(unfilled):
                added = min(share + (rank < extra), self._sizes[position] - quotas[position])
                quotas[position] += added
                remaining -= added
            unfilled = [index for index in unfilled if quotas[index] < self._sizes[index]]
        return quotas
