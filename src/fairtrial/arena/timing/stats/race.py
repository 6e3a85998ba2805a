"""A race: find the fastest of several candidates without timing all of them to the end.

Every candidate runs sessions against the same base. A race asks for heats and records the
statistics of their sessions, log(candidate/base); its next heat and its winner are functions of
these alone. Every runner gets the first look. After that, sessions go only to the leader (the best
estimate; the base, while no estimate is below it) and to those that might still beat it by more
than `min_effect`. A runner that is certainly slower than the leader, or certainly not faster than
the base by `min_effect`, is dropped.

What is guaranteed, if sessions are independent. Let b be the truly fastest of those that weren't
withdrawn, and faster than the base by more than `min_effect`. With a chance of 1 - alpha or more,
whatever the others are like:

- b is never dropped;
- a race that ends by itself (`ONE_LEFT`, `CLOSE`) has a winner, and that is b or slower than b by
  `min_effect` at most. A race that was stopped or ran out of sessions returns its best estimate
  without such a guarantee.

If no candidate is that fast, the race may still have a winner (usually one that equals the base and
happened to look best); the confirmation then rejects it.

Proof. Each of these fails only if, at some look, a lower bound of how far b is behind some rival j,
or behind the base, lies above the truth. Against j that has a chance of alpha / k (`race_field`),
against the base of half of that. Only comparisons with b count, which is why k runners need k
bounds, not k * (k - 1). The intervals in `standings` are two-sided at alpha / k: all of them hold
simultaneously with a chance of 1 - alpha.

A winner's estimate is biased, since it was selected for being the best (the winner's curse). So the
winner is confirmed: measured again in fresh sessions at the full alpha, and only that is reported.

References::

    Paulson (1964), Ann. Math. Stat. 35, 174-180: sequential elimination of candidates
    Maron and Moore (1994), Adv. Neural Inf. Process. Syst. 6, 59-66: racing
    Kim and Nelson (2001), ACM Trans. Model. Comput. Simul. 11, 251-273: gaps that don't matter
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairtrial.arena.timing.stats.race_field import Field, RunnerState, Standing
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim
from fairtrial.core import sequential


class RaceEnd(StrEnum):
    """Why a race is over."""

    ONE_LEFT = "one is left"
    CLOSE = "none that is left can beat the leader by as much as matters"
    NONE_FASTER = "none is faster than the base by as much as matters"
    NONE_LEFT = "none is left"
    SPENT = "those left have had all their sessions"
    STOPPED = "it was stopped"


@dataclass(frozen=True, slots=True)
class Heat:
    """Sessions to run next.

    runner: the runner's number
    sessions: how many more sessions
    """

    runner: int
    sessions: int


class Race:
    """A race of runners 0 to `count` - 1; see the module for its guarantees."""

    def __init__(
        self, count: int, *, alpha: float, min_effect: float, most_sessions: int = LOOKS[-1]
    ) -> None:
        """Start a race.

        count: number of runners
        alpha: the error rate of the whole race
        min_effect: the smallest effect of interest, e.g. 0.02 for 2 %
        most_sessions: the most sessions of one runner
        """
        _check(count, alpha, min_effect, most_sessions)
        self._margin = math.log1p(min_effect)
        looks = (*(at for at in LOOKS if at < most_sessions), most_sessions)
        self._field = Field(looks, min_effect)
        self._states = [RunnerState.RUNNING] * count
        self._rivals: list[int | None] = [None] * count
        self._goals: dict[int, int] = {}
        self._is_stopped = False
        self._winner: int | None = None
        self._ending: RaceEnd | None = None
        for _ in range(count):
            self._field.add(sequential.alpha_share(alpha, count))
        self._decide()

    @property
    def heats(self) -> tuple[Heat, ...]:
        """All heats of this round, which may be run in any order, or interleaved.

        Nothing is decided until the round is complete.
        """
        field, goals = self._field, self._goals
        due = sorted(goals, key=lambda runner: (field.looked(runner), runner))
        return tuple(Heat(runner, goals[runner] - field.count(runner)) for runner in due)

    def next_heat(self) -> Heat | None:
        """Return the next heat; None when the race is over."""
        return next(iter(self.heats), None)

    def record(self, runner: int, statistics: Sequence[float]) -> None:
        """Record new sessions of a runner: log(candidate/base) of each.

        There may be fewer than its heat asked for. Raises ValueError if there are more, or the
        runner has no heat.
        """
        self._check_runner(runner)
        if runner not in self._goals:
            raise ValueError(f"runner {runner} wasn't asked to run; run what next_heat() says")
        due = self._goals[runner] - self._field.count(runner)
        if len(statistics) > due:
            raise ValueError(f"runner {runner} was asked for {due} sessions, not {len(statistics)}")
        if not all(math.isfinite(value) for value in statistics):
            raise ValueError(f"a statistic of runner {runner} isn't finite: leave that session out")
        self._field.record(runner, statistics)
        if len(statistics) == due:
            del self._goals[runner]
            self._move_on()

    def withdraw(self, runner: int) -> None:
        """Take a runner out because it was rejected or failed while it was timed.

        Runners that were dropped because of it return. A race that was over may go on.
        """
        self._check_runner(runner)
        self._states[runner], self._rivals[runner] = RunnerState.WITHDRAWN, None
        self._goals.pop(runner, None)
        for other, rival in enumerate(self._rivals):
            if rival == runner:
                self._states[other], self._rivals[other] = RunnerState.RUNNING, None
        self._move_on()

    def stop(self) -> None:
        """End the race now: the budget is used up."""
        self._is_stopped = True
        self._goals.clear()
        self._decide()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to run."""
        return self._ending is not None

    @property
    def ending(self) -> RaceEnd | None:
        """Why the race is over; None while it goes on."""
        return self._ending

    @property
    def winner(self) -> int | None:
        """The winner; None while the race goes on, or if no runner is worth confirming.

        A runner that is alone from the start wins without a session: its confirmation is enough.
        Any other winner has an estimate below the base.
        """
        return self._winner

    @property
    def sessions(self) -> int:
        """The number of sessions so far."""
        return sum(map(self._field.count, range(len(self._states))))

    @property
    def standings(self) -> tuple[Standing, ...]:
        """The state of all runners, in their order."""
        return tuple(map(self._get_standing, range(len(self._states))))

    def _get_standing(self, runner: int) -> Standing:
        latest = self._field.look(runner, is_last=self._is_stopped)
        count = self._field.count(runner)
        return Standing(runner, self._states[runner], count, latest, self._rivals[runner])

    def _move_on(self) -> None:
        """Decide if the round is complete, or there are fewer than two runners left."""
        if not self._goals or len(self._left()) < 2:
            self._goals.clear()
            self._decide()

    def _decide(self) -> None:
        """Drop runners that can't win; then start the next round, or end the race."""
        self._winner = self._ending = None
        self._drop_by_base()
        left = self._left()
        fresh = [runner for runner in left if self._field.looked(runner) == 0]
        if not left:
            are_withdrawn = all(state == RunnerState.WITHDRAWN for state in self._states)
            self._ending = RaceEnd.NONE_LEFT if are_withdrawn else RaceEnd.NONE_FASTER
        elif fresh and len(left) == 1:
            self._winner, self._ending = left[0], RaceEnd.ONE_LEFT
        elif fresh and not self._is_stopped:
            self._goals = dict.fromkeys(fresh, self._field.looks[0])
        else:
            self._compare([runner for runner in left if runner not in fresh], is_all=not fresh)

    def _compare(self, left: list[int], is_all: bool) -> None:
        """Compare the runners left that have had a look; `is_all` if there are no others."""
        leader = min(left, key=self._field.mean, default=None)
        if leader is not None and self._field.mean(leader) < 0:
            rivals = self._find_rivals(leader, left)
            ahead = [leader, *rivals]
        else:
            # The base leads. Those that it beats were dropped, so any of the others may beat it.
            leader, rivals, ahead = None, left, left
            for runner in left:
                self._states[runner], self._rivals[runner] = RunnerState.RUNNING, None
        done = min(map(self._field.looked, ahead), default=0)
        if is_all and not rivals:
            self._ending = RaceEnd.ONE_LEFT if len(self._left()) == 1 else RaceEnd.CLOSE
        elif self._is_stopped:
            self._ending = RaceEnd.STOPPED
        elif done == len(self._field.looks):
            self._ending = RaceEnd.SPENT
        else:
            # Comparisons need equally many sessions of both, so those with the fewest run first.
            due = [runner for runner in ahead if self._field.looked(runner) == done]
            self._goals = dict.fromkeys(due, self._field.looks[done])
            return
        self._winner = leader

    def _find_rivals(self, leader: int, left: list[int]) -> list[int]:
        """Return runners that might beat the leader by more than the margin; drop slower ones."""
        rivals = []
        self._states[leader], self._rivals[leader] = RunnerState.RUNNING, None
        for runner in left:
            if runner == leader:
                continue
            lag = self._field.least_lag(runner, leader)
            if lag < -self._margin:
                rivals.append(runner)
                self._states[runner], self._rivals[runner] = RunnerState.RUNNING, None
            else:
                self._states[runner] = RunnerState.SLOWER if lag > 0 else RunnerState.CLOSE
                self._rivals[runner] = leader
        return rivals

    def _left(self) -> list[int]:
        remaining = {RunnerState.RUNNING, RunnerState.CLOSE}
        return [runner for runner, state in enumerate(self._states) if state in remaining]

    def _drop_by_base(self) -> None:
        for runner in self._left():
            latest = self._field.look(runner, is_last=self._is_stopped)
            if latest.claim == Claim.EQUIVALENT:
                self._states[runner], self._rivals[runner] = RunnerState.EQUIVALENT, None
            elif latest.low > -self._margin:
                self._states[runner], self._rivals[runner] = RunnerState.NO_FASTER, None

    def _check_runner(self, runner: int) -> None:
        if not 0 <= runner < len(self._states):
            raise ValueError(f"there is no runner {runner}: there are {len(self._states)}, from 0")


def _check(count: int, alpha: float, min_effect: float, most_sessions: int) -> None:
    if count < 0:
        raise ValueError(f"a race of {count} runners: give 0 or more")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, e.g. 0.05; got {alpha}")
    if not 0 <= min_effect < math.inf:
        raise ValueError(f"min_effect must be 0 or more, e.g. 0.02 for 2 %; got {min_effect}")
    if not LOOKS[0] <= most_sessions <= LOOKS[-1]:
        bounds = f"from {LOOKS[0]} (the first look) to {LOOKS[-1]}"
        raise ValueError(f"most_sessions must be {bounds}; got {most_sessions}")
