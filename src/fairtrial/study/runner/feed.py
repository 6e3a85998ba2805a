"""What to run next: the order of execution, retries, limits, and whether to go on at all."""

from __future__ import annotations

import heapq
import itertools
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.model.runs import Assignment, RunSpec
from fairtrial.study.model.study import AgentBinding

PAUSE_S = 0.2
LONGEST_WAIT_S = 60.0
LOOK_AHEAD = 1_000
"""How many runs of agents that have reached a limit may be passed over for those of others."""
MINUTE_S = 60.0


class AgentLimit:
    """How many runs of one agent may go on at once, and start within a minute."""

    def __init__(self, binding: AgentBinding, clock: Callable[[], float]) -> None:
        self._most = binding.max_parallel
        self._clock = clock
        self._running = 0
        # Starts are spread evenly: a burst at the head of each minute is what servers refuse.
        self._gap_s = MINUTE_S / binding.max_per_minute if binding.max_per_minute else 0.0
        self._next = 0.0

    def wait_s(self) -> float:
        """How long until the next run may start; infinite while too many are going on."""
        if self._most is not None and self._running >= self._most:
            return float("inf")
        return max(0.0, self._next - self._clock())

    def start(self) -> None:
        self._running += 1
        self._next = max(self._next, self._clock()) + self._gap_s

    def end(self) -> None:
        self._running -= 1


class AssignmentFeed:
    """Hands out assignments, in the order of execution, as an executor asks for them.

    Knows what is under way. Retries come first once their wait is over; runs of an agent that has
    reached a limit are passed over until it may go on.
    """

    def __init__(
        self,
        plan: RunPlan,
        order: array[int],
        pending: Iterator[int],
        *,
        timeout_s: float | None = None,
        agents: Mapping[str, AgentBinding] | None = None,
        next_attempt: Callable[[int], int] = lambda execution_index: 1,
        journal_of: Callable[[RunSpec], tuple[bytes, ...]] = lambda spec: (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._order, self._pending = plan, order, pending
        self._timeout_s, self._next_attempt, self._clock = timeout_s, next_attempt, clock
        self._journal_of = journal_of
        self._limits = {
            name: AgentLimit(binding, clock)
            for name, binding in (agents or {}).items()
            if binding.max_parallel is not None or binding.max_per_minute is not None
        }
        self._held: dict[str, deque[Assignment]] = {name: deque() for name in self._limits}
        self._retries: list[tuple[float, int, Assignment]] = []
        self._count = itertools.count()
        self.in_flight: dict[int, tuple[Assignment, float]] = {}
        """What is under way: assignments and when they began, by turn."""
        self.is_paused = False
        self.is_stopped = False

    def __call__(self) -> Assignment | float | None:
        """The next assignment; or for how many seconds there is none; or None: no more."""
        if self.is_stopped:
            return None
        if self.is_paused:
            return PAUSE_S
        assignment, wait_s = self._due_retry() if self._retries else (None, float("inf"))
        if assignment is None:
            assignment, held_s = self._next_run() if self._limits else self._next_free_run()
            wait_s = min(wait_s, held_s)
        if assignment is None:
            return self._wait(wait_s)
        self.in_flight[assignment.execution_index] = (assignment, self._clock())
        limit = self._limit_of(assignment)
        if limit is not None:
            limit.start()
        # Only now: those that are held back or wait for a retry need not take that much memory.
        journal = self._journal_of(assignment.spec)
        return assignment._replace(journal=journal) if journal else assignment

    def finish(self, execution_index: int) -> tuple[Assignment, float]:
        """An attempt has ended; returns what it was, and when it began."""
        assignment, began = self.in_flight.pop(execution_index)
        limit = self._limit_of(assignment)
        if limit is not None:
            limit.end()
        return assignment, began

    def retry(self, assignment: Assignment, wait_s: float) -> None:
        """Let a run be tried again after a while."""
        again = assignment._replace(attempt=assignment.attempt + 1)
        due = self._clock() + min(wait_s, LONGEST_WAIT_S)
        heapq.heappush(self._retries, (due, next(self._count), again))

    def _wait(self, wait_s: float) -> float | None:
        if wait_s < float("inf"):
            return wait_s
        # Whatever is held back waits for a run that is under way.
        return PAUSE_S if any(self._held.values()) else None

    def _due_retry(self) -> tuple[Assignment | None, float]:
        while self._retries:
            wait_s = self._retries[0][0] - self._clock()
            if wait_s > 0:
                return None, wait_s
            assignment = heapq.heappop(self._retries)[2]
            limit = self._limit_of(assignment)
            if limit is None or limit.wait_s() <= 0:
                return assignment, 0.0
            self._held[str(assignment.spec.agent_spec_ref)].appendleft(assignment)
        return None, float("inf")

    def _next_free_run(self) -> tuple[Assignment | None, float]:
        execution_index = next(self._pending, None)
        return (
            (None, float("inf"))
            if execution_index is None
            else (self._assign(execution_index), 0.0)
        )

    def _next_run(self) -> tuple[Assignment | None, float]:
        wait_s = float("inf")
        for name, held in self._held.items():
            if held:
                limit_s = self._limits[name].wait_s()
                if limit_s <= 0:
                    return held.popleft(), 0.0
                wait_s = min(wait_s, limit_s)
        while sum(map(len, self._held.values())) < LOOK_AHEAD:
            execution_index = next(self._pending, None)
            if execution_index is None:
                break
            assignment = self._assign(execution_index)
            limit = self._limit_of(assignment)
            if limit is None or limit.wait_s() <= 0:
                return assignment, 0.0
            wait_s = min(wait_s, limit.wait_s())
            self._held[str(assignment.spec.agent_spec_ref)].append(assignment)
        return None, wait_s

    def _assign(self, execution_index: int) -> Assignment:
        plan_index = self._order[execution_index]
        return Assignment(
            execution_index,
            self._next_attempt(execution_index),
            self._plan.spec(plan_index),
            self._plan.condition_at(plan_index),
            self._timeout_s,
        )

    def _limit_of(self, assignment: Assignment) -> AgentLimit | None:
        return self._limits.get(assignment.spec.agent_spec_ref or "") if self._limits else None
