"""A race: which of many candidates is the fastest, without timing all of them to the end.

Every candidate runs sessions against the same base. A race asks for heats and is told the
statistics of their sessions, log(candidate/base); what it asks for next, and who wins, is a
function of what it was told and of nothing else. Everybody gets the first look; after that
sessions go only to the leader (the best estimate) and to those that might still beat it by
`min_effect` or more. Who is certainly slower than the leader, or certainly not faster than the base
by `min_effect`, is dropped.

What is guaranteed. Let b be the truly fastest of those that were not withdrawn. With a chance of
1 - alpha or more, whatever the others are like and whenever the race stops:

- b is never dropped for being slower than another;
- if b is faster than the base by more than `min_effect`, it isn't dropped because of the base, and
  there is a winner, unless the race is stopped before the first look or runs out of sessions with
  no estimate below the base;
- a winner of a race that ended by itself (`one_left`, `close`) is b, or slower than b by
  `min_effect` at most. A race that was stopped or ran out of sessions gives its best estimate, and
  guarantees nothing of it.

Why. Each of these goes wrong only if, at some look, a lower bound of b's distance to some rival j,
or to the base, lies above the true distance. Such bounds are one-sided and repeated: t at the
nominal level of a group-sequential test, over the first n sessions of both for n in `LOOKS`,
however many more one of them has, so that which runner gets sessions can't bend them. The bound
against j goes wrong with a chance of alpha * share(j), the one against the base with half of
alpha * share(b), and the shares add up to 1. Only comparisons with b count, which is why this takes
k bounds and not one for each of the k * (k - 1) pairs. The intervals in `standings` are two-sided
at alpha * share, so all of them hold at once with a chance of 1 - alpha.

In an open race candidates may enter later. Half of alpha is shared by those that were there at the
start, the other half is spent by arrival number, so that no share ever shrinks. The guarantee then
is one for each runner: if it is the fastest of all that ever enter, it is dropped with a chance of
alpha at most, as long as what enters later isn't chosen by whether it was dropped.

A winner's estimate is too good: it was picked for being the best (the winner's curse). Whoever runs
the race measures its winner again, in fresh sessions, at the full alpha, and reports that only.

References::

    Paulson (1964), Ann. Math. Stat. 35, 174-180: dropping candidates as a race goes on
    Jennison & Turnbull (1989), J. R. Stat. Soc. B 51, 305-361: repeated confidence intervals
    Maron & Moore (1994), Adv. Neural Inf. Process. Syst. 6, 59-66: racing
    Kim & Nelson (2001), ACM Trans. Model. Comput. Simul. 11, 251-273: an indifference zone
    Welch (1947), Biometrika 34, 28-35
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairtrial.stats.sequential import LOOKS, Claim, Look, look, next_look, nominal_level


class State(StrEnum):
    """Where a runner is in a race."""

    RUNNING = "running"
    CLOSE = "can't beat the leader by as much as matters"
    SLOWER = "slower than the leader"
    NO_FASTER = "no faster than the base by as much as matters"
    EQUIVALENT = "equivalent to the base"
    WITHDRAWN = "withdrawn"


class Ending(StrEnum):
    """Why a race is over."""

    ONE_LEFT = "one is left"
    CLOSE = "those left don't differ by as much as matters"
    NONE_FASTER = "none is faster than the base by as much as matters"
    NONE_LEFT = "none is left"
    SPENT = "those left have had all their sessions"
    STOPPED = "it was stopped"


@dataclass(frozen=True, slots=True)
class Heat:
    """What to run now.

    runner: whose sessions
    sessions: how many more
    """

    runner: int
    sessions: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How a runner is doing.

    runner: which one
    state: whether it is in the race, or why not
    look: its sessions so far, with an interval that holds for all runners at once
    rival: whom it is slower than, or too close to
    """

    runner: int
    state: State
    look: Look
    rival: int | None = None


class Race:
    """Runners 0 to `count` - 1, and those that `enter`; see the module for what is guaranteed."""

    def __init__(
        self,
        count: int,
        *,
        alpha: float,
        min_effect: float,
        most_sessions: int = LOOKS[-1],
        is_open: bool = False,
    ) -> None:
        """`alpha` is the family's, `min_effect` a share (0.02: 2 %), `most_sessions` a runner's.

        An open race lets runners enter later, and keeps half of alpha for them.
        """
        _check(count, alpha, min_effect, most_sessions)
        self._alpha, self._min_effect = alpha, min_effect
        self._margin = math.log1p(min_effect)
        self._looks = (*(at for at in LOOKS if at < most_sessions), most_sessions)
        self._is_open, self._is_stopped = is_open, False
        self._initial = count
        self._statistics: list[list[float]] = []
        self._shares: list[float] = []
        self._levels: list[float] = []
        self._states: list[State] = []
        self._rivals: list[int | None] = []
        self._goals: dict[int, int] = {}
        self._winner: int | None = None
        self._ending: Ending | None = None
        for _ in range(count):
            self._add()
        self._decide()

    @property
    def heats(self) -> tuple[Heat, ...]:
        """All heats of this round, in the order in which they are best run.

        They may be run in any other order, or session by session in turn: nothing is decided until
        a round is complete.
        """
        due = sorted(self._goals, key=lambda runner: (self._looked(runner), runner))
        return tuple(Heat(runner, self._goals[runner] - self._count(runner)) for runner in due)

    def next_heat(self) -> Heat | None:
        """What to run now; None when the race is over."""
        return next(iter(self.heats), None)

    def tell(self, runner: int, statistics: Sequence[float]) -> None:
        """New sessions of a runner: log(candidate/base) of each; as many as asked for, or fewer."""
        self._check_runner(runner)
        due = self._goals.get(runner, 0) - self._count(runner)
        if runner not in self._goals:
            raise ValueError(f"runner {runner} wasn't asked to run; run what next_heat() says")
        if len(statistics) > due:
            raise ValueError(f"runner {runner} was asked for {due} sessions, not {len(statistics)}")
        if not all(math.isfinite(value) for value in statistics):
            raise ValueError(f"a statistic of runner {runner} is no number: leave that session out")
        self._statistics[runner] += map(float, statistics)
        if len(statistics) == due:
            del self._goals[runner]
            self._move_on()

    def withdraw(self, runner: int) -> None:
        """Take a runner out: it was rejected while it was timed, or failed.

        Whoever was dropped because of it is back. A race that was over may go on.
        """
        self._check_runner(runner)
        self._states[runner] = State.WITHDRAWN
        self._rivals[runner] = None
        self._goals.pop(runner, None)
        for other, rival in enumerate(self._rivals):
            if rival == runner:
                self._states[other], self._rivals[other] = State.RUNNING, None
        self._move_on()

    def enter(self) -> int:
        """A further runner, of an open race; it gets its first look next."""
        if not self._is_open:
            raise ValueError("nobody can enter this race: make it with is_open=True")
        if self._is_stopped:
            raise ValueError("nobody can enter a race that was stopped")
        self._add()
        runner = len(self._states) - 1
        if self._goals:
            self._goals[runner] = self._looks[0]
        self._move_on()
        return runner

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
    def ending(self) -> Ending | None:
        """Why the race is over; None while it isn't."""
        return self._ending

    @property
    def winner(self) -> int | None:
        """Who won; None while the race goes on, and if nobody can be said to be worth measuring.

        A runner that is left alone wins without a session: measuring it again is all it takes.
        """
        return self._winner

    @property
    def sessions(self) -> int:
        """How many sessions there have been."""
        return sum(map(len, self._statistics))

    @property
    def standings(self) -> tuple[Standing, ...]:
        """How all runners are doing, in their order."""
        return tuple(
            Standing(runner, state, self._look(runner), self._rivals[runner])
            for runner, state in enumerate(self._states)
        )

    def _add(self) -> None:
        runner = len(self._states)
        if not self._is_open:
            share = 1 / self._initial
        elif runner < self._initial:
            share = 0.5 / self._initial
        else:
            share = 0.5 * arrival_share(runner - self._initial + 1)
        self._shares.append(share)
        # A two-sided test at twice the level errs on either side at the level.
        self._levels.append(nominal_level(min(2 * self._alpha * share, self._alpha)) / 2)
        self._statistics.append([])
        self._states.append(State.RUNNING)
        self._rivals.append(None)

    def _move_on(self) -> None:
        """Decide if the round is complete, or pointless with nobody left to race against."""
        alive = [state for state in self._states if state != State.WITHDRAWN]
        if not self._goals or len(alive) < 2:
            self._goals.clear()
            self._decide()

    def _decide(self) -> None:
        """Drop who can't win; then the next round, or the end."""
        self._winner = self._ending = None
        self._drop_by_base()
        left = self._left()
        if len(left) < 2:
            self._end(left)
            return
        fresh = [runner for runner in left if self._looked(runner) == 0]
        if fresh and not self._is_stopped:
            self._goals = dict.fromkeys(fresh, self._looks[0])
            return
        left = [runner for runner in left if runner not in fresh]
        if not left:
            self._ending = Ending.STOPPED
            return
        leader = min(left, key=self._mean)
        rivals = self._rivals_of(leader, left)
        if not rivals and not fresh:
            self._end(self._left(), leader)
            return
        hindmost = min(map(self._looked, [leader, *rivals]))
        if self._is_stopped or hindmost == len(self._looks):
            self._ending = Ending.STOPPED if self._is_stopped else Ending.SPENT
            self._winner = leader if self._mean(leader) < 0 else None
            return
        due = [runner for runner in (leader, *rivals) if self._looked(runner) == hindmost]
        self._goals = dict.fromkeys(due, self._looks[hindmost])

    def _end(self, left: list[int], leader: int | None = None) -> None:
        if left:
            self._winner = left[0] if leader is None else leader
            self._ending = Ending.ONE_LEFT if len(left) == 1 else Ending.CLOSE
        else:
            gone = all(state == State.WITHDRAWN for state in self._states)
            self._ending = Ending.NONE_LEFT if gone else Ending.NONE_FASTER

    def _left(self) -> list[int]:
        return [r for r, s in enumerate(self._states) if s in {State.RUNNING, State.CLOSE}]

    def _drop_by_base(self) -> None:
        for runner in self._left():
            seen = self._look(runner)
            if seen.claim == Claim.EQUIVALENT:
                self._states[runner] = State.EQUIVALENT
            elif seen.low > -self._margin:
                self._states[runner] = State.NO_FASTER

    def _rivals_of(self, leader: int, left: list[int]) -> list[int]:
        """Who might beat the leader by as much as matters; who is certainly slower is dropped."""
        rivals = []
        self._states[leader], self._rivals[leader] = State.RUNNING, None
        for runner in left:
            if runner == leader:
                continue
            lag = self._least_lag(runner, leader)
            if lag > 0:
                state = State.SLOWER
            elif lag >= -self._margin:
                state = State.CLOSE
            else:
                state = State.RUNNING
                rivals.append(runner)
            self._states[runner] = state
            self._rivals[runner] = None if state == State.RUNNING else leader
        return rivals

    def _least_lag(self, runner: int, rival: int) -> float:
        """The firmest lower bound of how much slower a runner is than a rival."""
        both = min(self._looked(runner), self._looked(rival))
        mine, other = self._statistics[runner], self._statistics[rival]
        level = self._levels[rival]
        return max(_least_gap(mine[:at], other[:at], level) for at in self._looks[:both])

    def _look(self, runner: int) -> Look:
        return look(
            self._statistics[runner],
            alpha=self._alpha * self._shares[runner],
            min_effect=self._min_effect,
        )

    def _count(self, runner: int) -> int:
        return len(self._statistics[runner])

    def _looked(self, runner: int) -> int:
        """How many looks a runner has behind it."""
        return sum(at <= self._count(runner) for at in self._looks)

    def _mean(self, runner: int) -> float:
        return math.fsum(self._statistics[runner]) / self._count(runner)

    def _check_runner(self, runner: int) -> None:
        if not 0 <= runner < len(self._states):
            raise ValueError(f"there is no runner {runner}: there are {len(self._states)}, from 0")


def arrival_share(arrival: int) -> float:
    """What the arrival with this number, from 1, may spend; all arrivals together spend 1."""
    return 1 / (arrival * (arrival + 1))


def _least_gap(mine: Sequence[float], other: Sequence[float], level: float) -> float:
    """Welch's one-sided lower bound of the difference of two means of equally many."""
    from scipy.special import stdtrit

    size = len(mine)
    mean, variance = _moments(mine)
    other_mean, other_variance = _moments(other)
    total = variance + other_variance
    if total == 0:
        return mean - other_mean
    part = variance / total
    df = (size - 1) / (part * part + (1 - part) * (1 - part))
    return float(mean - other_mean + stdtrit(df, level) * math.sqrt(total / size))


def _moments(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _check(count: int, alpha: float, min_effect: float, most_sessions: int) -> None:
    if count < 0:
        raise ValueError(f"a race of {count} runners: give 0 or more")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}: give a share between 0 and 1, such as 0.05")
    if not 0 <= min_effect < math.inf:
        raise ValueError(f"min_effect is {min_effect}: give a share, such as 0.02")
    if not LOOKS[0] <= most_sessions <= LOOKS[-1]:
        raise ValueError(
            f"most_sessions is {most_sessions}: give {LOOKS[0]} (the first look) to {LOOKS[-1]}"
        )
