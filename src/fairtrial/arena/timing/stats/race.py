"""A race: which of many candidates is the fastest, without timing all of them to the end.

Every candidate runs sessions against the same base. A race asks for heats and is told the
statistics of their sessions, log(candidate/base); what it asks for next, and who wins, is a
function of what it was told and of nothing else. Everybody gets the first look. After that sessions
go only to the leader (the best estimate; the base, while none is below it) and to those that might
still beat it by more than `min_effect`. Who is certainly slower than the leader, or certainly not
faster than the base by `min_effect`, is dropped.

What is guaranteed. Let b be the truly fastest of those that weren't withdrawn, and faster than the
base by more than `min_effect`. With a chance of 1 - alpha or more, whatever the others are like:

- b is never dropped;
- a race that ends by itself (`ONE_LEFT`, `CLOSE`) has a winner, and that is b or slower than b by
  `min_effect` at most. A race that was stopped or ran out of sessions gives its best estimate, and
  promises nothing of it.

If nobody is that fast there is nothing to find. A race may still have a winner then (among equals
of the base mostly, since one of them looks best); it is turned down when it is measured again.

Why. Each of these goes wrong only if, at some look, a lower bound of how far b is behind some rival
j, or behind the base, lies above the truth. Against j that has a chance of alpha * share(j)
(`field.py`), against the base of half of alpha * share(b), and the shares add up to 1. Only
comparisons with b count, which is why k runners need k bounds, not k * (k - 1). The intervals in
`standings` are two-sided at alpha * share: all of them hold at once with a chance of 1 - alpha.

In an open race, candidates may enter later. Half of alpha is shared by those that were there at the
start, the other half is spent by arrival number, so that no share ever shrinks. The guarantee is
then one for each runner: if it is the fastest of all that ever enter, it is dropped with a chance
of alpha at most, provided that what enters later isn't chosen by whether it was dropped.

A winner's estimate is too good: it was picked for being the best (the winner's curse). Whoever runs
the race measures its winner again, in fresh sessions, at the full alpha, and reports only that.

References::

    Paulson (1964), Ann. Math. Stat. 35, 174-180: dropping candidates as one goes on
    Maron and Moore (1994), Adv. Neural Inf. Process. Syst. 6, 59-66: racing
    Kim and Nelson (2001), ACM Trans. Model. Comput. Simul. 11, 251-273: gaps that don't matter
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairtrial.arena.timing.stats.alpha_spending import share, spend
from fairtrial.arena.timing.stats.race_field import Field, Standing, State
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim


class Ending(StrEnum):
    """Why a race is over."""

    ONE_LEFT = "one is left"
    CLOSE = "none that is left can beat the leader by as much as matters"
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


class Race:
    """Runners 0 to `count` - 1, and those that `enter`; the module says what is guaranteed."""

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
        self._alpha, self._initial, self._is_open = alpha, count, is_open
        self._margin = math.log1p(min_effect)
        looks = (*(at for at in LOOKS if at < most_sessions), most_sessions)
        self._field = Field(looks, min_effect)
        self._states: list[State] = []
        self._rivals: list[int | None] = []
        self._goals: dict[int, int] = {}
        self._is_stopped = False
        self._winner: int | None = None
        self._ending: Ending | None = None
        for _ in range(count):
            self._add()
        self._decide()

    @property
    def heats(self) -> tuple[Heat, ...]:
        """All heats of this round: nothing is decided until it is complete, so that they may be run
        in any order, or session by session in turn."""
        field, goals = self._field, self._goals
        due = sorted(goals, key=lambda runner: (field.looked(runner), runner))
        return tuple(Heat(runner, goals[runner] - field.count(runner)) for runner in due)

    def next_heat(self) -> Heat | None:
        """What to run now; None when the race is over."""
        return next(iter(self.heats), None)

    def tell(self, runner: int, statistics: Sequence[float]) -> None:
        """New sessions of a runner: log(candidate/base) of each; as many as asked for, or fewer."""
        self._check_runner(runner)
        if runner not in self._goals:
            raise ValueError(f"runner {runner} wasn't asked to run; run what next_heat() says")
        due = self._goals[runner] - self._field.count(runner)
        if len(statistics) > due:
            raise ValueError(f"runner {runner} was asked for {due} sessions, not {len(statistics)}")
        if not all(math.isfinite(value) for value in statistics):
            raise ValueError(f"a statistic of runner {runner} isn't finite: leave that session out")
        self._field.tell(runner, statistics)
        if len(statistics) == due:
            del self._goals[runner]
            self._move_on()

    def withdraw(self, runner: int) -> None:
        """Take a runner out: it was rejected while it was timed, or failed.

        Whoever was dropped because of it is back. A race that was over may go on.
        """
        self._check_runner(runner)
        self._states[runner], self._rivals[runner] = State.WITHDRAWN, None
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
        runner = self._add()
        if self._goals:
            self._goals[runner] = self._field.looks[0]
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
        """Who won: None while the race goes on, or if nobody is worth being measured again.

        A runner that is alone from the start wins without a session: measuring it again is all that
        it takes. Any other winner has an estimate below the base.
        """
        return self._winner

    @property
    def sessions(self) -> int:
        """How many sessions there have been."""
        return sum(map(self._field.count, range(len(self._states))))

    @property
    def standings(self) -> tuple[Standing, ...]:
        """How all runners are doing, in their order."""
        return tuple(map(self._stand, range(len(self._states))))

    def _stand(self, runner: int) -> Standing:
        seen = self._field.look(runner, is_last=self._is_stopped)
        count = self._field.count(runner)
        return Standing(runner, self._states[runner], count, seen, self._rivals[runner])

    def _add(self) -> int:
        arrival = len(self._states) - self._initial + 1
        if arrival < 1:
            alpha = share(self._alpha, self._initial) / (2 if self._is_open else 1)
        else:
            alpha = spend(self._alpha / 2 if self._initial else self._alpha, arrival)
        self._states.append(State.RUNNING)
        self._rivals.append(None)
        return self._field.add(alpha)

    def _move_on(self) -> None:
        """Decide if the round is complete, or pointless with nobody left to race against."""
        if not self._goals or len(self._left()) < 2:
            self._goals.clear()
            self._decide()

    def _decide(self) -> None:
        """Drop who can't win; then the next round, or the end."""
        self._winner = self._ending = None
        self._drop_by_base()
        left = self._left()
        fresh = [runner for runner in left if self._field.looked(runner) == 0]
        if not left:
            gone = all(state == State.WITHDRAWN for state in self._states)
            self._ending = Ending.NONE_LEFT if gone else Ending.NONE_FASTER
        elif fresh and len(left) == 1:
            self._winner, self._ending = left[0], Ending.ONE_LEFT
        elif fresh and not self._is_stopped:
            self._goals = dict.fromkeys(fresh, self._field.looks[0])
        else:
            self._compare([runner for runner in left if runner not in fresh], is_all=not fresh)

    def _compare(self, left: list[int], is_all: bool) -> None:
        """Go on with those left that have had a look; `is_all` if there are no others."""
        leader = min(left, key=self._field.mean, default=None)
        if leader is not None and self._field.mean(leader) < 0:
            rivals = self._find_rivals(leader, left)
            ahead = [leader, *rivals]
        else:
            # The base leads. Whom it beats has been dropped, so that any other may beat it.
            leader, rivals, ahead = None, left, left
            for runner in left:
                self._states[runner], self._rivals[runner] = State.RUNNING, None
        done = min(map(self._field.looked, ahead), default=0)
        if is_all and not rivals:
            self._ending = Ending.ONE_LEFT if len(self._left()) == 1 else Ending.CLOSE
        elif self._is_stopped:
            self._ending = Ending.STOPPED
        elif done == len(self._field.looks):
            self._ending = Ending.SPENT
        else:
            # Comparisons take the same number of sessions of both, so the hindmost catch up first.
            due = [runner for runner in ahead if self._field.looked(runner) == done]
            self._goals = dict.fromkeys(due, self._field.looks[done])
            return
        self._winner = leader

    def _find_rivals(self, leader: int, left: list[int]) -> list[int]:
        """Who might beat the leader by more than matters; who is certainly slower is dropped."""
        rivals = []
        self._states[leader], self._rivals[leader] = State.RUNNING, None
        for runner in left:
            if runner == leader:
                continue
            lag = self._field.least_lag(runner, leader)
            if lag < -self._margin:
                rivals.append(runner)
                self._states[runner], self._rivals[runner] = State.RUNNING, None
            else:
                self._states[runner] = State.SLOWER if lag > 0 else State.CLOSE
                self._rivals[runner] = leader
        return rivals

    def _left(self) -> list[int]:
        return [r for r, s in enumerate(self._states) if s in {State.RUNNING, State.CLOSE}]

    def _drop_by_base(self) -> None:
        for runner in self._left():
            seen = self._field.look(runner, is_last=self._is_stopped)
            if seen.claim == Claim.EQUIVALENT:
                self._states[runner], self._rivals[runner] = State.EQUIVALENT, None
            elif seen.low > -self._margin:
                self._states[runner], self._rivals[runner] = State.NO_FASTER, None

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
