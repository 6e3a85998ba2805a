"""Choose the next run: by the order of execution, retries, limits of agents, pause and stop."""

from __future__ import annotations

import heapq
import itertools
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.model.resources import Demand
from fairtrial.study.model.runs import Assignment, RunSpec
from fairtrial.study.model.study import AgentBinding
from fairtrial.study.runner.look_gate import LookGate
from fairtrial.study.runner.machine_room import MachineRoom
from fairtrial.study.runner.purse import Purse

PAUSE_S = 0.2
LONGEST_WAIT_S = 60.0
MAX_POSTPONED = 1_000
"""How many runs at a limit may be postponed in favor of those of others."""
MINUTE_S = 60.0
_LimitKey = tuple[str, Demand]
"""The agent, if it has limits of its own, and the demand: runs that share both wait together."""


class AgentLimit:
    """The limits of one agent: parallel runs, and starts within a minute."""

    def __init__(self, binding: AgentBinding, clock: Callable[[], float]) -> None:
        self._max_parallel = binding.max_parallel
        self._clock = clock
        self._running = 0
        # Starts are spread evenly: servers refuse a burst at the start of each minute.
        self._gap_s = MINUTE_S / binding.max_per_minute if binding.max_per_minute else 0.0
        self._next = 0.0

    def wait_s(self) -> float:
        """Return how long until the next run may start; infinite while too many are running."""
        if self._max_parallel is not None and self._running >= self._max_parallel:
            return float("inf")
        return max(0.0, self._next - self._clock())

    def start(self) -> None:
        """Count a run that starts."""
        self._running += 1
        self._next = max(self._next, self._clock()) + self._gap_s

    def end(self) -> None:
        """Count a run that has ended."""
        self._running -= 1


class RunLimit:
    """The limits of runs of one agent with one demand: those of the agent, and of the machine."""

    def __init__(self, agent: AgentLimit | None, demand: Demand, room: MachineRoom | None) -> None:
        self._agent, self._demand, self._room = agent, demand, room

    def wait_s(self) -> float:
        """Return how long until the next run may start; infinite while others must end first."""
        if self._room is not None and not self._room.has_room(self._demand):
            return float("inf")
        return 0.0 if self._agent is None else self._agent.wait_s()

    def start(self) -> None:
        """Count a run that starts."""
        if self._room is not None:
            self._room.take(self._demand)
        if self._agent is not None:
            self._agent.start()

    def end(self) -> None:
        """Count a run that has ended."""
        if self._room is not None:
            self._room.give(self._demand)
        if self._agent is not None:
            self._agent.end()


@dataclass(frozen=True, slots=True)
class StartConditions:
    """What must allow it before a run starts.

    agents: the agents, some of which have limits of their own
    looks: holds back each batch of runs until the planned look at the one before
    purse: decides by the ceilings whether another run may start
    room: the room on this machine, if runs are executed on it
    find_demand: returns what a run of an agent on a problem needs of its machine
    """

    agents: Mapping[str, AgentBinding] = field(default_factory=dict)
    looks: LookGate | None = None
    purse: Purse | None = None
    room: MachineRoom | None = None
    find_demand: Callable[[str | None, str], Demand] | None = None


class AssignmentFeed:
    """Hands out assignments in the order of execution, as an executor asks for them.

    Retries come first once their wait is over; runs at a limit of their agent, or
    for which this machine has no room, are postponed.

    in_flight: the assignments under way and when they started, by execution index
    is_paused: whether to hand out nothing for now
    is_stopped: whether to hand out nothing any more
    """

    def __init__(
        self,
        plan: RunPlan,
        order: array[int],
        pending: Iterator[int],
        *,
        conditions: StartConditions | None = None,
        timeout_s: float | None = None,
        next_attempt: Callable[[int], int] = lambda execution_index: 1,
        read_journal: Callable[[RunSpec], tuple[bytes, ...]] = lambda spec: (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a feed of a session's runs.

        plan, order: the runs, and their order of execution
        pending: the execution indexes of the runs to hand out
        conditions: what must allow it before a run starts; nothing by default
        timeout_s: the time limit of a run
        next_attempt: returns the number of a run's next attempt
        read_journal: returns the journal entries of a run's earlier attempts
        clock: a monotonic clock
        """
        conditions = conditions or StartConditions()
        purse, room = conditions.purse, conditions.room
        self._plan, self._order, self._pending = plan, order, pending
        self._timeout_s, self._next_attempt, self._clock = timeout_s, next_attempt, clock
        self._read_journal = read_journal
        self._gate = conditions.looks
        self._purse = purse if purse is not None and purse.has_ceiling else None
        self._held: Assignment | None = None
        self._waiting: int | None = None
        self._find_demand = conditions.find_demand
        self._room = room if conditions.find_demand is not None else None
        self._agent_limits = {
            name: AgentLimit(binding, clock)
            for name, binding in conditions.agents.items()
            if binding.max_parallel is not None or binding.max_per_minute is not None
        }
        self._limits: dict[_LimitKey, RunLimit] = {}
        self._postponed: dict[_LimitKey, deque[Assignment]] = {}
        self._is_limited = bool(self._agent_limits) or self._room is not None
        self._retries: list[tuple[float, int, Assignment]] = []
        self._is_simple = conditions.looks is None and not self._is_limited and self._purse is None
        self._count = itertools.count()
        self.in_flight: dict[int, tuple[Assignment, float]] = {}
        self.is_paused = False
        self.is_stopped = False

    def __call__(self) -> Assignment | float | None:
        """Return the next assignment, or the seconds to wait for one, or None at the end."""
        if self.is_stopped:
            return None
        if self.is_paused:
            return PAUSE_S
        if self._is_simple and not self._retries:
            execution_index = next(self._pending, None)
            if execution_index is None:
                return None
            return self._start(self._assign(execution_index))
        assignment, wait_s = self._held, float("inf")
        if assignment is None and self._retries:
            assignment, wait_s = self._due_retry()
        if assignment is None:
            assignment, postponed_s = (
                self._next_run() if self._is_limited else self._next_unlimited_run()
            )
            wait_s = min(wait_s, postponed_s)
        if assignment is None:
            return self._wait(wait_s)
        if self._purse is not None and not self._purse.admits(assignment.spec.agent_spec_ref):
            self._held = assignment
            return self._wait_for_purse(self._purse)
        self._held = None
        limit = self._find_limit(assignment)
        if limit is not None:
            limit.start()
        return self._start(assignment)

    def _wait_for_purse(self, purse: Purse) -> float | None:
        """Return how long to wait for runs under way to free what is reserved for them."""
        if self.in_flight:
            return PAUSE_S
        purse.is_exhausted = self.is_stopped = True
        return None

    def _start(self, assignment: Assignment) -> Assignment:
        self.in_flight[assignment.execution_index] = (assignment, self._clock())
        if self._purse is not None:
            self._purse.start(assignment.spec)
        # Read last, so that postponed assignments and retries don't hold journals in memory.
        journal = self._read_journal(assignment.spec)
        return assignment._replace(journal=journal) if journal else assignment

    def finish(self, execution_index: int) -> tuple[Assignment, float]:
        """Mark an attempt as ended; returns its assignment and when it started."""
        assignment, started_at = self.in_flight.pop(execution_index)
        if self._is_limited and (limit := self._find_limit(assignment)) is not None:
            limit.end()
        if self._purse is not None:
            self._purse.end(assignment.spec)
        return assignment, started_at

    def retry(self, assignment: Assignment, wait_s: float) -> None:
        """Schedule another attempt at a run after `wait_s` seconds."""
        retry = assignment._replace(attempt=assignment.attempt + 1)
        due = self._clock() + min(wait_s, LONGEST_WAIT_S)
        heapq.heappush(self._retries, (due, next(self._count), retry))

    @property
    def is_at_gate(self) -> bool:
        """Whether nothing is under way, and nothing may start before the next planned look."""
        if self.in_flight or self._retries or self._held or any(self._postponed.values()):
            return False
        self._waiting = self._next_pending()
        is_open = self._waiting is not None and self._is_open(self._waiting)
        return not is_open

    def _next_pending(self) -> int | None:
        """Return the next run to start; None at the end. Runs that looks made needless are left."""
        execution_index, self._waiting = self._waiting, None
        while execution_index is None or self._is_needless(execution_index):
            execution_index = next(self._pending, None)
            if execution_index is None:
                return None
        return execution_index

    def _next_open(self) -> int | None:
        """Return the next run to start; None at the end, and if it has to wait for a look."""
        execution_index = self._next_pending()
        if execution_index is not None and not self._is_open(execution_index):
            self._waiting, execution_index = execution_index, None
        return execution_index

    def _is_needless(self, execution_index: int) -> bool:
        return self._gate is not None and self._plan.is_skipped(self._order[execution_index])

    def _is_open(self, execution_index: int) -> bool:
        return self._gate is None or self._gate.is_open(execution_index)

    def _wait(self, wait_s: float) -> float | None:
        if wait_s < float("inf"):
            return wait_s
        # Postponed assignments, and those after a planned look, wait for runs that are under way.
        is_waiting = self._waiting is not None or any(self._postponed.values())
        return PAUSE_S if is_waiting else None

    def _due_retry(self) -> tuple[Assignment | None, float]:
        while self._retries:
            wait_s = self._retries[0][0] - self._clock()
            if wait_s > 0:
                return None, wait_s
            assignment = heapq.heappop(self._retries)[2]
            limit = self._find_limit(assignment)
            if limit is None or limit.wait_s() <= 0:
                return assignment, 0.0
            self._postponed[self._limit_key(assignment)].appendleft(assignment)
        return None, float("inf")

    def _next_unlimited_run(self) -> tuple[Assignment | None, float]:
        execution_index = self._next_open()
        return (
            (None, float("inf"))
            if execution_index is None
            else (self._assign(execution_index), 0.0)
        )

    def _next_run(self) -> tuple[Assignment | None, float]:
        wait_s = float("inf")
        for name, postponed in self._postponed.items():
            if postponed:
                limit_s = self._limits[name].wait_s()
                if limit_s <= 0:
                    return postponed.popleft(), 0.0
                wait_s = min(wait_s, limit_s)
        while sum(map(len, self._postponed.values())) < MAX_POSTPONED:
            execution_index = self._next_open()
            if execution_index is None:
                break
            assignment = self._assign(execution_index)
            limit = self._find_limit(assignment)
            if limit is None or limit.wait_s() <= 0:
                return assignment, 0.0
            wait_s = min(wait_s, limit.wait_s())
            self._postponed[self._limit_key(assignment)].append(assignment)
        return None, wait_s

    def _assign(self, execution_index: int) -> Assignment:
        spec, condition = self._plan.run_at(self._order[execution_index])
        attempt = self._next_attempt(execution_index)
        assignment = Assignment(execution_index, attempt, spec, condition, self._timeout_s)
        if self._find_demand is None:
            return assignment
        return assignment._replace(demand=self._find_demand(spec.agent_spec_ref, spec.problem_id))

    def _find_limit(self, assignment: Assignment) -> RunLimit | None:
        if not self._is_limited:
            return None
        key = self._limit_key(assignment)
        if key not in self._limits:
            self._limits[key] = RunLimit(self._agent_limits.get(key[0]), key[1], self._room)
            self._postponed[key] = deque()
        return self._limits[key]

    def _limit_key(self, assignment: Assignment) -> _LimitKey:
        agent = assignment.spec.agent_spec_ref or ""
        return agent if agent in self._agent_limits else "", assignment.demand
