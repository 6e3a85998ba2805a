"""The whole plan of a study, addressed by place: any of a million runs without the others."""

from __future__ import annotations

import functools
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from fairtrial.core import dump
from fairtrial.study.design.runs import (
    Pair,
    agents_of,
    execution_order,
    pairs_of,
    problems_of,
    replicates_of,
    spec_of,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunSpec
from fairtrial.study.model.study import Study

CACHED_CONDITIONS = 4_096


class RunPlan:
    """The runs of a study in plan order: conditions × replicates × agents × problems.

    Holds the conditions and a few numbers for each; a run's spec is made when it is asked for.
    """

    def __init__(self, study: Study, conditions: Sequence[Condition]) -> None:
        self.study = study
        self.conditions = conditions
        self._policy = dump(study.seed_policy)
        self._admissible = [condition for condition in conditions if condition.admissible]
        self._sizes = [self._size(condition) for condition in self._admissible]
        self._starts = array("Q")
        end = 0
        for size in self._sizes:
            self._starts.append(end)
            end += size
        self._length = end
        self._quota = self._quotas()
        self._pairs = functools.lru_cache(CACHED_CONDITIONS)(self._make_pairs)

    def __len__(self) -> int:
        return self._length

    def spec(self, place: int) -> RunSpec:
        """The run at a place in the plan."""
        index = bisect_right(self._starts, place) - 1
        condition = self._admissible[index]
        pairs = self._pairs(index)
        replicate, pair = divmod(place - self._starts[index], len(pairs))
        return spec_of(self.study.study_id, condition, pairs[pair], replicate + 1)

    def condition_at(self, place: int) -> Condition:
        """The condition of the run at a place."""
        return self._admissible[bisect_right(self._starts, place) - 1]

    def first_places(self) -> Sequence[int]:
        """Where the runs of each condition begin."""
        return self._starts

    def specs(self) -> Iterator[RunSpec]:
        """All runs, in plan order."""
        return map(self.spec, range(self._length))

    def order(self) -> array[int]:
        """The order of execution: places in the plan (`execution_order`)."""
        return execution_order(self.study, self.conditions)

    def is_skipped(self, place: int) -> bool:
        """Whether a balanced `max_runs` leaves this run out."""
        if self._quota is None:
            return False
        index = bisect_right(self._starts, place) - 1
        return place - self._starts[index] >= self._quota[index]

    @property
    def runnable(self) -> int:
        """How many runs are to happen: all but those that a balanced `max_runs` leaves out."""
        return self._length if self._quota is None else sum(self._quota)

    def _size(self, condition: Condition) -> int:
        pairs = len(agents_of(self.study, condition)) * len(problems_of(self.study, condition))
        return pairs * replicates_of(self.study)

    def _make_pairs(self, index: int) -> list[Pair]:
        return pairs_of(self.study, self._admissible[index], self._policy)

    def _quotas(self) -> list[int] | None:
        """How many runs of each condition happen, where `max_runs` is to cut the plan evenly.

        Every condition gets the same number, its first replicates first; what is left over goes to
        the conditions that stand first in the plan.
        """
        budget = self.study.run_budget
        if budget.max_runs is None or not budget.is_balanced or self._length <= budget.max_runs:
            return None
        quotas = [0] * len(self._sizes)
        left = budget.max_runs
        wanting = list(range(len(self._sizes)))
        while left and wanting:
            share, extra = divmod(left, len(wanting))
            for rank, index in enumerate(wanting):
                given = min(share + (rank < extra), self._sizes[index] - quotas[index])
                quotas[index] += given
                left -= given
            wanting = [index for index in wanting if quotas[index] < self._sizes[index]]
        return quotas
